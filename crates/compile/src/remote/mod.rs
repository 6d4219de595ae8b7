//! Jobs that run on a remote-execution service: its requests and answers as values. The protocol is
//! not known here.

mod action;
mod runner;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Error};
use gfxpack_process::Cancel;

pub(crate) use runner::RemoteContext;

/// Why an action has no outcome.
#[derive(Debug)]
pub enum RemoteError {
    /// The command did not end within its time limit.
    TimedOut,
    /// Only cached outcomes were asked for, and the service has none.
    NotCached,
    /// The service can never run this action, as it says; it may run others.
    Lost(String),
    /// The service can't be used, or the user asked to stop.
    Fatal(Error),
}

/// Runs actions elsewhere, several at once.
pub trait RemoteWorkers: fmt::Debug + Send + Sync {
    /// The most actions in parallel, at least 1.
    fn count(&self) -> usize;

    /// Runs an action to its end.
    ///
    /// # Errors
    /// [`RemoteError`]; a compiler that refuses the kernel is no error but an exit code.
    fn run(&self, action: &Action, cancel: &Cancel) -> Result<ActionOutcome, RemoteError>;
}

/// A command with everything that it reads and writes.
#[derive(Debug, Clone)]
pub struct Action {
    /// The program and its arguments; paths are relative to `directory`.
    pub arguments: Vec<String>,
    /// The directory it runs in, below the root.
    pub directory: &'static str,
    /// The object that it writes, relative to `directory`.
    pub output: &'static str,
    /// Every file it may read.
    pub root: Arc<InputRoot>,
    /// How long it may take.
    pub time_limit: Duration,
    /// The kernel's name, for people who watch the service.
    pub name: String,
    /// The target, for the same purpose.
    pub target: String,
}

/// A directory tree that an action reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRoot {
    /// Identity of the tree.
    pub digest: Digest,
    /// Sorted by path, each once.
    pub files: Vec<InputFile>,
    /// Directories that must exist although they may be empty.
    pub directories: Vec<String>,
}

/// A file of an [`InputRoot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of its content.
    pub digest: Digest,
    /// Bytes.
    pub size: u64,
    /// Whether it may be run.
    pub executable: bool,
    /// Where the content is.
    pub content: Content,
}

/// Where the content of an [`InputFile`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// In a file of this machine.
    File(PathBuf),
    /// In memory.
    Bytes(Arc<[u8]>),
}

impl InputRoot {
    /// Sorts files and directories.
    pub fn new(mut files: Vec<InputFile>, mut directories: Vec<String>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        directories.sort();
        directories.dedup();
        let executable = files.iter().map(|file| [u8::from(file.executable)]);
        let digest = Hasher::new("gfxpack input root 1")
            .list(files.iter().map(|file| file.path.as_bytes()))
            .list(files.iter().map(|file| file.digest))
            .list(executable)
            .list(directories.iter().map(String::as_bytes))
            .finish();
        Self { digest, files, directories }
    }
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionOutcome {
    /// The exit code of its command.
    pub exit_code: i32,
    /// The output of the command, standard error first.
    pub diagnostics: String,
    /// The content of [`Action::output`], its digest checked.
    pub output: Option<Vec<u8>>,
    /// The worker, as the service calls it.
    pub worker: String,
    /// Whether the service had the outcome in its cache.
    pub cached: bool,
    /// How long the command ran, if the service reports it.
    pub duration: Option<Duration>,
}
