//! Files near a source that a compiler may look for although no #include names them. They are found
//! in directories of this machine, or in a stored plan's list of another machine's files.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_plan::stored::{Tree, TreeEntry, TreeKind, TreeLookup};
use gfxpack_process::watch::{PathState, is_in_proc};
use gfxpack_process::{FileDigests, FileError, Identity, is_not_found};

use crate::error::CompileError;

/// Device and inode; in a stored plan, 0 and a number.
pub(crate) type FileId = (u64, u64);

/// The origin of the files of a closure.
#[derive(Debug)]
pub(crate) enum ClosureOrigin {
    /// From directories of this machine.
    Here(SourceDirectories),
    /// From the machine that a plan was made on.
    Stored(StoredDirectories),
}

/// Directories of this machine.
#[derive(Debug)]
pub struct SourceDirectories {
    /// The directory that becomes the staged one.
    pub root: PathBuf,
    /// The directories that become `gfxpack-include-0`, `gfxpack-include-1`, ….
    pub include_dirs: Vec<PathBuf>,
    /// The closure's own files, by staged path.
    pub(crate) files: BTreeMap<String, PathBuf>,
}

/// A stored plan's record of directories.
#[derive(Debug)]
pub(crate) struct StoredDirectories {
    pub(crate) root: Arc<Tree>,
    pub(crate) include_dirs: Vec<Arc<Tree>>,
    /// The closure's own files, by staged path.
    pub(crate) files: BTreeMap<String, TreeEntry>,
    /// Paths above the root at which there is nothing.
    pub(crate) absent: Vec<String>,
    pub(crate) content: StoredContent,
}

/// The files that came with a plan, by their digests.
#[derive(Debug, Clone)]
pub struct StoredContent {
    /// The plan's directory.
    pub dir: PathBuf,
    /// The path of the file with a digest, in that directory.
    pub file: fn(&Path, Digest) -> PathBuf,
}

impl StoredContent {
    /// The bytes with that digest.
    pub(crate) fn read(&self, digest: Digest, name: &str) -> Result<Vec<u8>, CompileError> {
        let path = (self.file)(&self.dir, digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Err(error) if !is_not_found(&error) => Err(FileError::io("read", path)(error).into()),
            _ => Err(CompileError::ForeignSource(name.to_owned())),
        }
    }
}

/// Device and inode of the file or directory at a path, if there is one.
pub(crate) fn file_id_of(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|meta| Identity::from_metadata(&meta).file_id())
}

/// Whether a path leads to a regular file that is the same for every process.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| is_regular(&meta))
}

fn is_regular(meta: &Metadata) -> bool {
    meta.is_file() && !is_in_proc(meta)
}

/// The staged path of an include directory, which no source uses by chance.
pub(crate) fn include_root(number: usize) -> String {
    format!("gfxpack-include-{number}")
}

/// Splits a path into the number of the include directory that it begins with, if any, and the
/// rest.
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
    /// The path on this machine for a path relative to the staged directory.
    pub(crate) fn path(&self, below: &Path) -> PathBuf {
        if let Some(file) = below.to_str().and_then(|below| self.files.get(below)) {
            return file.clone();
        }
        match part(below, self.include_dirs.len()) {
            (Some(number), rest) => self.include_dirs[number].join(rest),
            (None, rest) => self.root.join(rest),
        }
    }

    /// The files that the source's text names.
    pub fn named_files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(PathBuf::as_path)
    }

    /// The staged path, without links and `..`, of a directory of this machine; `None` outside of
    /// the sources.
    pub(crate) fn laid_out(&self, dir: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(dir).ok()?;
        let below = |dir: &PathBuf| {
            let dir = fs::canonicalize(dir).ok()?;
            real.strip_prefix(dir).ok().map(Path::to_owned)
        };
        innermost(below(&self.root), self.include_dirs.iter().map(below))
    }
}

