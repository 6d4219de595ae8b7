//! The files outside of the sources that names may mean.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use gfxpack_model::{Digest, Language};
use gfxpack_plan::include::{self, Include, Includes};
use gfxpack_process::watch::tidy_path;
use gfxpack_process::{FileDigests, Identity, Timestamp};

use crate::source::leads_back;

/// A file outside of the sources.
#[derive(Debug)]
pub(crate) struct OutsideFile {
    /// By this name it is looked up.
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
    /// Whether the toolchain's digest covers it.
    pub(super) is_covered: bool,
    pub(super) identity: Identity,
    read_at: Timestamp,
    pub(super) real: PathBuf,
    pub(super) includes: Includes,
}

impl OutsideFile {
    fn read(path: &Path, covered: &[PathBuf], digests: &FileDigests) -> Option<Self> {
        let read_at = Timestamp::now();
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let identity = Identity::from_metadata(&meta);
        let real = fs::canonicalize(path).ok()?;
        let is_covered = covered.iter().any(|dir| real.starts_with(dir));
        let bytes = fs::read(path).ok()?;
        let (digest, includes) = (digests.digest(path).ok()?, include::scan(&bytes, Language::Hip));
        let path = path.to_owned();
        Some(Self { path, digest, is_covered, identity, read_at, real, includes })
    }

    /// Whether it still has the content that was read.
    pub(super) fn is_unchanged(&self) -> bool {
        let now = fs::metadata(&self.path).ok().map(|meta| Identity::from_metadata(&meta));
        now == Some(self.identity)
            && (self.identity.was_settled(self.read_at)
                || fs::read(&self.path).is_ok_and(|bytes| Digest::of(&bytes) == self.digest))
    }
}

/// A list of directories that a compiler searches, and what was found there.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) dirs: Vec<PathBuf>,
    /// What the toolchain's digest covers, without links.
    pub(super) covered: Arc<[PathBuf]>,
    pub(super) found: Mutex<Found>,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<Arc<OutsideFile>>,
    by_path: HashMap<PathBuf, Option<usize>>,
    /// The files that a name may mean, in all directories.
    by_name: HashMap<String, Arc<[usize]>>,
    /// The files that each file may include.
    included: HashMap<usize, Arc<[usize]>>,
}

impl Search {
    fn file(&self, found: &mut Found, path: &Path, digests: &FileDigests) -> Option<usize> {
        if let Some(known) = found.by_path.get(path) {
            return *known;
        }
        let file = OutsideFile::read(path, &self.covered, digests);
        let file = file.map(|file| {
            found.files.push(Arc::new(file));
            found.files.len() - 1
        });
        found.by_path.insert(path.to_owned(), file);
        file
    }

    /// Whether a path stays in what is searched, whatever `..` are in it.
    fn is_within(&self, path: &Path) -> bool {
        !leads_back(path) || {
            let tidy = tidy_path(path);
            self.dirs.iter().any(|dir| tidy.starts_with(tidy_path(dir)))
        }
    }

    fn named(&self, found: &mut Found, name: &str, digests: &FileDigests) -> Arc<[usize]> {
        if let Some(known) = found.by_name.get(name) {
            return Arc::clone(known);
        }
        let path = Path::new(name);
        let files: Arc<[usize]> = if path.is_absolute() {
            let is_below =
                self.dirs.iter().any(|dir| path.starts_with(dir)) && self.is_within(path);
            is_below.then(|| self.file(found, path, digests)).flatten().into_iter().collect()
        } else {
            let dirs = self.dirs.iter();
            let paths = dirs.map(|dir| joined(dir, path)).filter(|path| self.is_within(path));
            paths.filter_map(|path| self.file(found, &path, digests)).collect()
        };
        found.by_name.insert(name.to_owned(), Arc::clone(&files));
        files
    }

