//! Warnings: their texts, each once per file, and where they go.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::Fault;
use gfxpack_model::{Target, in_full, package_name};

use crate::environment::LogLevel;
use crate::miss::{MissReason, spelled};
use crate::mutex::lock;
use crate::per_process::PerProcess;

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WarningClass {
    /// No kdb is installed for the device.
    MissingSystemKdb,
    /// A file is less than 512 bytes: most likely a Git LFS pointer.
    TooSmall,
    /// A file is no SQLite file, or a damaged one, or holds a damaged kernel.
    Corrupt,
    /// The operating system does not let the file be read.
    Unreadable,
    /// The file has other tables or columns.
    WrongSchema,
    /// The file is in WAL mode where that can't be read.
    WalMode,
    /// The file holds code for other devices, or no code.
    WrongTarget,
    /// Another program keeps the file locked.
    Busy,
    /// The user's cache is not where it should be, or nowhere.
    UserPlace,
    /// A file or directory belongs to somebody else or others may write to it.
    Untrusted,
    /// A compiled kernel could not be saved.
    NotStored,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub class: WarningClass,
    /// The file or directory.
    pub file: PathBuf,
    /// The whole text as it is printed, without a newline at its end. The
    /// warning for a missing system kdb has two lines, all others one.
    pub text: String,
}

/// Where warnings go.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum WarningSink {
    /// Standard error, once per process and file, whatever is wrong with it;
    /// a missing system kdb once more if its file turns up with a fault.
    #[default]
    Stderr,
    /// A function of the caller's, as often as standard error but per cache. It
    /// may be called from any thread that uses the cache.
    Callback(Arc<dyn Fn(&Warning) + Send + Sync>),
    /// [`tracing`], level `WARN`, as often as standard error.
    Tracing,
    /// Nobody.
    Silent,
}

impl fmt::Debug for WarningSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stderr => "Stderr",
            Self::Callback(_) => "Callback",
            Self::Tracing => "Tracing",
            Self::Silent => "Silent",
        })
    }
}

/// Tells of each file once.
#[derive(Debug)]
pub(crate) struct Warnings {
    sink: WarningSink,
    shown: bool,
    told: Mutex<Told>,
}

/// Files of which there was a warning, and whether it was about their absence.
type Told = BTreeSet<(bool, PathBuf)>;

/// The warnings of the whole process on standard error and through `tracing`.
static TOLD: PerProcess<Mutex<Told>> = PerProcess::new();

/// The warnings that a child has from its parent process.
fn inherited(told: &Mutex<Told>) -> Mutex<Told> {
    // In the middle of a change, by a thread that the child does not have.
    Mutex::new(told.try_lock().map(|told| told.clone()).unwrap_or_default())
}

impl Warnings {
    pub(crate) fn new(sink: WarningSink, level: LogLevel) -> Self {
        Self { sink, shown: level.shows_warnings(), told: Mutex::default() }
    }

    /// The same again, for a child of the process.
    pub(crate) fn inherited(&self) -> Self {
        Self { sink: self.sink.clone(), shown: self.shown, told: inherited(&self.told) }
    }

    /// What is wrong with a file, in one line with a hint.
    pub(crate) fn fault(&self, class: WarningClass, file: &Path, text: &str, hint: &str) {
        self.tell(class, file, || one_line(&format!("gfxpack: warning: {text}; {hint}")));
    }

    /// Why a file gave no kernel, where something is wrong with it.
    pub(crate) fn miss(&self, file: &Path, reason: &MissReason) {
        let (class, text) = match reason {
            MissReason::NoFile | MissReason::NoKernel => return,
            // The error names the file.
            MissReason::Unreadable(error) => (class_of(error.fault()), in_full(error)),
            MissReason::Damaged(error) => (WarningClass::Corrupt, in_full(error)),
            MissReason::Untrusted(error) => (WarningClass::Untrusted, in_full(error)),
            MissReason::MovedAside { kept_as, source } => {
                let text = format!("{}, which is now `{}`", in_full(source), kept_as.display());
                (WarningClass::Corrupt, text)
            }
            MissReason::NoCodeObject(error) => {
                (WarningClass::WrongTarget, unusable(file, &in_full(error)))
            }
            MissReason::OtherTarget(targets) => {
                let why = format!("its code is for {}", spelled(targets));
                (WarningClass::WrongTarget, unusable(file, &why))
            }
        };
        self.fault(class, file, &text, reason.hint());
    }

    /// The documented text for a missing system kdb, and the packages that
    /// have it. `file` is where it was looked for first.
    ///
    /// Source: AMD, MIOpen documentation, "Kernel cache".
    pub(crate) fn missing_system_kdb(&self, file: &Path, target: &Target) {
        self.tell(WarningClass::MissingSystemKdb, file, || {
            let name = target.kdb_file_name();
            let package = |target: &Target| {
                package_name::for_target(package_name::DEFAULT_NAME_TEMPLATE, target)
            };
            let wide = Target::new(target.id().clone(), None);
            let or = if target.compute_units().is_some() {
                format!(" (or {} for all {} devices)", package(&wide), wide.id().db_id())
            } else {
                String::new()
            };
            format!(
                "MIOpen(HIP): Warning [SQLiteBase] Missing system database file:{name} \
                 Performance may degrade\nhint: install the package {}{or}",
                package(target)
            )
        });
    }

    fn tell(&self, class: WarningClass, file: &Path, text: impl FnOnce() -> String) {
        let told = match self.sink {
            WarningSink::Callback(_) => &self.told,
            _ => TOLD.get(|parent| parent.map_or_else(Mutex::default, inherited)),
        };
        let absent = class == WarningClass::MissingSystemKdb;
        if !self.shown
            || matches!(self.sink, WarningSink::Silent)
            || !lock(told).insert((absent, file.to_owned()))
        {
            return;
        }
        let warning = Warning { class, file: file.to_owned(), text: text() };
        match &self.sink {
            WarningSink::Callback(callback) => callback(&warning),
            WarningSink::Tracing => {
                tracing::warn!(file = %warning.file.display(), "{}", warning.text);
            }
            // In one piece, so that lines of several processes don't mix, and
            // without Rust's lock, which a thread may have held when the process
            // was forked. A closed standard error is no reason to stop.
            WarningSink::Stderr | WarningSink::Silent => {
                let line = format!("{}\n", warning.text);
                rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).ok();
            }
        }
    }
}

fn class_of(fault: Fault) -> WarningClass {
    match fault {
        Fault::TooSmall => WarningClass::TooSmall,
        Fault::Corrupt | Fault::Row => WarningClass::Corrupt,
        Fault::Schema => WarningClass::WrongSchema,
        Fault::Journal => WarningClass::WalMode,
        Fault::Busy => WarningClass::Busy,
        _ => WarningClass::Unreadable,
    }
}

fn unusable(file: &Path, why: &str) -> String {
    format!("failed to use a kernel of kdb `{}`: {why}", file.display())
}

/// A file's name or a damaged row may hold anything.
fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}
