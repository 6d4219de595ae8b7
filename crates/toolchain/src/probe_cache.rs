//! What a toolchain's programs say of it, kept between runs as long as they
//! would say it again.
//!
//! While a program is asked, it is watched: what it and all that it starts are
//! told of files, found and not found, is kept with what it says, and looked at
//! anew at every start. What its loader looks for can't be watched; so the
//! loader of each program is asked at every start which libraries it would
//! load. A program that can't be watched is asked at every start itself, and so
//! is one that was told of a file that changed in the last two seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::digest::Hasher;
use gfxpack_process::watch::{Answers, Looks};
use gfxpack_process::{FileDigests, Timestamp, read_sealed, touch, write_sealed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::discover::{Candidate, Driver};
use crate::error::ToolchainError;
use crate::probe::{Asker, Probed};
use crate::probe_watch::Watch;

/// What was said by one candidate's programs, in a file below the cache.
pub(crate) struct ProbeCache<'a> {
    candidate: &'a Candidate,
    digests: &'a FileDigests,
    file: PathBuf,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct StoredProbe {
    probed: Probed,
    /// What the programs were told of files.
    answers: Answers,
    /// What the loader says of each program that ran.
    libraries: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl<'a> ProbeCache<'a> {
    pub(crate) fn new(
        cache: &Path,
        candidate: &'a Candidate,
        environment: &[(OsString, OsString)],
        digests: &'a FileDigests,
    ) -> Self {
        let Candidate { driver, rocm, device_libs, own_prefix } = candidate;
        let is_hipcc = matches!(driver, Driver::Hipcc(_));
        let path = |path: Option<&PathBuf>| {
            path.map_or_else(Vec::new, |path| path.as_os_str().as_encoded_bytes().to_vec())
        };
        let digest = Hasher::new("gfxpack probe 3")
            .field(driver.path().as_os_str().as_encoded_bytes())
            .field(&[u8::from(is_hipcc), u8::from(*own_prefix)])
            .field(&path(rocm.as_ref()))
            .field(&path(device_libs.as_ref()))
            .list(environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .finish();
        Self { candidate, digests, file: cache.join("answers").join(digest.to_string()) }
    }

    /// What the programs say: what they said before, if they would say it
    /// again, else what they say now, which is kept with `keep`.
    pub(crate) fn probe(&self, ask: &Asker<'_>, keep: bool) -> Result<Probed, ToolchainError> {
        match self.read(ask) {
            Some(probed) => Ok(probed),
            None => self.ask(ask, Timestamp::now(), keep),
        }
    }

    /// What was said before, if it would be said again. A damaged file is none.
    fn read(&self, ask: &Asker<'_>) -> Option<Probed> {
        let StoredProbe { probed, answers, libraries } = read_sealed(&self.file)?;
        let looks = Looks::new(self.digests);
        if let Some((path, _)) = answers.first_change(&looks) {
            tracing::debug!(path = %path.display(), "a toolchain is asked again");
            return None;
        }
        let same = |(program, before): (&PathBuf, &Vec<PathBuf>)| {
            ask.libraries(program).ok().as_ref() == Some(before)
        };
        libraries.par_iter().all(same).then(|| {
            touch(&self.file);
            probed
        })
    }

    /// Asks, from `since` on.
    fn ask(&self, ask: &Asker<'_>, since: Timestamp, keep: bool) -> Result<Probed, ToolchainError> {
        let looks = Looks::new(self.digests);
        let watch = Watch::new(&looks, since, ask.scratch(), keep);
        let probed = Probed::ask(self.candidate, &ask.watched_by(&watch))?;
        let program = self.candidate.driver.path().display();
        let told = watch.finish();
        match told.and_then(|(answers, loaded)| Ok((answers, libraries(ask, loaded)?))) {
            Err(reason) if keep => {
                tracing::debug!(%program, reason, "what a toolchain says is not kept")
            }
            Err(_) => {}
            Ok((answers, libraries)) => {
                let entry = StoredProbe { probed: probed.clone(), answers, libraries };
                if let Err(error) = write_sealed(&self.file, &entry) {
                    tracing::debug!(%program, %error, "what a toolchain says is not kept");
                }
            }
        }
        Ok(probed)
    }
}

/// Which libraries the loader names for each program, if it loaded those.
fn libraries(
    ask: &Asker<'_>,
    loaded: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
) -> Result<BTreeMap<PathBuf, Vec<PathBuf>>, String> {
    let real = |path: &PathBuf| fs::canonicalize(path).ok();
    let mut libraries = BTreeMap::new();
    for (program, loaded) in loaded {
        let named = ask.libraries(&program).map_err(|error| error.to_string())?;
        let loaded: BTreeSet<_> = loaded.iter().filter_map(real).collect();
        if !named.iter().filter_map(real).all(|library| loaded.contains(&library)) {
            return Err(format!("`{}` loads other libraries", program.display()));
        }
        libraries.insert(program, named);
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests;