    fn included(&self, found: &mut Found, number: usize, digests: &FileDigests) -> Arc<[usize]> {
        if let Some(known) = found.included.get(&number) {
            return Arc::clone(known);
        }
        let file = Arc::clone(&found.files[number]);
        let mut all = Vec::new();
        for include in &file.includes.named {
            if include.quoted
                && let Some(dir) = file.path.parent()
            {
                let path = joined(dir, Path::new(&include.path));
                let is_within = self.is_within(&path);
                all.extend(is_within.then(|| self.file(found, &path, digests)).flatten());
            }
            all.extend(self.named(found, &include.path, digests).iter());
        }
        let all: Arc<[usize]> = all.into();
        found.included.insert(number, Arc::clone(&all));
        all
    }

    /// Every file that can be reached from these names and files.
    pub(super) fn reachable<'i>(
        &self,
        names: impl Iterator<Item = &'i Include>,
        files: &[PathBuf],
        digests: &FileDigests,
    ) -> Vec<Arc<OutsideFile>> {
        let found = &mut *self.lock();
        let mut queue: Vec<usize> = Vec::new();
        for file in files {
            queue.extend(self.file(found, file, digests));
        }
        for name in names {
            queue.extend(self.named(found, &name.path, digests).iter());
        }
        let mut reached: HashSet<usize> = HashSet::new();
        while let Some(number) = queue.pop() {
            if reached.insert(number) {
                queue.extend(self.included(found, number, digests).iter());
            }
        }
        let mut reached: Vec<_> =
            reached.into_iter().map(|number| Arc::clone(&found.files[number])).collect();
        reached.sort_by(|a, b| a.path.cmp(&b.path));
        reached
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().expect("no panic inside")
    }
}

/// A name below a directory, without `.` and repeated slashes.
pub(super) fn joined(dir: &Path, name: &Path) -> PathBuf {
    dir.join(name).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::write;

    fn search(root: &Path, dirs: &[&str]) -> Search {
        let dirs = dirs.iter().map(|dir| root.join(dir)).collect();
        Search { dirs, covered: [].into(), found: Mutex::default() }
    }

    /// The files that can be reached from a name, below `root`.
    fn reached(search: &Search, root: &Path, name: &str) -> Vec<String> {
        let name = Include { path: name.to_owned(), quoted: false };
        let files = search.reachable([&name].into_iter(), &[], &FileDigests::default());
        let below = files.iter().map(|file| file.path.strip_prefix(root).unwrap());
        below.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn headers_are_found_in_every_directory_and_beside_their_includers() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(
            root,
            &[
                ("cxx/cmath", "#include_next <math.h>\n#  include \"bits/own.h\"\n"),
                ("cxx/bits/own.h", "#include \"beside.h\"\n#include \"../../out.h\"\n"),
                ("cxx/bits/beside.h", "#ifdef NEVER\n#include <cmath>\n#endif\n"),
                ("c/math.h", ""),
                ("wrap/math.h", "#include <absent.h>\n"),
                ("c/unrelated.h", ""),
                ("out.h", ""),
            ],
        );
        let expected =
            ["c/math.h", "cxx/bits/beside.h", "cxx/bits/own.h", "cxx/cmath", "wrap/math.h"];
        assert_eq!(reached(&search(root, &["wrap", "cxx", "c"]), root, "cmath"), expected);
        let by_parent = ["beside.h", "own.h"].map(|name| format!("cxx/bits/../bits/{name}"));
        let own = ["cxx/bits/beside.h", "cxx/bits/own.h", "cxx/cmath"].map(str::to_owned);
        let above = search(root, &["cxx/bits/../bits", "cxx"]);
        assert_eq!(reached(&above, root, "own.h"), [&by_parent[..], &own].concat());
        let absolute = root.join("c/math.h").display().to_string();
        assert_eq!(reached(&search(root, &["c"]), root, &absolute), ["c/math.h"]);
        assert!(reached(&search(root, &["cxx"]), root, &absolute).is_empty());
    }

    #[test]
    fn a_file_that_was_written_meanwhile_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[("a.h", "1")]);
        let search = search(dir.path(), &["."]);
        reached(&search, dir.path(), "a.h");
        let file = Arc::clone(&search.lock().files[0]);
        assert!(file.is_unchanged());
        fs::write(&file.path, "2").unwrap();
        assert!(!file.is_unchanged());
    }
}
