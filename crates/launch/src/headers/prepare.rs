//! Makes precompiled headers before the commands run, once for many of them. Each is first tested:
//! a small kernel must give the same object with it and without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{Digest, Language, SourceId, ToolchainId};
use gfxpack_process::watch::{
    FileSystemCache, PathRole, PathState, PathStates, Record, Recorder, StoredPathStates,
    WatchError, judge_record, recorded, tidy_path,
};
use gfxpack_process::{FileError, Output, Timestamp, Usage};
use gfxpack_toolchain::ToolchainError;
use tempfile::TempDir;

use super::built_names::built_names;
use super::precompiled::{PrecompiledHeader, are_plain, macro_name};
use super::recipe::{CacheEntry, HeaderRecipe, header_command};
use crate::arguments::searched;
use crate::drivers::{Direct, DriverCommands};
use crate::launcher::{Command, ReadBefore, SourceFiles};
use crate::path_roles::{ToolchainPathRoles, with_searched};
use crate::session::Session;
use crate::starter::Starter;
use crate::template::{CommandTemplate, Define, TemplateValues};

/// The parameters for making precompiled headers.
#[derive(Debug)]
pub struct HeaderOptions<'a> {
    /// The directory in which they are kept between builds.
    pub kept: PathBuf,
    /// A directory for temporary files.
    pub scratch: &'a Path,
    /// The file system, each file looked at once.
    pub file_system: &'a FileSystemCache<'a>,
    /// The directories that compilers may read, by toolchain.
    pub path_roles: &'a [ToolchainPathRoles],
    /// The sources of the commands.
    pub sources: &'a dyn SourceFiles,
}

/// The least number of commands for which a precompiled header pays: making it takes as long as the
/// headers take in one or two commands.
const MIN_HEADER_COMMANDS: usize = 3;

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
struct HeaderGroup {
    toolchain: ToolchainId,
    commands: Arc<DriverCommands>,
    members: Vec<Member>,
}

struct Member {
    job: Digest,
    source: SourceId,
    /// The directories of its sources that it searches.
    dirs: Vec<PathBuf>,
    defines: Vec<Define>,
}

/// A precompiled header for a command.
#[derive(Debug, Clone)]
pub(crate) struct UsedHeader {
    pub(crate) header: Arc<PrecompiledHeader>,
    /// The paths among the sources that do not exist and would hide one of the headers.
    absent: Arc<StoredPathStates>,
}

impl UsedHeader {
    pub(crate) fn read_before(&self) -> ReadBefore {
        let states = [Arc::clone(&self.header.kept), Arc::clone(&self.absent)];
        let own = [self.header.file.clone(), self.header.source.clone()];
        ReadBefore { own, files: Arc::clone(&self.header.files), states }
    }
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

/// Makes the headers of a group.
pub(crate) struct HeaderMaker<'a> {
    session: &'a Session<'a>,
    starter: &'a Starter<'a>,
    options: &'a HeaderOptions<'a>,
    usage: Usage,
}

impl<'a> HeaderMaker<'a> {
    pub(crate) fn new(
        session: &'a Session<'a>,
        starter: &'a Starter<'a>,
        options: &'a HeaderOptions<'a>,
    ) -> Self {
        Self { session, starter, options, usage: Usage::default() }
    }

    /// Makes the precompiled headers for some of the commands. Returns them by the digests of their
    /// jobs, and the resources used.
    ///
    /// # Errors
    /// [`ToolchainError`] if the disk is full or the build was cancelled. A header that can't be
    /// made for another reason is left out.
    pub(crate) fn make<'c>(
        mut self,
        commands: impl Iterator<Item = (Command<'c>, Direct)>,
    ) -> Result<(Vec<(Digest, UsedHeader)>, Usage), ToolchainError> {
        let mut served = Vec::new();
        for group in by_command(commands) {
            // The text of the headers is read for its names. The writing has a `while_unchanged` of
            // its own.
            if let Some(header) = self.while_unchanged(group.toolchain, |it| it.header(&group))? {
                self.serve(&Arc::new(header), group.members, &mut served);
            }
        }
        Ok((served, self.usage))
    }

