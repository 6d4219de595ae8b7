//! Directories that the user allows to be read.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;

use crate::nearby_files::{FileId, file_id_of, is_file};

/// The most files below a directory that the user allows to be read.
const MAX_ADMITTED: usize = 100_000;

/// A directory that the user allows to be read.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) dir: PathBuf,
    pub(super) real: PathBuf,
    pub(super) content: OnceLock<Option<Content>>,
}

/// The files below a directory.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) digest: Digest,
    pub(super) files: Vec<(PathBuf, FileId, Digest)>,
    /// The files outside of it that links lead to.
    pub(super) targets: BTreeSet<PathBuf>,
    /// Whether a directory below it is a link.
    pub(super) has_dir_links: bool,
}

impl Admitted {
    /// What is below; `None` if it can't be read, or is too much.
    pub(super) fn content(&self) -> Option<&Content> {
        self.content.get_or_init(|| content_of(&self.dir)).as_ref()
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        self.content().map(|content| content.digest)
    }
}

/// Everything below a directory, by name; `None` if it can't be read, or is too much.
pub(super) fn content_of(dir: &Path) -> Option<Content> {
    let mut files: Vec<(PathBuf, FileId, Digest)> = Vec::new();
    let (mut targets, mut has_dir_links) = (BTreeSet::new(), false);
    let real = fs::canonicalize(dir).ok()?;
    let walk = walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name();
    for entry in walk.into_iter().flatten() {
        has_dir_links |= entry.depth() > 0 && entry.path_is_symlink() && entry.path().is_dir();
        if !is_file(entry.path()) {
            continue;
        }
        let target = fs::canonicalize(entry.path()).ok()?;
        targets.extend((!target.starts_with(&real)).then_some(target));
        let digest = Digest::of(&fs::read(entry.path()).ok()?);
        let file_id = file_id_of(entry.path())?;
        files.push((entry.into_path(), file_id, digest));
        if files.len() > MAX_ADMITTED {
            return None;
        }
    }
    // Which names are one file decides what `#pragma once` does.
    let mut first: HashMap<FileId, &Path> = HashMap::new();
    let one = files.iter().map(|(path, id, _)| *first.entry(*id).or_insert(path));
    let digest = Hasher::new("gfxpack directory 1")
        .list(one.map(|path| path.as_os_str().as_encoded_bytes()))
        .list(files.iter().map(|(path, ..)| path.as_os_str().as_encoded_bytes()))
        .list(files.iter().map(|(.., digest)| digest))
        .list(targets.iter().map(|path| path.as_os_str().as_encoded_bytes()))
        .finish();
    Some(Content { digest, files, targets, has_dir_links })
}
