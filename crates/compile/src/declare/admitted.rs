//! Directories that the user allows to be read.

use std::collections::HashMap;
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
    let walk = walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name();
    for entry in walk.into_iter().flatten().filter(|entry| is_file(entry.path())) {
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
        .finish();
    Some(Content { digest, files })
}
