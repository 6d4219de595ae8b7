//! The text files of a checkout.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// One text file, its path relative to the root.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl TextFile {
    /// The path's extension, or nothing.
    pub(super) fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// Whether the file lies below that directory.
    pub(super) fn is_below(&self, dir: &str) -> bool {
        self.path.starts_with(dir)
    }
}

/// All text files, in the order of their paths.
#[derive(Debug)]
pub(super) struct Tree(Vec<TextFile>);

impl Tree {
    /// Reads the checkout, leaving out what is built and what is git's.
    ///
    /// Walks the directories instead of asking git, since a source tarball has
    /// none.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(dir) = open.pop() {
            let unreadable = || format!("failed to read `{}`", dir.display());
            for entry in fs::read_dir(&dir).with_context(unreadable)? {
                let entry = entry.with_context(unreadable)?;
                let (path, name) = (entry.path(), entry.file_name());
                let kind = entry.file_type().with_context(unreadable)?;
                if kind.is_dir() && name != "target" && name != ".git" {
                    open.push(path);
                } else if kind.is_file() {
                    // What is no text is left out.
                    let Ok(text) = String::from_utf8(fs::read(&path).with_context(unreadable)?)
                    else {
                        continue;
                    };
                    let path = path.strip_prefix(root).expect("below the root").to_owned();
                    files.push(TextFile { path, text });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(files))
    }

    /// A tree of those files.
    #[cfg(test)]
    pub(super) fn from_files(files: Vec<TextFile>) -> Self {
        Self(files)
    }

    pub(super) fn files(&self) -> &[TextFile] {
        &self.0
    }

    /// The text of the file at that path.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|file| file.path == Path::new(path)).map(|file| file.text.as_str())
    }
}
