//! Files near a source that a compiler may look for although no #include names
//! them: found in directories of this machine, or in a stored plan's list of
//! those of another.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_plan::stored::{SourceTrees, Told, Tree, TreeEntry, TreeKind};
use gfxpack_process::watch::Answer;
use gfxpack_process::{FileDigests, Identity};

use crate::error::CompileError;

/// Device and inode, or what stands for them.
pub(crate) type FilePlace = (u64, u64);

/// Where the files of a closure come from.
#[derive(Debug)]
pub(crate) enum ClosureOrigin {
    /// From here.
    Here(SourceDirectories),
    /// From the machine that a plan was made on.
    Stored(StoredDirectories),
}

/// Directories of this machine.
#[derive(Debug)]
pub(crate) struct SourceDirectories {
    /// The directory that the staged one stands for.
    pub(crate) root: PathBuf,
    /// Those that `i0`, `i1`, … stand for.
    pub(crate) include_dirs: Vec<PathBuf>,
    /// The closure's own files, by where they are laid out.
    pub(crate) files: BTreeMap<String, PathBuf>,
}

/// What a stored plan tells of directories.
#[derive(Debug)]
pub(crate) struct StoredDirectories {
    pub(crate) root: Arc<Tree>,
    pub(crate) include_dirs: Vec<Arc<Tree>>,
    pub(crate) content: StoredContent,
}

/// The files that came with a plan, by their digests.
#[derive(Debug, Clone)]
pub struct StoredContent {
    /// The plan's directory.
    pub dir: PathBuf,
    /// Where in it the file of a digest lies.
    pub file: fn(&Path, Digest) -> PathBuf,
}

impl StoredContent {
    /// The bytes of that digest.
    pub(crate) fn read(&self, digest: Digest, name: &str) -> Result<Vec<u8>, CompileError> {
        let path = (self.file)(&self.dir, digest);
        let bytes = fs::read(&path).map_err(CompileError::io("read", path))?;
        if Digest::of(&bytes) == digest {
            Ok(bytes)
        } else {
            Err(CompileError::ForeignSource(name.to_owned()))
        }
    }
}

/// Where files of an include directory are laid out.
pub(crate) fn include_root(number: usize) -> String {
    format!("i{number}")
}

/// Parts a path into the number of the include directory that it begins with,
/// if it does, and the rest.
fn part(below: &Path, include_dirs: usize) -> (Option<usize>, &Path) {
    let mut parts = below.components();
    let first = parts.next();
    let mut roots = (0..include_dirs).map(include_root);
    match roots.position(|root| first == Some(Component::Normal(root.as_ref()))) {
        Some(number) => (Some(number), parts.as_path()),
        None => (None, below),
    }
}

impl SourceDirectories {
    fn path(&self, below: &Path) -> PathBuf {
        if let Some(file) = below.to_str().and_then(|below| self.files.get(below)) {
            return file.clone();
        }
        match part(below, self.include_dirs.len()) {
            (Some(number), rest) => self.include_dirs[number].join(rest),
            (None, rest) => self.root.join(rest),
        }
    }
}

impl StoredDirectories {
    fn find(&self, below: &Path) -> Told<'_> {
        match part(below, self.include_dirs.len()) {
            (Some(number), rest) => self.include_dirs[number].find(rest),
            (None, rest) => self.root.find(rest),
        }
    }
}

impl ClosureOrigin {
    /// What lies at a path, seen from the staged directory.
    pub(crate) fn answer(&self, below: &Path, digests: &FileDigests) -> Answer {
        let file = |digest| Answer::File { digest, real: None };
        match self {
            Self::Here(dirs) => {
                let path = dirs.path(below);
                match fs::metadata(&path) {
                    Err(error) if is_not_found(&error) => Answer::Absent,
                    // A link to itself, or what may not be looked at.
                    Err(_) => Answer::Other,
                    Ok(meta) if meta.is_dir() => Answer::Directory,
                    Ok(meta) if meta.is_file() => digests.digest(&path).map_or(Answer::Other, file),
                    Ok(_) => Answer::Other,
                }
            }
            Self::Stored(stored) => match stored.find(below) {
                Told::Absent => Answer::Absent,
                Told::Found(TreeEntry { kind, .. }) => match kind {
                    TreeKind::Directory | TreeKind::Partial => Answer::Directory,
                    TreeKind::File(digest) => file(*digest),
                    TreeKind::Unknown => Answer::Other,
                },
                Told::Nothing => Answer::Other,
            },
        }
    }

