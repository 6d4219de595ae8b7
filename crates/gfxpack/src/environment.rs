//! Every environment variable that gfxpack reads, and the environment of the
//! compilers that it starts.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::ColorChoice;
use gfxpack_caches::UserEnvironment;
use gfxpack_debian::Proxies;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::fail::{self, Result};

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

/// The variable that makes MIOpen log its kernels.
pub(crate) const LOG_LEVEL: &str = "MIOPEN_LOG_LEVEL";
/// The variable that makes MIOpen log what is computed, as driver commands.
pub(crate) const LOG_COMMANDS: &str = "MIOPEN_ENABLE_LOGGING_CMD";

/// The user's settings of rocFFT's variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct FftVariables {
    /// `ROCFFT_RTC_CACHE_PATH`.
    pub(crate) user_file: Option<PathBuf>,
    /// `ROCFFT_RTC_SYS_CACHE_PATH`.
    pub(crate) system_file: Option<PathBuf>,
    /// Whether `ROCFFT_RTC_CACHE_READ_DISABLE` disables reading.
    pub(crate) reading_off: bool,
}

/// The environment, read once at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) gfxpack_log: Option<String>,
    pub(crate) cache_dir: Option<PathBuf>,
    cache_size: Option<String>,
    pub(crate) hipcc: Option<PathBuf>,
    pub(crate) maintainer: Option<String>,
    pub(crate) source_date_epoch: Option<String>,
    /// The Debian mirror.
    pub(crate) debian_mirror: Option<String>,
    pub(crate) proxies: Proxies,
    /// Whether compilers run without Landlock, to find out whether it is the
    /// cause of a problem.
    pub(crate) no_landlock: bool,
    /// Whether there are colours only if they are requested.
    no_color: bool,
    /// ROCm's directory.
    pub(crate) rocm_path: Option<PathBuf>,
    /// Where Python looks for modules.
    pub(crate) python_path: Option<OsString>,
    /// MIOpen's log level; 0 for its default.
    pub(crate) miopen_log_level: u8,
    /// Whether MIOpen logs driver commands.
    pub(crate) miopen_log_commands: bool,
    /// The variables that choose rocFFT's files.
    pub(crate) rocfft: FftVariables,
    /// Whether this runs on GitHub Actions.
    pub(crate) github_actions: bool,
    /// The complete environment of the compilers, except for what options add.
    pub(crate) compiler: Vec<(OsString, OsString)>,
}

#[expect(clippy::disallowed_methods, reason = "the one module that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The variables and the user on which the places of other tools' caches depend.
/// Empty variables are passed on: these tools treat them as set.
pub(crate) fn user_environment() -> UserEnvironment {
    let set = std::env::vars_os();
    // No tool reads a variable whose name is not UTF-8.
    let set = set.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let (name, home) = listed_user().unzip();
    UserEnvironment::new(set, name).with_listed_home(home)
}

/// This user's name and home directory in /etc/passwd.
fn listed_user() -> Option<(String, PathBuf)> {
    let own = rustix::process::geteuid().as_raw().to_string();
    let list = std::fs::read_to_string("/etc/passwd").ok()?;
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number, home) = (fields.next()?, fields.nth(1)?, fields.nth(2)?);
        (number == own).then(|| (name.to_owned(), PathBuf::from(home)))
    })
}

/// Python environments whose torch programs would import: that of the first `python3` in PATH, and
/// the user's own.
pub(crate) fn pythons() -> Vec<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&path);
    let first = dirs.find(|dir| dir.join("python3").exists());
    let active = first.and_then(|dir| Some(dir.parent()?.to_owned()));
    let own = variable("HOME").map(|home| Path::new(&home).join(".local"));
    active.into_iter().chain(own).collect()
}

