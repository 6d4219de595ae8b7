//! Parses the name of a tuning database: its device, its kind, and its owner.

use std::path::Path;

use gfxpack_model::{Error, Result, Target};

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatabaseKind {
    /// The parameters of solvers. A user's records are merged into the system's
    /// solver by solver.
    Perf,
    /// The speed of solvers. A user's record replaces the system's.
    Find,
}

impl DatabaseKind {
    /// One word for display and for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perf => "performance",
            Self::Find => "find",
        }
    }
}

/// The owner of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatabaseOwner {
    /// Installed; MIOpen never writes to it.
    System,
    /// MIOpen writes to it for one user.
    User,
}

/// How a database is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// One line of text per problem.
    Text,
    /// SQLite, as in builds of MIOpen with `MIOPEN_USE_SQLITE_PERFDB`.
    Sqlite,
}

/// The parsed file name of a database.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetPerfDbPathFile` and `GetUserPerfDbPath`
/// in execution_context.hpp, `GetInstalledPathFile` and `GetUserPath` in
/// find_db.cpp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseName {
    /// The part before the device: `batchnorm` for batch normalisation, empty
    /// for convolutions.
    pub prefix: String,
    /// The device. MIOpen looks only for names with compute units.
    pub target: Target,
    /// The device as the name has it: `gfx120140` for `gfx1201@32`.
    device: String,
    /// The kind.
    pub kind: DatabaseKind,
    /// The owner.
    pub owner: DatabaseOwner,
    /// The storage.
    pub storage: Storage,
    /// The part between the device and the extension: `HIP` for a find database
    /// of the system's, `HIP.3_3_0_` for a user's, `1.1.0` (the version of the
    /// schema) for a user's in SQLite.
    pub suffix: String,
}

/// Extensions. Longer ones come before those that they end in.
const EXTENSIONS: [(&str, DatabaseKind, DatabaseOwner, Storage); 6] = [
    (".ufdb.txt", DatabaseKind::Find, DatabaseOwner::User, Storage::Text),
    (".fdb.txt", DatabaseKind::Find, DatabaseOwner::System, Storage::Text),
    (".udb.txt", DatabaseKind::Perf, DatabaseOwner::User, Storage::Text),
    (".db.txt", DatabaseKind::Perf, DatabaseOwner::System, Storage::Text),
    (".udb", DatabaseKind::Perf, DatabaseOwner::User, Storage::Sqlite),
    (".db", DatabaseKind::Perf, DatabaseOwner::System, Storage::Sqlite),
];

impl DatabaseName {
    /// Parses a file's name; `None` if it is not a name of MIOpen's databases.
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (stem, kind, owner, storage) =
            EXTENSIONS.iter().find_map(|(end, kind, owner, how)| {
                Some((name.strip_suffix(end)?, *kind, *owner, *how))
            })?;
        // Only letters can precede the device: `batchnorm_gfx906_60`.
        let begin = stem.find("gfx")?;
        let prefix = match &stem[..begin] {
            "" => "",
            before if kind == DatabaseKind::Perf => {
                before.strip_suffix('_').filter(|p| !p.is_empty())?
            }
            _ => return None,
        };
        let device = &stem[begin..];
        let (device, suffix) = match (owner, storage) {
            (DatabaseOwner::User, Storage::Sqlite) => device.rsplit_once('_')?,
            _ => device.split_once('.').unwrap_or((device, "")),
        };
        let suffixed = kind == DatabaseKind::Find || owner == DatabaseOwner::User;
        if suffixed == suffix.is_empty() {
            return None;
        }
        Some(Self {
            prefix: prefix.to_owned(),
            target: Target::from_database_name(device)?,
            device: device.to_owned(),
            kind,
            owner,
            storage,
            suffix: suffix.to_owned(),
        })
    }

    /// As [`Self::from_path`].
    pub fn of_file(path: &Path) -> Result<Self> {
        Self::from_path(path).ok_or_else(|| Self::unknown(path))
    }

    pub(crate) fn unknown(path: &Path) -> Error {
        Error::usage(
            format!("failed to tell by its name which text database `{}` is", path.display()),
            "name it as MIOpen does, as gfx906_60.db.txt, gfx90a68.HIP.fdb.txt or \
             gfx906_60.HIP.3_3_0_.ufdb.txt",
        )
    }

    /// Whether its problems are convolutions alone, and not those of batch
    /// normalisation or of fused operations.
    pub(crate) fn is_of_convolutions(&self) -> bool {
        let mut parts = self.suffix.split('.').skip(1);
        self.prefix.is_empty()
            && !parts.any(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
    }

    /// The file name that MIOpen looks for.
    pub fn file_name(&self) -> String {
        let Self { prefix, device, kind, owner, storage, suffix, .. } = self;
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}_") };
        let suffix = match (suffix.as_str(), owner, storage) {
            ("", ..) => String::new(),
            (suffix, DatabaseOwner::User, Storage::Sqlite) => format!("_{suffix}"),
            (suffix, ..) => format!(".{suffix}"),
        };
        let extension =
            EXTENSIONS.iter().find(|one| (one.1, one.2, one.3) == (*kind, *owner, *storage));
        let extension = extension.map_or("", |one| one.0);
        format!("{prefix}{device}{suffix}{extension}")
    }

    /// The name of the system's database of the same kind that MIOpen looks
    /// for: the place of a user's database once it is installed.
    ///
    /// A find database keeps its backend (`HIP`) and loses its version. A part
    /// after the version, as in `HIP.3_3_0_.fusion`, stays too.
    pub fn of_system(&self) -> Self {
        let suffix = match (self.kind, self.owner) {
            (_, DatabaseOwner::System) => self.suffix.clone(),
            (DatabaseKind::Perf, DatabaseOwner::User) => String::new(),
            (DatabaseKind::Find, DatabaseOwner::User) => {
                let parts = self.suffix.split('.').enumerate();
                let kept = parts.filter(|(at, part)| *at != 1 || !is_version(part));
                kept.map(|(_, part)| part).collect::<Vec<_>>().join(".")
            }
        };
        Self { owner: DatabaseOwner::System, suffix, ..self.clone() }
    }
}

