//! Brings both indexes up to date.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_process::FileError;

use super::address::{Address, KEY_FILE, SetupFiles};
use super::apt::{self, Suite};
use super::error::RepositoryError;
use super::files::{packages, put};
use super::page::Listed;
use super::rpm;
use super::setup;
use crate::signing::Signer;

/// What was found in a directory and indexed.
#[derive(Debug)]
pub struct Indexed {
    /// .deb packages.
    pub debs: usize,
    /// .rpm packages.
    pub rpms: usize,
    /// Files that are called packages and can't be read as such.
    pub left_out: Vec<PathBuf>,
    /// What people need who use it.
    pub setup: SetupFiles,
}

/// Indexes all packages below `dir`, one run at a time, and signs the indexes
/// where there is a `signer`. They bear the time `epoch`, in seconds since 1970.
/// `address` is where the repository is used from; `notes` gives what the page says of a package
/// besides what the package itself says, a line each.
///
/// # Errors
/// [`RepositoryError`]. What was indexed before is then still whole.
pub fn index(
    dir: &Path,
    suite: &Suite,
    address: &Address,
    signer: Option<&Signer>,
    epoch: u64,
    notes: &dyn Fn(&Path) -> Vec<String>,
) -> Result<Indexed, RepositoryError> {
    let lock = std::fs::File::open(dir).map_err(FileError::io("open", dir))?;
    // Where locks are not known, one run at a time is all there can be.
    let lock = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map(|()| lock);
    let found = packages(dir)?;
    let there = |ending: &str| {
        found.iter().any(|path| path.extension().is_some_and(|extension| extension == ending))
    };
    // An index whose last package went lists none, rather than what is gone.
    let (apts, rpms) = (apt::is_there(dir, suite), rpm::is_there(dir));
    if found.is_empty() && !apts && !rpms {
        return Err(RepositoryError::NoPackage { dir: dir.to_owned() });
    }
    let (mut debs, mut rpm_files) = (BTreeSet::new(), BTreeSet::new());
    if apts || there("deb") {
        debs = apt::index(dir, suite, signer, epoch)?;
    }
    if rpms || there("rpm") {
        rpm_files = rpm::index(dir, signer, epoch, lock.ok().as_ref())?;
    }
    let key = signer.map(Signer::public_key).transpose()?;
    if let Some(key) = &key {
        put(&dir.join(KEY_FILE), key)?;
    }
    let mut listed = Vec::new();
    for file in debs.iter().chain(&rpm_files) {
        listed.extend(Listed::read(dir, file, notes)?);
    }
    let setup = setup::write(dir, address, suite, key.as_deref(), &listed)?;
    let left_out = found.into_iter().filter(|path| {
        let name = path.strip_prefix(dir).unwrap_or(path);
        !debs.contains(name) && !rpm_files.contains(name)
    });
    Ok(Indexed { debs: debs.len(), rpms: rpm_files.len(), left_out: left_out.collect(), setup })
}
