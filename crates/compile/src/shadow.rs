//! Headers that are not there: a new one in a directory that is searched
//! before the one where a header was found would be read in its place.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gfxpack_process::{FileDigests, Identity};
use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;

use crate::answers::Moment;
use crate::engine::Command;
use crate::header_text::{HeaderText, HeaderTexts};

/// Stands among digests of files for one that must not be there.
pub(crate) fn absent() -> Digest {
    static ABSENT: OnceLock<Digest> = OnceLock::new();
    *ABSENT.get_or_init(|| Digest::of(b"gfxpack: no file of this name"))
}

/// What there is at a path now, as it would be listed; `None` where that can't
/// be read.
pub(crate) fn now(path: &Path, digests: &FileDigests) -> Option<Digest> {
    match digests.digest(path) {
        Ok(digest) => Some(digest),
        Err(_) => match fs::metadata(path) {
            Err(_) => Some(absent()),
            Ok(meta) => meta.is_dir().then(|| listing(path)),
        },
    }
}

/// Whether a file is as it was when it was listed.
pub(crate) fn holds(path: &Path, digest: Digest, digests: &FileDigests) -> bool {
    if digest == absent() {
        fs::metadata(path).is_err()
    } else {
        now(path, digests) == Some(digest)
    }
}

/// A directory of GCC's or libstdc++'s versions: names, and whether each is
/// an installation to clang.
///
/// Source: llvm-project, clang/lib/Driver/ToolChains/Gnu.cpp,
/// `GCCInstallationDetector::ScanGCCForMultilibs`.
fn listing(dir: &Path) -> Digest {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut entries: Vec<(OsString, bool)> = entries
        .map(|entry| (entry.file_name(), entry.path().join("crtbegin.o").is_file()))
        .collect();
    entries.sort();
    Hasher::new("gfxpack listing 1")
        .list(entries.iter().map(|(name, _)| name.as_encoded_bytes()))
        .list(entries.iter().map(|(_, has_start)| [u8::from(*has_start)]))
        .finish()
}

/// The directories in which the driver finds the newest GCC and its C++
/// library, told by those that it has the compiler search.
fn versions(dirs: &[&str]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for dir in dirs {
        let Some((prefix, rest)) = dir.split_once("/lib/gcc/") else { continue };
        let (Some(triple), prefix) = (rest.split('/').next(), Path::new(prefix)) else { continue };
        let all = prefix.join("lib/gcc");
        found.extend([all.join(triple), all, prefix.join("include/c++")]);
    }
    found
}

/// What a compiler would have read had it been there, and the like.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shadows {
    /// Paths of which none leads to anything.
    pub(crate) absent: Vec<PathBuf>,
    /// Files that a text asks for by `__has_include`.
    pub(crate) present: Vec<PathBuf>,
    /// Directories that decide by what they hold.
    pub(crate) listings: Vec<(PathBuf, Digest)>,
    /// Files that would have been read had they been there in time, and
    /// directories that may have held something else.
    pub(crate) late: Vec<(PathBuf, Identity)>,
}

impl Shadows {
    /// For what a compiler read, as it spells that, in directories that it
    /// searches in this order; it was started at a moment. The source itself
    /// asks for some names with `__has_include`.
    pub(crate) fn of(
        dirs: &[&str],
        read: &[PathBuf],
        asked: &[String],
        texts: &HeaderTexts,
        started: Moment,
    ) -> Self {
        let mut found = Self::default();
        let mut look = Look {
            listed: read.iter().map(PathBuf::as_path).collect(),
            exists: HashMap::new(),
            seen: BTreeSet::new(),
            absent: BTreeSet::new(),
        };
        let mut late = |path: PathBuf| {
            if let Ok(meta) = fs::metadata(&path) {
                let identity = Identity::of(&meta);
                if !started.is_after(&identity) {
                    found.late.push((path, identity));
                }
            }
        };
        let mut asked: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
        let told: Vec<Arc<HeaderText>> = read.iter().map(|path| texts.of(path)).collect();
        for (path, told) in read.iter().zip(&told) {
            asked.extend(told.asked.iter().map(String::as_str));
            let beside = |name: &String| Some((path.parent()?, name.clone()));
            for (dir, name) in told.beside.iter().chain(&told.asked).filter_map(beside) {
                // A file that is there is listed, or in a branch not taken.
                look.at(dir, &name);
            }
            let Some(text) = path.to_str() else { continue };
            for (place, dir) in dirs.iter().enumerate() {
                let Some(name) = text.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/'))
                else {
                    continue;
                };
                for earlier in &dirs[..place] {
                    look.at(Path::new(earlier), name).into_iter().for_each(&mut late);
                }
            }
        }
        let mut present = BTreeSet::new();
        for name in asked {
            for dir in dirs {
                let path = Path::new(dir).join(name);
                if look.listed.contains(path.as_path()) {
                    break;
                }
                look.at(Path::new(dir), name);
                if path.is_file() {
                    present.insert(path);
                    break;
                }
            }
        }
        for dir in versions(dirs) {
            let state = if dir.is_dir() { listing(&dir) } else { absent() };
            found.listings.push((dir.clone(), state));
            late(dir);
        }
        found.absent = look.absent.into_iter().collect();
        found.present = present.into_iter().collect();
        found
    }
}

