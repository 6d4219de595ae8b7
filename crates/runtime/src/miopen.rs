//! Predicts what MIOpen itself would find in the files of the runtime. The two
//! differ: the runtime searches every kdb that suits the device.

use std::path::{Path, PathBuf};

use gfxpack_kdb::KdbErrorKind;
use gfxpack_model::{KernelKey, Target};

use crate::cache::KernelCache;
use crate::config::{Config, LookupOrder};
use crate::directories::{KdbDirectories, UserDirectory};
use crate::installed_kdbs::file_names;
use crate::lookup::{Layer, Lookup};
use crate::miss::MissReason;
use crate::warning::WarningSink;

/// The only installed kdb that MIOpen opens for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MiopenKdb {
    /// The kdb. It may not exist.
    pub file: PathBuf,
    /// The device-wide kdb beside it, which exists but is not opened.
    pub hidden: Option<PathBuf>,
}

impl MiopenKdb {
    /// Chooses in the first existing directory of installed kdbs: the kdb for
    /// exactly the device's compute units if that file exists, whatever its
    /// content, else the device-wide one. `None` if the cache is disabled.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
    pub fn choose(directories: &KdbDirectories, device: &Target) -> Option<Self> {
        let mut directories = directories.system_dirs();
        let first = directories.next()?;
        let existing = std::iter::once(first).chain(directories).find(|dir| dir.is_dir());
        Some(Self::in_dir(existing.unwrap_or(first), device))
    }

    /// The same in one directory.
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
    /// It finds the kernel.
    Finds,
    /// It compiles the kernel.
    Compiles,
    /// It fails with an error, since a file is damaged.
    Fails,
    /// Not known: MIOpen may be able to use a file that the runtime rejects.
    Unknown,
}

impl MiopenOutcome {
    /// The outcome in machine-readable output: `compiles`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finds => "finds",
            Self::Compiles => "compiles",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

/// The predicted result of a lookup by MIOpen.
#[derive(Debug)]
#[non_exhaustive]
pub struct MiopenLookup {
    /// What MIOpen does.
    pub outcome: MiopenOutcome,
    /// The kernel, if found, and the files that do not have it.
    pub lookup: Lookup,
    /// The installed kdb that MIOpen opens; `None` if the cache is disabled.
    pub kdb: Option<MiopenKdb>,
    /// The user's kdb that MIOpen opens; `None` if there is no user's cache, or
    /// it is left out.
    pub user: Option<PathBuf>,
}

/// Looks a key up as MIOpen does with the same places: in the user's kdb, then
/// in one installed kdb. Changes nothing. A user's cache is left out if it is
/// read-only, or not in MIOpen's directory.
///
/// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord`.
pub fn ask_as_miopen(config: &Config, key: &KernelKey) -> MiopenLookup {
    let mut config = config.clone();
    config.order = LookupOrder::UserFirst;
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    config.directories.read_only.clear();
    if let Some(why) = config.directories.fallback.take() {
        config.directories.user = UserDirectory::Unknown(why);
    }
    let kdb = MiopenKdb::choose(&config.directories, &config.target);
    config.only_system_file = kdb.as_ref().map(|kdb| kdb.file.clone());
    let cache = KernelCache::open(config);
    let user = cache.files().into_iter().find(|(layer, _)| *layer == Layer::User);
    let lookup = cache.get(key);
    MiopenLookup { outcome: outcome(&lookup), lookup, kdb, user: user.map(|(_, file)| file) }
}

/// The outcome, from the first miss that would stop MIOpen.
fn outcome(lookup: &Lookup) -> MiopenOutcome {
    let stop = lookup.misses.iter().find_map(|miss| match &miss.reason {
        MissReason::NoFile | MissReason::NoKernel => None,
        MissReason::Unreadable(error) => match error.kind() {
            // MIOpen warns, and continues.
            KdbErrorKind::TooSmall => None,
            kind if kind.is_damage() => Some(MiopenOutcome::Fails),
            _ => Some(MiopenOutcome::Unknown),
        },
        // Some rows the runtime rejects by its own limits.
        MissReason::Damaged(error) if error.kind() != KdbErrorKind::Row => {
            Some(MiopenOutcome::Unknown)
        }
        MissReason::Damaged(_) | MissReason::NoCodeObject(_) | MissReason::OtherTarget(_) => {
            Some(MiopenOutcome::Fails)
        }
        MissReason::Untrusted(_) | MissReason::MovedAside { .. } => Some(MiopenOutcome::Unknown),
    });
    stop.unwrap_or(match lookup.found {
        Some(_) => MiopenOutcome::Finds,
        None => MiopenOutcome::Compiles,
    })
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
        // The content of the file does not matter.
        fs::write(file("gfx906_60.kdb"), "").unwrap();
        check("gfx906@60", "gfx906_60.kdb", Some("gfx906.kdb"));
        check("gfx906@64", "gfx906.kdb", None);
        check("gfx906:xnack+@60", "gfx906_xnack_60.kdb", None);
    }

    #[test]
    fn only_one_directory_is_searched() {
        let dir = tempfile::tempdir().unwrap();
        let directories = |dirs: &[&Path]| {
            let why = String::new();
            KdbDirectories::new(
                dirs.iter().map(|dir| dir.to_path_buf()),
                UserDirectory::Memory(why),
            )
        };
        let device = "gfx906@60".parse().unwrap();
        let chosen = |dirs: &[&Path]| MiopenKdb::choose(&directories(dirs), &device);
        let none = Path::new("/no/such/directory");
        let expected = MiopenKdb { file: dir.path().join("gfx906_60.kdb"), hidden: None };
        assert_eq!(chosen(&[none, dir.path()]), Some(expected));
        let expected = MiopenKdb { file: none.join("gfx906_60.kdb"), hidden: None };
        assert_eq!(chosen(&[none]), Some(expected));
        assert_eq!(chosen(&[]), None);
    }
}
