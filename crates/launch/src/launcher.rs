//! What a caller hands in and gets back: a command, a place to run it in, and
//! what became of it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::args::Args;
use gfxpack_model::compiler::Program;
use gfxpack_model::{Digest, Language, SourceId, TargetId, ToolchainId};
use gfxpack_process::watch::{KeptAnswers, Record, Unwatched};
use gfxpack_process::{End, Output, Usage};
use gfxpack_toolchain::ToolchainError;

/// Runs compiler commands, several at once.
pub trait Launcher: Sync {
    /// Groups of commands, by their places in the list, each of which is worth
    /// preparing before its commands are run; the largest first. No command is in
    /// two, most may be in none.
    fn groups(&self, _commands: &[Command<'_>]) -> Vec<Vec<usize>> {
        Vec::new()
    }

    /// Makes what the commands of a group share, and gives what that used.
    ///
    /// # Errors
    /// [`ToolchainError`] if the disk is full or the build was cancelled. If it
    /// can't be made for another reason, commands run without it.
    fn prepare(&self, _commands: &[Command<'_>]) -> Result<Usage, ToolchainError> {
        Ok(Usage::default())
    }

    /// Runs a command to its end, its time limit or cancellation. `None` if
    /// this launcher does not run such commands.
    ///
    /// # Errors
    /// [`ToolchainError`] if a program can't be started. A program that fails is
    /// not an error; [`Run::end`] says how it ended.
    fn run(&self, command: &Command<'_>, place: &Place<'_>) -> Result<Option<Run>, ToolchainError>;
}

/// What is compiled, how, and by which compiler.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The digest of the job that it is of.
    pub job: Digest,
    /// The compiler's number among the toolchains of the build.
    pub toolchain: ToolchainId,
    /// The driver that takes the arguments.
    pub program: Program,
    /// What the source is written in.
    pub language: Language,
    /// What the object is for.
    pub target: &'a TargetId,
    /// The source's number, as [`SourceFiles`] knows it.
    pub source: SourceId,
    /// The driver's arguments as they are planned, the path of the staged
    /// source last. Where the output goes is not among them.
    pub arguments: &'a Args,
}

impl<'a> Command<'a> {
    /// The path of the staged source, relative to [`Place::stage`].
    pub(crate) fn main(&self) -> &'a str {
        self.arguments.iter().last().unwrap_or_default()
    }
}

/// Where a command is run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The directory that holds the source's files; the command runs in it.
    pub stage: &'a Path,
    /// A directory of its own, for temporary files too.
    pub scratch: &'a Path,
    /// The file that the object goes to, in `scratch`.
    pub output: &'a Path,
    /// The file that the compiler lists in what it read, in `scratch`; the
    /// assembler writes none.
    pub deps_file: &'a Path,
}

/// What became of a command.
#[derive(Debug)]
pub struct Run {
    /// How its last program ended.
    pub end: End,
    /// What its programs wrote, standard error first, cut at a limit.
    pub output: String,
    /// What they used.
    pub usage: Usage,
    /// What they asked of the file system, one record for each program that
    /// was started from here, in order.
    pub records: Vec<Result<Record, Unwatched>>,
    /// What had been read for it beforehand.
    pub read_before: Option<ReadBefore>,
    /// Whether the driver itself ran it, so that its word on the source counts.
    pub by_driver: bool,
}

/// What a command depends on besides what its own programs accessed: the files
/// of the precompiled header that it used.
#[derive(Debug, Clone)]
pub struct ReadBefore {
    /// The precompiled header, and the source that it was made of.
    pub own: [PathBuf; 2],
    /// Every file that was read, as the compiler lists it.
    pub files: Arc<BTreeSet<PathBuf>>,
    /// What the file system and the sources had to answer.
    pub answers: [Arc<KeptAnswers>; 2],
}

impl Run {
    pub(crate) fn new(output: Output, record: Result<Record, Unwatched>, by_driver: bool) -> Self {
        let texts = [output.stderr.trim_end(), output.stdout.trim_end()];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self {
            end: output.end,
            output: texts.join("\n"),
            usage: output.usage,
            records: vec![record],
            read_before: None,
            by_driver,
        }
    }

    /// The same with what a program did that was started after it.
    pub(crate) fn then(mut self, next: Self) -> Self {
        self.records.extend(next.records);
        let (output, usage) = (self.output + &next.output, self.usage.then(next.usage));
        Self { end: next.end, output, usage, ..self }
    }
}

/// The files of sources, for those who look into them before a compiler does.
pub trait SourceFiles: Sync + fmt::Debug {
    /// A source's staged files: paths below the stage, with their contents.
    fn files(&self, source: SourceId) -> Vec<(&str, &[u8])>;

    /// Whether nothing is at a path, as seen from the stage, in the directories
    /// that the source was staged from.
    fn is_absent(&self, source: SourceId, path: &Path) -> bool;

    /// Whether a directory is at a path, as seen from the stage.
    fn is_dir(&self, source: SourceId, path: &Path) -> bool;
}
