//! Where MIOpen looks for each of its databases, and in which order: for
//! kernels, for parameters of solvers, and for the speed of solvers.

use std::path::{Path, PathBuf};

use crate::directories::{KdbDirectories, KdbDirectory, UserDirectory};
use crate::environment::Environment;
use crate::explain::entries;
use crate::installed_kdbs::file_names;
use crate::lookup::Layer;
use crate::{Target, file_system};

/// The content of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DatabaseKind {
    /// Compiled kernels: the kdb.
    Kernels,
    /// The parameters of solvers: the performance database.
    Perf,
    /// The speed of each solver: the find database.
    Find,
    /// Models that predict both for problems that are in no database.
    Models,
}

impl DatabaseKind {
    /// The kind in machine-readable output: `performance`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Perf => "performance",
            Self::Find => "find",
            Self::Models => "models",
        }
    }
}

/// A directory in which MIOpen looks for a database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseDirectory {
    /// The kind of database.
    pub kind: DatabaseKind,
    /// Whether it is the system's or the user's: [`Layer::System`] or
    /// [`Layer::User`].
    pub layer: Layer,
    /// The directory, which may not exist.
    pub dir: PathBuf,
    /// The names of its files, in the order of the search. A `*` stands for an
    /// unknown device or version of MIOpen.
    pub names: Vec<String>,
    /// The rule that names the directory: `MIOPEN_USER_DB_PATH`.
    pub rule: &'static str,
    /// The device whose nearest relative serves if there is no file of these names, and the ending
    /// of such a file's name.
    nearest: Option<(Target, &'static str)>,
}

impl DatabaseDirectory {
    fn users(kind: DatabaseKind, dir: &Path, names: Vec<String>, rule: &'static str) -> Self {
        Self { kind, layer: Layer::User, dir: dir.to_owned(), names, rule, nearest: None }
    }

    /// One place for each of the system's directories.
    fn systems(kind: DatabaseKind, directories: &KdbDirectories, names: &[String]) -> Vec<Self> {
        let directory = |directory: &KdbDirectory| Self {
            kind,
            layer: Layer::System,
            dir: directory.path.clone(),
            names: names.to_vec(),
            rule: directory.rule,
            nearest: None,
        };
        directories.system.iter().map(directory).collect()
    }

    /// The files that exist, in the order of the search.
    pub fn existing(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for pattern in &self.names {
            if !pattern.contains('*') {
                found.extend(Some(self.dir.join(pattern)).filter(|path| path.is_file()));
                continue;
            }
            let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
            let mut files: Vec<PathBuf> = entries
                .filter(|entry| entry.file_name().to_str().is_some_and(|n| matches(pattern, n)))
                .map(|entry| entry.path())
                .filter(|path| path.is_file())
                .collect();
            files.sort();
            found.extend(files);
        }
        if found.is_empty() {
            found.extend(self.nearest());
        }
        found
    }

    /// The file for the same processor whose count of compute units is nearest.
    ///
    /// Source: ROCm/rocm-libraries pull request 8802: a gfx942 with up to 80 compute units takes
    /// the file for 304 if there is one.
    fn nearest(&self) -> Option<PathBuf> {
        let (wanted, ending) = self.nearest.as_ref()?;
        let count = wanted.compute_units()?;
        let files = entries(&self.dir).filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let device = Target::from_database_name(name.strip_suffix(ending)?)?;
            let is_relative = device.id().db_id() == wanted.id().db_id();
            let units = device.compute_units().filter(|_| is_relative)?;
            let is_sent = wanted.id().processor() == "gfx942" && count <= 80 && units == 304;
            Some(((!is_sent, units.abs_diff(count), units), path))
        });
        files.filter(|(_, path)| path.is_file()).min().map(|(_, path)| path)
    }
}

/// Whether a name matches a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, rest)) => name.strip_prefix(begin).is_some_and(|name| {
            name.char_indices()
                .map(|(at, _)| at)
                .chain([name.len()])
                .any(|at| matches(rest, &name[at..]))
        }),
    }
}

