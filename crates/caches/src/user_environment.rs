//! The inputs of the rules for a cache's place: variables and the user.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A user on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEnvironment {
    variables: BTreeMap<String, OsString>,
    /// The user's name in the system, used if no variable has it.
    user: Option<String>,
    /// The user's home directory in the system.
    listed_home: Option<PathBuf>,
}

impl UserEnvironment {
    /// Exactly these variables. Those that are set but empty belong to them:
    /// several tools distinguish empty from unset.
    pub fn new<N: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
        user: Option<String>,
    ) -> Self {
        let variables =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, user, listed_home: None }
    }

    /// Adds the user's home directory in the system, which is never cleared
    /// whatever HOME is.
    pub fn with_listed_home(self, home: Option<PathBuf>) -> Self {
        Self { listed_home: home.filter(|home| home.is_absolute()), ..self }
    }

    /// All home directories of the user.
    pub(crate) fn homes(&self) -> impl Iterator<Item = PathBuf> {
        self.home().into_iter().chain(self.listed_home.clone())
    }

    /// HOME, if it is an absolute path.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME")
    }

    /// The value, even if it is empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }

    /// The value, if it is neither unset nor empty.
    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The value, if it is an absolute path. Relative ones depend on the
    /// directory in which the tool was started, so they are unknown.
    pub(crate) fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// A path as MIOpen reads it: `~` is the home directory, or the temporary
    /// one if there is no home.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ExpandUser` in expanduser.cpp.
    pub(crate) fn expanded(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        let home = self.value("HOME").map(PathBuf::from).filter(|home| home != Path::new("/"));
        let home = home.unwrap_or_else(|| self.temp_dir());
        path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| home.join(rest))
    }

    /// The directory for temporary files.
    ///
    /// Source: libstdc++, `temp_directory_path` in src/c++17/fs_ops.cc.
    pub(crate) fn temp_dir(&self) -> PathBuf {
        let names = ["TMPDIR", "TMP", "TEMP", "TEMPDIR"];
        let named = names.into_iter().find_map(|name| self.absolute(name));
        named.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// Python's directory for temporary files, which depends on other
    /// variables.
    ///
    /// Source: CPython, `_candidate_tempdir_list` in Lib/tempfile.py.
    pub(crate) fn python_temp_dir(&self) -> PathBuf {
        let named = ["TMPDIR", "TEMP", "TMP"].into_iter().find_map(|name| self.absolute(name));
        named.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// The user's name by Python's rules.
    ///
    /// Source: CPython, `getuser` in Lib/getpass.py.
    pub(crate) fn python_user(&self) -> Option<String> {
        let names = ["LOGNAME", "USER", "LNAME", "USERNAME"];
        let named = names.into_iter().find_map(|name| self.value(name)?.to_str());
        named.map(str::to_owned).or_else(|| self.user.clone())
    }
}
