//! Updates both indexes of a repository.

use gfxpack_model::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::address::{Address, KEY_FILE, SetupFiles};
use super::apt::{self, Suite};
use super::files::{packages, put};
use super::rpm;
use super::setup;
use crate::signing::Signer;

/// The packages that were indexed.
#[derive(Debug)]
pub struct Indexed {
    /// Number of .deb packages.
    pub debs: usize,
    /// Number of .rpm packages.
    pub rpms: usize,
    /// Files with a package's name that can't be read as packages.
    pub left_out: Vec<PathBuf>,
    /// The files for users of the repository.
    pub setup: SetupFiles,
}

/// Indexes all packages below `dir`, and signs the indexes if there is a `signer`. Concurrent
/// runs wait for each other. The indexes have the time `epoch`, in seconds since 1970. `address`
/// is where the repository is used from.
///
/// # Errors
/// If one can't be made. The previous indexes are then still complete.
pub fn index(
    dir: &Path,
    suite: &Suite,
    address: &Address,
    signer: Option<&Signer>,
    epoch: u64,
) -> Result<Indexed> {
    let lock = std::fs::File::open(dir).map_err(Error::io("open", dir))?;
    // On file systems without locks, only one run at a time is supported.
    let lock = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map(|()| lock);
    let found = packages(dir)?;
    let there = |ending: &str| {
        found.iter().any(|path| path.extension().is_some_and(|extension| extension == ending))
    };
    // If the last package was removed, its index is updated to an empty one.
    let (apts, rpms) = (apt::is_there(dir, suite), rpm::is_there(dir));
    if found.is_empty() && !apts && !rpms {
        return Err(Error::usage(
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
    let key = signer.map(Signer::public_key).transpose()?;
    if let Some(key) = &key {
        put(&dir.join(KEY_FILE), key)?;
    }
    let kinds = (!debs.is_empty(), !rpm_files.is_empty());
    let setup = setup::write(dir, address, suite, key.as_deref(), kinds)?;
    let left_out = found.into_iter().filter(|path| {
        let name = path.strip_prefix(dir).unwrap_or(path);
        !debs.contains(name) && !rpm_files.contains(name)
    });
    Ok(Indexed { debs: debs.len(), rpms: rpm_files.len(), left_out: left_out.collect(), setup })
}
