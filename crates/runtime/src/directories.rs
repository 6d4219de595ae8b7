//! The directories of kdbs on this machine, in the order of the search, and the
//! rules that name them.

use std::path::{Path, PathBuf};

use gfxpack_model::InstallLayout;

use crate::environment::Environment;
use crate::explain::entries;
use crate::file_system;
use crate::miopen_rules::MiopenRules;
use crate::trust::{self, GroupWrite};

/// The user cache's directory unless the program or the user names another:
/// `GFXPACK_RUNTIME_CACHE_DIR` at build time of this crate, else
/// `~/.cache/miopen/`. If it is set but empty, the build has no user cache, as
/// MIOpen with `-DMIOPEN_CACHE_DIR=`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `MIOPEN_CACHE_DIR` in CMakeLists.txt.
pub const BUILD_TIME_CACHE_DIR: &str = match option_env!("GFXPACK_RUNTIME_CACHE_DIR") {
    Some(directory) => directory,
    None => "~/.cache/miopen/",
};

/// The caller's settings for directories.
///
/// By default there is no [`system_dir`](Self::system_dir), and the user's
/// cache is in `~/.cache/miopen/VERSION`, where VERSION is this crate's own. A
/// program with its own kernels sets `system_dir`, `version` and
/// `build_time_cache_dir`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryOptions {
    /// The directory of installed kdbs, unless MIOPEN_SYSTEM_DB_PATH names
    /// another.
    pub system_dir: Option<PathBuf>,
    /// Absolute path of the loaded library. Installed kdbs are in
    /// `../share/miopen/db` relative to its directory.
    pub library_path: Option<PathBuf>,
    /// The user cache's sub-directory, so that each version has its own cache:
    /// `3.4.0.` for MIOpen 3.4.0. Empty for none. By default, this crate's own
    /// version.
    pub version: String,
    /// The user cache's directory for which the library was built; a leading
    /// `~` is the home directory. Empty = no user cache. By default
    /// [`BUILD_TIME_CACHE_DIR`].
    pub build_time_cache_dir: String,
    /// Root directory of the ROCm prefixes: `/`.
    pub root: PathBuf,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self {
            system_dir: None,
            library_path: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build_time_cache_dir: BUILD_TIME_CACHE_DIR.to_owned(),
            root: PathBuf::from("/"),
        }
    }
}

/// A directory and the rule that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KdbDirectory {
    /// Absolute; it may not exist.
    pub path: PathBuf,
    /// `MIOPEN_SYSTEM_DB_PATH`.
    pub rule: &'static str,
}

/// The place of the user's kdb, or the reason, as text, why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserDirectory {
    /// In this directory, which may not exist yet.
    Dir(PathBuf),
    /// Nowhere: the user has disabled it, and nothing is kept.
    Disabled(String),
    /// In this process's memory only.
    Memory(String),
    /// Unknown: its directory is named after a version of MIOpen, and none is
    /// known.
    Unknown(String),
}

/// All directories of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KdbDirectories {
    /// Directories of installed kdbs, the first one first. Empty if the cache
    /// is disabled.
    pub system: Vec<KdbDirectory>,
    /// Whether installed kdbs are disabled.
    pub system_disabled: bool,
    /// The user's cache.
    pub user: UserDirectory,
    /// Read-only user caches, searched after the user's own.
    pub read_only: Vec<PathBuf>,
    /// Directory for a short-lived private copy of a user's kdb, while another
    /// program has it open in WAL mode.
    pub temp_dir: PathBuf,
    /// Why the user's cache is not in its usual directory, and where it is
    /// instead; the only part of this that is worth a warning.
    pub fallback: Option<String>,
    /// Other deviations from what the user may expect, one sentence each.
    pub notes: Vec<String>,
    /// The rules of the MIOpen with these places.
    pub rules: &'static MiopenRules,
}

impl KdbDirectories {
    /// Exactly these directories, whatever the environment, and `/tmp` for
    /// [`temp_dir`](Self::temp_dir).
    pub fn new<P: Into<PathBuf>>(system: impl IntoIterator<Item = P>, user: UserDirectory) -> Self {
        let system = system
            .into_iter()
            .map(|path| KdbDirectory { path: path.into(), rule: "given" })
            .collect();
        Self {
            system,
            system_disabled: false,
            user,
            read_only: Vec::new(),
            temp_dir: PathBuf::from("/tmp"),
            fallback: None,
            notes: Vec::new(),
            rules: MiopenRules::of_version(""),
        }
    }

