//! The environment variables that gfxpack reads, except for those that options have their
//! defaults from.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::ColorChoice;
use gfxpack_caches::UserEnvironment;
use gfxpack_pipeline::environment::variable;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable that makes MIOpen log its kernels.
pub(crate) const LOG_LEVEL: &str = "MIOPEN_LOG_LEVEL";
/// The variable that makes MIOpen log what is computed, as driver commands.
pub(crate) const LOG_COMMANDS: &str = "MIOPEN_ENABLE_LOGGING_CMD";

/// The environment, read once at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) gfxpack_log: Option<String>,
    /// Whether compilers run without Landlock, to find out whether it is the
    /// cause of a problem.
    pub(crate) no_landlock: bool,
    /// Whether there are colours only if they are requested.
    no_color: bool,
    /// Where Python looks for modules.
    pub(crate) python_path: Option<OsString>,
    /// MIOpen's log level; 0 for its default.
    pub(crate) miopen_log_level: u8,
    /// Whether MIOpen logs driver commands.
    pub(crate) miopen_log_commands: bool,
    /// `ROCFFT_RTC_CACHE_PATH` and `ROCFFT_RTC_SYS_CACHE_PATH`.
    pub(crate) rocfft_files: [Option<PathBuf>; 2],
    /// Whether `ROCFFT_RTC_CACHE_READ_DISABLE` disables reading.
    pub(crate) rocfft_reading_off: bool,
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

impl Environment {
    pub(crate) fn read() -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| variable(name).map(PathBuf::from);
        Self {
            gfxpack_log: text("GFXPACK_LOG"),
            no_landlock: variable("GFXPACK_NO_LANDLOCK").is_some(),
            no_color: variable("NO_COLOR").is_some()
                || variable("TERM").is_some_and(|name| name == "dumb"),
            python_path: variable("PYTHONPATH"),
            miopen_log_level: text(LOG_LEVEL).and_then(|level| level.parse().ok()).unwrap_or(0),
            miopen_log_commands: text(LOG_COMMANDS).is_some_and(|value| {
                ["1", "yes", "true", "on", "enable", "enabled"].contains(&&*value.to_lowercase())
            }),
            rocfft_files: ["ROCFFT_RTC_CACHE_PATH", "ROCFFT_RTC_SYS_CACHE_PATH"].map(path),
            rocfft_reading_off: variable("ROCFFT_RTC_CACHE_READ_DISABLE").is_some(),
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
