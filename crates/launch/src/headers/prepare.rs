//! Makes precompiled headers before the commands run, once for many of them. Each is first tested:
//! a small kernel must give the same object with it and without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, Language, SourceId, ToolchainId};
use gfxpack_process::watch::{Record, Recorder, Visible, WatchError, recorded};
use gfxpack_process::{Output, Usage};
use tempfile::TempDir;

use super::precompiled::{PrecompiledHeader, are_plain, macro_name};
use super::recipe::{CacheEntry, HeaderRecipe, header_command};
use crate::arguments::searched;
use crate::drivers::{Direct, DriverCommands};
use crate::launcher::{Command, HeaderSearch};
use crate::session::Session;
use crate::template::{CommandTemplate, TemplateValues};

/// The parameters for making precompiled headers.
#[derive(Debug)]
pub struct HeaderOptions<'a> {
    /// The directory in which they are kept between builds.
    pub kept: PathBuf,
    /// A directory for temporary files.
    pub scratch: &'a Path,
    /// Finds what headers need.
    pub search: &'a dyn HeaderSearch,
}

/// The least number of commands for which a precompiled header pays: making it takes as long as the
/// headers take in one or two commands.
pub(super) const MIN_HEADER_COMMANDS: usize = 3;

/// A kernel that uses a little of the language, and nothing that needs a header.
const PROBE: &str = "
extern \"C\" __global__ void gfxpack_probe(float* out, const float* in, int size)
{
    __shared__ float tile[64];
    const int lane = __builtin_amdgcn_workitem_id_x() & 63;
    const int at   = __builtin_amdgcn_workgroup_id_x() * 64 + lane;
    tile[lane]     = at < size ? in[at] : 0.0f;
    __builtin_amdgcn_s_barrier();
    if(at < size)
        out[at] = expf(tile[63 - lane]) + sqrtf(in[at]) / logf(tile[lane] + 2.0f);
}
";

/// Commands that may use one precompiled header.
pub(super) struct HeaderGroup {
    pub(super) toolchain: ToolchainId,
    commands: Arc<DriverCommands>,
    pub(super) members: Vec<Member>,
}

#[derive(Clone)]
pub(super) struct Member {
    pub(super) job: Digest,
    pub(super) source: SourceId,
    /// The source's path, relative to the stage.
    pub(super) main: String,
    pub(super) commands: Arc<DriverCommands>,
    /// The directories of its sources that it searches.
    pub(super) dirs: Vec<PathBuf>,
    /// The names of the macros that are defined or undefined before the headers are included.
    pub(super) macros: BTreeSet<String>,
}

/// Groups of commands, as indices, that precompiled headers may pay for: all of one compiler and
/// target, the largest group first.
pub(crate) fn groups(commands: &[Command<'_>]) -> Vec<Vec<usize>> {
    let mut found: BTreeMap<(ToolchainId, String), Vec<usize>> = BTreeMap::new();
    let is_hip = |(_, command): &(usize, &Command<'_>)| command.language == Language::Hip;
    for (place, command) in commands.iter().enumerate().filter(is_hip) {
        let key = (command.toolchain, command.target.to_string());
        found.entry(key).or_default().push(place);
    }
    let mut found: Vec<Vec<usize>> = found.into_values().collect();
    found.sort_by_key(|group| Reverse(group.len()));
    found
}

/// The precompiled headers of jobs, by their digests.
pub(crate) type Served = Vec<(Digest, Arc<PrecompiledHeader>)>;

/// Makes the headers of a group.
pub(crate) struct HeaderMaker<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) options: &'a HeaderOptions<'a>,
    usage: Usage,
}

impl<'a> HeaderMaker<'a> {
    pub(crate) fn new(session: &'a Session<'a>, options: &'a HeaderOptions<'a>) -> Self {
        Self { session, options, usage: Usage::default() }
    }

    /// Makes the precompiled headers for some of the commands. Returns them by the digests of their
    /// jobs, and the resources used.
    ///
    /// # Errors
    /// If the disk is full or the build was cancelled. A header that can't be
    /// made for another reason is left out.
    pub(crate) fn make<'c>(
        mut self,
        commands: impl Iterator<Item = (Command<'c>, Direct)>,
    ) -> Result<(Served, Usage), Error> {
        let mut served = Vec::new();
        for mut group in by_command(commands) {
            let first = self.while_unchanged(group.toolchain, |it| it.including_first(&group))?;
            for (text, members) in first {
                let HeaderGroup { toolchain, ref commands, .. } = group;
                let first = HeaderGroup { toolchain, commands: Arc::clone(commands), members };
                served.extend(self.serve(&first, text)?);
            }
            let done: HashSet<Digest> = served.iter().map(|(job, _)| *job).collect();
            group.members.retain(|member| !done.contains(&member.job));
            served.extend(self.serve(&group, String::new())?);
        }
        Ok((served, self.usage))
    }