    /// Finds the directories by MIOpen's rules. Reads the file system, and
    /// changes nothing.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetSystemDbPath` in db_path.cpp,
    /// `ComputeUserCachePath` in binary_cache.cpp; never the working directory
    /// and no shared temporary one, which are left to MIOpen.
    pub fn resolve(environment: &Environment, options: &DirectoryOptions) -> Self {
        let mut directories =
            Self::new(Vec::<PathBuf>::new(), UserDirectory::Memory(String::new()));
        directories.temp_dir = environment.temp_dir();
        directories.rules = MiopenRules::of_version(&options.version);
        directories.notes.extend(directories.rules.stands_in_for(&options.version));
        if environment.disable_cache() {
            directories.system_disabled = true;
            directories.user = UserDirectory::Disabled("MIOPEN_DISABLE_CACHE is set".to_owned());
            return directories;
        }
        directories.resolve_system(environment, options);
        directories.resolve_user(environment, options);
        directories
    }

    /// The same places without the user's cache, if that is in a directory: the
    /// directory depends on the version, which is unknown.
    pub fn without_version(mut self) -> Self {
        if let UserDirectory::Dir(above) = &self.user {
            let why = format!(
                "no version of MIOpen has kept kernels below `{}`, and none is installed",
                above.display()
            );
            self.user = UserDirectory::Unknown(why);
        }
        self.read_only.clear();
        self
    }

    /// The directories of installed kdbs, the first one first.
    pub fn system_dirs(&self) -> impl Iterator<Item = &Path> {
        self.system.iter().map(|directory| directory.path.as_path())
    }

    fn resolve_system(&mut self, environment: &Environment, options: &DirectoryOptions) {
        let given = [
            ("MIOPEN_SYSTEM_DB_PATH", environment.system_db_path()),
            ("given by the program", options.system_dir.clone()),
        ];
        for (rule, path) in given {
            match path {
                Some(path) if path.is_absolute() => {
                    return self.system.push(KdbDirectory { path, rule });
                }
                Some(path) => self.notes.push(format!(
                    "`{}` ({rule}) is ignored: it is not absolute, and nothing is loaded from the \
                     working directory",
                    path.display()
                )),
                None => {}
            }
        }
        let library = options.library_path.as_deref();
        if let Some(relative) = library.filter(|library| !library.is_absolute()) {
            self.notes.push(format!(
                "the library's path `{}` is ignored: it is not absolute, and nothing is loaded from \
                 the working directory",
                relative.display()
            ));
        }
        let library = library.filter(|library| library.is_absolute());
        if let Some(path) = library.and_then(beside_library) {
            let exists = path.is_dir();
            self.system.push(KdbDirectory { path, rule: "beside the library" });
            if exists {
                return;
            }
        }
        for (path, rule) in prefixes(environment, &options.root) {
            self.add_system(path, rule);
        }
    }

