//! Headers that are not there: a new one in a directory that is searched
//! before the one where a header was found would be read in its place.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gfxpack_plan::Digest;

use crate::answers::Moment;
use crate::engine::Command;
use crate::file_digest::{FileDigests, Identity};

/// Stands among digests of files for one that must not be there.
pub(crate) fn absent() -> Digest {
    static ABSENT: OnceLock<Digest> = OnceLock::new();
    *ABSENT.get_or_init(|| Digest::of(b"gfxpack: no file of this name"))
}

/// Whether a file is as it was when it was listed.
pub(crate) fn holds(path: &Path, digest: Digest, digests: &FileDigests) -> bool {
    if digest == absent() {
        fs::metadata(path).is_err()
    } else {
        digests.digest(path).is_ok_and(|now| now == digest)
    }
}

/// What a compiler would have read had it been there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shadows {
    /// Paths of which none leads to anything.
    pub(crate) absent: Vec<PathBuf>,
    /// Files that would have been read had they been there in time.
    pub(crate) late: Vec<(PathBuf, Identity)>,
}

impl Shadows {
    /// For what a compiler read, as it spells that, in directories that it
    /// searches in this order; it was started at a moment.
    pub(crate) fn of(dirs: &[&str], read: &[PathBuf], started: Moment) -> Self {
        let mut exists: HashMap<PathBuf, bool> = HashMap::new();
        let mut exists = |path: &Path| -> bool {
            *exists.entry(path.to_owned()).or_insert_with(|| fs::metadata(path).is_ok())
        };
        let listed: BTreeSet<&Path> = read.iter().map(PathBuf::as_path).collect();
        let (mut absent, mut late) = (BTreeSet::new(), Vec::new());
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        for path in read {
            let Some(text) = path.to_str() else { continue };
            for (place, dir) in dirs.iter().enumerate() {
                let Some(name) = text.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/'))
                else {
                    continue;
                };
                for earlier in &dirs[..place] {
                    let other = Path::new(earlier).join(name);
                    if listed.contains(other.as_path()) || !seen.insert(other.clone()) {
                        continue;
                    }
                    // Where the directory is not there, that alone tells.
                    let mut first = PathBuf::from(earlier);
                    let mut parts = Path::new(name).components();
                    while exists(&first) {
                        let Some(part) = parts.next() else { break };
                        first.push(part);
                    }
                    if !exists(&first) {
                        absent.insert(first);
                    } else if let Ok(meta) = fs::metadata(&other) {
                        let identity = Identity::of(&meta);
                        if !started.is_after(&identity) {
                            late.push((other, identity));
                        }
                    }
                }
            }
        }
        Self { absent: absent.into_iter().collect(), late }
    }
}

/// The directories outside of the source that a compiler searches, in order.
///
/// Source: llvm-project, clang/lib/Frontend/CompilerInvocation.cpp,
/// `ParseHeaderSearchArgs`, and clang/lib/Lex/InitHeaderSearch.cpp, `Realize`.
pub(crate) fn searched(command: &Command) -> Vec<&str> {
    const OPTIONS: [(&str, u8); 6] = [
        ("-iquote", 0),
        ("-I", 1),
        ("-isystem", 2),
        ("-internal-isystem", 3),
        ("-internal-externc-isystem", 3),
        ("-idirafter", 4),
    ];
    let words = command.texts();
    let mut dirs: Vec<(u8, &str)> = words
        .windows(2)
        .filter_map(|pair| {
            let (option, dir) = (pair[0]?, pair[1]?);
            let (_, rank) = OPTIONS.iter().find(|(name, _)| *name == option)?;
            dir.starts_with('/').then_some((*rank, dir.trim_end_matches('/')))
        })
        .collect();
    dirs.sort_by_key(|(rank, _)| *rank);
    let mut known = BTreeSet::new();
    dirs.retain(|(_, dir)| known.insert(*dir));
    dirs.into_iter().map(|(_, dir)| dir).collect()
}

/// What was found for lists of files, which many jobs have in common.
#[derive(Debug, Default)]
pub(crate) struct KnownShadows(Mutex<HashMap<Searched, Arc<Shadows>>>);

/// Directories, and what was read.
type Searched = (Vec<String>, Vec<OsString>);

impl KnownShadows {
    /// The same as [`Shadows::of`]. That something was not there holds for
    /// later jobs too: should it be there by now, they are compiled again by
    /// the next build.
    pub(crate) fn of(&self, dirs: &[&str], read: Vec<PathBuf>, started: Moment) -> Arc<Shadows> {
        // As bytes: paths are compared by their components, which takes longer.
        let names = read.iter().map(|path| path.as_os_str().to_owned()).collect();
        let key = (dirs.iter().map(|&dir| dir.to_owned()).collect(), names);
        if let Some(known) = self.0.lock().expect("no panic inside").get(&key) {
            return Arc::clone(known);
        }
        let found = Arc::new(Shadows::of(dirs, &read, started));
        if found.late.is_empty() {
            self.0.lock().expect("no panic inside").insert(key, Arc::clone(&found));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_read_first_is_listed_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for file in ["a/there.h", "b/sub/x.h", "c/sub/x.h", "c/y.h", "c/there.h", "d/z.h"] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        let dirs = ["none", "a", "b", "c", "d"].map(|name| at(name).display().to_string());
        let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
        let read = ["c/sub/x.h", "b/sub/x.h", "c/y.h", "c/there.h"].map(at);
        let found = Shadows::of(&dirs, &read, Moment::now());
        assert_eq!(found.absent, ["a/sub", "a/y.h", "b/there.h", "b/y.h", "none"].map(at));
        let late: Vec<_> = found.late.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(late, [at("a/there.h")], "it may have come after the compiler looked");
        let digests = FileDigests::in_memory();
        assert!(holds(&at("a/y.h"), absent(), &digests));
        fs::write(at("a/y.h"), "").unwrap();
        assert!(!holds(&at("a/y.h"), absent(), &digests));
    }
}
