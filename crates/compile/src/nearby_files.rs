//! The directories of a source: of this machine, or the files that a stored plan brings of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, relative_path};
use gfxpack_plan::plan::StagedFile;
use gfxpack_process::watch::is_in_proc;
use gfxpack_process::{Identity, is_not_found};

use crate::source::{File, leads_back};

/// Device and inode.
pub(crate) type FileId = (u64, u64);

/// The origin of the files of a closure.
#[derive(Debug)]
pub(crate) enum ClosureOrigin {
    /// From directories of this machine.
    Here(SourceDirectories),
    /// From a stored plan: what may be staged besides the closure.
    Stored(Beside),
}

/// What is staged besides a source's closure, as some of its commands need it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// Files of the source's directories, by staged path.
    pub(crate) files: BTreeMap<String, (StagedFile, Arc<File>)>,
    /// Directories that must exist.
    pub(crate) dirs: BTreeSet<String>,
    /// Directories that are links, with the directories that they lead to.
    pub(crate) links: BTreeMap<String, String>,
}

/// Directories of this machine.
#[derive(Debug)]
pub(crate) struct SourceDirectories {
    /// The directory that becomes the staged one.
    pub(crate) root: PathBuf,
    /// The directories that become `gfxpack-include-0`, `gfxpack-include-1`, ….
    pub(crate) include_dirs: Vec<PathBuf>,
    /// Directories below the root that options of the source's kernels name.
    pub(crate) option_dirs: Vec<String>,
    /// The closure's own files, by staged path.
    pub(crate) files: BTreeMap<String, PathBuf>,
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
    pub(crate) fn read(&self, digest: Digest, name: &str) -> Result<Vec<u8>, Error> {
        let path = (self.file)(&self.dir, digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Err(error) if !is_not_found(&error) => Err(Error::io("read", path)(error)),
            _ => Err(Error::usage(
                format!("source `{name}` is missing, or not the one that the plan was made with"),
                "copy the plan again, or make it anew with `gfxpack plan --out`",
            )),
        }
    }
}

/// Device and inode of the file or directory at a path, if there is one.
pub(crate) fn file_id_of(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|meta| Identity::from_metadata(&meta).file_id())
}

/// Whether a path leads to a regular file that is the same for every process, or to `/dev/null`,
/// which may stand for an empty one.
pub(crate) fn is_file(path: &Path) -> bool {
    let is_one = |meta: Metadata| meta.is_file() && !is_in_proc(&meta) || is_null(&meta);
    fs::metadata(path).is_ok_and(is_one)
}

fn is_null(meta: &Metadata) -> bool {
    let null = fs::metadata("/dev/null").map(|null| null.rdev());
    meta.file_type().is_char_device() && null.is_ok_and(|null| null == meta.rdev())
}

/// The staged path of an include directory, which no source uses by chance.
pub(crate) fn include_root(number: usize) -> String {
    format!("gfxpack-include-{number}")
}

/// Whether a staged path is that of an include directory.
pub(crate) fn is_include_root(below: &str) -> bool {
    let number = below.strip_prefix("gfxpack-include-");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
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

    /// The directories through which a path with `..` leads from a staged directory.
    pub(crate) fn passed(&self, from: &str, path: &str) -> Vec<String> {
        let ends = path.match_indices("..").map(|(at, _)| path[..at].trim_end_matches('/'));
        let dir_at = |before: &str| {
            let below = Path::new(from).join(before);
            let by_text = relative_path::join(from, before).filter(|_| !leads_back(&below));
            let real = self.path(&below);
            if !real.is_dir() {
                return None;
            }
            by_text.or_else(|| self.laid_out(&real)?.to_str().map(str::to_owned))
        };
        ends.filter_map(dir_at).filter(|dir| !dir.is_empty()).collect()
    }

    /// The directories among these, and those above them, that are links, with the directories that
    /// they lead to: themselves, if those are not among the sources.
    pub(crate) fn links(&self, dirs: impl IntoIterator<Item = String>) -> BTreeMap<String, String> {
        let mut queue: Vec<String> = dirs.into_iter().collect();
        let mut links: BTreeMap<String, String> = BTreeMap::new();
        let mut outside: Vec<(String, FileId)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(dir) = queue.pop() {
            if dir.is_empty() || !seen.insert(dir.clone()) {
                continue;
            }
            queue.extend(dir.rsplit_once('/').map(|(parent, _)| parent.to_owned()));
            let path = self.path(Path::new(&dir));
            let real = self.laid_out(&path);
            let real = real.as_deref().and_then(Path::to_str).filter(|real| *real != dir);
            if let Some(real) = real {
                queue.push(real.to_owned());
                links.insert(dir, real.to_owned());
            } else if let Some(file_id) = file_id_of(&path).filter(|_| self.leads_out(&path)) {
                outside.push((dir, file_id));
            }
        }
        outside.sort();
        let mut first: HashMap<FileId, String> = HashMap::new();
        for (dir, file_id) in outside {
            let one = first.entry(file_id).or_insert_with(|| dir.clone()).clone();
            links.insert(dir, one);
        }
        // A directory below a link is where the link leads to.
        let by_parent = |(from, to): (&String, &String)| {
            let mut above = from.match_indices('/').map(|(end, _)| &from[..end]);
            above.any(|above| {
                let real = links.get(above);
                let below = &from[above.len()..];
                let is_it = |real: &String| {
                    real != above && *to == format!("{real}{below}").trim_start_matches('/')
                };
                real.is_some_and(is_it)
            })
        };
        let own = links.iter().filter(|link| !by_parent(*link));
        own.map(|(from, to)| (from.clone(), to.clone())).collect()
    }

    /// Whether a path is a link to a directory that is not among the sources, though it is itself.
    fn leads_out(&self, path: &Path) -> bool {
        let is_own = |path: &Path| self.laid_out(path).is_some();
        path.is_symlink() && path.is_dir() && !is_own(path) && path.parent().is_some_and(is_own)
    }

    /// The staged path, without links and `..`, of a directory of this machine; `None` outside of
    /// the sources. That below the root, if there is one, else the one through the innermost include
    /// directory.
    pub(crate) fn laid_out(&self, dir: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(dir).ok()?;
        let below = |dir: &PathBuf| {
            let dir = fs::canonicalize(dir).ok()?;
            real.strip_prefix(dir).ok().map(Path::to_owned)
        };
        below(&self.root).or_else(|| {
            let found = self.include_dirs.iter().enumerate();
            let found = found.filter_map(|(number, dir)| Some((number, below(dir)?)));
            let (number, below) = found.max_by_key(|(_, below)| below.components().count())?;
            // Without a slash at the end, as an empty path adds.
            Some(Path::new(&include_root(number)).join(below).components().collect())
        })
    }
}
