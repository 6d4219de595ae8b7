//! Reads the text files of a checkout.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use walkdir::DirEntry;

use crate::files::files_of;

/// A text file, with its path relative to the root.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl TextFile {
    /// The path's extension; empty if there is none.
    pub(super) fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// Whether the file is below this directory.
    pub(super) fn is_below(&self, dir: &str) -> bool {
        self.path.starts_with(dir)
    }
}

/// All text files, sorted by path.
#[derive(Debug)]
pub(super) struct Tree(Vec<TextFile>);

impl Tree {
    /// Reads the checkout, without built files and git's own.
    ///
    /// Walks the directories instead of asking git, since a source tarball is not
    /// a git repository.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let is_ours = |entry: &DirEntry| {
            let is_left_out = entry.file_name() == "target" || entry.file_name() == ".git";
            entry.depth() == 0 || !(is_left_out || entry.path_is_symlink())
        };
        let mut files = Vec::new();
        for path in files_of(root, is_ours)? {
            let bytes = fs::read(&path);
            let bytes = bytes.with_context(|| format!("failed to read `{}`", path.display()))?;
            // Files that are not text are left out.
            if let Ok(text) = String::from_utf8(bytes) {
                let path = path.strip_prefix(root).expect("below the root").to_owned();
                files.push(TextFile { path, text });
            }
        }
        Ok(Self(files))
    }

    /// A tree with these files.
    #[cfg(test)]
    pub(super) fn from_files(files: Vec<TextFile>) -> Self {
        Self(files)
    }

    pub(super) fn files(&self) -> &[TextFile] {
        &self.0
    }

    /// The text of the file with this path.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|file| file.path == Path::new(path)).map(|file| file.text.as_str())
    }
}
