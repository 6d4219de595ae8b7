//! Records the file accesses of a toolchain's programs while they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gfxpack_process::Timestamp;
use gfxpack_process::watch::{
    FileSystemCache, PathState, PathStates, Record, WatchError, judge_driver_record,
};

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
