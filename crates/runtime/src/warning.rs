//! Warnings: their texts, their destination, and the limit of one per file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::KdbErrorKind;
use gfxpack_model::code_object::spelled;
use gfxpack_model::{Target, in_full, package_name};

use crate::miss::MissReason;
use crate::mutex::lock;
use crate::per_process::PerProcess;

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WarningClass {
    /// No kdb is installed for the device.
    MissingSystemKdb,
    /// A file is less than 512 bytes: most likely a Git LFS pointer.
    TooSmall,
    /// A file is not an SQLite file, or is damaged, or holds a damaged kernel.
    Corrupt,
    /// The operating system does not allow reading the file.
    Unreadable,
    /// The file has other tables or columns.
    WrongSchema,
    /// The file is in WAL mode and can't be read in that mode.
    WalMode,
    /// The file holds code for other devices, or no code.
    WrongTarget,
    /// Another program keeps the file locked.
    Busy,
    /// The user's cache is not in its usual directory, or there is none.
    UserDirectory,
    /// A file or directory belongs to somebody else or others may write to it.
    Untrusted,
    /// A compiled kernel could not be saved.
    NotStored,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The kind of warning.
    pub class: WarningClass,
    /// The file or directory.
    pub file: PathBuf,
    /// The whole text as printed, without a final newline. The warning for a
    /// missing system kdb has two lines, all others one.
    pub text: String,
}

/// The destination of warnings.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum WarningSink {
    /// Standard error, once per process and file, whatever is wrong with it. If
    /// a missing system kdb later appears with a fault, it gets a second
    /// warning.
    #[default]
    Stderr,
    /// A function of the caller, called as often as standard error is used, but
    /// per cache. Any thread that uses the cache may call it.
    Callback(Arc<dyn Fn(&Warning) + Send + Sync>),
    /// [`tracing`] at level `WARN`, as often as standard error.
    Tracing,
    /// No destination.
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

/// Whether this MIOPEN_LOG_LEVEL hides warnings.
pub(crate) fn hides_warnings(log_level: u8) -> bool {
    (1..=3).contains(&log_level)
}

/// Warns once about each file.
#[derive(Debug)]
pub(crate) struct Warnings {
    sink: WarningSink,
    reported: Mutex<WarnedFiles>,
}

/// The files with a warning, and whether it was about their absence.
type WarnedFiles = BTreeSet<(bool, PathBuf)>;

/// The warnings of the whole process on standard error and through `tracing`.
static REPORTED: PerProcess<Mutex<WarnedFiles>> = PerProcess::new();

/// A copy of the parent process's record, for a child.
fn inherited(reported: &Mutex<WarnedFiles>) -> Mutex<WarnedFiles> {
    // If a thread that the child does not have was changing it, the copy is
    // empty.
    Mutex::new(reported.try_lock().map(|reported| reported.clone()).unwrap_or_default())
}

impl Warnings {
    pub(crate) fn new(sink: WarningSink, log_level: u8) -> Self {
        let sink = if hides_warnings(log_level) { WarningSink::Silent } else { sink };
        Self { sink, reported: Mutex::default() }
    }

    /// A copy for a child of the process.
    pub(crate) fn inherited(&self) -> Self {
        Self { sink: self.sink.clone(), reported: inherited(&self.reported) }
    }

    /// Warns about a problem with a file, in one line with a hint.
    pub(crate) fn fault(&self, class: WarningClass, file: &Path, text: &str, hint: &str) {
        self.report_once(class, file, || one_line(&format!("gfxpack: warning: {text}; {hint}")));
    }

    /// Warns about a miss, if something is wrong with the file.
    pub(crate) fn miss(&self, file: &Path, reason: &MissReason) {
        let (class, text) = match reason {
            MissReason::NoFile | MissReason::NoKernel => return,
            // The error names the file.
            MissReason::Unreadable(error) => (class_of(error.kind()), in_full(error)),
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

    /// Prints the documented text for a missing system kdb, and the packages
    /// that have it. `file` is the first path of the search.
    ///
    /// Source: AMD, MIOpen documentation, "Kernel cache".
    pub(crate) fn missing_system_kdb(&self, file: &Path, target: &Target) {
        self.report_once(WarningClass::MissingSystemKdb, file, || {
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

    fn report_once(&self, class: WarningClass, file: &Path, text: impl FnOnce() -> String) {
        let reported = match self.sink {
            WarningSink::Callback(_) => &self.reported,
            _ => REPORTED.get(|parent| parent.map_or_else(Mutex::default, inherited)),
        };
        let absent = class == WarningClass::MissingSystemKdb;
        if matches!(self.sink, WarningSink::Silent)
            || !lock(reported).insert((absent, file.to_owned()))
        {
            return;
        }
        let warning = Warning { class, file: file.to_owned(), text: text() };
        match &self.sink {
            WarningSink::Callback(callback) => callback(&warning),
            WarningSink::Tracing => {
                tracing::warn!(file = %warning.file.display(), "{}", warning.text);
            }
            // Written in one piece, so that lines of several processes don't
            // mix. Rust's lock is avoided: a thread may have held it when the
            // process was forked. A closed standard error is ignored.
            WarningSink::Stderr | WarningSink::Silent => {
                let line = format!("{}\n", warning.text);
                rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).ok();
            }
        }
    }
}

fn class_of(kind: KdbErrorKind) -> WarningClass {
    match kind {
        KdbErrorKind::TooSmall => WarningClass::TooSmall,
        KdbErrorKind::Corrupt | KdbErrorKind::Runaway => WarningClass::Corrupt,
        KdbErrorKind::Schema | KdbErrorKind::OtherTable => WarningClass::WrongSchema,
        KdbErrorKind::Journal | KdbErrorKind::Unfinished => WarningClass::WalMode,
        KdbErrorKind::Busy => WarningClass::Busy,
        _ => WarningClass::Unreadable,
    }
}

fn unusable(file: &Path, why: &str) -> String {
    format!("failed to use a kernel of kdb `{}`: {why}", file.display())
}

/// A file's name or a damaged row may contain control characters.
fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}