    /// Which file or directory is at a path.
    pub(crate) fn place(&self, below: &Path) -> Option<FilePlace> {
        match self {
            Self::Here(dirs) => fs::metadata(dirs.path(below))
                .ok()
                .map(|meta| Identity::from_metadata(&meta).place()),
            Self::Stored(stored) => match stored.find(below) {
                Told::Found(entry) => Some((0, entry.number)),
                _ => None,
            },
        }
    }

    /// Whether a directory is at a path.
    pub(crate) fn is_dir(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => dirs.path(below).is_dir(),
            Self::Stored(stored) => matches!(
                stored.find(below),
                Told::Found(entry) if matches!(entry.kind, TreeKind::Directory | TreeKind::Partial)
            ),
        }
    }

    /// Whether surely nothing is at a path.
    pub(crate) fn is_absent(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => {
                fs::metadata(dirs.path(below)).is_err_and(|error| is_not_found(&error))
            }
            Self::Stored(stored) => stored.find(below) == Told::Absent,
        }
    }

    /// The content of the file at a path, if one is there.
    pub(crate) fn read(&self, below: &Path) -> Result<Option<Vec<u8>>, CompileError> {
        match self {
            Self::Here(dirs) => {
                let path = dirs.path(below);
                if !path.is_file() {
                    return Ok(None);
                }
                fs::read(&path).map(Some).map_err(CompileError::io("read", path))
            }
            Self::Stored(stored) => match stored.find(below) {
                Told::Found(TreeEntry { kind: TreeKind::File(digest), .. }) => {
                    stored.content.read(*digest, &below.to_string_lossy()).map(Some)
                }
                _ => Ok(None),
            },
        }
    }
}

/// Most names that a plan's trees have in all.
const MAX_NAMES: usize = 50_000;

/// What lies below directories, for a plan that is to be stored.
#[derive(Debug, Default)]
pub struct Trees {
    /// What is told.
    pub trees: Vec<Tree>,
    /// By source, in their order.
    pub sources: Vec<SourceTrees>,
    /// The files whose contents come with it.
    pub files: Vec<(Digest, PathBuf)>,
    by_dir: HashMap<PathBuf, usize>,
    numbers: HashMap<FilePlace, u64>,
    /// Files in the trees, with their sizes.
    found: Vec<(u64, usize, String, PathBuf)>,
    names: usize,
}

impl Trees {
    /// What is below the directories of sources. Of the files, the smallest
    /// come with the plan, so many bytes in all. What lies in one of the
    /// directories `apart` is not told.
    pub(crate) fn below<'o>(
        origins: impl Iterator<Item = &'o SourceDirectories>,
        apart: &[PathBuf],
        bytes: u64,
    ) -> Self {
        let mut all = Self::default();
        for origin in origins {
            let root = all.tree(&origin.root, apart);
            let dirs = origin.include_dirs.iter();
            let include_dirs = dirs.map(|dir| all.tree(dir, apart)).collect();
            all.sources.push(SourceTrees { root, include_dirs });
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

    /// Notes a path of which nothing is known.
    fn add_unknown(&mut self, tree: &mut Tree, path: String) -> String {
        let number = u64::MAX - self.names as u64;
        let entry = TreeEntry { number, kind: TreeKind::Unknown, is_link: true };
        tree.entries.entry(path.clone()).or_insert(entry);
        self.names += 1;
        path
    }

    /// Has the smallest files come with the plan.
    fn carry(&mut self, bytes: u64) {
        self.found.sort();
        let mut left = bytes;
        for (size, tree, name, path) in std::mem::take(&mut self.found) {
            if size > left {
                break;
            }
            // One that is gone or changes now is not known.
            let Some(content) = fs::read(&path).ok().filter(|it| it.len() as u64 == size) else {
                continue;
            };
            left -= size;
            let digest = Digest::of(&content);
            if let Some(entry) = self.trees[tree].entries.get_mut(&name) {
                entry.kind = TreeKind::File(digest);
            }
            self.files.push((digest, path));
        }
    }
}

/// Whether nothing in a directory is told.
fn is_left_out(entry: &walkdir::DirEntry, apart: &[PathBuf]) -> bool {
    let is_apart = || fs::canonicalize(entry.path()).map(|path| apart.contains(&path));
    entry.depth() > 0
        && entry.file_type().is_dir()
        && (entry.file_name() == ".git" || is_apart().unwrap_or(false))
}

fn is_not_found(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};

    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// A path below a directory as text.
fn name(dir: &Path, path: &Path) -> Option<String> {
    path.strip_prefix(dir).ok()?.to_str().map(str::to_owned)
}
