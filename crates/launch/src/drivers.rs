//! Asks drivers which commands they would run.
//!
//! A driver looks up thousands of paths to find its compilers, libraries and headers. Only the
//! result matters: the commands that it would run. They are stored with the results of the driver's
//! file accesses, and the driver is asked again when an access would have another result.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::hash::Hash;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;

use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Error, Language};
use gfxpack_process::watch::{
    FileSystemCache, PathStates, Record, Recorder, WatchError, judge_driver_record, recorded,
};
use gfxpack_process::{
    Cancel, ProgramEnd, ScratchDir, Timestamp, read_sealed, run, touch, write_sealed,
};
use gfxpack_toolchain::Toolchain;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::arguments::deps_arguments;
use crate::launcher::{Command, SourceFiles};
use crate::template::{
    CommandKey, CommandTemplate, DEPS, Define, Defines, INPUT, OUTPUT, TemplateArg, parse, refuses,
};
use crate::wrappers;

/// Far longer than a driver needs, for machines under load.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The commands that a driver would run for all commands of a key.
#[derive(Debug)]
pub struct DriverCommands {
    /// In order; each starts when the one before it has succeeded.
    pub list: Vec<CommandTemplate>,
    /// Identifies the commands.
    pub name: Digest,
    /// Whether the driver has to run them itself: it may do more than that.
    pub by_driver: bool,
}

/// A command's macros, and the commands that its driver would run.
pub type Direct = (Defines, Arc<DriverCommands>);

/// The commands that a driver would run for a key, if they are known.
type KnownCommands = Option<Arc<DriverCommands>>;

/// The drivers of a build's toolchains, each asked once for every key of its commands.
#[derive(Debug)]
pub struct Drivers<'a> {
    /// The toolchains that they belong to.
    pub toolchains: &'a [Toolchain],
    /// The directory in which answers are kept between builds.
    kept: PathBuf,
    /// Whether new answers are written.
    keeps: bool,
    pub(crate) file_system: &'a FileSystemCache<'a>,
    cancel: &'a Cancel,
    /// A scratch directory, which a later build removes if this one is killed.
    scratch: OnceLock<Option<ScratchDir>>,
    /// Whether the user was told that a driver has to run every command.
    warned: Once,
    known: Slots<CommandKey>,
    /// Of drivers that are asked for every job, by the job's digest.
    exact: Slots<Digest>,
    pub(crate) sources: &'a dyn SourceFiles,
}

/// A driver's commands, if they were understood, and its file accesses.
type DriverAnswer = (Option<Vec<CommandTemplate>>, Result<Record, WatchError>);

/// The stored answer for a key.
#[derive(Serialize, Deserialize)]
struct StoredCommands {
    commands: Vec<CommandTemplate>,
    states: PathStates,
}

