//! Drivers, asked what they would run.
//!
//! A driver looks at thousands of files and names to find its compilers,
//! libraries and headers. What counts of that is its result: the commands that
//! it would run. They are remembered with what the driver was told of files,
//! and asked for anew when it would be told something else.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use gfxpack_model::compiler::Program;
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Language};
use gfxpack_plan::plan::Job;
use gfxpack_process::watch::{Answers, Looks, Record, Recorder, Unwatched, settle_driver};
use gfxpack_process::{Cancel, End, Moment, read_sealed, run, touch, write_sealed};
use gfxpack_toolchain::Toolchain;
use serde::{Deserialize, Serialize};

use super::command::{
    Command, DEPS, Define, Defines, Filling, INPUT, OUTPUT, Shape, Word, deps_arguments, parse,
    refuses,
};
use crate::error::CompileError;

/// Far longer than a driver takes to plan, for machines under load.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The directory of what is remembered, below the store's.
pub(crate) const COMMANDS: &str = "commands";

/// What a driver would run for all jobs of a shape.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) list: Vec<Command>,
    /// Of the commands, wherever the toolchain lies.
    pub(crate) digest: Digest,
}

/// A job's macros and what its driver would run.
pub(crate) type Direct = (Defines, Arc<Commands>);

/// Shapes that a driver treats alike: toolchain, program and language.
type Kind = (usize, Program, Language);

/// What a driver would run for a shape, if it can be told.
type Answer = Option<Arc<Commands>>;

/// The drivers of a build's toolchains, each asked once for every shape.
#[derive(Debug)]
pub(crate) struct Drivers<'a> {
    toolchains: &'a [Toolchain],
    /// Where answers are kept between builds; the store's own directory.
    kept: &'a Path,
    /// Whether new ones are.
    keeps: bool,
    looks: &'a Looks<'a>,
    cancel: &'a Cancel,
    /// Whose answers were compared with those for a whole job.
    compared: Mutex<HashMap<Kind, Arc<OnceLock<bool>>>>,
    known: Mutex<HashMap<Shape, Arc<OnceLock<Answer>>>>,
}

/// What a driver said, if that was understood, and what it asked of files.
type Said = (Option<Vec<Command>>, Result<Record, Unwatched>);

/// What is remembered of a shape.
#[derive(Serialize, Deserialize)]
struct Remembered {
    commands: Vec<Command>,
    answers: Answers,
}

impl<'a> Drivers<'a> {
    pub(crate) fn new(
        toolchains: &'a [Toolchain],
        kept: &'a Path,
        looks: &'a Looks<'a>,
        cancel: &'a Cancel,
    ) -> Self {
        let (compared, known) = (Mutex::default(), Mutex::default());
        Self { toolchains, kept, keeps: true, looks, cancel, compared, known }
    }

    /// The same, but nothing is written.
    pub(crate) fn without_writing(self) -> Self {
        Self { keeps: false, ..self }
    }

    pub(crate) fn toolchain(&self, job: &Job) -> &Toolchain {
        &self.toolchains[job.toolchain]
    }

    /// What a job's driver would run. `None` where it can't be asked or its
    /// answer does not hold for this job: then the driver itself has to run it.
    pub(crate) fn direct(&self, job: &Job) -> Option<Direct> {
        let (shape, defines) = Shape::of(job)?;
        let slot = {
            let mut known = self.known.lock().expect("no panic inside");
            match known.get(&shape) {
                Some(slot) => Arc::clone(slot),
                None => Arc::clone(known.entry(shape.clone()).or_default()),
            }
        };
        let commands = slot.get_or_init(|| self.of_shape(&shape, job, &defines)).clone()?;
        Some((defines, commands))
    }

    /// Names what a job's driver would run, wherever the toolchain lies.
    pub(crate) fn commands_digest(&self, job: &Job) -> Option<Digest> {
        self.direct(job).map(|(_, commands)| commands.digest)
    }

    fn of_shape(&self, shape: &Shape, job: &Job, defines: &[Vec<Define>]) -> Answer {
        let toolchain = &self.toolchains[shape.toolchain];
        let file = self.file(toolchain, shape);
        let list = self.remembered(&file).or_else(|| {
            let (commands, answers) = self.ask_for(shape, job, defines)?;
            if let Some(answers) = answers.filter(|_| self.keeps) {
                remember(&file, &Remembered { commands: commands.clone(), answers });
            }
            Some(commands)
        });
        if list.is_none() && !self.cancel.is_cancelled() {
            tracing::debug!(?shape, "the driver runs these jobs itself");
        }
        list.map(|list| Arc::new(Commands { digest: digest(&list, toolchain), list }))
    }

