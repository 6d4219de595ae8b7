//! What becomes of each file of a tree or a package.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use gfxpack_model::TargetId;

use crate::bundle::Bundle;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::names::is_for_others;
use crate::slim::slim;

/// A file that is smaller, or no longer there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Bytes before.
    pub before: u64,
    /// Bytes now; `None` if the file was taken out.
    pub after: Option<u64>,
    /// The names of the bundles' entries that were taken out of it.
    pub removed: BTreeSet<String>,
}

/// Decides about files one by one, and remembers what it did.
#[derive(Debug)]
pub struct Slimmer<'a> {
    targets: &'a [TargetId],
    /// What changed.
    pub changes: Vec<Change>,
    /// Files that stay as they are though they have device code, and why.
    pub kept: Vec<(PathBuf, Error)>,
    /// Libraries that would be left without code.
    pub refused: Vec<(PathBuf, Error)>,
    /// Bytes of all files before.
    pub before: u64,
    /// Bytes of all files now.
    pub after: u64,
}

impl<'a> Slimmer<'a> {
    /// Keeps what devices of these targets need.
    pub fn new(targets: &'a [TargetId]) -> Self {
        let (changes, kept, refused) = (Vec::new(), Vec::new(), Vec::new());
        Self { targets, changes, kept, refused, before: 0, after: 0 }
    }

    /// Whether a file is taken out, by its name.
    pub fn takes_out(&mut self, path: &Path, size: u64) -> bool {
        let takes_out = is_for_others(path, self.targets);
        if takes_out {
            self.before += size;
            let (path, removed) = (path.to_owned(), BTreeSet::new());
            self.changes.push(Change { path, before: size, after: None, removed });
        }
        takes_out
    }

    /// Whether a file that begins like this may have code to take out.
    pub fn is_wanted(head: &[u8]) -> bool {
        head.starts_with(b"\x7fELF\x02\x01") || Bundle::begins(head)
    }

    /// Notes a file that stays as it is.
    pub fn keeps(&mut self, size: u64) {
        self.before += size;
        self.after += size;
    }

    /// Writes the file without what other GPUs need to `out`, which is empty; `false` if it stays
    /// as it is: then what was written to `out` is of no use.
    pub fn file(&mut self, path: &Path, file: &File, out: &File) -> Result<bool, Error> {
        let size = Bytes::of(file)?.size;
        match slim(file, out, self.targets) {
            Ok(Some(slimmed)) => {
                self.before += slimmed.before;
                self.after += slimmed.after;
                let (before, after) = (slimmed.before, Some(slimmed.after));
                let (path, removed) = (path.to_owned(), slimmed.removed);
                self.changes.push(Change { path, before, after, removed });
                return Ok(true);
            }
            Ok(None) => {}
            Err(error @ Error::Io(_)) => return Err(error),
            // Whoever loads a file of its own can do without it; a library can't be loaded.
            Err(error @ Error::NoCode { .. }) if Bundle::begins(&head(file)?) => {
                self.kept.push((path.to_owned(), error));
            }
            Err(error @ Error::NoCode { .. }) => self.refused.push((path.to_owned(), error)),
            Err(error) => self.kept.push((path.to_owned(), error)),
        }
        self.keeps(size);
        Ok(false)
    }
}

fn head(file: &File) -> Result<Vec<u8>, Error> {
    let bytes = Bytes::of(file)?;
    bytes.read(0, bytes.size.min(32))
}