    /// Adds a header for each command that may use it.
    fn serve(
        &self,
        header: &Arc<PrecompiledHeader>,
        members: Vec<Member>,
        served: &mut Vec<(Digest, UsedHeader)>,
    ) {
        // Commands of one source may search different directories.
        type Searched = (SourceId, Vec<PathBuf>);
        let mut hiding: HashMap<Searched, Option<Arc<StoredPathStates>>> = HashMap::new();
        for member in members.into_iter().filter(|member| header.serves(&member.defines)) {
            let absent = hiding
                .entry((member.source, member.dirs))
                .or_insert_with_key(|(source, dirs)| self.not_hiding(header, *source, dirs));
            served.extend(
                absent
                    .clone()
                    .map(|absent| (member.job, UsedHeader { header: Arc::clone(header), absent })),
            );
        }
    }

    /// The paths that do not exist and would hide one of the headers from a source's commands;
    /// `None` if one exists.
    fn not_hiding(
        &self,
        header: &PrecompiledHeader,
        source: SourceId,
        dirs: &[PathBuf],
    ) -> Option<Arc<StoredPathStates>> {
        let sources = self.options.sources;
        let paths: Vec<PathBuf> = header.hiding(dirs).collect();
        let staged = sources.files(source);
        let is_staged = |path: &PathBuf| {
            let path = tidy_path(path);
            staged.iter().any(|(name, _)| path == Path::new(name))
        };
        // A file in the search path, a header map, could name any header.
        let is_file =
            |dir: &PathBuf| !sources.is_dir(source, dir) && !sources.is_absent(source, dir);
        let is_absent = |path: &PathBuf| sources.is_absent(source, path) && !is_staged(path);
        let none = !dirs.iter().any(is_file) && paths.iter().all(is_absent);
        let states = paths.into_iter().map(|path| (path, PathState::Absent)).collect();
        none.then(|| Arc::new(PathStates::of_separate(states).to_kept()))
    }

    /// A stored header, or a new one if enough commands would use it.
    fn header(&mut self, group: &HeaderGroup) -> Result<Option<PrecompiledHeader>, ToolchainError> {
        let HeaderGroup { toolchain: index, commands, members } = group;
        let (index, commands) = (*index, commands.list.as_slice());
        let toolchain = self.session.toolchain(index);
        let dir = &self.options.kept;
        let recipe = commands.first().and_then(|it| HeaderRecipe::new(it, toolchain, dir));
        let Some(recipe) = recipe else { return Ok(None) };
        let mut header = match recipe.found(self.options.file_system) {
            Some(CacheEntry::Header(header)) => *header,
            Some(CacheEntry::Unfit) => return Ok(None),
            None if members.len() < MIN_HEADER_COMMANDS => return Ok(None),
            None => match self.new_header(index, commands, &recipe)? {
                Some(made) => made,
                None => return Ok(None),
            },
        };
        let macros = members.iter().flat_map(|member| member.defines.iter().map(macro_name));
        let unknown = header.unknown(macros);
        if !unknown.is_empty() {
            let work = self.options.scratch;
            let built = self.while_unchanged(index, |headers| {
                built_names(&recipe, &unknown, &|| scratch(work, "names-"), &mut |args, dir| {
                    Ok(headers.run(index, args, dir)?.0.ok())
                })
            })?;
            recipe.learn(&mut header, built)?;
        }
        Ok(Some(header))
    }

