//! The current state of paths, each looked at once in a run.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard};

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use rustix::fs::{PROC_SUPER_MAGIC, statfs};

use super::FileStat;
use super::path_states::{PathQuery, PathState};
use crate::file_digest::{FileDigests, Identity};
use crate::{Timestamp, is_not_found};

/// A directory in which each process finds its own files.
pub(super) const PROC: &str = "/proc";

/// The most links that are followed in a path.
///
/// Source: Linux, `include/linux/namei.h`, `MAXSYMLINKS`.
const MAX_LINKS: usize = 40;

/// The current state of the file system. Each path is looked at once, and again if a program got
/// another result.
#[derive(Debug)]
pub struct FileSystemCache<'a> {
    digests: &'a FileDigests,
    known: Mutex<CachedPaths>,
}

#[derive(Debug, Default)]
struct CachedPaths {
    paths: HashMap<PathBuf, CachedPath>,
    real: HashMap<PathBuf, PathBuf>,
    /// Whether directories lead to /proc.
    to_proc: HashMap<PathBuf, bool>,
}

/// The state of one path.
#[derive(Debug, Clone)]
struct CachedPath {
    kind: PathKind,
    identity: Option<Identity>,
    executable: bool,
    /// The path without links, for a file or a directory.
    real: PathBuf,
    digest: Option<Digest>,
    listing: Option<Digest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Absent,
    Directory,
    File,
    Other,
}

impl<'a> FileSystemCache<'a> {
    /// Nothing has been looked at yet.
    pub fn new(digests: &'a FileDigests) -> Self {
        Self { digests, known: Mutex::default() }
    }

    /// Known digests of files.
    pub fn digests(&self) -> &'a FileDigests {
        self.digests
    }

    /// The answer for the path; `None` if it can't be found out.
    pub(super) fn state(&self, path: &Path, query: PathQuery) -> Option<PathState> {
        if query == PathQuery::Link {
            match fs::read_link(path) {
                Ok(link) => return Some(PathState::Link(link)),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Some(PathState::NoLink);
                }
                Err(_) => {}
            }
        }
        let mut known = self.lock();
        let digests = self.digests;
        let look = known.paths.entry(path.to_owned()).or_insert_with(|| CachedPath::read(path));
        look.state(path, query, digests).ok()
    }

    /// The answer for a file or directory that a run found in this state; `None` if it has changed
    /// since. Also returns whether it is certain that it did not change meanwhile. It is not if the
    /// last change was after `since` or shortly before.
    pub(super) fn state_if_same(
        &self,
        path: &Path,
        query: PathQuery,
        stat: &FileStat,
        since: Timestamp,
    ) -> Option<(PathState, bool)> {
        let was_settled = {
            let mut known = self.lock();
            let is_same = |look: &CachedPath| look.identity == Some(stat.identity);
            if !known.paths.get(path).is_some_and(is_same) {
                known.paths.insert(path.to_owned(), CachedPath::read(path));
                known.real.remove(path);
            }
            let look = known.paths.get(path).filter(|look| is_same(look))?;
            look.identity.is_some_and(|now| now.was_settled(since))
        };
        if !was_settled {
            // The content may differ although all metadata is equal.
            self.lock().paths.insert(path.to_owned(), CachedPath::read(path));
        }
        self.state(path, query).map(|state| (state, was_settled))
    }

    /// Whether nothing exists at a path where a run found nothing.
    pub(super) fn is_absent(&self, path: &Path) -> bool {
        let mut known = self.lock();
        if known.paths.get(path).is_some_and(|look| look.kind == PathKind::Absent) {
            return true;
        }
        let look = CachedPath::read(path);
        let absent = look.kind == PathKind::Absent;
        known.paths.insert(path.to_owned(), look);
        absent
    }

    /// The first missing directory of a path, or the path itself.
    pub(super) fn first_absent(&self, path: &Path) -> PathBuf {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        let absent = above.into_iter().rev().find(|dir| {
            self.lock().paths.entry(dir.to_path_buf()).or_insert_with(|| CachedPath::read(dir)).kind
                == PathKind::Absent
        });
        absent.unwrap_or(path).to_owned()
    }

    /// The path without links; its missing part is appended unchanged.
    pub fn real(&self, path: &Path) -> PathBuf {
        self.lock().real.entry(path.to_owned()).or_insert_with(|| real(path)).clone()
    }

    /// Whether a path leads to or through /proc, where every process finds other files, so that the
    /// result of another process can't be checked.
    pub fn leads_to_proc(&self, path: &Path) -> bool {
        let Some(dir) = path.parent() else { return false };
        let known = self.lock().to_proc.get(dir).copied();
        let dir_leads = known.unwrap_or_else(|| {
            let leads = leads_to_proc(dir, MAX_LINKS);
            self.lock().to_proc.insert(dir.to_owned(), leads);
            leads
        });
        // From elsewhere, only a link can lead there.
        let may_lead = || path == Path::new(PROC) || fs::read_link(path).is_ok();
        dir_leads || may_lead() && leads_to_proc(path, MAX_LINKS)
    }

    fn lock(&self) -> MutexGuard<'_, CachedPaths> {
        self.known.lock().expect("no panic inside")
    }
}

