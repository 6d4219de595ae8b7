//! Lists what is below the directories of sources, for a plan that is to be
//! stored: a compiler may look for files there that the text of no source names.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_compile::{SourceDirectories, is_store};
use gfxpack_model::Digest;
use gfxpack_plan::stored::{SourceTrees, Tree, TreeEntry, TreeKind};
use gfxpack_process::watch::is_in_proc;
use gfxpack_process::{Identity, is_not_found};

use crate::cache::ignores_case;
use crate::error::Result;

/// Limits on what a plan records about files beside its sources.
pub(super) struct Limits {
    /// Number of names in all trees.
    pub(super) names: usize,
    /// Size of stored files that no source names, in bytes.
    pub(super) bytes: u64,
}

/// The trees below directories, for a plan that is to be stored.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// The trees, in the order in which they were added.
    pub(super) trees: Vec<Tree>,
    /// By source.
    pub(super) sources: Vec<SourceTrees>,
    by_dir: HashMap<PathBuf, usize>,
    /// By device and inode: the number of the file or directory.
    numbers: HashMap<(u64, u64), u64>,
    /// Files in the trees: size, tree, name and path.
    found: Vec<(u64, usize, String, PathBuf)>,
    /// The numbers of files that sources name, which are stored anyway.
    named: HashSet<u64>,
    /// The directories that contain these files, and those above them.
    dirs_of_named: HashSet<PathBuf>,
    names_left: usize,
    own_numbers: u64,
}

