//! What MIOpen itself would answer, judged by the files that the runtime
//! knows. The two differ: the runtime asks every kdb that fits the device.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{Fault, ReadError, RowError};
use gfxpack_model::{KernelKey, Target};

use crate::cache::KernelCache;
use crate::config::{Config, LookupOrder};
use crate::layer::Layer;
use crate::lookup::Lookup;
use crate::miss::MissReason;
use crate::places::{Places, UserPlace};
use crate::system::file_names;
use crate::warning::WarningSink;

/// The installed kdb that MIOpen opens for a device. It opens one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MiopenKdb {
    /// That kdb. It may not exist.
    pub file: PathBuf,
    /// The device-wide kdb beside it, which exists and is not opened.
    pub hidden: Option<PathBuf>,
}

impl MiopenKdb {
    /// The one for exactly the device's compute units where that file exists,
    /// whatever is in it, else the device-wide one, in the first directory of
    /// installed kdbs that exists. `None` where the cache is disabled.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
    #[must_use]
    pub fn choose(places: &Places, device: &Target) -> Option<Self> {
        let mut directories = places.system_dirs();
        let first = directories.next()?;
        let existing = std::iter::once(first).chain(directories).find(|dir| dir.is_dir());
        Some(Self::in_dir(existing.unwrap_or(first), device))
    }

    /// The same in this directory.
    #[must_use]
    pub fn in_dir(directory: &Path, device: &Target) -> Self {
        let mut files = file_names(device).into_iter().map(|name| directory.join(name));
        let exact = files.next().unwrap_or_default();
        match files.next().filter(|wide| wide.exists()) {
            None => Self { file: exact, hidden: None },
            Some(wide) if exact.exists() => Self { file: exact, hidden: Some(wide) },
            Some(wide) => Self { file: wide, hidden: None },
        }
    }
}

/// What MIOpen does about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MiopenOutcome {
    /// It finds it.
    Finds,
    /// It compiles it.
    Compiles,
    /// It ends the call with an error, since a file is damaged.
    Fails,
    /// Not known: it has a file that MIOpen may be able to use.
    Unknown,
}

impl MiopenOutcome {
    /// The outcome in machine-readable output: `compiles`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Finds => "finds",
            Self::Compiles => "compiles",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

/// MIOpen's answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct MiopenLookup {
    /// What MIOpen does.
    pub outcome: MiopenOutcome,
    /// The kernel, where it is found, and the files that do not have it.
    pub lookup: Lookup,
    /// The installed kdb that is opened; none where the cache is disabled.
    pub kdb: Option<MiopenKdb>,
    /// The user's kdb that is opened; none where there is no user's cache, or it
    /// is left out.
    pub user: Option<PathBuf>,
}

/// Looks a key up as MIOpen does with the same places: the user's kdb, then
/// one installed kdb. Changes nothing. A user's cache that can only be read, or
/// is elsewhere than MIOpen would have it, is left out.
///
/// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord`.
#[must_use]
pub fn ask_as_miopen(config: &Config, key: &KernelKey) -> MiopenLookup {
    let mut config = config.clone();
    config.order = LookupOrder::UserFirst;
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    config.places.read_only.clear();
    if let Some(why) = config.places.fallback.take() {
        config.places.user = UserPlace::Unknown { why };
    }
    let kdb = MiopenKdb::choose(&config.places, &config.target);
    config.only_system_file = kdb.as_ref().map(|kdb| kdb.file.clone());
    let cache = KernelCache::open(config);
    let user = cache.files().into_iter().find(|(layer, _)| *layer == Layer::User);
    let lookup = cache.get(key);
    MiopenLookup { outcome: outcome(&lookup), lookup, kdb, user: user.map(|(_, file)| file) }
}

/// What the first file that matters makes of it.
fn outcome(lookup: &Lookup) -> MiopenOutcome {
    let stop = lookup.misses.iter().find_map(|miss| match &miss.reason {
        MissReason::NoFile | MissReason::NoKernel => None,
        MissReason::Unreadable(error) => match error.fault() {
            // MIOpen warns, and goes on.
            Fault::TooSmall => None,
            Fault::Corrupt | Fault::Schema => Some(MiopenOutcome::Fails),
            _ => Some(MiopenOutcome::Unknown),
        },
        MissReason::Damaged(error) => Some(of_row(error)),
        MissReason::NoCodeObject(_) | MissReason::OtherTarget(_) => Some(MiopenOutcome::Fails),
        MissReason::Untrusted(_) | MissReason::MovedAside { .. } => Some(MiopenOutcome::Unknown),
    });
    stop.unwrap_or(match lookup.found {
        Some(_) => MiopenOutcome::Finds,
        None => MiopenOutcome::Compiles,
    })
}

/// What MIOpen does about a row that the runtime refuses, some of them by
/// limits of its own.
fn of_row(error: &ReadError) -> MiopenOutcome {
    let damaged = matches!(
        error,
        ReadError::Row {
            source: RowError::Bzip2(_)
                | RowError::Length { .. }
                | RowError::HashForm(_)
                | RowError::HashMismatch { .. },
            ..
        }
    );
    if damaged { MiopenOutcome::Fails } else { MiopenOutcome::Unknown }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_exact_kdb_that_exists_hides_the_device_wide_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let check = |device: &str, opened: &str, hidden: Option<&str>| {
            let kdb = MiopenKdb::in_dir(dir.path(), &device.parse().unwrap());
            assert_eq!((kdb.file, kdb.hidden), (file(opened), hidden.map(file)), "{device}");
        };
        check("gfx906@60", "gfx906_60.kdb", None);
        fs::write(file("gfx906.kdb"), "").unwrap();
        check("gfx906@60", "gfx906.kdb", None);
        check("gfx906", "gfx906.kdb", None);
        // What is in it does not count.
        fs::write(file("gfx906_60.kdb"), "").unwrap();
        check("gfx906@60", "gfx906_60.kdb", Some("gfx906.kdb"));
        check("gfx906@64", "gfx906.kdb", None);
        check("gfx906:xnack+@60", "gfx906_xnack_60.kdb", None);
    }

    #[test]
    fn one_directory_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let places = |dirs: &[&Path]| {
            let why = String::new();
            Places::new(dirs.iter().map(|dir| dir.to_path_buf()), UserPlace::Memory { why })
        };
        let device = "gfx906@60".parse().unwrap();
        let chosen = |dirs: &[&Path]| MiopenKdb::choose(&places(dirs), &device);
        let none = Path::new("/no/such/directory");
        let expected = MiopenKdb { file: dir.path().join("gfx906_60.kdb"), hidden: None };
        assert_eq!(chosen(&[none, dir.path()]), Some(expected));
        let expected = MiopenKdb { file: none.join("gfx906_60.kdb"), hidden: None };
        assert_eq!(chosen(&[none]), Some(expected));
        assert_eq!(chosen(&[]), None);
    }
}
