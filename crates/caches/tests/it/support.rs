//! A user of a machine in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_caches::{Cache, CacheEntry, Clearing, Place, Surroundings, known, now};

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

    pub(crate) fn surroundings(&self) -> Surroundings {
        let variables = self.variables.iter().cloned();
        Surroundings::new(variables, Some("ada".to_owned()))
    }

    pub(crate) fn cache(&self, name: &str) -> Cache {
        let mut caches = known(&self.surroundings()).into_iter();
        caches.find(|cache| cache.name == name).expect(name)
    }

    /// Entries of a cache, with their places.
    pub(crate) fn entries(&self, name: &str) -> Vec<(Place, CacheEntry)> {
        let cache = self.cache(name);
        let scan = |place: &Place| place.scan().expect("readable").entries;
        let places = cache.places.iter();
        places.flat_map(|place| scan(place).into_iter().map(|e| (place.clone(), e))).collect()
    }

    /// The paths of a cache's entries, relative to the machine's root.
    pub(crate) fn paths(&self, name: &str) -> Vec<String> {
        self.entries(name).iter().map(|(_, entry)| self.below(&entry.path)).collect()
    }

    pub(crate) fn below(&self, path: &Path) -> String {
        path.strip_prefix(self.dir.path()).expect("below").display().to_string()
    }

    pub(crate) fn clearing(&self) -> Clearing {
        Clearing::new(&self.surroundings(), now())
    }

    /// Clears a cache, and returns what was kept and why.
    pub(crate) fn clear(&self, name: &str, clearing: &Clearing) -> Vec<String> {
        let mut kept = Vec::new();
        for (place, entry) in self.entries(name) {
            match clearing.keeps(&place, &entry) {
                Some(why) => {
                    let refused = clearing.remove(&place, &entry);
                    assert!(refused.is_err(), "what is kept is not removed");
                    kept.push(format!("{}: {}", self.below(&entry.path), why.name()));
                }
                None => clearing.remove(&place, &entry).expect("removed"),
            }
        }
        kept
    }
}