impl Trees {
    /// Lists what is below the directories of sources. Besides the files that
    /// sources name, the smallest files are stored by means of `store`.
    /// Directories in `excluded` are left out.
    pub(super) fn below<'o>(
        origins: impl Iterator<Item = &'o SourceDirectories> + Clone,
        excluded: &[PathBuf],
        limits: &Limits,
        store: &dyn Fn(Digest, &[u8]) -> Result<()>,
    ) -> Result<Self> {
        let named = origins.clone().flat_map(SourceDirectories::named_files);
        let dirs_of_named = named.flat_map(Path::ancestors).map(Path::to_owned).collect();
        let mut all = Self { dirs_of_named, names_left: limits.names, ..Self::default() };
        // Include directories come first, since compilers search them whatever is
        // beside the sources. They must leave some names for the other directories.
        let left = limits.names / 4;
        all.names_left -= left;
        for dir in origins.clone().flat_map(|origin| &origin.include_dirs) {
            all.tree(dir, excluded);
        }
        all.names_left += left;
        for origin in origins {
            let root = all.tree(&origin.root, excluded);
            let dirs = origin.include_dirs.iter();
            let include_dirs = dirs.map(|dir| all.tree(dir, excluded)).collect();
            let files: Vec<u64> = origin.named_files().map(|file| all.number_of(file)).collect();
            all.named.extend(&files);
            let absent = Vec::new();
            all.sources.push(SourceTrees { root, include_dirs, files, absent });
        }
        all.carry(limits.bytes, store)?;
        Ok(all)
    }

    /// The index of a directory's tree, which is added if necessary.
    fn tree(&mut self, dir: &Path, excluded: &[PathBuf]) -> usize {
        if let Some(known) = self.by_dir.get(dir) {
            return *known;
        }
        let at = self.trees.len();
        self.by_dir.insert(dir.to_owned(), at);
        let tree = self.walk(dir, at, excluded);
        self.trees.push(tree);
        at
    }

    /// Lists what is below a directory; `at` is the index of its tree.
    /// Directories with files that sources name come first, then those that are
    /// less deep. A directory with more names than the limit allows is left out.
    fn walk(&mut self, top: &Path, at: usize, excluded: &[PathBuf]) -> Tree {
        let mut tree = Tree::default();
        let Ok(meta) = top.metadata() else { return tree };
        let (number, kind) = (self.number(&meta), TreeKind::Directory);
        tree.entries.insert(String::new(), TreeEntry { number, kind, is_link: false });
        let mut dirs = VecDeque::from([String::new()]);
        while let Some(dir) = dirs.pop_front() {
            let names = names_in(&top.join(&dir)).ok();
            let Some(names) = names.filter(|names| names.len() <= self.names_left) else {
                tree.entries.entry(dir).and_modify(|entry| entry.kind = TreeKind::Partial);
                continue;
            };
            self.names_left -= names.len();
            let has_letter = |name: &str| name.contains(|c: char| c.is_ascii_alphabetic());
            let has_link = |name: &str| {
                names.iter().any(|(other, is_link)| *is_link && other.eq_ignore_ascii_case(name))
            };
            let one = names.iter().find(|(name, _)| has_letter(name) && !has_link(name));
            if one.is_some_and(|(name, _)| ignores_case(&top.join(&dir).join(name))) {
                let folded = |entry: &mut TreeEntry| entry.kind = TreeKind::IgnoresCase;
                tree.entries.entry(dir.clone()).and_modify(folded);
            }
            for (name, is_link) in names {
                let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                let place = top.join(&path);
                let meta = match place.metadata() {
                    // A dangling link.
                    Err(error) if is_not_found(&error) => continue,
                    // A file in /proc may differ from process to process.
                    other => other.ok().filter(|meta| !is_in_proc(meta)),
                };
                let number = meta.as_ref().map(|meta| self.number(meta));
                let loops = is_link && number.is_some_and(|number| is_above(&tree, &dir, number));
                let kind = match meta {
                    Some(_) if loops => TreeKind::Above,
                    Some(meta) if meta.is_dir() && is_left_out(&place, excluded) => {
                        TreeKind::Partial
                    }
                    Some(meta) if meta.is_dir() => {
                        if self.dirs_of_named.contains(&place) {
                            dirs.push_front(path.clone())
                        } else {
                            dirs.push_back(path.clone())
                        }
                        TreeKind::Directory
                    }
                    meta => {
                        let file = meta.filter(fs::Metadata::is_file);
                        let found = file.map(|meta| (meta.len(), at, path.clone(), place));
                        self.found.extend(found);
                        TreeKind::Unknown
                    }
                };
                let number = number.unwrap_or_else(|| self.own_number());
                tree.entries.insert(path, TreeEntry { number, kind, is_link });
            }
        }
        tree
    }

    /// The number of a file or directory.
    fn number(&mut self, meta: &fs::Metadata) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry(Identity::from_metadata(meta).file_id()).or_insert(next)
    }

    /// The number of what is at a path; a new one if nothing is.
    fn number_of(&mut self, path: &Path) -> u64 {
        match path.metadata() {
            Ok(meta) => self.number(&meta),
            Err(_) => self.own_number(),
        }
    }

    /// A number that nothing else has.
    fn own_number(&mut self) -> u64 {
        self.own_numbers += 1;
        u64::MAX - self.own_numbers
    }

    /// Stores the smallest files.
    fn carry(&mut self, bytes: u64, store: &dyn Fn(Digest, &[u8]) -> Result<()>) -> Result<()> {
        self.found.sort();
        let mut left = bytes;
        for (size, tree, name, path) in std::mem::take(&mut self.found) {
            let is_named = |entry: &TreeEntry| self.named.contains(&entry.number);
            let costs = match self.trees[tree].entries.get(&name) {
                Some(entry) if is_named(entry) => 0,
                _ => size,
            };
            if costs > left {
                continue;
            }
            // A file that is gone or has changed is not recorded.
            let Some(content) = fs::read(&path).ok().filter(|it| it.len() as u64 == size) else {
                continue;
            };
            left -= costs;
            let digest = Digest::of(&content);
            if let Some(entry) = self.trees[tree].entries.get_mut(&name) {
                entry.kind = TreeKind::File(digest);
            }
            // Store the bytes that were hashed, even if the file is being written
            // to.
            store(digest, &content)?;
        }
        Ok(())
    }
}

