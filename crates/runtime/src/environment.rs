//! All environment variables that the runtime reads, with MIOpen's spellings of
//! true and false.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::process;
use crate::warning::hides_warnings;

/// A snapshot of the environment variables that the runtime uses.
///
/// An empty variable counts as unset, as in MIOpen. Other variables are not
/// kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    values: BTreeMap<&'static str, OsString>,
    /// `HSA_OVERRIDE_GFX_VERSION_<node>`: the versions that single KFD nodes are treated as.
    pub(crate) node_overrides: BTreeMap<u32, String>,
    /// Whether the program has rights that its caller lacks.
    privileged: bool,
}

/// A variable, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// `MIOPEN_DISABLE_CACHE`.
    pub name: &'static str,
    /// Its value; `None` if it is unset or empty.
    pub value: Option<String>,
    /// The effect of that value, or of its absence.
    pub effect: String,
}

/// The variables in the order of [`Environment::variables`].
const NAMES: [&str; 18] = [
    "MIOPEN_SYSTEM_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "MIOPEN_DISABLE_CACHE",
    "MIOPEN_LOG_LEVEL",
    "MIOPEN_DEVICE_ARCH",
    "MIOPEN_DEVICE_CU",
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_XNACK",
    "ROCM_PATH",
    "HOME",
    "TMPDIR",
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_DEBUG_DISABLE_SQL_WAL",
    "MIOPEN_FIND_ENFORCE",
    "MIOPEN_FIND_MODE",
    "MIOPEN_SEARCH_CUTOFF",
    "MIOPEN_ENABLE_LOGGING_CMD",
    "XDG_CACHE_HOME",
];

/// The beginning of the variables that override one KFD node; its number follows.
const NODE_OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION_";

/// The variables that choose directories. Through these, the caller of a
/// program with more rights could make it read and write anywhere.
const DIRECTORIES: [&str; 7] = [
    "MIOPEN_SYSTEM_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "MIOPEN_USER_DB_PATH",
    "ROCM_PATH",
    "HOME",
    "TMPDIR",
    "XDG_CACHE_HOME",
];

