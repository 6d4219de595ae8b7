//! Files near a source that a compiler may look for although no #include names
//! them: found in directories of this machine, or in a stored plan's list of
//! those of another.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_plan::stored::{Tree, TreeEntry, TreeKind, TreeLookup};
use gfxpack_process::watch::{Answer, is_in_proc};
use gfxpack_process::{FileDigests, FileError, Identity, is_not_found};

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
pub struct SourceDirectories {
    /// The directory that the staged one stands for.
    pub root: PathBuf,
    /// Those that `gfxpack-include-0`, `gfxpack-include-1`, … stand for.
    pub include_dirs: Vec<PathBuf>,
    /// The closure's own files, by where they are laid out.
    pub(crate) files: BTreeMap<String, PathBuf>,
}

/// What a stored plan says about directories.
#[derive(Debug)]
pub(crate) struct StoredDirectories {
    pub(crate) root: Arc<Tree>,
    pub(crate) include_dirs: Vec<Arc<Tree>>,
    /// The closure's own files, by where they are laid out.
    pub(crate) files: BTreeMap<String, TreeEntry>,
    /// Paths above the root at which nothing is.
    pub(crate) absent: Vec<String>,
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
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Err(error) if !is_not_found(&error) => Err(FileError::io("read", path)(error).into()),
            _ => Err(CompileError::ForeignSource(name.to_owned())),
        }
    }
}

/// Device and inode of what is at a path, if anything is.
pub(crate) fn place_of(path: &Path) -> Option<FilePlace> {
    fs::metadata(path).ok().map(|meta| Identity::from_metadata(&meta).place())
}

/// Whether a path leads to a regular file that is the same to every process.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| is_regular(&meta))
}

fn is_regular(meta: &Metadata) -> bool {
    meta.is_file() && !is_in_proc(meta)
}

/// Where files of an include directory are laid out: no source names such a
/// directory by chance.
pub(crate) fn include_root(number: usize) -> String {
    format!("gfxpack-include-{number}")
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
    /// What a path stands for that is seen from the staged directory.
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

    /// Where a directory of this machine is laid out, by a path without links
    /// and `..`; `None` outside of the sources.
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
            // Above a link or an include directory lies what is above what it leads to.
            let found = match self.find_plain(&at) {
                TreeLookup::Found(TreeEntry { kind: TreeKind::File(_), .. }) => {
                    return TreeLookup::Absent;
                }
                TreeLookup::Found(TreeEntry { kind: TreeKind::Unknown, .. }) => {
                    return TreeLookup::Unknown;
                }
                TreeLookup::Found(entry) => self.path_of(entry.number),
                told => return told,
            };
            // It is not told what else lies above the topmost.
            let is_top = |dir: &PathBuf| part(dir, self.include_dirs.len()).1 == Path::new("");
            let Some(real) = found.filter(|dir| !is_top(dir)) else { return TreeLookup::Unknown };
            at = real.parent().unwrap_or(Path::new("")).to_owned();
        }
        self.find_plain(&at)
    }

    /// What the plan says about a path without `..`.
    fn find_plain(&self, below: &Path) -> TreeLookup<'_> {
        if let Some(file) = below.to_str().and_then(|below| self.files.get(below)) {
            return TreeLookup::Found(file);
        }
        match part(below, self.include_dirs.len()) {
            (Some(number), rest) => self.include_dirs[number].find(rest),
            (None, rest) => self.root.find(rest),
        }
    }

    /// Where the directory of a number lies, without links.
    fn path_of(&self, number: u64) -> Option<PathBuf> {
        let trees = self.include_dirs.iter().map(|tree| tree.path_of(number));
        innermost(self.root.path_of(number), trees)
    }
}

/// A path below the staged directory, of that which is below the root, else of
/// the longest of those which are below the include directories.
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
                    Ok(meta) if is_regular(&meta) => {
                        digests.digest(&path).map_or(Answer::Other, file)
                    }
                    Ok(_) => Answer::Other,
                }
            }
            Self::Stored(stored) => match stored.find(below) {
                TreeLookup::Absent => Answer::Absent,
                TreeLookup::Found(TreeEntry { kind, .. }) => match kind {
                    TreeKind::File(digest) => file(*digest),
                    TreeKind::Unknown => Answer::Other,
                    _ => Answer::Directory,
                },
                TreeLookup::Unknown => Answer::Other,
            },
        }
    }

    /// Which file or directory is at a path.
    pub(crate) fn place(&self, below: &Path) -> Option<FilePlace> {
        match self {
            Self::Here(dirs) => place_of(&dirs.path(below)),
            Self::Stored(stored) => stored.find(below).entry().map(|entry| (0, entry.number)),
        }
    }

    /// Where a directory lies among the sources, by a path without links and
    /// `..`; `None` outside of them.
    pub(crate) fn real_dir(&self, below: &Path) -> Option<PathBuf> {
        match self {
            Self::Here(dirs) => dirs.laid_out(&dirs.path(below)),
            Self::Stored(stored) => stored.path_of(stored.find(below).entry()?.number),
        }
    }

    /// Whether a directory is at a path.
    pub(crate) fn is_dir(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => dirs.path(below).is_dir(),
            Self::Stored(stored) => {
                stored.find(below).entry().is_some_and(|it| it.kind.is_directory())
            }
        }
    }

    /// Whether surely nothing is at a path.
    pub(crate) fn is_absent(&self, below: &Path) -> bool {
        match self {
            Self::Here(dirs) => {
                fs::metadata(dirs.path(below)).is_err_and(|error| is_not_found(&error))
            }
            Self::Stored(stored) => stored.find(below) == TreeLookup::Absent,
        }
    }

    /// The content of the file at a path, if one is there.
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