/// Looks for files that were not read.
struct Look<'a> {
    listed: BTreeSet<&'a Path>,
    exists: HashMap<PathBuf, bool>,
    seen: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
}

impl Look<'_> {
    fn exists(&mut self, path: &Path) -> bool {
        *self.exists.entry(path.to_owned()).or_insert_with(|| fs::metadata(path).is_ok())
    }

    /// Notes that there is no such file; gives the one that is there and was
    /// not read, once.
    fn at(&mut self, dir: &Path, name: &str) -> Option<PathBuf> {
        let path = dir.join(name);
        if self.listed.contains(path.as_path()) || !self.seen.insert(path.clone()) {
            return None;
        }
        // Where the directory is not there, that alone tells.
        let mut first = dir.to_owned();
        let mut parts = Path::new(name).components();
        while self.exists(&first) {
            let Some(part) = parts.next() else { break };
            first.push(part);
        }
        if self.exists(&first) {
            return Some(path);
        }
        self.absent.insert(first);
        None
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
pub(crate) struct KnownShadows {
    known: Mutex<HashMap<Searched, Arc<Shadows>>>,
    texts: HeaderTexts,
}

/// Directories, what was read, digests of it, and what the source asks for.
type Searched = (Vec<String>, Vec<OsString>, Vec<Digest>, Vec<String>);

impl KnownShadows {
    /// The same as [`Shadows::of`]. That something was not there holds for
    /// later jobs too: should it be there by now, they are compiled again by
    /// the next build. `digests` are of those that may change meanwhile.
    pub(crate) fn of(
        &self,
        dirs: &[&str],
        read: Vec<PathBuf>,
        digests: Vec<Digest>,
        asked: Vec<String>,
        started: Moment,
    ) -> Arc<Shadows> {
        // As bytes: paths are compared by their components, which takes longer.
        let names = read.iter().map(|path| path.as_os_str().to_owned()).collect();
        let key = (dirs.iter().map(|&dir| dir.to_owned()).collect(), names, digests, asked);
        if let Some(known) = self.known.lock().expect("no panic inside").get(&key) {
            return Arc::clone(known);
        }
        let found = Arc::new(Shadows::of(dirs, &read, &key.3, &self.texts, started));
        if found.late.is_empty() {
            self.known.lock().expect("no panic inside").insert(key, Arc::clone(&found));
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
        let found = Shadows::of(&dirs, &read, &[], &HeaderTexts::default(), Moment::now());
        assert_eq!(found.absent, ["a/sub", "a/y.h", "b/there.h", "b/y.h", "none"].map(at));
        let late: Vec<_> = found.late.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(late, [at("a/there.h")], "it may have come after the compiler looked");
        let digests = FileDigests::in_memory();
        assert!(holds(&at("a/y.h"), absent(), &digests));
        fs::write(at("a/y.h"), "").unwrap();
        assert!(!holds(&at("a/y.h"), absent(), &digests));
    }

    #[test]
    fn what_texts_ask_for_is_listed_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let header = "#include \"beside.h\"\n#if __has_include(<here.h>) || __has_include(\"own.h\")\n\
                      #endif\n";
        for (file, text) in [("b/sub/x.h", header), ("b/here.h", ""), ("b/beside.h", "")] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), text).unwrap();
        }
        let dirs = ["a", "b", "c"].map(|name| at(name).display().to_string());
        let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
        let read = ["b/sub/x.h", "b/beside.h"].map(at);
        let asked = ["later.h".to_owned()];
        let texts = HeaderTexts::default();
        let found = Shadows::of(&dirs, &read, &asked, &texts, Moment::now());
        let expected =
            ["a", "b/later.h", "b/own.h", "b/sub/beside.h", "b/sub/here.h", "b/sub/own.h", "c"];
        assert_eq!(found.absent, expected.map(at));
        assert_eq!(found.present, [at("b/here.h")]);
    }

    #[test]
    fn a_newer_c_plus_plus_library_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("lib/gcc/x86_64-linux-gnu/12")).unwrap();
        fs::create_dir_all(at("include/c++/12")).unwrap();
        let searched = at("lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12");
        let dirs = [searched.to_str().unwrap()];
        let digests = FileDigests::in_memory();
        let listings = || {
            let texts = HeaderTexts::default();
            Shadows::of(&dirs, &[], &[], &texts, Moment::now()).listings
        };
        let hold = |listings: &[(PathBuf, Digest)]| {
            listings.iter().all(|(path, digest)| holds(path, *digest, &digests))
        };
        for change in ["lib/gcc/x86_64-linux-gnu/13/crtbegin.o", "include/c++/13/cmath"] {
            let before = listings();
            assert!(before.len() == 3 && hold(&before));
            fs::create_dir_all(at(change).parent().unwrap()).unwrap();
            assert!(!hold(&before), "{change}");
            let before = listings();
            fs::write(at(change), "").unwrap();
            assert_eq!(hold(&before), change.ends_with("cmath"));
        }
    }
}