/// The names in a directory, sorted, and which of them are links. Names that are
/// not UTF-8 are left out.
fn names_in(dir: &Path) -> io::Result<Vec<(String, bool)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_link = entry.file_type()?.is_symlink();
        names.extend(entry.file_name().into_string().ok().map(|name| (name, is_link)));
    }
    names.sort();
    Ok(names)
}

/// Whether the number is that of a directory or of one above it.
fn is_above(tree: &Tree, dir: &str, number: u64) -> bool {
    let mut dirs = Path::new(dir).ancestors().filter_map(Path::to_str);
    dirs.any(|dir| tree.entries[dir].number == number)
}

/// Whether a directory is left out. gfxpack's own cache has no sources, and its
/// files would use up the limit.
fn is_left_out(dir: &Path, excluded: &[PathBuf]) -> bool {
    let is_excluded =
        || fs::canonicalize(dir).is_ok_and(|it| is_store(&it) || excluded.contains(&it));
    dir.ends_with(".git") || is_excluded()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::fs::symlink;

    use gfxpack_compile::{ObjectStore, STORE_VERSION, SourceDirs, SourceSet};
    use gfxpack_model::Language;
    use gfxpack_plan::stored::TreeLookup;

    use super::*;

    fn limits(names: usize, bytes: u64) -> Limits {
        Limits { names, bytes }
    }

    fn no_store(_: Digest, _: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The trees of the directory with `dir/k.cl` and of an include directory,
    /// with these files.
    fn trees(names: usize, files: &[&str], change: impl Fn(&Path)) -> [Tree; 2] {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        change(dir.path());
        let path = |name: &str| dir.path().join(name);
        let mut sources = SourceSet::default();
        let (main, include) = (path("top/dir/k.cl"), [path("include")]);
        sources.load(&main, "dir/k.cl", Language::OpenclC, &include, None).unwrap();
        let trees = Trees::below(sources.directories(), &[], &limits(names, 0), &no_store).unwrap();
        let SourceTrees { root, include_dirs, .. } = &trees.sources[0];
        [*root, include_dirs[0]].map(|at| trees.trees[at].clone())
    }

    #[test]
    fn a_directory_over_the_limit_leaves_room_for_others() {
        let files = ["include/x/y.h", "top/a/1", "top/b/1/1", "top/b/2", "top/dir/k.cl", "top/z"];
        let left_out = |names: usize| {
            let [root, include] = trees(names, &files, |_| ());
            let paths =
                ["x/y.h", "x/z.h"].map(|path| include.find(Path::new(path)).entry().is_some());
            assert_eq!(paths, [true, false]);
            assert_eq!(include.find(Path::new("x/z.h")), TreeLookup::Absent);
            let partial = root.entries.iter().filter(|(_, it)| it.kind == TreeKind::Partial);
            partial.map(|(path, _)| format!("/{path}")).collect::<Vec<_>>().join(" ")
        };
        // With names for two in the include directory, and four in the topmost one.
        let left_out = [3, 6, 7, 8, 9, 10, 11].map(left_out);
        assert_eq!(left_out, ["/", "/a /b /dir", "/a /b", "/b", "/b", "/b/1", ""]);
    }

    #[test]
    fn odd_names_and_links_into_proc_do_not_hide_other_files() {
        let files = ["include/x.h", "top/dir/k.cl"];
        let [root, _] = trees(100, &files, |dir| {
            let name = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.h");
            fs::write(dir.join("top").join(std::ffi::OsStr::to_owned(name)), "").unwrap();
            symlink("/proc/self/cmdline", dir.join("top/arguments")).unwrap();
            symlink("/proc/self", dir.join("top/self")).unwrap();
        });
        assert_eq!(root.find(Path::new("x.h")), TreeLookup::Absent);
        for name in ["arguments", "self"] {
            assert_eq!(root.entries[name].kind, TreeKind::Unknown);
        }
        assert_eq!(root.find(Path::new("self/cmdline")), TreeLookup::Unknown);
        assert_eq!(root.entries.len(), 5);
    }

    #[test]
    fn a_link_to_a_directory_above_it_is_that_directory() {
        let files = ["include/a/y.h", "include/x.h", "top/dir/k.cl"];
        let [_, include] = trees(100, &files, |dir| {
            symlink(".", dir.join("include/lib")).unwrap();
            symlink("..", dir.join("include/a/up")).unwrap();
        });
        let find = |path: &str| include.find(Path::new(path));
        assert!(find("x.h").entry().is_some());
        assert_eq!([find("lib/x.h"), find("lib/a/up/lib/x.h")], [find("x.h"); 2]);
        assert_eq!([find("lib/y.h"), find("a/up/y.h")], [TreeLookup::Absent; 2]);
        assert_eq!(include.entries.len(), 6);
    }

    #[test]
    fn a_sources_own_file_has_the_number_of_its_other_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["by name/a", "by name/b", "loop"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("by name/a/k.cl"), "#include \"x.h\"\n").unwrap();
        fs::write(path("by name/b/x.h"), "").unwrap();
        fs::hard_link(path("by name/b/x.h"), path("by name/a/y.h")).unwrap();
        fs::write(path("loop/k.cl"), "#include \"lib/y.h\"\n").unwrap();
        fs::write(path("loop/y.h"), "").unwrap();
        symlink(".", path("loop/lib")).unwrap();
        let mut sources = SourceSet::default();
        let dirs = SourceDirs::list(&[path("by name")]).unwrap();
        for (root, dirs) in [("by name/a", Some(&dirs)), ("loop", None)] {
            let main = path(root).join("k.cl");
            sources.load(&main, "k.cl", Language::OpenclC, &[], dirs).unwrap();
        }

        let trees = Trees::below(sources.directories(), &[], &limits(100, 0), &no_store).unwrap();
        for (origin, source) in trees.sources.iter().zip(sources.sources()) {
            let entries = &trees.trees[origin.root].entries;
            let own = source.files.iter().position(|file| file.path != "k.cl").unwrap();
            assert!(!entries.contains_key(&source.files[own].path), "{source:?}");
            assert_eq!(origin.files[own], entries["y.h"].number, "{source:?}");
        }
    }

    #[test]
    fn a_name_in_other_letters_is_not_absent_where_case_is_ignored() {
        let files = ["include/a", "top/1", "top/a", "top/dir/k.cl"];
        // Simulates a file system that ignores case.
        let change = |dir: &Path| {
            fs::hard_link(dir.join("top/a"), dir.join("top/A")).unwrap();
            symlink("a", dir.join("include/A")).unwrap();
        };
        let [root, include] = trees(100, &files, change);
        let kinds = ["", "dir"].map(|dir| root.entries[dir].kind);
        assert_eq!(kinds, [TreeKind::IgnoresCase, TreeKind::Directory]);
        assert_eq!(include.entries[""].kind, TreeKind::Directory);
    }

    #[test]
    fn the_objects_of_a_shard_do_not_come_with_a_plan() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("k.cl"), "").unwrap();
        fs::write(path("x.h"), "text").unwrap();
        drop(ObjectStore::open(&path("shards")).unwrap());
        let object = Path::new("shards").join(STORE_VERSION).join("object");
        fs::write(dir.path().join(&object), "bits").unwrap();
        let mut sources = SourceSet::default();
        sources.load(&path("k.cl"), "k.cl", Language::OpenclC, &[], None).unwrap();

        let stored = RefCell::new(Vec::new());
        let store = |digest, bytes: &[u8]| {
            if bytes == b"text" {
                // Simulates somebody editing the file at this moment.
                fs::write(path("x.h"), "other").unwrap();
            }
            stored.borrow_mut().push((digest, bytes.to_owned()));
            Ok(())
        };
        let trees = Trees::below(sources.directories(), &[], &limits(100, 4), &store).unwrap();
        let file = (Digest::of(b"text"), b"text".to_vec());
        assert_eq!(stored.into_inner().last(), Some(&file));
        assert_eq!(trees.trees[0].entries["x.h"].kind, TreeKind::File(Digest::of(b"text")));
        assert_eq!(trees.trees[0].find(&object), TreeLookup::Unknown);
    }
}