    /// Gives each member that may use the precompiled header this header.
    fn serve(&mut self, group: &HeaderGroup, text: String) -> Result<Served, Error> {
        let recipe = self.recipe(group, text).filter(|_| !group.members.is_empty());
        let Some(recipe) = recipe else { return Ok(Vec::new()) };
        let header = self.while_unchanged(group.toolchain, |it| it.header(group, &recipe))?;
        let Some(header) = header.map(Arc::new) else { return Ok(Vec::new()) };
        // Commands of one source may search different directories.
        type Searched<'m> = (SourceId, &'m [PathBuf]);
        let mut clear: HashMap<Searched<'_>, bool> = HashMap::new();
        let mut served = Vec::new();
        for member in group.members.iter().filter(|member| header.serves(&member.macros)) {
            let is_clear = *clear
                .entry((member.source, &member.dirs))
                .or_insert_with_key(|(source, dirs)| self.hides_none(&header, *source, dirs));
            served.extend(is_clear.then(|| (member.job, Arc::clone(&header))));
        }
        let (text, count) = (recipe.text.trim_end().replace('\n', " "), served.len());
        let header = if text.is_empty() { "the driver's header" } else { &text };
        tracing::debug!("{count} jobs use {header}, precompiled");
        Ok(served)
    }

    /// The recipe for a header that some text includes besides the driver's.
    pub(super) fn recipe(&self, group: &HeaderGroup, text: String) -> Option<HeaderRecipe> {
        let toolchain = self.session.toolchain(group.toolchain);
        let command = header_command(group.commands.list.first()?)?;
        let inputs = self.options.search.inputs(group.toolchain, &command, &text);
        Some(HeaderRecipe::new(command, text, inputs, toolchain, &self.options.kept))
    }

    /// Whether no file of a source hides one of the headers from commands that search these
    /// directories.
    fn hides_none(&self, header: &PrecompiledHeader, source: SourceId, dirs: &[PathBuf]) -> bool {
        let sources = self.session.drivers.sources;
        // A file in the search path, a header map, could name any header.
        let is_file =
            |dir: &PathBuf| !sources.is_dir(source, dir) && !sources.is_absent(source, dir);
        !dirs.iter().any(is_file)
            && header.hiding(dirs).all(|path| sources.is_absent(source, &path))
    }

    /// A stored header, or a new one if enough commands would use it.
    fn header(
        &mut self,
        group: &HeaderGroup,
        recipe: &HeaderRecipe,
    ) -> Result<Option<PrecompiledHeader>, Error> {
        let HeaderGroup { toolchain: index, commands, members } = group;
        let (index, commands) = (*index, commands.list.as_slice());
        let mut header = match recipe.found(self.session.drivers.file_system) {
            Some(CacheEntry::Header(header)) => *header,
            Some(CacheEntry::Unfit) => return Ok(None),
            None if members.len() < MIN_HEADER_COMMANDS => return Ok(None),
            None => match self.new_header(index, commands, recipe)? {
                Some(made) => made,
                None => return Ok(None),
            },
        };
        let macros = members.iter().flat_map(|member| &member.macros);
        let unknown = header.unknown(macros.map(String::as_str));
        if !unknown.is_empty() {
            let used =
                self.while_unchanged(index, |headers| headers.used_names(index, recipe, &unknown))?;
            recipe.learn(&mut header, used)?;
        }
        Ok(Some(header))
    }

    /// Makes and tests a header.
    fn new_header(
        &mut self,
        index: ToolchainId,
        commands: &[CommandTemplate],
        recipe: &HeaderRecipe,
    ) -> Result<Option<PrecompiledHeader>, Error> {
        let (scratch, output, record) = self.while_unchanged(index, |headers| {
            let scratch = scratch(headers.options.scratch, "header-")?;
            let args = recipe.prepare(scratch.path())?;
            let (output, record) = headers.run_for(index, recipe, args, scratch.path())?;
            Ok((scratch, output, record))
        })?;
        // A warning would be missing from the output of the commands.
        let is_silent = output.stdout.is_empty() && output.stderr.is_empty();
        let is_known = record.is_ok_and(|record| !record.heap_was_short);
        let is_good = output.ok() && is_silent && is_known;
        let is_good = is_good && self.options.search.are_unchanged(&recipe.inputs);
        let made = if is_good { recipe.keep(scratch.path())? } else { None };
        let Some((made, record)) = made else {
            tracing::debug!(output = output.stderr, "no precompiled header");
            return Ok(None);
        };
        let is_fit = self.while_unchanged(index, |headers| {
            headers.same_both_ways(index, commands, recipe, &made)
        })?;
        if is_fit {
            recipe.write_record(&record)?;
            return Ok(Some(made));
        }
        fs::remove_file(&made.file).ok();
        tracing::warn!("a precompiled header failed its test and is not used");
        recipe.keep_unfit()?;
        Ok(None)
    }

    /// Whether a small kernel's object is the same with the header and without.
    fn same_both_ways(
        &mut self,
        toolchain: ToolchainId,
        commands: &[CommandTemplate],
        recipe: &HeaderRecipe,
        header: &PrecompiledHeader,
    ) -> Result<bool, Error> {
        let scratch = scratch(self.options.scratch, "probe-")?;
        let dir = scratch.path();
        let input = "probe.hip";
        let source = dir.join(input);
        fs::write(&source, format!("{}{PROBE}", recipe.text))
            .map_err(Error::io("write", &source))?;
        let deps_file = &dir.join("d");
        let stage = self.session.drivers.file_system.real(dir);
        let mut visible = Visible { stage, ..Visible::default() };
        visible.names.extend([header.file.clone(), header.source.clone()]);
        for command in commands {
            let needs = self.options.search.inputs(toolchain, command, &recipe.text).visible;
            visible.dirs.extend(needs.dirs);
            visible.names.extend(needs.names);
        }
        let mut build = |output: &Path, with: bool| -> Result<Option<Vec<u8>>, Error> {
            let values = TemplateValues { input, defines: &[], output, deps_file, scratch: dir };
            for command in commands {
                let with_header = Some(header).filter(|_| with).and_then(|it| it.apply(command));
                let args = with_header.as_ref().unwrap_or(command).fill(&values);
                if !self.run(toolchain, args, (dir, dir), &visible)?.0.ok() {
                    return Ok(None);
                }
            }
            Ok(fs::read(output).ok())
        };
        let plain = build(&dir.join("plain"), false)?;
        Ok(plain.is_some() && plain == build(&dir.join("with"), true)?)
    }

    /// Runs a function that reads a toolchain's files for HIP; an error if they change meanwhile.
    fn while_unchanged<T>(
        &mut self,
        toolchain: ToolchainId,
        mut make: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let toolchain = self.session.toolchain(toolchain);
        let digests = self.session.drivers.file_system.digests();
        toolchain.while_unchanged(Language::Hip, digests, || make(self))
    }

    /// Runs a program in a directory of its own. It sees what a recipe's header needs.
    pub(super) fn run_for(
        &mut self,
        toolchain: ToolchainId,
        recipe: &HeaderRecipe,
        args: Vec<OsString>,
        dir: &Path,
    ) -> Result<Ran, Error> {
        let mut visible = recipe.inputs.visible.clone();
        visible.stage = self.session.drivers.file_system.real(dir);
        visible.names.push(recipe.source());
        self.run(toolchain, args, (dir, dir), &visible)
    }

    /// Runs a program in a directory, with a directory of its own, the only one that it may write
    /// to.
    pub(super) fn run(
        &mut self,
        toolchain: ToolchainId,
        args: Vec<OsString>,
        (directory, own): (&Path, &Path),
        visible: &Visible,
    ) -> Result<Ran, Error> {
        let (output, record) = recorded(Recorder::of_compiler(own, Some(visible)), |record| {
            self.session.run_compiler(toolchain, args, (directory, own), record)
        })?;
        self.usage = self.usage.then(output.usage);
        if self.session.cancel.is_cancelled() {
            return Err(gfxpack_process::interrupted());
        }
        Ok((output, record))
    }
}

