//! Where kdbs are on this machine: the directories that are asked, in order,
//! and why.

use std::path::PathBuf;

use crate::environment::Environment;

/// What the caller knows about places.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceOptions {
    /// The directory of installed kdbs, asked unless MIOPEN_SYSTEM_DB_PATH
    /// names another.
    pub system_dir: Option<PathBuf>,
    /// The library that was loaded: installed kdbs are in
    /// `../share/miopen/db` from its directory.
    pub library_path: Option<PathBuf>,
    /// The user cache's sub-directory, so that an upgrade starts afresh:
    /// MIOpen 3.4.0 has `3.4.0.`. Empty for none.
    pub version: String,
    /// The user cache's directory as the library was built with; a leading
    /// `~` is the home directory. Empty = no user cache.
    pub build_time_cache_dir: String,
}

impl Default for PlaceOptions {
    fn default() -> Self {
        Self {
            system_dir: None,
            library_path: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build_time_cache_dir: "~/.cache/miopen/".to_owned(),
        }
    }
}

/// A directory and the rule that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Absolute; it may not exist.
    pub path: PathBuf,
    /// `MIOPEN_SYSTEM_DB_PATH`.
    pub rule: &'static str,
}

/// Where the user's kdb is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserPlace {
    /// In this directory, which may not exist yet.
    Dir(PathBuf),
    /// Nowhere, and nothing is kept: the user wants it so.
    Disabled {
        /// In words.
        why: String,
    },
    /// In this process's memory only.
    Memory {
        /// In words.
        why: String,
    },
}

/// Every directory that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// Directories of installed kdbs, the first one first. Empty where the
    /// cache is disabled.
    pub system: Vec<Place>,
    /// The user's cache.
    pub user: UserPlace,
    /// User caches that can only be read, asked after the user's own.
    pub read_only: Vec<PathBuf>,
    /// What is not as the user might expect it, each a sentence.
    pub notes: Vec<String>,
}

impl Places {
    /// Exactly these directories, whatever the environment says.
    #[must_use]
    pub fn new<P: Into<PathBuf>>(system: impl IntoIterator<Item = P>, user: UserPlace) -> Self {
        let system =
            system.into_iter().map(|path| Place { path: path.into(), rule: "given" }).collect();
        Self { system, user, read_only: Vec::new(), notes: Vec::new() }
    }

    /// The directories by MIOpen's rules.
    #[must_use]
    pub fn resolve(_environment: &Environment, _options: &PlaceOptions) -> Self {
        Self::new(Vec::<PathBuf>::new(), UserPlace::Memory { why: String::new() })
    }

    /// The directories of installed kdbs, the first one first.
    pub fn system_dirs(&self) -> impl Iterator<Item = &std::path::Path> {
        self.system.iter().map(|place| place.path.as_path())
    }
}
