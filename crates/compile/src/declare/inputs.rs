//! What the jobs with one source and one list of commands may see.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_process::watch::Visible;

use super::Listed;
use super::admitted::content_of;
use super::search::OutsideFile;
use crate::failure_kind::FailureKind;
use crate::nearby_files::Beside;

/// What the jobs with one source and one list of commands may see.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// All that the job's own digest does not cover.
    pub(crate) listed: Vec<Listed>,
    /// The digest of that.
    pub(crate) digest: Digest,
    /// What is staged besides the source's closure: what only the system's headers name, or the
    /// command's options.
    pub(crate) others: Beside,
    /// Identifies that.
    pub(crate) others_digest: Digest,
    /// Directories outside of the staged one of which everything is visible.
    pub(super) dirs: Vec<PathBuf>,
    /// Those of them in which no directory is a link.
    pub(super) trees: Vec<PathBuf>,
    /// Files outside of the staged directory, and directories that are searched.
    pub(super) names: Vec<PathBuf>,
    /// These files.
    pub(crate) outside: Vec<Arc<OutsideFile>>,
    /// An include directory that the compiler searches on its own account, so that no object can be
    /// made that is the plain compiler's.
    pub(crate) searches: Option<PathBuf>,
    /// Files of the source that are also found elsewhere: their paths in the stage and there.
    pub(crate) twice: Vec<(PathBuf, PathBuf)>,
    /// Files that are named by a path that is not declared.
    pub(crate) undeclared: Vec<PathBuf>,
    /// Directories that the user allows to be read, with digests of what is below.
    pub(super) admitted: Vec<(PathBuf, Option<Digest>)>,
    /// Whether all that its jobs may ask for is known by name, and is not outside of their
    /// directories.
    pub(crate) is_closed: bool,
}

impl Inputs {
    /// What compilers that run in a staged directory see.
    pub(crate) fn visible(&self, stage: &Path) -> Visible {
        let (dirs, trees, names) = (self.dirs.clone(), self.trees.clone(), self.names.clone());
        Visible { stage: stage.to_owned(), dirs, trees, names }
    }

    /// A file that the compiler did not find, according to its messages, and that exists.
    pub(crate) fn undeclared(&self, messages: &str) -> Option<FailureKind> {
        let is_said = |path: &&Path| path.to_str().is_some_and(|path| messages.contains(path));
        let known = self.undeclared.iter().map(PathBuf::as_path).find(is_said);
        // A macro's value may be the name.
        let by_macro = messages.lines().find_map(|line| {
            let (before, _) = line.split_once("' file not found")?;
            before.find(": '/").map(|at| Path::new(&before[at + 3..]))
        });
        let path = known.or(by_macro)?;
        let is_in_proc = path.starts_with("/proc");
        let kind = if is_in_proc { FailureKind::ReadsProc } else { FailureKind::Reads };
        (path.is_relative() || path.exists()).then(|| kind(path.to_owned()))
    }

    /// A file that has changed since it was read for the key.
    pub(crate) fn changed(&self) -> Option<&Path> {
        // The toolchain is checked by itself.
        let mut own = self.outside.iter().filter(|file| !file.is_covered);
        let mut admitted = self.admitted.iter();
        own.find(|file| !file.is_unchanged()).map(|file| &*file.path).or_else(|| {
            // A directory that could not be read has no digest.
            let now = |dir: &Path| content_of(dir).map(|content| content.digest);
            let changed = admitted.find(|(dir, then)| then.is_none() || now(dir) != *then);
            changed.map(|(dir, _)| &**dir)
        })
    }
}
