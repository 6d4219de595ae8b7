//! A command, the directories to run it in, and the result.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::compiler::Program;
use gfxpack_model::{Digest, Error, Language, SourceId, TargetId, ToolchainId};
use gfxpack_process::watch::{Record, Visible, WatchError};
use gfxpack_process::{Output, ProgramEnd, Usage};

use crate::template::{CommandTemplate, Define, TemplateValues};

/// A compiler command.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The digest of the command's job.
    pub job: Digest,
    /// The compiler's number among the toolchains of the build.
    pub toolchain: ToolchainId,
    /// The driver that takes the arguments.
    pub program: Program,
    /// The source language.
    pub language: Language,
    /// The target of the object.
    pub target: &'a TargetId,
    /// The source's number for [`SourceFiles`].
    pub source: SourceId,
    /// The driver's planned arguments, the path of the staged source last. The output path is not
    /// among them.
    pub arguments: &'a [Arc<str>],
}

impl<'a> Command<'a> {
    /// The path of the staged source, relative to [`RunPaths::stage`].
    pub(crate) fn main(&self) -> &'a str {
        self.arguments.last().map_or("", |arg| arg)
    }
}

/// The directories and files of a command.
#[derive(Debug, Clone, Copy)]
pub struct RunPaths<'a> {
    /// The directory with the source's files, in which the command runs.
    pub stage: &'a Path,
    /// A directory for this command alone, also for temporary files.
    pub scratch: &'a Path,
    /// The path of the object, in `scratch`.
    pub output: &'a Path,
    /// The dependency file, in `scratch`; the assembler writes none.
    pub deps_file: &'a Path,
    /// What its compilers may see; everything if that is not known.
    pub visible: Option<&'a Visible>,
}

impl RunPaths<'_> {
    /// The values for the slots of a command's templates.
    pub fn values<'v>(&'v self, input: &'v str, defines: &'v [Vec<Define>]) -> TemplateValues<'v> {
        let Self { output, deps_file, scratch, .. } = *self;
        TemplateValues { input, defines, output, deps_file, scratch }
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct CompilerRun {
    /// How its last program ended.
    pub end: ProgramEnd,
    /// The output of its programs, standard error first, cut at a limit.
    pub output: String,
    /// The resources that the programs used.
    pub usage: Usage,
    /// The programs that ran: one record for each program that gfxpack started, in order.
    pub records: Vec<Result<Record, WatchError>>,
    /// Whether the driver itself ran it, so that its errors are final.
    pub by_driver: bool,
}

impl CompilerRun {
    pub(crate) fn new(output: Output, record: Result<Record, WatchError>, by_driver: bool) -> Self {
        let texts = [output.stderr.trim_end(), output.stdout.trim_end()];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self {
            end: output.end,
            output: texts.join("\n"),
            usage: output.usage,
            records: vec![record],
            by_driver,
        }
    }

    /// The combined result of this program and the `next` one.
    pub(crate) fn then(mut self, next: Self) -> Self {
        self.records.extend(next.records);
        let (output, usage) = (self.output + &next.output, self.usage.then(next.usage));
        Self { end: next.end, output, usage, ..self }
    }
}

/// What a header needs, for one that is to be precompiled.
#[derive(Debug, Clone)]
pub struct HeaderInputs {
    /// A digest of the files.
    pub digest: Digest,
    /// Every name by which one of the files may include others.
    pub names: BTreeSet<PathBuf>,
    /// Every file that may be read.
    pub files: BTreeSet<PathBuf>,
    /// What its compiler may see; without a stage.
    pub visible: Visible,
}

/// Finds what headers need.
pub trait HeaderSearch: Sync + fmt::Debug {
    /// For a text that a command compiles.
    fn inputs(&self, toolchain: ToolchainId, command: &CommandTemplate, text: &str)
    -> HeaderInputs;

    /// Whether these files still have the content that was read for [`HeaderInputs::digest`].
    fn are_unchanged(&self, inputs: &HeaderInputs) -> bool;
}

/// The files of sources, for launchers that inspect them before a compiler runs.
pub trait SourceFiles: Sync + fmt::Debug {
    /// Whether nothing exists at a path, relative to the stage, in the stage and in the directories
    /// that the source was staged from.
    fn is_absent(&self, source: SourceId, path: &Path) -> bool;

    /// Whether there is a directory at a path, relative to the stage.
    fn is_dir(&self, source: SourceId, path: &Path) -> bool;

    /// Lays out a source's files in a directory, which is created, as its compiler finds them.
    ///
    /// # Errors
    /// If a file can't be written.
    fn lay_out(&self, source: SourceId, dir: &Path) -> Result<(), Error>;
}