    /// Makes and tests a header.
    fn new_header(
        &mut self,
        index: ToolchainId,
        commands: &[CommandTemplate],
        recipe: &HeaderRecipe,
    ) -> Result<Option<PrecompiledHeader>, ToolchainError> {
        let HeaderOptions { file_system, path_roles, .. } = *self.options;
        let (scratch, since, output, record) = self.while_unchanged(index, |headers| {
            let scratch = scratch(headers.options.scratch, "header-")?;
            let args = recipe.prepare(scratch.path())?;
            let since = Timestamp::now();
            let (output, record) = headers.run(index, args, scratch.path())?;
            Ok((scratch, since, output, record))
        })?;
        let made = match record {
            Ok(record) if output.ok() && !record.heap_was_short => {
                let dir = file_system.real(scratch.path());
                let roles = path_roles[index.0].for_language(Language::Hip).with_stage(&dir);
                let roles = with_searched(roles, &record.processes, file_system);
                let roles = roles.with(PathRole::Scratch, dir);
                let roles = roles.with_linked(PathRole::Covered, &recipe.source(), file_system);
                let dependencies = judge_record(&record, |_| &roles, file_system, since);
                recipe.keep(scratch.path(), &record, dependencies, file_system)?
            }
            Ok(_) => None,
            Err(reason) => {
                tracing::debug!(%reason, "no precompiled header");
                None
            }
        };
        let Some((made, record)) = made else {
            tracing::debug!(output = output.stderr, "no precompiled header");
            return Ok(None);
        };
        if self.while_unchanged(index, |headers| headers.same_both_ways(index, commands, &made))? {
            recipe.write_record(&record)?;
            return Ok(Some(made));
        }
        tracing::warn!("a precompiled header did not give the same bytes and is not used");
        fs::remove_file(&made.file).ok();
        recipe.keep_unfit(record)?;
        Ok(None)
    }

    /// Whether a small kernel's object is the same with the header and without.
    fn same_both_ways(
        &mut self,
        toolchain: ToolchainId,
        commands: &[CommandTemplate],
        header: &PrecompiledHeader,
    ) -> Result<bool, ToolchainError> {
        let scratch = scratch(self.options.scratch, "probe-")?;
        let dir = scratch.path();
        let input = "probe.hip";
        let source = dir.join(input);
        fs::write(&source, PROBE).map_err(FileError::io("write", &source))?;
        let deps_file = &dir.join("d");
        let mut build = |output: &Path, with: bool| -> Result<Option<Vec<u8>>, ToolchainError> {
            let values = TemplateValues { input, defines: &[], output, deps_file, scratch: dir };
            for command in commands {
                let with_header = Some(header).filter(|_| with).and_then(|it| it.apply(command));
                let args = with_header.as_ref().unwrap_or(command).fill(&values);
                if !self.run(toolchain, args, dir)?.0.ok() {
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
        mut make: impl FnMut(&mut Self) -> Result<T, ToolchainError>,
    ) -> Result<T, ToolchainError> {
        let toolchain = self.session.toolchain(toolchain);
        let digests = self.options.file_system.digests();
        toolchain.while_unchanged(Language::Hip, digests, || make(self))
    }

    /// Runs a program in a directory of its own, the only one that it may write to.
    fn run(
        &mut self,
        toolchain: ToolchainId,
        args: Vec<OsString>,
        dir: &Path,
    ) -> Result<(Output, Result<Record, WatchError>), ToolchainError> {
        let (output, record) = recorded(Recorder::of_compiler(dir), |record| {
            self.starter.run(toolchain, args, (dir, dir), record)
        })?;
        self.usage = self.usage.then(output.usage);
        if self.session.cancel.is_cancelled() {
            return Err(ToolchainError::Interrupted);
        }
        Ok((output, record))
    }
}

fn scratch(work: &Path, prefix: &str) -> Result<TempDir, FileError> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir_in(work);
    made.map_err(FileError::io("create", work))
}

/// The directories of its sources that a command searches.
fn own_dirs(command: &CommandTemplate) -> Vec<PathBuf> {
    let args: Vec<&str> = command.texts().into_iter().map(Option::unwrap_or_default).collect();
    searched(&args).filter(|dir| dir.is_relative()).map(Path::to_owned).collect()
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
        groups[place].members.push(Member { job, source, dirs, defines });
    }
    groups
}
