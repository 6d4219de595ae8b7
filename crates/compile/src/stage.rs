//! The directory in which a source is staged for its jobs.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_launch::SourceFiles;
use gfxpack_model::{Error, SourceId};
use gfxpack_process::watch::tidy_path;

use crate::nearby_files::{Beside, ClosureOrigin};
use crate::source::SourceSet;

/// How many directories above the stage hold nothing but staged files, so that this many `..` lead
/// to no other file.
pub(crate) const PARENT_LEVELS: usize = 24;
/// The name of each of these directories, which no source writes by chance.
const PARENT_NAME: &str = "gfxpack-above";

/// Lays out a source for its compiler, with other files of its directories, in a new directory.
/// Returns the directory to compile in, without links. A file that has several names among the
/// sources, and a directory that is a link, are so here too, since compilers distinguish files and
/// directories by device and inode (`#pragma once`, `-I`).
pub(crate) fn stage(
    sources: &SourceSet,
    source: SourceId,
    others: Option<&Beside>,
    top: PathBuf,
) -> Result<PathBuf, Error> {
    fs::create_dir(&top).map_err(Error::io("create", &top))?;
    let dir = (0..PARENT_LEVELS).fold(top, |dir, _| dir.join(PARENT_NAME));
    fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    let dir = fs::canonicalize(&dir).map_err(Error::io("read", &dir))?;
    sources.stage(source, others, &dir)?;
    Ok(dir)
}

impl SourceFiles for SourceSet {
    fn is_absent(&self, source: SourceId, below: &Path) -> bool {
        let name = tidy_path(below);
        let name = name.to_string_lossy();
        let is_own = self.closure_of(source).iter().any(|(path, _)| *path == name);
        !is_own
            && match self.origin(source) {
                ClosureOrigin::Here(here) => !here.path(below).exists(),
                ClosureOrigin::Stored(others) => !others.files.contains_key(&*name),
            }
    }

    fn is_dir(&self, source: SourceId, below: &Path) -> bool {
        match self.origin(source) {
            ClosureOrigin::Here(here) => here.path(below).is_dir(),
            ClosureOrigin::Stored(_) => true,
        }
    }

    fn lay_out(&self, source: SourceId, dir: &Path) -> Result<(), Error> {
        fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        self.stage(source, None, dir)
    }
}