impl StoredDirectories {
    fn find(&self, below: &Path) -> TreeLookup<'_> {
        if self.absent.iter().any(|path| Path::new(path) == below) {
            return TreeLookup::Absent;
        }
        let mut at = PathBuf::new();
        for step in below.components() {
            if step != Component::ParentDir {
                at.push(step);
                continue;
            }
            // `..` from a link or an include directory leads to the parent of its target.
            let found = match self.find_plain(&at) {
                TreeLookup::Found(TreeEntry { kind: TreeKind::File(_), .. }) => {
                    return TreeLookup::Absent;
                }
                TreeLookup::Found(TreeEntry { kind: TreeKind::Unknown, .. }) => {
                    return TreeLookup::Unknown;
                }
                TreeLookup::Found(entry) => self.path_of(entry.number),
                other => return other,
            };
            // The plan does not record what else is above a topmost directory.
            let is_top = |dir: &PathBuf| part(dir, self.include_dirs.len()).1 == Path::new("");
            let Some(real) = found.filter(|dir| !is_top(dir)) else { return TreeLookup::Unknown };
            at = real.parent().unwrap_or(Path::new("")).to_owned();
        }
        self.find_plain(&at)
    }

    /// The plan's record of a path without `..`.
    fn find_plain(&self, below: &Path) -> TreeLookup<'_> {
        if let Some(file) = below.to_str().and_then(|below| self.files.get(below)) {
            return TreeLookup::Found(file);
        }
        match part(below, self.include_dirs.len()) {
            (Some(number), rest) => self.include_dirs[number].find(rest),
            (None, rest) => self.root.find(rest),
        }
    }

    /// The path of the directory with a number, without links.
    fn path_of(&self, number: u64) -> Option<PathBuf> {
        let trees = self.include_dirs.iter().map(|tree| tree.path_of(number));
        innermost(self.root.path_of(number), trees)
    }
}

/// A path relative to the staged directory: that below the root, if there is one, else the one
/// through the innermost include directory.
fn innermost<P: AsRef<Path>>(
    root: Option<P>,
    include_dirs: impl Iterator<Item = Option<P>>,
) -> Option<PathBuf> {
    let found = include_dirs.enumerate().filter_map(|(number, below)| Some((number, below?)));
    let longest = || found.max_by_key(|(_, below)| below.as_ref().components().count());
    let laid_out = |(number, below)| Path::new(&include_root(number)).join(below);
    root.map(|below| below.as_ref().to_owned()).or_else(|| longest().map(laid_out))
}

impl ClosureOrigin {
    /// The answer to a lookup of a path, relative to the staged directory.
    pub(crate) fn path_state(&self, below: &Path, digests: &FileDigests) -> PathState {
        let file = |digest| PathState::File { digest, real: None };
        match self {
            Self::Here(dirs) => {
                let path = dirs.path(below);
                match fs::metadata(&path) {
                    Err(error) if is_not_found(&error) => PathState::Absent,
                    // A link to itself, or a file without read permission.
                    Err(_) => PathState::Other,
                    Ok(meta) if meta.is_dir() => PathState::Directory,
                    Ok(meta) if is_regular(&meta) => {
                        digests.digest(&path).map_or(PathState::Other, file)
                    }
                    Ok(_) => PathState::Other,
                }
            }
            Self::Stored(stored) => match stored.find(below) {
                TreeLookup::Absent => PathState::Absent,
                TreeLookup::Found(TreeEntry { kind, .. }) => match kind {
                    TreeKind::File(digest) => file(*digest),
                    TreeKind::Unknown => PathState::Other,
                    _ => PathState::Directory,
                },
                TreeLookup::Unknown => PathState::Other,
            },
        }
    }

    /// The file or directory at a path.
    pub(crate) fn file_id(&self, below: &Path) -> Option<FileId> {
        match self {
            Self::Here(dirs) => file_id_of(&dirs.path(below)),
            Self::Stored(stored) => stored.find(below).entry().map(|entry| (0, entry.number)),
        }
    }

    /// The path of a directory among the sources, without links and `..`; `None` outside of them.
    pub(crate) fn real_dir(&self, below: &Path) -> Option<PathBuf> {
        match self {
            Self::Here(dirs) => dirs.laid_out(&dirs.path(below)),
            Self::Stored(stored) => stored.path_of(stored.find(below).entry()?.number),
        }
    }

    /// Whether there is a directory at a path.
    pub(crate) fn is_dir(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => dirs.path(below).is_dir(),
            Self::Stored(stored) => {
                stored.find(below).entry().is_some_and(|it| it.kind.is_directory())
            }
        }
    }

    /// Whether there certainly is nothing at a path.
    pub(crate) fn is_absent(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => {
                fs::metadata(dirs.path(below)).is_err_and(|error| is_not_found(&error))
            }
            Self::Stored(stored) => stored.find(below) == TreeLookup::Absent,
        }
    }

    /// The content of the file at a path, if there is one.
    pub(crate) fn read(&self, below: &Path) -> Result<Option<Vec<u8>>, CompileError> {
        match self {
            Self::Here(dirs) => {
                let path = dirs.path(below);
                if !is_file(&path) {
                    return Ok(None);
                }
                Ok(Some(fs::read(&path).map_err(FileError::io("read", path))?))
            }
            Self::Stored(stored) => match stored.find(below).entry().map(|entry| entry.kind) {
                Some(TreeKind::File(digest)) => {
                    stored.content.read(digest, &below.to_string_lossy()).map(Some)
                }
                _ => Ok(None),
            },
        }
    }
}