    fn file(&self, toolchain: &Toolchain, shape: &Shape) -> PathBuf {
        let program = toolchain.program(shape.program);
        let environment = &toolchain.environment;
        let name = Hasher::new("gfxpack commands 2")
            .field(toolchain.digest.as_ref())
            .field(program.as_os_str().as_encoded_bytes())
            .field(toolchain.device_libs.as_os_str().as_encoded_bytes())
            .list(environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .field(shape.language.to_string().as_bytes())
            .field(shape.extension.as_bytes())
            .list(shape.words.iter().map(String::as_bytes))
            .finish();
        self.kept.join(COMMANDS).join(format!("{name}.json"))
    }

    /// What was answered before, if it would be answered again. A damaged file
    /// is none.
    fn remembered(&self, file: &Path) -> Option<Vec<Command>> {
        let Remembered { commands, answers } = read_sealed(file)?;
        answers.hold(self.looks).then(|| {
            if self.keeps {
                touch(file);
            }
            commands
        })
    }

    /// A shape's commands, with what the driver was told if that is known. The
    /// first of its kind are compared with what the driver says for the job.
    fn ask_for(
        &self,
        shape: &Shape,
        job: &Job,
        defines: &[Vec<Define>],
    ) -> Option<(Vec<Command>, Option<Answers>)> {
        let temporary = tempfile::Builder::new().prefix("gfxpack-driver-").tempdir().ok()?;
        let scratch = fs::canonicalize(temporary.path()).ok()?;
        let slot = format!("{INPUT}.{}", shape.extension);
        let words: Vec<&str> = shape.words.iter().map(String::as_str).collect();
        let since = Moment::now();
        let asked = self.ask(&scratch, shape, &words, &slot);
        let (general, record) = asked.ok().and_then(|(list, record)| Some((list?, record)))?;
        let kind = (shape.toolchain, shape.program, shape.language);
        let compared = {
            let mut compared = self.compared.lock().expect("no panic inside");
            Arc::clone(compared.entry(kind).or_default())
        };
        let same = *compared.get_or_init(|| {
            self.is_that_of(&general, &scratch, shape, job, defines).unwrap_or(false)
        });
        let program = self.toolchains[shape.toolchain].program(shape.program);
        same.then(|| (general, self.answers(record, program, &scratch, since)))
    }

    /// What a driver was told; `None` where that is not known.
    fn answers(
        &self,
        record: Result<Record, Unwatched>,
        program: &Path,
        scratch: &Path,
        since: Moment,
    ) -> Option<Answers> {
        let record = record
            .map_err(|reason| tracing::debug!(%reason, "a driver is asked by every build"))
            .ok()?;
        let settled = settle_driver(&record, program, scratch, self.looks, since);
        if let Some(path) = settled.unknown().or(settled.writes.as_deref()) {
            tracing::debug!(path = %path.display(), "a driver is asked by every build");
            return None;
        }
        Some(Answers::new(settled.answers, self.looks))
    }

    /// Whether commands are what the driver says for a job as it stands.
    fn is_that_of(
        &self,
        general: &[Command],
        scratch: &Path,
        shape: &Shape,
        job: &Job,
        defines: &[Vec<Define>],
    ) -> Option<bool> {
        let mut words: Vec<&str> = job.arguments.iter().collect();
        let main = words.pop()?;
        let (special, _) = self.ask(scratch, shape, &words, main).ok()?;
        let filling = Filling {
            input: main,
            defines,
            output: Path::new("o"),
            deps_file: Path::new("d"),
            scratch,
        };
        let fill = |commands: &[Command], defines: &[Vec<Define>]| -> Vec<Vec<OsString>> {
            let filling = Filling { defines, ..filling };
            commands.iter().map(|command| command.fill(&filling)).collect()
        };
        Some(fill(general, defines) == fill(&special?, &[]))
    }

    fn ask(
        &self,
        scratch: &Path,
        shape: &Shape,
        words: &[&str],
        input: &str,
    ) -> Result<Said, CompileError> {
        let toolchain = &self.toolchains[shape.toolchain];
        let file = scratch.join(input);
        let parent = file.parent().unwrap_or(scratch);
        fs::create_dir_all(parent).map_err(CompileError::io("create", parent))?;
        fs::write(&file, "").map_err(CompileError::io("write", &file))?;
        let mut arguments = vec![OsString::from("-###")];
        arguments.extend(words.iter().map(|word| toolchain.fill(word)));
        arguments.extend([input.into()]);
        arguments.extend(deps_arguments(shape.language, Path::new(DEPS)));
        arguments.extend(["-o".into(), OUTPUT.into()]);
        let environment = gfxpack_process::preload::environment(&toolchain.environment);
        let recorder = super::driver_recorder(scratch, true).ok();
        let output = run(
            &gfxpack_process::Program {
                path: toolchain.program(shape.program),
                arguments,
                directory: scratch,
                environment: &environment,
                temp_dir: scratch,
                time_limit: TIME_LIMIT,
                record: recorder.as_ref(),
            },
            self.cancel,
        )?;
        let record = recorder.map_or(Err(Unwatched::Nothing), Recorder::finish);
        let commands = match output.end {
            End::Exited(0) if !refuses(&output.stderr) => parse(&output.stderr, input),
            _ => None,
        };
        Ok((commands, record))
    }
}

/// Keeps what was answered. Where that is impossible, later builds ask again.
fn remember(file: &Path, remembered: &Remembered) {
    if let Err(error) = write_sealed(file, remembered) {
        tracing::debug!(%error, "a driver's answer is not kept");
    }
}

/// Names commands, wherever the toolchain lies: what lies there is named by the
/// toolchain's own digest.
fn digest(commands: &[Command], toolchain: &Toolchain) -> Digest {
    let own = toolchain.own_paths();
    let word = |word: &Word| match word {
        Word::Text(text) => {
            let text = own.iter().enumerate().fold(text.clone(), |text, (at, path)| {
                if path.is_empty() { text } else { text.replace(path, &format!("{{{at}}}")) }
            });
            format!("{text:?}")
        }
        other => format!("{other:?}"),
    };
    let lists = commands.iter().map(|command| {
        let words: Vec<String> = command.words.iter().map(word).collect();
        Hasher::new("gfxpack command 1").list(words.iter().map(String::as_bytes)).finish()
    });
    Hasher::new("gfxpack commands of a driver 1").list(lists).finish()
}
