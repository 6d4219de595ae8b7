//! The environment variables that options have their defaults from, and the environment of the
//! compilers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::error::{self, Result};

/// Time stamp of everything that is written if SOURCE_DATE_EPOCH is not set: a
/// fixed day, since two builds of the same input must give the same bytes.
/// 2025-01-01T00:00:00Z.
const DEFAULT_EPOCH: u64 = 1_735_689_600;

/// Variables that choose a toolchain or help to start it. All others are not
/// passed on: they could change objects without changing their digests.
const FORWARDED: &[&str] = &[
    "PATH",
    "LD_LIBRARY_PATH",
    "ROCM_PATH",
    "HIP_PATH",
    "HIP_PLATFORM",
    "HIP_CLANG_PATH",
    "DEVICE_LIB_PATH",
];

/// What a run takes from the environment, read once.
pub static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(Environment::read);

/// What the variables say.
#[derive(Debug)]
pub struct Environment {
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) cache_size: Option<String>,
    pub(crate) hipcc: Option<PathBuf>,
    /// The complete environment of the compilers, except for what options add.
    pub(crate) compiler: Vec<(OsString, OsString)>,
    /// `ROCM_PATH`, where installed libraries may be.
    pub rocm_path: Option<PathBuf>,
    pub(crate) debian_mirror: Option<String>,
    /// Who maintains packages: `NAME <MAIL>`.
    pub(crate) maintainer: Option<String>,
    source_date_epoch: Option<String>,
    /// Whether this runs on GitHub Actions.
    pub(crate) github_actions: bool,
}

/// A variable that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the one module that reads the environment")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Python environments whose torch programs would import: that of the first `python3` in PATH, and
/// the user's own.
pub fn pythons() -> Vec<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&path);
    let first = dirs.find(|dir| dir.join("python3").exists());
    let active = first.and_then(|dir| Some(dir.parent()?.to_owned()));
    let own = variable("HOME").map(|home| Path::new(&home).join(".local"));
    active.into_iter().chain(own).collect()
}

impl Environment {
    fn read() -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| variable(name).map(PathBuf::from);
        let cache_dir = path("GFXPACK_CACHE_DIR")
            .or_else(|| path("XDG_CACHE_HOME").map(|dir| dir.join("gfxpack")))
            .or_else(|| path("HOME").map(|dir| dir.join(".cache/gfxpack")));
        let mut compiler: Vec<(OsString, OsString)> = FORWARDED
            .iter()
            .filter_map(|name| variable(name).map(|value| (OsString::from(name), value)))
            .collect();
        if variable("PATH").is_none() {
            compiler.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
        }
        // `__DATE__` and messages must not depend on the user.
        compiler.push(("SOURCE_DATE_EPOCH".into(), "0".into()));
        compiler.push(("LC_ALL".into(), "C.UTF-8".into()));
        // Drivers in Python must not write beside their modules.
        compiler.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let maintainer = text("DEBFULLNAME").zip(text("DEBEMAIL"));
        Self {
            cache_dir,
            cache_size: text("GFXPACK_CACHE_SIZE"),
            hipcc: path("HIPCC"),
            compiler,
            rocm_path: path("ROCM_PATH"),
            debian_mirror: text("GFXPACK_DEBIAN_MIRROR"),
            maintainer: maintainer.map(|(name, mail)| format!("{name} <{mail}>")),
            source_date_epoch: text("SOURCE_DATE_EPOCH"),
            github_actions: text("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
        }
    }

    /// The time stamp of what says when it was built, if one is stated.
    pub fn stated_epoch(&self) -> Option<u64> {
        self.source_date_epoch.as_ref().and_then(|text| text.parse().ok())
    }

    /// The time stamp of everything that is built, in seconds since 1970.
    ///
    /// # Errors
    /// If `SOURCE_DATE_EPOCH` is no number.
    pub fn epoch(&self) -> Result<u64> {
        match &self.source_date_epoch {
            None => Ok(DEFAULT_EPOCH),
            Some(text) => text.parse().map_err(|_| {
                error::usage(
                    format!("failed to read SOURCE_DATE_EPOCH `{text}`"),
                    "it is a number of seconds since 1970, as `date +%s` prints it",
                )
            }),
        }
    }
}
