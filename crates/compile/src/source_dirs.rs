//! Directories in which sources are looked up by their names.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, ErrorKind};

/// All files below some directories, by name. Sources of bare kernel names and their includes are
/// looked up here.
#[derive(Debug, Default)]
pub struct SourceDirs {
    by_name: HashMap<String, Vec<PathBuf>>,
}

impl SourceDirs {
    /// Lists every file below the directories, except in `.git`.
    ///
    /// # Errors
    /// If a directory can't be read.
    pub fn list(dirs: &[PathBuf]) -> Result<Self, Error> {
        let mut by_name: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for dir in dirs {
            let walk = walkdir::WalkDir::new(dir)
                .follow_links(true)
                .sort_by_file_name()
                .into_iter()
                .filter_entry(|entry| entry.file_name() != ".git");
            for entry in walk {
                match entry {
                    Ok(entry) if entry.file_type().is_file() => {
                        let name = entry.file_name().to_string_lossy().into_owned();
                        by_name.entry(name).or_default().push(entry.into_path());
                    }
                    Ok(_) => {}
                    // A dangling or circular link below is no source.
                    Err(error) if error.depth() > 0 => {}
                    Err(error) => return Err(Error::io("read", dir)(error.into())),
                }
            }
        }
        Ok(Self { by_name })
    }

    /// The names of all files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The file with that name, if there is one. Several files with the same bytes count as one.
    ///
    /// # Errors
    /// For several that differ.
    pub fn find(&self, name: &str) -> Result<Option<&Path>, Error> {
        let Some(candidates) = self.by_name.get(name) else { return Ok(None) };
        let contents: Vec<Option<Vec<u8>>> = if candidates.len() > 1 {
            candidates.iter().map(|path| fs::read(path).ok()).collect()
        } else {
            Vec::new()
        };
        if contents.windows(2).any(|pair| pair[0] != pair[1]) {
            let count = candidates.len();
            let files: Vec<String> =
                candidates.iter().map(|path| path.display().to_string()).collect();
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "failed to choose a source for `{name}`: {count} different files have that name"
                ),
                format!("give a --source-dir that holds only one of: {}", files.join(", ")),
            ));
        }
        Ok(candidates.first().map(PathBuf::as_path))
    }

    /// The file that an include refers to: the one nearest to the includer.
    pub(crate) fn nearest(&self, spelling: &str, includer: &Path) -> Option<&Path> {
        let name = Path::new(spelling).file_name()?.to_str()?;
        let shared = |path: &Path| {
            path.components().zip(includer.components()).take_while(|(a, b)| a == b).count()
        };
        let fitting = self.by_name.get(name)?.iter().filter(|path| path.ends_with(spelling));
        fitting
            .min_by_key(|path| (usize::MAX - shared(path), path.components().count(), *path))
            .map(PathBuf::as_path)
    }
}