impl Environment {
    /// The process's environment as it is now.
    ///
    /// In a program with rights that its caller lacks (set-user-ID,
    /// set-group-ID or file capabilities), no variable chooses a directory:
    /// HOME is the one of the effective user in the password database, if it
    /// has one, and the other variables count as unset.
    #[expect(clippy::disallowed_methods, reason = "the one module that reads the environment")]
    pub fn read() -> Self {
        let known = NAMES.iter();
        let of_nodes = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            name.starts_with(NODE_OVERRIDE).then_some((name, value))
        });
        let values = known.filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)));
        let values = Self::from_pairs(values.chain(of_nodes));
        if process::is_privileged() { values.privileged(process::home_of_user()) } else { values }
    }

    fn privileged(mut self, home: Option<PathBuf>) -> Self {
        self.privileged = true;
        self.values.retain(|name, _| !DIRECTORIES.contains(name));
        self.values.extend(home.map(|home| ("HOME", home.into_os_string())));
        self
    }

    /// An environment of exactly these variables; the last one of a name wins.
    pub fn from_pairs<N: AsRef<str>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let known = |name: &str| NAMES.iter().find(|known| **known == name).copied();
        let mut environment = Self::default();
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.into());
            if value.is_empty() {
                continue;
            }
            if let Some(name) = known(name) {
                environment.values.insert(name, value);
            } else if let Some(node) = name.strip_prefix(NODE_OVERRIDE)
                && let Ok(node) = node.parse()
            {
                environment.node_overrides.insert(node, value.to_string_lossy().into_owned());
            }
        }
        environment
    }

    /// Every variable with its value and its effect, the effective ones first.
    pub fn variables(&self) -> Vec<Variable> {
        NAMES
            .iter()
            .map(|name| Variable {
                name,
                value: self.value(name).map(|value| value.to_string_lossy().into_owned()),
                effect: self.effect(name).to_owned(),
            })
            .collect()
    }

    /// MIOPEN_SYSTEM_DB_PATH: the directory of the installed kdbs.
    pub fn system_db_path(&self) -> Option<PathBuf> {
        self.path("MIOPEN_SYSTEM_DB_PATH")
    }

    /// MIOPEN_CUSTOM_CACHE_DIR: exactly the directory of the user's kernel
    /// cache.
    pub fn custom_cache_dir(&self) -> Option<PathBuf> {
        self.path("MIOPEN_CUSTOM_CACHE_DIR")
    }

    /// MIOPEN_DISABLE_CACHE: neither the system's nor the user's files are
    /// read or written.
    pub fn disable_cache(&self) -> bool {
        self.text("MIOPEN_DISABLE_CACHE").is_some_and(is_true)
    }

    /// MIOPEN_LOG_LEVEL: 0 for the default, 1 quiet, 2 fatal, 3 error, 4 warning, 5 info, 6 more,
    /// 7 trace.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `LoggingLevel` in logger.hpp.
    pub fn log_level(&self) -> u8 {
        self.number("MIOPEN_LOG_LEVEL").and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
    }

    /// MIOPEN_FIND_ENFORCE: whether MIOpen should tune, `3` or `SEARCH`.
    pub fn find_enforce(&self) -> Option<&str> {
        self.text("MIOPEN_FIND_ENFORCE")
    }

    /// ROCM_PATH: the first ROCm prefix to search.
    pub fn rocm_path(&self) -> Option<PathBuf> {
        self.path("ROCM_PATH")
    }

    /// The home directory as MIOpen takes it: HOME, even if it is relative, or the temporary
    /// directory if HOME is unset, empty or `/`, as in many containers.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ExpandUser` in expanduser.cpp.
    pub fn home(&self) -> PathBuf {
        let given = self.value("HOME").map(PathBuf::from).filter(|home| home != Path::new("/"));
        given.unwrap_or_else(|| self.temp_dir())
    }

    /// TMPDIR if it is an absolute path, else `/tmp`.
    pub fn temp_dir(&self) -> PathBuf {
        let given = self.value("TMPDIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        given.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// A path with a leading `~` replaced by the home directory.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ExpandUser` in expanduser.cpp.
    pub fn expand_user(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| self.home().join(rest))
    }

    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        self.values.get(name).map(OsString::as_os_str)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(OsStr::to_str)
    }

    /// A directory, which may begin with `~`.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(|path| self.expand_user(path))
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.text(name).and_then(|text| text.trim().parse().ok())
    }

    fn effect(&self, name: &str) -> &'static str {
        let value = self.value(name).map(OsStr::to_string_lossy);
        if self.privileged && DIRECTORIES.contains(&name) {
            return if value.is_some() {
                "taken from the password database: this program has more rights than its \
                     caller"
            } else {
                "ignored: this program has more rights than its caller"
            };
        }
        match (name, value.as_deref()) {
            ("MIOPEN_DISABLE_CACHE", Some(text)) if is_true(text) => {
                "no file is read or written, the installed kdbs included"
            }
            ("MIOPEN_DISABLE_CACHE", Some(text)) if !is_false(text) => {
                "not understood, so both caches are used: write 1 or 0"
            }
            ("MIOPEN_DISABLE_CACHE", _) => "both caches are used",
            ("MIOPEN_LOG_LEVEL", Some(_)) if self.number(name).is_none() => {
                "not understood, so warnings are shown: write 1 to 7"
            }
            ("MIOPEN_LOG_LEVEL", _) if hides_warnings(self.log_level()) => "warnings are hidden",
            ("MIOPEN_LOG_LEVEL", _) => "warnings are shown",
            ("MIOPEN_DEVICE_ARCH", Some(_)) => "taken for the device's name",
            ("MIOPEN_DEVICE_ARCH", None) => "the device is detected",
            ("MIOPEN_DEVICE_CU", None) => "the compute units are detected",
            ("MIOPEN_DEVICE_CU", Some(_)) if self.number(name).is_some_and(|count| count > 0) => {
                "taken for the device's compute units"
            }
            ("MIOPEN_DEVICE_CU", Some(_)) => "not understood, so the compute units are detected",
            ("HSA_OVERRIDE_GFX_VERSION", Some(_)) => {
                "every device is taken for this version of gfx target"
            }
            ("HSA_OVERRIDE_GFX_VERSION", None) => "devices are taken for what they are",
            ("HSA_XNACK", Some("1")) => {
                "XNACK is on where the device has it: its kdbs end in _xnack"
            }
            ("HSA_XNACK", _) => "XNACK is as the driver has it",
            ("MIOPEN_DEBUG_DISABLE_SQL_WAL", _) => "none: gfxpack never starts a write-ahead log",
            ("XDG_CACHE_HOME", _) => "none: MIOpen does not use it",
            ("MIOPEN_ENABLE_LOGGING_CMD", _) => "none here; MIOpen prints its driver commands",
            ("MIOPEN_SYSTEM_DB_PATH", Some(_)) => "the only directory of installed kdbs",
            ("MIOPEN_SYSTEM_DB_PATH", None) => {
                "installed kdbs are looked for beside the library and in the ROCm prefixes"
            }
            ("MIOPEN_CUSTOM_CACHE_DIR", Some(_)) => {
                "the user's kernel cache; since 3.5, MIOpen has a directory for its version in it"
            }
            ("MIOPEN_CUSTOM_CACHE_DIR", None) => {
                "the user's kernel cache is ~/.cache/miopen/<version>"
            }
            ("ROCM_PATH", Some(_)) => "the first ROCm prefix",
            ("ROCM_PATH", None) => "the ROCm prefixes are the usual ones",
            ("HOME", Some("/")) => {
                "counts as unset, so the user's kernel cache is below the temporary directory"
            }
            ("HOME", Some(_)) => "the user's kernel cache is below it",
            ("HOME", None) => "unset, so the user's kernel cache is below the temporary directory",
            ("TMPDIR", _) => "where a private cache is kept when the home directory can't hold one",
            ("MIOPEN_USER_DB_PATH", Some(_)) => {
                "exactly the directory of the user's performance and find databases"
            }
            ("MIOPEN_USER_DB_PATH", None) => {
                "the user's performance and find databases are in ~/.config/miopen"
            }
            _ => "none here: it is about MIOpen's performance and find databases",
        }
    }
}

