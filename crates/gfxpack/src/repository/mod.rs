//! Repositories out of directories of packages: what apt, dnf and zypper
//! read, brought up to date with what lies there.

mod apt;
mod check;
mod describe;
mod rpm;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_package::read::Kind;

use crate::fail;
use crate::record;
use crate::signing::Signer;

pub(crate) use apt::Suite;
pub(crate) use check::{Checked, check, read, within};
pub(crate) use describe::{Described, describe, is_newer};

/// Where a repository keeps the public key.
pub(crate) const KEY_FILE: &str = "archive-key.asc";

/// What was found in a directory and indexed.
pub(crate) struct Indexed {
    pub(crate) debs: usize,
    pub(crate) rpms: usize,
    /// Files that are called packages and can't be read as such.
    pub(crate) left_out: Vec<PathBuf>,
}

/// Indexes all packages below `dir`, one run at a time.
pub(crate) fn index(
    dir: &Path,
    suite: &Suite,
    signer: Option<&Signer>,
    epoch: u64,
) -> anyhow::Result<Indexed> {
    let lock = std::fs::File::open(dir).map_err(fail::io("open", dir))?;
    // Where locks are not known, one run at a time is all there can be.
    let lock = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map(|()| lock);
    let found = packages(dir)?;
    let there = |ending: &str| {
        found.iter().any(|path| path.extension().is_some_and(|extension| extension == ending))
    };
    // An index whose last package went lists none, rather than what is gone.
    let (apts, rpms) = (apt::is_there(dir, suite), rpm::is_there(dir));
    if found.is_empty() && !apts && !rpms {
        return Err(fail::usage(
            format!("failed to find a .deb or .rpm below `{}`", dir.display()),
            "give the directory that `gfxpack dist` wrote packages into",
        ));
    }
    let (mut debs, mut rpm_files) = (BTreeSet::new(), BTreeSet::new());
    if apts || there("deb") {
        debs = apt::index(dir, suite, signer, epoch)?;
    }
    if rpms || there("rpm") {
        rpm_files = rpm::index(dir, signer, epoch, lock.ok().as_ref())?;
    }
    if let Some(signer) = signer {
        put(&dir.join(KEY_FILE), &signer.public_key()?)?;
    }
    let left_out = found.into_iter().filter(|path| {
        let name = path.strip_prefix(dir).unwrap_or(path);
        !debs.contains(name) && !rpm_files.contains(name)
    });
    Ok(Indexed { debs: debs.len(), rpms: rpm_files.len(), left_out: left_out.collect() })
}

/// What is said of a file that is called a package and is none.
pub(crate) fn left_out(path: &Path) -> String {
    format!("`{}` is left out: it can't be read as a package", path.display())
}

/// Every .deb and .rpm below `dir`, sorted by path.
pub(crate) fn packages(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    files(dir, |path| matches!(Kind::of(path), Some(Kind::Deb | Kind::Rpm)))
}

/// Every file below `dir` whose path is wanted, sorted. Links to files are
/// followed, as those who make indexes follow them; those to directories may
/// lead in a circle.
pub(crate) fn files(dir: &Path, is_wanted: impl Fn(&Path) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).map_err(fail::io("read", &dir))? {
            let entry = entry.map_err(fail::io("read", &dir))?;
            let kind = entry.file_type().map_err(fail::io("read", &dir))?;
            let path = entry.path();
            if kind.is_dir() {
                pending.push(path);
            } else if is_wanted(&path) && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file whole, with its directory; one with the same bytes is left
/// alone, so that nobody fetches it anew.
fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    record::replace(path, bytes).map_err(fail::io("write", path))
}

/// Removes a file that need not be there.
fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(fail::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
