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
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gfxpack_model::digest::Hasher;
use gfxpack_process::watch::{
    Answer, Answers, Landlock, Looks, Record, Recorder, RecorderOptions, Unwatched, settle_driver,
};
use gfxpack_process::{FileDigests, Timestamp, read_sealed, touch, write_sealed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::discover::{Candidate, Driver};
use crate::error::ToolchainError;
use crate::probe::{Asker, Probed};

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
        let machine = rustix::system::uname();
        let digest = Hasher::new("gfxpack probe 1")
            .field(driver.path().as_os_str().as_encoded_bytes())
            .field(&[u8::from(is_hipcc), u8::from(*own_prefix)])
            .field(&path(rocm.as_ref()))
            .field(&path(device_libs.as_ref()))
            .list(environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .field(machine.nodename().to_bytes())
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
        match watch.finish(ask) {
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

/// A record of a program that may write nothing but what is in `scratch`; with
/// `all`, of what it asks of files.
pub(crate) fn bounded(scratch: &Path, all: bool) -> io::Result<Recorder> {
    Recorder::with(&RecorderOptions {
        all,
        writable: Some(&[scratch]),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    })
}

/// Watches programs that are asked.
pub(crate) struct Watch<'a> {
    looks: &'a Looks<'a>,
    since: Timestamp,
    scratch: PathBuf,
    /// Or why it is not known.
    seen: Mutex<Result<Seen, String>>,
}

#[derive(Default)]
struct Seen {
    answers: BTreeSet<(PathBuf, Answer)>,
    /// The libraries that each program loaded.
    loaded: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

impl Seen {
    fn add(&mut self, record: &Record, answers: BTreeSet<(PathBuf, Answer)>) {
        self.answers.extend(answers);
        for process in &record.processes {
            let loaded = self.loaded.entry(process.program.clone()).or_default();
            loaded.extend(process.libraries.iter().cloned());
        }
    }
}

impl<'a> Watch<'a> {
    /// Without `keep`, what was told is of no interest.
    fn new(looks: &'a Looks<'a>, since: Timestamp, scratch: &Path, keep: bool) -> Self {
        let scratch = fs::canonicalize(scratch).unwrap_or_else(|_| scratch.to_owned());
        let seen = if keep { Ok(Seen::default()) } else { Err("nothing is kept".to_owned()) };
        Self { looks, since, scratch, seen: Mutex::new(seen) }
    }

    /// A record for a program that is about to be asked.
    pub(crate) fn recorder(&self) -> io::Result<Recorder> {
        bounded(&self.scratch, true)
    }

    /// Takes the record of a program; gives the files that were read.
    pub(crate) fn take(
        &self,
        program: &Path,
        record: Result<Record, Unwatched>,
    ) -> Option<BTreeSet<PathBuf>> {
        let mut seen = self.seen.lock().expect("no panic inside");
        let record = match record {
            Ok(record) => record,
            Err(reason) => {
                *seen = Err(reason.to_string());
                return None;
            }
        };
        if let Ok(all) = &mut *seen {
            let settled = settle_driver(&record, program, &self.scratch, self.looks, self.since);
            // What is written is no answer.
            match settled.unknown() {
                Some(path) => *seen = Err(format!("`{}` changed", path.display())),
                None => all.add(&record, settled.answers),
            }
        }
        Some(record.read().filter(|path| !path.starts_with(&self.scratch)).collect())
    }

    /// All that was told; or why it is not known.
    fn finish(self, ask: &Asker<'_>) -> Result<(Answers, BTreeMap<PathBuf, Vec<PathBuf>>), String> {
        let Seen { answers, loaded } = self.seen.into_inner().expect("no panic inside")?;
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
        Ok((Answers::new(answers, self.looks), libraries))
    }
}

#[cfg(test)]
mod tests;
