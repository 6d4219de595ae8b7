//! What lies below the directories of sources, for a plan that is stored: a
//! compiler may look for files there that no source's text names.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::{SourceDirectories, is_store};
use gfxpack_model::Digest;
use gfxpack_plan::stored::{SourceTrees, Tree, TreeEntry, TreeKind};
use gfxpack_process::{Identity, is_not_found};

/// Most names that a plan's trees have in all.
const MAX_NAMES: usize = 50_000;

/// What lies below directories, for a plan that is to be stored.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// What is told.
    pub(super) trees: Vec<Tree>,
    /// By source, in their order.
    pub(super) sources: Vec<SourceTrees>,
    /// The files whose contents come with it.
    pub(super) files: Vec<(Digest, PathBuf)>,
    by_dir: HashMap<PathBuf, usize>,
    /// By device and inode.
    numbers: HashMap<(u64, u64), u64>,
    /// Files in the trees, with their sizes.
    found: Vec<(u64, usize, String, PathBuf)>,
    /// The numbers of files that sources name, which come with the plan anyway.
    named: HashSet<u64>,
    names: usize,
}

impl Trees {
    /// What is below the directories of sources. Of the files, the smallest
    /// come with the plan, so many bytes in all, besides those that the sources
    /// name. What lies in one of the directories `apart` is not told.
    pub(super) fn below<'o>(
        origins: impl Iterator<Item = &'o SourceDirectories>,
        apart: &[PathBuf],
        bytes: u64,
    ) -> Self {
        let mut all = Self::default();
        for origin in origins {
            let root = all.tree(&origin.root, apart);
            let dirs = origin.include_dirs.iter();
            let include_dirs = dirs.map(|dir| all.tree(dir, apart)).collect();
            let files: Vec<u64> = origin.named_files().map(|file| all.number_of(file)).collect();
            all.named.extend(&files);
            all.sources.push(SourceTrees { root, include_dirs, files });
        }
        all.carry(bytes);
        all
    }

    /// The place of a directory's tree in the list.
    fn tree(&mut self, dir: &Path, apart: &[PathBuf]) -> usize {
        if let Some(known) = self.by_dir.get(dir) {
            return *known;
        }
        let at = self.trees.len();
        self.by_dir.insert(dir.to_owned(), at);
        let tree = self.walk(dir, at, apart);
        self.trees.push(tree);
        at
    }

    /// What is below a directory, which is `at` this place in the list.
    fn walk(&mut self, dir: &Path, at: usize, apart: &[PathBuf]) -> Tree {
        let mut tree = Tree::default();
        let mut partial: Vec<String> = Vec::new();
        let mut walk =
            walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // A link to nothing.
                Err(error) if error.io_error().is_some_and(is_not_found) => continue,
                // A link to a directory above it, or one that may not be read.
                Err(error) => {
                    let path = error.path().and_then(|path| name(dir, path));
                    partial.extend(path.map(|path| self.add_unknown(&mut tree, path)));
                    continue;
                }
            };
            let Some(path) = name(dir, entry.path()) else {
                partial.extend(entry.path().parent().and_then(|parent| name(dir, parent)));
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            };
            if self.names >= MAX_NAMES {
                partial.extend(tree.entries.keys().cloned());
                break;
            }
            self.names += 1;
            let Ok(meta) = entry.metadata() else {
                partial.extend(entry.path().parent().and_then(|parent| name(dir, parent)));
                continue;
            };
            let number = self.number(&meta);
            let kind = if !meta.is_dir() {
                if meta.is_file() {
                    self.found.push((meta.len(), at, path.clone(), entry.path().to_owned()));
                }
                TreeKind::Unknown
            } else if is_left_out(&entry, apart) {
                walk.skip_current_dir();
                TreeKind::Partial
            } else {
                TreeKind::Directory
            };
            let is_link = entry.depth() > 0 && entry.path_is_symlink();
            tree.entries.insert(path, TreeEntry { number, kind, is_link });
        }
        for path in partial {
            let entry = tree.entries.get_mut(&path);
            if let Some(entry) = entry.filter(|entry| entry.kind == TreeKind::Directory) {
                entry.kind = TreeKind::Partial;
            }
        }
        tree
    }

    /// The number of a file or directory.
    fn number(&mut self, meta: &fs::Metadata) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry(Identity::from_metadata(meta).place()).or_insert(next)
    }

    /// The number of what is at a path: one of its own if nothing is.
    fn number_of(&mut self, path: &Path) -> u64 {
        match path.metadata() {
            Ok(meta) => self.number(&meta),
            Err(_) => self.own_number(),
        }
    }

    /// A number that nothing else has.
    fn own_number(&mut self) -> u64 {
        self.names += 1;
        u64::MAX - self.names as u64
    }

    /// Notes a path of which nothing is known.
    fn add_unknown(&mut self, tree: &mut Tree, path: String) -> String {
        let number = self.own_number();
        let entry = TreeEntry { number, kind: TreeKind::Unknown, is_link: true };
        tree.entries.entry(path.clone()).or_insert(entry);
        path
    }

    /// Has the smallest files come with the plan.
    fn carry(&mut self, bytes: u64) {
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
            // One that is gone or changes now is not known.
            let Some(content) = fs::read(&path).ok().filter(|it| it.len() as u64 == size) else {
                continue;
            };
            left -= costs;
            let digest = Digest::of(&content);
            if let Some(entry) = self.trees[tree].entries.get_mut(&name) {
                entry.kind = TreeKind::File(digest);
            }
            self.files.push((digest, path));
        }
    }
}

/// Whether nothing in a directory is told. What gfxpack keeps is no source, and
/// would take the place of small files that are.
fn is_left_out(entry: &walkdir::DirEntry, apart: &[PathBuf]) -> bool {
    let is_apart = || {
        fs::canonicalize(entry.path()).is_ok_and(|path| is_store(&path) || apart.contains(&path))
    };
    entry.depth() > 0 && entry.file_type().is_dir() && (entry.file_name() == ".git" || is_apart())
}

/// A path below a directory as text.
fn name(dir: &Path, path: &Path) -> Option<String> {
    path.strip_prefix(dir).ok()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use gfxpack_compile::{ObjectStore, STORE_VERSION, SourceDirs, SourceSet};
    use gfxpack_model::Language;
    use gfxpack_plan::stored::Told;

    use super::*;

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

        let trees = Trees::below(sources.directories(), &[], 0);
        for (origin, source) in trees.sources.iter().zip(sources.sources()) {
            let entries = &trees.trees[origin.root].entries;
            let own = source.files.iter().position(|file| file.path != "k.cl").unwrap();
            assert!(!entries.contains_key(&source.files[own].path), "{source:?}");
            assert_eq!(origin.files[own], entries["y.h"].number, "{source:?}");
        }
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

        let trees = Trees::below(sources.directories(), &[], 4);
        assert_eq!(trees.trees[0].entries["x.h"].kind, TreeKind::File(Digest::of(b"text")));
        assert_eq!(trees.trees[0].find(&object), Told::Nothing);
    }
}