impl<'a> Drivers<'a> {
    /// For these toolchains. Answers are stored in the directory `kept`, two levels below the
    /// cache's.
    pub fn new(
        toolchains: &'a [Toolchain],
        sources: &'a dyn SourceFiles,
        kept: PathBuf,
        file_system: &'a FileSystemCache<'a>,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            toolchains,
            kept,
            keeps: true,
            file_system,
            cancel,
            scratch: OnceLock::new(),
            warned: Once::new(),
            known: Mutex::default(),
            exact: Mutex::default(),
            sources,
        }
    }

    /// The same, but writes nothing to the cache.
    pub fn without_writing(self) -> Self {
        Self { keeps: false, ..self }
    }

    /// The commands that a command's driver would run. `None` if it can't be asked.
    pub fn direct(&self, command: &Command<'_>) -> Option<Direct> {
        let shared = CommandKey::from_command(command).and_then(|(key, defines)| {
            let slot = slot_of(&self.known, key.clone());
            let commands = slot.get_or_init(|| self.commands_of(&key, &defines)).clone()?;
            Some((defines, commands))
        });
        shared.or_else(|| {
            let slot = slot_of(&self.exact, command.job);
            let commands = slot.get_or_init(|| self.ask_exactly(command)).clone()?;
            Some((Defines::new(), commands))
        })
    }

    /// The commands of a driver that may look at all that it is given: it is asked with this very
    /// command, beside its source.
    fn ask_exactly(&self, command: &Command<'_>) -> KnownCommands {
        let toolchain = &self.toolchains[command.toolchain.0];
        let temporary = self.scratch().ok()?;
        let scratch = fs::canonicalize(temporary.path()).ok()?;
        let stage = scratch.join("source");
        self.sources.lay_out(command.source, &stage).ok()?;
        let arguments = command.arguments.iter().map(|arg| toolchain.fill(arg)).collect();
        let (program, language) = (toolchain.program(command.program), command.language);
        let dirs = (&*stage, &*scratch);
        let ask = || self.ask(toolchain, dirs, (program, arguments), language, command.main());
        let digests = self.file_system.digests();
        let (list, _) = toolchain.while_unchanged(language, digests, ask).ok()?;
        let list = list?;
        let name = digest(&list, toolchain.supplied_libs());
        Some(Arc::new(DriverCommands { list, name, by_driver: true }))
    }

    fn commands_of(&self, key: &CommandKey, defines: &[Vec<Define>]) -> KnownCommands {
        let toolchain = &self.toolchains[key.toolchain.0];
        let file = self.file(toolchain, key);
        let list = self.remembered(&file).or_else(|| {
            let ask = || Ok(self.ask_for(key, defines));
            let asked = toolchain.while_unchanged(key.language, self.file_system.digests(), ask);
            // If the toolchain changed, the error is reported when the command runs.
            let (commands, states) = asked.ok()??;
            if let Some(states) = states.filter(|_| self.keeps) {
                let commands = commands.clone();
                // An answer that can't be written is asked for again by later builds.
                write_sealed(&file, &StoredCommands { commands, states }).ok();
            }
            Some(commands)
        });
        let list = list?;
        let name = digest(&list, toolchain.supplied_libs());
        Some(Arc::new(DriverCommands { list, name, by_driver: false }))
    }

    fn file(&self, toolchain: &Toolchain, key: &CommandKey) -> PathBuf {
        let program = toolchain.program(key.program);
        let name = Hasher::new("gfxpack commands 4")
            .field(toolchain.digest.as_ref())
            .field(program.as_os_str().as_encoded_bytes())
            .field(toolchain.device_libs.as_os_str().as_encoded_bytes())
            .field(toolchain.rocm.as_os_str().as_encoded_bytes())
            .list(toolchain.environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(toolchain.environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .field(key.language.to_string().as_bytes())
            .field(key.extension.as_bytes())
            .list(key.args.iter().map(String::as_bytes))
            .finish();
        self.kept.join(format!("{name}.json"))
    }

    /// The stored answer in a file, if it is up to date and undamaged.
    fn remembered(&self, file: &Path) -> Option<Vec<CommandTemplate>> {
        let StoredCommands { commands, states } = read_sealed(file)?;
        states.hold(self.file_system).then(|| {
            if self.keeps {
                touch(file);
            }
            commands
        })
    }

    /// A key's commands, with the driver's file accesses if they are known. It is asked with some
    /// command's macros, which must be in its answer as they were given.
    fn ask_for(
        &self,
        key: &CommandKey,
        defines: &[Vec<Define>],
    ) -> Option<(Vec<CommandTemplate>, Option<PathStates>)> {
        let temporary = self.scratch().ok()?;
        let scratch = fs::canonicalize(temporary.path()).ok()?;
        let since = Timestamp::now();
        let toolchain = &self.toolchains[key.toolchain.0];
        let input = format!("{INPUT}.{}", key.extension);
        let file = scratch.join(&input);
        fs::write(&file, "").ok()?;
        let arguments = key.with(defines);
        let arguments = arguments.iter().map(|arg| toolchain.fill(arg));
        let arguments = arguments.chain([OsString::from(&input)]).collect();
        let (program, dirs) = (toolchain.program(key.program), (&*scratch, &*scratch));
        let (commands, record) =
            self.ask(toolchain, dirs, (program, arguments), key.language, &input).ok()?;
        let commands = commands?;
        let record = record
            .map_err(|reason| tracing::debug!(%reason, "a driver has to run every command"))
            .ok()?;
        if let Some(path) = wrappers::stranger(program, toolchain, &record) {
            let program = program.display();
            self.warned.call_once(|| {
                tracing::warn!(
                    "{program} is started for every kernel, which takes longer, since {} may look \
                     at what it is given",
                    path.display()
                );
            });
            return None;
        }
        let dependencies = judge_driver_record(&record, program, &scratch, self.file_system, since);
        // A file changed while the driver ran, or the driver reads where the sources would be.
        if dependencies.unusable.is_some() {
            return None;
        }
        let commands = commands.iter().map(|command| command.without(defines));
        let commands = commands.collect::<Option<_>>()?;
        if let Some(path) = dependencies.unknown().or(record.refused_write()) {
            tracing::debug!(path = %path.display(), "a driver is asked by every build");
            return Some((commands, None));
        }
        Some((commands, Some(PathStates::new(dependencies.states))))
    }

    /// A directory in which to ask a driver. If nothing may be written, no directory is created in
    /// an empty cache.
    fn scratch(&self) -> io::Result<TempDir> {
        let create = || {
            let cache = self.kept.ancestors().nth(2)?;
            let may = self.keeps || cache.join("work").is_dir();
            may.then(|| ScratchDir::in_cache(cache).ok()).flatten()
        };
        let work = self.scratch.get_or_init(create);
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("gfxpack-driver-");
        work.as_ref().map_or_else(|| builder.tempdir(), |work| builder.tempdir_in(work.path()))
    }

    /// Asks in a directory, with another one for temporary files, about the source `input`, which is
    /// the last of the arguments.
    fn ask(
        &self,
        toolchain: &Toolchain,
        (directory, scratch): (&Path, &Path),
        (program, given): (&Path, Vec<OsString>),
        language: Language,
        input: &str,
    ) -> Result<DriverAnswer, Error> {
        let mut arguments = vec![OsString::from("-###")];
        arguments.extend(given);
        arguments.extend(deps_arguments(language, Path::new(DEPS)));
        arguments.extend(["-o".into(), OUTPUT.into()]);
        let environment = gfxpack_process::preload::environment(&toolchain.environment);
        let (output, record) = recorded(Recorder::of_answer(scratch, true), |record| {
            let driver = gfxpack_process::Program {
                path: program,
                arguments,
                directory,
                environment: &environment,
                temp_dir: scratch,
                time_limit: TIME_LIMIT,
                record,
            };
            run(&driver, self.cancel)
        })?;
        let commands = match output.end {
            ProgramEnd::Exited(0) if !refuses(&output.stderr) => parse(&output.stderr, input),
            _ => None,
        };
        Ok((commands, record))
    }
}

type Slots<K> = Mutex<HashMap<K, Arc<OnceLock<KnownCommands>>>>;

/// The place for the answer to a question.
fn slot_of<K: Eq + Hash>(slots: &Slots<K>, key: K) -> Arc<OnceLock<KnownCommands>> {
    Arc::clone(slots.lock().expect("no panic inside").entry(key).or_default())
}

/// A digest of commands, independent of the path of the device-library directory that gfxpack
/// creates, whose content the toolchain's digest covers. All other paths count, since debug
/// information contains them and sources can name them.
fn digest(commands: &[CommandTemplate], supplied_libs: Option<&Path>) -> Digest {
    let text_of = |arg: &TemplateArg| match (arg, supplied_libs) {
        (TemplateArg::Text(text), Some(libs)) => match Path::new(text).strip_prefix(libs) {
            Ok(below) => format!("{{}}{below:?}"),
            Err(_) => format!("{arg:?}"),
        },
        _ => format!("{arg:?}"),
    };
    let lists = commands.iter().map(|command| {
        let args: Vec<String> = command.args.iter().map(text_of).collect();
        Hasher::new("gfxpack command 2").list(args.iter().map(String::as_bytes)).finish()
    });
    Hasher::new("gfxpack commands of a driver 1").list(lists).finish()
}