/// Where databases for a device are looked for: first those of kernels, then
/// models, performance databases and find databases, each kind in the order of
/// its search. Kernels are looked for in the system first. Of performance and
/// find databases the user's come first. They take precedence: in a performance
/// database solver by solver, in a find database record by record.
///
/// `directories` gives the directories of kernels. MIOpen keeps the system's other
/// databases beside them. The places of a disabled cache name no directories,
/// though MIOpen still reads the other databases. Without `target` the names
/// have a `*` for the device. `version` is MIOpen's, as `3.3.0.`, which is part
/// of the names of users' databases.
///
/// Up to 3.5, MIOpen finds text databases only under the name with exactly the device's compute
/// units; from 3.6 on, the nearest count serves. A device-wide `target` has none.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetPerfDbPathFile` and `GetUserPerfDbPath`
/// in execution_context.hpp, `GetInstalledPathFile` and `GetUserPath` in
/// find_db.cpp, `PrepareUserDbPath` in db_path.cpp.in, `MultiFileDb` in db.hpp.
pub fn database_directories(
    environment: &Environment,
    directories: &KdbDirectories,
    target: Option<&Target>,
    version: Option<&str>,
) -> Vec<DatabaseDirectory> {
    let mut found = kernels(directories, target);
    found.extend(models(directories, target));
    let devices = match target {
        Some(target) if target.compute_units().is_none() => return found,
        Some(target) => directories.rules.database_names(target),
        None => vec!["*".to_owned()],
    };
    let named = |endings: &[&str]| {
        let mut names = Vec::new();
        for device in &devices {
            names.extend(endings.iter().map(|ending| format!("{device}{ending}")));
        }
        names
    };
    let version = version.map_or_else(|| "*".to_owned(), |version| version.replace('.', "_"));
    let (dir, rule) = user_database_dir(environment);
    let nearest = target.filter(|_| directories.rules.nearest_database);
    for (kind, users, endings) in [
        (
            DatabaseKind::Perf,
            named(&[&format!(".HIP.{version}.udb.txt"), "_1.1.0.udb"]),
            &[".db.txt", ".db"][..],
        ),
        (DatabaseKind::Find, named(&[&format!(".HIP.{version}.ufdb.txt")]), &[".HIP.fdb.txt"]),
    ] {
        found.push(DatabaseDirectory::users(kind, &dir, users, rule));
        for system in DatabaseDirectory::systems(kind, directories, &named(endings)) {
            let nearest = nearest.map(|target| (target.clone(), endings[0]));
            found.push(DatabaseDirectory { nearest, ..system });
        }
    }
    found
}

/// Models belong to the system, and suit all counts of compute units.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Metadata` and `Model` in
/// conv/heuristics/ai_heuristics.cpp.
fn models(directories: &KdbDirectories, target: Option<&Target>) -> Vec<DatabaseDirectory> {
    let names = match target.map(|target| target.id().processor()) {
        None => vec!["*.tn.model".to_owned(), "*.ktn.model".to_owned()],
        Some(gfx) => ["{}.tn.model", "{}_*.tn.model", "{}_*.ktn.model"]
            .map(|name| name.replace("{}", gfx))
            .into(),
    };
    DatabaseDirectory::systems(DatabaseKind::Models, directories, &names)
}

fn kernels(directories: &KdbDirectories, target: Option<&Target>) -> Vec<DatabaseDirectory> {
    let (system, user) = match target {
        None => (vec!["*.kdb".to_owned()], "*.ukdb".to_owned()),
        Some(target) => (file_names(target), target.ukdb_file_name()),
    };
    let mut found = DatabaseDirectory::systems(DatabaseKind::Kernels, directories, &system);
    let users = |dir: &PathBuf, rule| {
        DatabaseDirectory::users(DatabaseKind::Kernels, dir, vec![user.clone()], rule)
    };
    if let UserDirectory::Dir(dir) = &directories.user {
        found.push(users(dir, "the user's kernel cache"));
    }
    let read_only = directories.read_only.iter();
    found.extend(read_only.map(|dir| users(dir, "a cache that can only be read")));
    found
}

