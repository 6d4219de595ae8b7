//! The answers of a toolchain's programs, stored between runs as long as they stay valid.
//!
//! While a program is asked, the file accesses of it and everything that it starts are recorded,
//! found and not found. They are stored with the answer, and checked at every start. The accesses
//! of a program's loader can't be recorded, so each program's loader is asked at every start which
//! libraries it would load. A program is asked at every start if it can't be watched, or if it read
//! a file that had changed in the last two seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gfxpack_model::Error;
use gfxpack_model::digest::Hasher;
use gfxpack_process::watch::{
    FileSystemCache, PathState, PathStates, Record, WatchError, judge_driver_record,
};
use gfxpack_process::{FileDigests, Timestamp, read_sealed, touch, write_sealed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::discover::{Candidate, Driver};
use crate::probe::{Probed, ProgramRunner};

/// The answers of one candidate's programs, in a file below the cache.
pub(crate) struct ProbeCache<'a> {
    candidate: &'a Candidate,
    digests: &'a FileDigests,
    file: PathBuf,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct StoredProbe {
    probed: Probed,
    /// The results of the programs' file accesses.
    states: PathStates,
    /// The libraries of each program that ran, as its loader lists them.
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
        let digest = Hasher::new("gfxpack probe 4")
            .field(driver.path().as_os_str().as_encoded_bytes())
            .field(&[u8::from(is_hipcc), u8::from(*own_prefix)])
            .field(&path(rocm.as_ref()))
            .field(&path(device_libs.as_ref()))
            .list(environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .finish();
        Self { candidate, digests, file: cache.join("answers").join(digest.to_string()) }
    }

    /// The stored answers, if they are still valid and undamaged.
    pub(crate) fn read(&self, runner: &ProgramRunner<'_>) -> Option<Probed> {
        let StoredProbe { probed, states, libraries } = read_sealed(&self.file)?;
        let file_system = FileSystemCache::new(self.digests);
        if let Some(path) = states.first_change(&file_system) {
            tracing::debug!(path = %path.display(), "a toolchain is asked again");
            return None;
        }
        let same = |(program, before): (&PathBuf, &Vec<PathBuf>)| {
            runner.libraries(program).ok().as_ref() == Some(before)
        };
        libraries.par_iter().all(same).then(|| {
            touch(&self.file);
            probed
        })
    }

    /// Asks the programs, and stores their answers with `keep`; `since` is the time when this began.
    pub(crate) fn ask(
        &self,
        runner: &ProgramRunner<'_>,
        since: Timestamp,
        keep: bool,
    ) -> Result<Probed, Error> {
        let file_system = FileSystemCache::new(self.digests);
        let watch = ProbeRecorder::new(&file_system, since, runner.scratch, keep);
        let probed = Probed::ask(self.candidate, &runner.watched_by(&watch))?;
        let program = self.candidate.driver.path().display();
        let watched = watch.finish();
        match watched.and_then(|(states, loaded)| Ok((states, libraries(runner, loaded)?))) {
            Err(reason) => tracing::debug!(%program, reason, "what a toolchain says is not kept"),
            Ok((states, libraries)) => {
                let entry = StoredProbe { probed: probed.clone(), states, libraries };
                write_sealed(&self.file, &entry).ok();
            }
        }
        Ok(probed)
    }
}

/// The libraries of each program, as its loader lists them; an error if the program loaded others.
fn libraries(
    runner: &ProgramRunner<'_>,
    loaded: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
) -> Result<BTreeMap<PathBuf, Vec<PathBuf>>, String> {
    let real = |path: &PathBuf| fs::canonicalize(path).ok();
    let mut libraries = BTreeMap::new();
    for (program, loaded) in loaded {
        let named = runner.libraries(&program).map_err(|error| error.to_string())?;
        let loaded: BTreeSet<_> = loaded.iter().filter_map(real).collect();
        if !named.iter().filter_map(real).all(|library| loaded.contains(&library)) {
            return Err(format!("`{}` loads other libraries", program.display()));
        }
        libraries.insert(program, named);
    }
    Ok(libraries)
}

/// Records the file accesses of programs.
pub(crate) struct ProbeRecorder<'a> {
    file_system: &'a FileSystemCache<'a>,
    since: Timestamp,
    scratch: PathBuf,
    seen: Mutex<ProbeAccesses>,
}

#[derive(Default)]
struct ProbeAccesses {
    states: BTreeSet<(PathBuf, PathState)>,
    /// The libraries that each program loaded.
    loaded: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Why not all accesses are known, if they are not.
    unknown: Option<String>,
    /// A path that a program tried to write, but may not.
    written: Option<PathBuf>,
}

impl<'a> ProbeRecorder<'a> {
    /// Without `keep`, file accesses are not collected.
    pub(crate) fn new(
        file_system: &'a FileSystemCache<'a>,
        since: Timestamp,
        scratch: &Path,
        keep: bool,
    ) -> Self {
        let scratch = fs::canonicalize(scratch).unwrap_or_else(|_| scratch.to_owned());
        let unknown = (!keep).then(|| "nothing is kept".to_owned());
        let seen = Mutex::new(ProbeAccesses { unknown, ..ProbeAccesses::default() });
        Self { file_system, since, scratch, seen }
    }

    /// Adds the record of a program, and returns the files that it read.
    pub(crate) fn take(
        &self,
        program: &Path,
        record: Result<Record, WatchError>,
    ) -> Option<BTreeSet<PathBuf>> {
        let mut seen = self.seen.lock().expect("no panic inside");
        let record = match record {
            Ok(record) => record,
            Err(reason) => {
                seen.unknown = Some(reason.to_string());
                return None;
            }
        };
        seen.written = seen.written.take().or_else(|| record.refused_write().map(Path::to_owned));
        if seen.unknown.is_none() {
            let dependencies =
                judge_driver_record(&record, program, &self.scratch, self.file_system, self.since);
            // A written path is not among the answers.
            seen.unknown =
                dependencies.unknown().map(|path| format!("`{}` changed", path.display()));
            seen.states.extend(dependencies.states);
            for process in &record.processes {
                let loaded = seen.loaded.entry(process.program.clone()).or_default();
                loaded.extend(process.libraries.iter().cloned());
            }
        }
        Some(record.read().filter(|path| !path.starts_with(&self.scratch)).collect())
    }

    /// A path that a program tried to write, but may not.
    pub(crate) fn written(&self) -> Option<PathBuf> {
        self.seen.lock().expect("no panic inside").written.clone()
    }

    /// The results of all file accesses, and the libraries that each program loaded; or why these
    /// are not known.
    pub(crate) fn finish(
        self,
    ) -> Result<(PathStates, BTreeMap<PathBuf, BTreeSet<PathBuf>>), String> {
        let seen = self.seen.into_inner().expect("no panic inside");
        match seen.unknown {
            Some(reason) => Err(reason),
            None => Ok((PathStates::new(seen.states), seen.loaded)),
        }
    }
}

#[cfg(test)]
mod tests;