impl Environment {
    pub(crate) fn read() -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| variable(name).map(PathBuf::from);
        // HTTP_PROXY is not read: a server may set it from a request's header.
        let either = |name: &str, capitals: &str| text(name).or_else(|| text(capitals));
        let cache_dir = path("GFXPACK_CACHE_DIR")
            .or_else(|| path("XDG_CACHE_HOME").map(|dir| dir.join("gfxpack")))
            .or_else(|| path("HOME").map(|dir| dir.join(".cache/gfxpack")));
        let maintainer = text("DEBFULLNAME").zip(text("DEBEMAIL"));
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
        Self {
            gfxpack_log: text("GFXPACK_LOG"),
            cache_dir,
            cache_size: text("GFXPACK_CACHE_SIZE"),
            hipcc: path("HIPCC"),
            maintainer: maintainer.map(|(name, mail)| format!("{name} <{mail}>")),
            source_date_epoch: text("SOURCE_DATE_EPOCH"),
            debian_mirror: text("GFXPACK_DEBIAN_MIRROR"),
            proxies: Proxies {
                http: text("http_proxy"),
                https: either("https_proxy", "HTTPS_PROXY"),
                none: either("no_proxy", "NO_PROXY"),
            },
            no_landlock: variable("GFXPACK_NO_LANDLOCK").is_some(),
            no_color: variable("NO_COLOR").is_some()
                || variable("TERM").is_some_and(|name| name == "dumb"),
            rocm_path: path("ROCM_PATH"),
            python_path: variable("PYTHONPATH"),
            miopen_log_level: text(LOG_LEVEL).and_then(|level| level.parse().ok()).unwrap_or(0),
            miopen_log_commands: text(LOG_COMMANDS).is_some_and(|value| {
                ["1", "yes", "true", "on", "enable", "enabled"].contains(&&*value.to_lowercase())
            }),
            rocfft: FftVariables {
                user_file: path("ROCFFT_RTC_CACHE_PATH"),
                system_file: path("ROCFFT_RTC_SYS_CACHE_PATH"),
                reading_off: variable("ROCFFT_RTC_CACHE_READ_DISABLE").is_some(),
            },
            github_actions: text("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            compiler,
        }
    }

    /// Whether this stream has colours.
    pub(crate) fn colors(&self, choice: ColorChoice, stream: &impl IsTerminal) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !self.no_color && stream.is_terminal(),
        }
    }

    /// The time stamp of what says when it was built, if one is stated.
    pub(crate) fn stated_epoch(&self) -> Option<u64> {
        self.source_date_epoch.as_ref().and_then(|text| text.parse().ok())
    }

    /// The time stamp of everything that is built, in seconds since 1970.
    pub(crate) fn epoch(&self) -> Result<u64> {
        match &self.source_date_epoch {
            None => Ok(DEFAULT_EPOCH),
            Some(text) => text.parse().map_err(|_| {
                fail::usage(
                    format!("failed to read SOURCE_DATE_EPOCH `{text}`"),
                    "it is a number of seconds since 1970, as `date +%s` prints it",
                )
            }),
        }
    }

    /// Maximum size of the cache after a build, in bytes, if there is a limit.
    pub(crate) fn cache_size(&self) -> Result<Option<u64>> {
        let Some(text) = &self.cache_size else { return Ok(None) };
        let size = crate::quantity::parse_size(text);
        size.map(Some).map_err(|_| {
            fail::usage(
                format!("failed to read GFXPACK_CACHE_SIZE `{text}`"),
                "write a number with its unit, B, kB, MB, GB or TB: 20GB",
            )
        })
    }
}

/// Sets up diagnostics for developers on stderr. GFXPACK_LOG has levels, of all or of some crates;
/// what is no such list counts as none.
pub(crate) fn init_logging(environment: &Environment, verbose: u8) {
    let default = match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::WARN,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let given = environment.gfxpack_log.as_deref().and_then(|given| given.parse().ok());
    let levels: Targets = given.unwrap_or_else(|| Targets::new().with_default(default));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(lines.without_time().with_filter(levels)).init();
}
