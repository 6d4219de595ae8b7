//! A user of a machine in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_caches::{CACHES, CacheCleaner, CacheDirectory, CacheEntry, UserEnvironment, now};

pub(crate) struct User {
    dir: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl User {
    /// A user with `home`, and `tmp` for temporary files.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut user = Self { dir, variables: Vec::new() };
        for (name, path) in [("HOME", "home"), ("TMPDIR", "tmp")] {
            fs::create_dir(user.at(path)).expect("made");
            user.set(name, path);
        }
        user
    }

    /// A path below the machine's root.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Sets a variable to such a path.
    pub(crate) fn set(&mut self, name: &str, path: &str) {
        let path = self.at(path).display().to_string();
        self.variables.push((name.to_owned(), path));
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("below a directory")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn environment(&self) -> UserEnvironment {
        let variables = self.variables.iter().cloned();
        UserEnvironment::new(variables, Some("ada".to_owned()))
    }

    pub(crate) fn directories(&self, name: &str) -> Vec<CacheDirectory> {
        let cache = CACHES.iter().find(|cache| cache.name == name).expect(name);
        cache.directories(&self.environment())
    }

    /// Entries of a cache, with their places.
    pub(crate) fn entries(&self, name: &str) -> Vec<(CacheDirectory, CacheEntry)> {
        let scan = |directory: CacheDirectory| {
            let entries = directory.scan().expect("readable").entries;
            entries.into_iter().map(move |entry| (directory.clone(), entry))
        };
        self.directories(name).into_iter().flat_map(scan).collect()
    }

    pub(crate) fn below(&self, path: &Path) -> String {
        path.strip_prefix(self.dir.path()).expect("below").display().to_string()
    }

    pub(crate) fn cleaner(&self) -> CacheCleaner {
        CacheCleaner::new(&self.environment(), now())
    }

    /// Clears a cache, and returns what was kept and why.
    pub(crate) fn clear(&self, name: &str, cleaner: &CacheCleaner) -> Vec<String> {
        let mut kept = Vec::new();
        for (directory, entry) in self.entries(name) {
            match cleaner.reason_to_keep(&directory, &entry) {
                Some(why) => {
                    let refused = cleaner.remove(&directory, &entry).expect("it is not tried");
                    assert_eq!(refused.as_ref(), Some(&why), "what is kept is not removed");
                    kept.push(format!("{}: {}", self.below(&entry.path), why.name));
                }
                None => assert_eq!(cleaner.remove(&directory, &entry).expect("removed"), None),
            }
        }
        kept
    }
}