/// Source: ROCm/MIOpen 2d1fd997a, `IsEnabled` in env.hpp.
fn is_true(text: &str) -> bool {
    ["1", "enable", "enabled", "yes", "on", "true"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// Source: ROCm/MIOpen 2d1fd997a, `IsDisabled` in env.hpp.
fn is_false(text: &str) -> bool {
    ["0", "disable", "disabled", "no", "off", "false"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_with_fewer_rights_chooses_no_directory() {
        let all = NAMES.map(|name| (name, "/callers"));
        let home_of = |home: Option<&str>| {
            let environment = Environment::from_pairs(all).privileged(home.map(PathBuf::from));
            assert_eq!(environment.custom_cache_dir(), None);
            assert_eq!(environment.system_db_path(), None);
            assert_eq!(environment.path("MIOPEN_USER_DB_PATH"), None);
            assert_eq!(environment.rocm_path(), None);
            assert_eq!(environment.temp_dir(), Path::new("/tmp"));
            assert_eq!(environment.text("MIOPEN_DEVICE_ARCH"), Some("/callers"), "no directory");
            for variable in environment.variables() {
                let overridden = variable.effect.contains("more rights");
                assert_eq!(overridden, DIRECTORIES.contains(&variable.name), "{variable:?}");
            }
            environment.home()
        };
        assert_eq!(home_of(None), Path::new("/tmp"));
        assert_eq!(home_of(Some("/people/owner")), Path::new("/people/owner"));
    }
}