/// The directory of a user's performance and find databases by MIOpen's rules,
/// and the rule that names it.
pub fn user_database_dir(environment: &Environment) -> (PathBuf, &'static str) {
    if let Some(given) = environment.path("MIOPEN_USER_DB_PATH") {
        return (given, "MIOPEN_USER_DB_PATH");
    }
    let dir = environment.home().join(".config/miopen");
    match file_system::network(&dir) {
        None => (dir, "the home directory, or the temporary one where there is none"),
        Some(_) => {
            (environment.temp_dir(), "the temporary directory: HOME is on a network file system")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(directories: &[DatabaseDirectory], kind: DatabaseKind) -> Vec<String> {
        let of_kind = directories.iter().filter(|directory| directory.kind == kind);
        of_kind
            .map(|directory| {
                let (layer, dir) = (directory.layer.name(), directory.dir.display());
                format!("{layer} {dir}: {} ({})", directory.names.join(" "), directory.rule)
            })
            .collect()
    }

    #[test]
    fn each_database_is_searched_in_its_order() {
        let environment = Environment::from_pairs([("MIOPEN_USER_DB_PATH", "/u")]);
        let directories = KdbDirectories::new(["/s"], UserDirectory::Dir("/c".into()));
        let target: Target = "gfx90a@104".parse().expect("a target");
        let all = database_directories(&environment, &directories, Some(&target), Some("3.3.0."));
        assert_eq!(
            described(&all, DatabaseKind::Kernels),
            [
                "system /s: gfx90a68.kdb gfx90a.kdb (given)",
                "user /c: gfx90a68.ukdb (the user's kernel cache)"
            ]
        );
        assert_eq!(
            described(&all, DatabaseKind::Perf),
            [
                "user /u: gfx90a68.HIP.3_3_0_.udb.txt gfx90a68_1.1.0.udb (MIOPEN_USER_DB_PATH)",
                "system /s: gfx90a68.db.txt gfx90a68.db (given)",
            ]
        );
        assert_eq!(
            described(&all, DatabaseKind::Find),
            [
                "user /u: gfx90a68.HIP.3_3_0_.ufdb.txt (MIOPEN_USER_DB_PATH)",
                "system /s: gfx90a68.HIP.fdb.txt (given)",
            ]
        );
        assert_eq!(
            described(&all, DatabaseKind::Models),
            ["system /s: gfx90a.tn.model gfx90a_*.tn.model gfx90a_*.ktn.model (given)"]
        );
        let wide: Target = "gfx90a".parse().expect("a target");
        let wide = database_directories(&environment, &directories, Some(&wide), None);
        assert_eq!(described(&wide, DatabaseKind::Perf).len(), 0);
        assert_eq!(described(&wide, DatabaseKind::Kernels)[0], "system /s: gfx90a.kdb (given)");
    }

    #[test]
    fn a_users_databases_are_below_home_or_in_the_temporary_directory() {
        let check = |pairs: &[(&str, &str)], expected: &str| {
            let environment = Environment::from_pairs(pairs.iter().copied());
            assert_eq!(user_database_dir(&environment).0, Path::new(expected), "{pairs:?}");
        };
        check(&[("HOME", "/h")], "/h/.config/miopen");
        check(&[("HOME", "/h"), ("MIOPEN_USER_DB_PATH", "~/x")], "/h/x");
        check(&[("HOME", "/h"), ("MIOPEN_USER_DB_PATH", "")], "/h/.config/miopen");
        check(&[("HOME", "/"), ("TMPDIR", "/t")], "/t/.config/miopen");
        check(&[], "/tmp/.config/miopen");
    }

    #[test]
    fn from_3_6_on_the_nearest_count_serves() {
        let dir = tempfile::tempdir().expect("a directory");
        let found = |version: &str, target: &str| {
            let mut directories =
                KdbDirectories::new([dir.path()], UserDirectory::Dir("/c".into()));
            directories.rules = crate::MiopenRules::of_version(version);
            let target = target.parse().expect("a target");
            let all =
                database_directories(&Environment::default(), &directories, Some(&target), None);
            let find = all.iter().filter(|one| one.kind == DatabaseKind::Find);
            let files: Vec<PathBuf> = find.flat_map(DatabaseDirectory::existing).collect();
            let names = files.iter().filter_map(|file| file.file_name()?.to_str());
            names.map(|name| name.replace(".HIP.fdb.txt", "")).collect::<Vec<_>>().join(" ")
        };
        for name in ["gfx942e4", "gfx942130", "gfx120140", "gfx120130", "gfx90a68"] {
            std::fs::write(dir.path().join(format!("{name}.HIP.fdb.txt")), "").expect("written");
        }
        assert_eq!(found("3.5.2", "gfx942@64"), "");
        assert_eq!(found("3.5.2", "gfx1201@32"), "gfx120140");
        for (target, name) in [
            ("gfx942@64", "gfx942130"),
            ("gfx942@80", "gfx942130"),
            ("gfx942@152", "gfx942e4"),
            ("gfx942@304", "gfx942130"),
            ("gfx1201@28", "gfx120130"),
            ("gfx90a@110", "gfx90a68"),
            ("gfx908@120", ""),
        ] {
            assert_eq!(found("3.6.0", target), name, "{target}");
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*.b.*.c", "x.b.y.c"));
        assert!(!matches("a*c", "abcd") && !matches("*.b.*.c", "x.y.c") && !matches("a", "b"));
    }
}