/// Whether a part of a user database's name is a version of MIOpen: `3_3_0_` or
/// `3_3_0_4d52ee7`.
fn is_version(part: &str) -> bool {
    part.contains('_') && part.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<DatabaseName> {
        DatabaseName::from_path(Path::new(name))
    }

    #[test]
    fn names_give_device_kind_owner_and_storage() {
        use DatabaseKind::{Find, Perf};
        use DatabaseOwner::{System, User};
        use Storage::{Sqlite, Text};
        let check = |name: &str, basename: &str, kind, owner, storage, rest: [&str; 2]| {
            let known =
                parsed(&format!("dir/{name}")).unwrap_or_else(|| panic!("{name} is a name"));
            assert_eq!(known.target.db_basename(), basename, "{name}");
            assert_eq!((known.kind, known.owner, known.storage), (kind, owner, storage), "{name}");
            assert_eq!([known.prefix.as_str(), known.suffix.as_str()], rest, "{name}");
            assert_eq!(known.file_name(), name);
        };
        check("gfx90a68.db.txt", "gfx90a68", Perf, System, Text, ["", ""]);
        check("batchnorm_gfx906_60.db.txt", "gfx906_60", Perf, System, Text, ["batchnorm", ""]);
        check("gfx90a_xnack68.db", "gfx90a_xnack68", Perf, System, Sqlite, ["", ""]);
        check("gfx120140.HIP.fdb.txt", "gfx1201_32", Find, System, Text, ["", "HIP"]);
        check("gfx110036.db.txt", "gfx1100_27", Perf, System, Text, ["", ""]);
        check("gfx906_60.HIP.3_3_0_.udb.txt", "gfx906_60", Perf, User, Text, ["", "HIP.3_3_0_"]);
        check("gfx906_60_1.1.0.udb", "gfx906_60", Perf, User, Sqlite, ["", "1.1.0"]);
        check("gfx942130.HIP.fdb.txt", "gfx942130", Find, System, Text, ["", "HIP"]);
        check("gfx906_60.HIP.fusion.fdb.txt", "gfx906_60", Find, System, Text, ["", "HIP.fusion"]);
        for (name, expected) in [
            ("gfx906_60.db.txt", true),
            ("batchnorm_gfx906_60.db.txt", false),
            ("gfx906_60.HIP.3_3_0_4d52.ufdb.txt", true),
            ("gfx906_60.HIP.3_3_0_4d52.fusion.ufdb.txt", false),
        ] {
            assert_eq!(parsed(name).expect(name).is_of_convolutions(), expected, "{name}");
        }
        let user = "gfx906_60.HIP.3_3_0_4d52.fusion.ufdb.txt";
        check(user, "gfx906_60", Find, User, Text, ["", "HIP.3_3_0_4d52.fusion"]);
    }

    #[test]
    fn other_names_are_not_parsed() {
        for name in [
            "",
            "db.txt",
            "gfx906_60.kdb",
            "gfx906_60.txt",
            "gfx906_60.fdb.txt",
            "gfx906_60.udb.txt",
            "gfx906@60.db.txt",
            "gfx906_60.HIP.db.txt",
            "_gfx906_60.db.txt",
            "batchnorm_gfx906_60.HIP.fdb.txt",
            "gfx0_60.db.txt",
            "gfx906_60.db.txt.bz2",
        ] {
            assert_eq!(parsed(name), None, "{name}");
        }
    }

    #[test]
    fn a_users_database_has_a_system_name() {
        let check = |user: &str, system: &str| {
            assert_eq!(parsed(user).expect(user).of_system().file_name(), system);
        };
        check("gfx906_60.HIP.3_3_0_.ufdb.txt", "gfx906_60.HIP.fdb.txt");
        check("gfx906_60.HIP.3_3_0_4d52.fusion.ufdb.txt", "gfx906_60.HIP.fusion.fdb.txt");
        check("gfx906_60.HIP.3_3_0_.udb.txt", "gfx906_60.db.txt");
        check("batchnorm_gfx90a68_1.1.0.udb", "batchnorm_gfx90a68.db");
        check("gfx90a68.HIP.fdb.txt", "gfx90a68.HIP.fdb.txt");
    }
}