/// The output of a program, and which compilers ran.
type Ran = (Output, Result<Record, WatchError>);

pub(super) fn scratch(work: &Path, prefix: &str) -> Result<TempDir, Error> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir_in(work);
    made.map_err(Error::io("create", work))
}

/// The directories of its sources that a command searches.
fn own_dirs(command: &CommandTemplate) -> Vec<PathBuf> {
    searched(&command.texts()).filter(|dir| dir.is_relative()).map(Path::to_owned).collect()
}

/// The commands that may use precompiled headers, grouped by header.
fn by_command<'c>(commands: impl Iterator<Item = (Command<'c>, Direct)>) -> Vec<HeaderGroup> {
    let mut groups: Vec<HeaderGroup> = Vec::new();
    let mut places: HashMap<CommandTemplate, usize> = HashMap::new();
    for (command, (defines, commands)) in commands {
        let Some(first) = commands.list.first() else { continue };
        let Some(template) = header_command(first) else { continue };
        let (dirs, defines) = (own_dirs(first), defines.concat());
        if !are_plain(&defines) {
            continue;
        }
        let place = *places.entry(template).or_insert_with(|| {
            let (toolchain, commands) = (command.toolchain, Arc::clone(&commands));
            groups.push(HeaderGroup { toolchain, commands, members: Vec::new() });
            groups.len() - 1
        });
        let Command { job, source, .. } = command;
        let macros = defines.iter().map(|define| macro_name(define).to_owned()).collect();
        let main = command.main().to_owned();
        groups[place].members.push(Member { job, source, main, commands, dirs, macros });
    }
    groups
}