    /// Adds a directory unless it is already in the list.
    fn add_system(&mut self, path: PathBuf, rule: &'static str) {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !self.system_dirs().any(|known| real(known) == real(&path)) {
            self.system.push(KdbDirectory { path, rule });
        }
    }

    fn resolve_user(&mut self, environment: &Environment, options: &DirectoryOptions) {
        if let Some(custom) = environment.custom_cache_dir() {
            // A relative path is resolved as in MIOpen: the user wrote it, and
            // no other user's directory is trusted there.
            let Ok(directory) = std::path::absolute(&custom) else {
                let why = "the working directory is gone".to_owned();
                return self.only_memory(why);
            };
            let directory = if self.rules.versioned_custom_cache {
                directory.join(&options.version)
            } else {
                directory
            };
            match unusable(&directory) {
                None => self.user = UserDirectory::Dir(directory),
                Some(why) => {
                    let why = format!("MIOPEN_CUSTOM_CACHE_DIR can't be used: {why}");
                    self.keep_reading(directory);
                    self.only_memory(why);
                }
            }
            return;
        }
        if options.build_time_cache_dir.is_empty() {
            let why = "the library was built without a cache directory".to_owned();
            self.user = UserDirectory::Disabled(why);
            return;
        }
        let expanded = environment.expand_user(&options.build_time_cache_dir);
        let Ok(directory) = std::path::absolute(expanded.join(&options.version)) else {
            return self.only_memory("the working directory is gone".to_owned());
        };
        if let Some(name) = file_system::network(&directory) {
            let why = format!("`{}` is on a network file system ({name})", directory.display());
            return self.private_temp(environment, options, why);
        }
        match unusable(&directory) {
            None => self.user = UserDirectory::Dir(directory),
            Some(why) => {
                self.keep_reading(directory);
                self.private_temp(environment, options, why);
            }
        }
    }

    /// A directory of the user's own in the temporary one, which nobody else
    /// can have prepared.
    fn private_temp(&mut self, environment: &Environment, options: &DirectoryOptions, why: String) {
        let temp = environment.temp_dir();
        let private = temp.join(format!("gfxpack-{}", trust::user()));
        let trouble = if std::fs::symlink_metadata(&private).is_ok() {
            trust::check_private(&private).err().map(|error| error.to_string())
        } else {
            (!file_system::is_writable(&temp))
                .then(|| format!("`{}` can't be written to", temp.display()))
        };
        let trouble = trouble.or_else(|| {
            let name = file_system::network(&private)?;
            Some(format!("`{}` is on a network file system ({name})", temp.display()))
        });
        match trouble {
            None => {
                let directory = private.join("miopen").join(&options.version);
                let shown = directory.display();
                self.fallback =
                    Some(format!("the user's kernel cache is in `{shown}`, since {why}"));
                self.user = UserDirectory::Dir(directory);
            }
            Some(trouble) => self.only_memory(format!("{why}, and {trouble}")),
        }
    }

    fn only_memory(&mut self, why: String) {
        self.fallback = Some(format!("compiled kernels are kept in memory only, since {why}"));
        self.user = UserDirectory::Memory(why);
    }

    /// A directory that can't be written to may still hold kernels.
    fn keep_reading(&mut self, directory: PathBuf) {
        if trust::check_directory(&directory, GroupWrite::Left).is_ok() {
            self.read_only.push(directory);
        }
    }
}

/// Why a cache can't be kept in the directory; `None` if it can.
fn unusable(directory: &Path) -> Option<String> {
    if directory.exists()
        && let Err(error) = trust::check_directory(directory, GroupWrite::Left)
    {
        return Some(error.to_string());
    }
    (!file_system::is_writable(directory))
        .then(|| format!("`{}` can't be written to", directory.display()))
}

/// MIOpen's own rule: relative to the directory of the real library file.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetLibPath` and `GetSystemDbPath` in
/// db_path.cpp.
fn beside_library(library: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(library).ok()?;
    Some(real.parent()?.parent()?.join("share/miopen/db"))
}

/// The directories below the ROCm prefixes, whether they exist or not.
fn prefixes(environment: &Environment, root: &Path) -> Vec<(PathBuf, &'static str)> {
    let below_root = |layout: InstallLayout| root.join(layout.kdb_dir().trim_start_matches('/'));
    let mut directories = Vec::new();
    if let Some(prefix) = environment.rocm_path().filter(|prefix| prefix.is_absolute()) {
        directories.push((prefix.join("share/miopen/db"), "ROCM_PATH"));
    }
    let rocm = "ROCm prefix";
    directories.push((below_root(InstallLayout::Rocm { version: None }), rocm));
    for version in rocm_versions(&root.join("opt")) {
        directories.push((below_root(InstallLayout::Rocm { version: Some(version) }), rocm));
    }
    directories.push((below_root(InstallLayout::Fhs), "prefix /usr"));
    directories.push((below_root(InstallLayout::Debian), "prefix /usr/lib"));
    directories
}

/// The versions of `rocm-<version>` directories, newest first.
fn rocm_versions(opt: &Path) -> Vec<String> {
    let mut versions: Vec<String> = entries(opt)
        .filter_map(|path| Some(path.file_name()?.to_str()?.strip_prefix("rocm-")?.to_owned()))
        .filter(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    versions.sort_by_cached_key(|version| std::cmp::Reverse(crate::version::numbers(version)));
    versions
}