/// Whether a file is on the file system of `/proc`, which differs for each process. A `/proc` that
/// is not mounted is a directory like others.
pub fn is_in_proc(file: &Metadata) -> bool {
    static DEVICE: LazyLock<Option<u64>> = LazyLock::new(|| {
        let is_mounted = statfs(PROC).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC);
        is_mounted.then(|| fs::metadata(PROC).ok().map(|meta| meta.dev())).flatten()
    });
    *DEVICE == Some(file.dev())
}

impl CachedPath {
    fn read(path: &Path) -> Self {
        let meta = fs::metadata(path);
        let kind = match &meta {
            Err(error) if is_not_found(error) => PathKind::Absent,
            Err(_) => PathKind::Other,
            Ok(meta) if meta.is_dir() => PathKind::Directory,
            Ok(meta) if meta.is_file() => PathKind::File,
            Ok(_) => PathKind::Other,
        };
        let executable = meta.as_ref().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
        let identity = meta.ok().map(|meta| Identity::from_metadata(&meta));
        let is_there = matches!(kind, PathKind::File | PathKind::Directory);
        let real = if is_there { real(path) } else { PathBuf::new() };
        Self { kind, identity, executable, real, digest: None, listing: None }
    }

    fn state(
        &mut self,
        path: &Path,
        query: PathQuery,
        digests: &FileDigests,
    ) -> io::Result<PathState> {
        Ok(match self.kind {
            PathKind::Absent => PathState::Absent,
            PathKind::Directory if query == PathQuery::Listing => {
                PathState::Listing(match self.listing {
                    Some(listing) => listing,
                    None => *self.listing.insert(listing(path)?),
                })
            }
            PathKind::Directory if self.real != path => {
                PathState::LinkedDirectory(self.real.clone())
            }
            PathKind::Directory => PathState::Directory,
            PathKind::File if query == PathQuery::Executable => {
                PathState::Executable(self.executable)
            }
            PathKind::File => {
                let real = (self.real != path).then(|| self.real.clone());
                let digest = match self.digest {
                    Some(digest) => digest,
                    None => *self.digest.insert(digests.digest(path)?),
                };
                PathState::File { digest, real }
            }
            PathKind::Other => PathState::Other,
        })
    }
}

/// Whether a path, or one of the links in it, leads to /proc.
fn leads_to_proc(path: &Path, links: usize) -> bool {
    let mut at = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            at.pop();
            continue;
        }
        at.push(part);
        if at == Path::new(PROC) {
            return true;
        }
        if let Ok(link) = fs::read_link(&at) {
            at.pop();
            let path = at.join(link).join(parts.as_path());
            return links > 0 && leads_to_proc(&path, links - 1);
        }
    }
    false
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(real) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// A digest of the names in a directory.
fn listing(dir: &Path) -> io::Result<Digest> {
    let names = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<OsString> = names.collect::<io::Result<_>>()?;
    names.sort();
    let names = names.iter().map(|name| name.as_encoded_bytes());
    Ok(Hasher::new("gfxpack directory 1").list(names).finish())
}
