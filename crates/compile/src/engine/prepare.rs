//! What is made before the jobs, once for many of them: precompiled headers
//! and reduced libraries. Each is tried on a small kernel both ways before a
//! job may use it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_plan::preamble::{self, Preamble};
use gfxpack_plan::{Language, include};

use super::command::{Command, Define, Filling};
use super::precompiled::{
    Claims, Kept, PrecompiledHeader, Recipe, add_identifiers, are_plain, header_command, macro_name,
};
use super::reduced::ReducedLibrary;
use super::starter::Start;
use super::{Engine, lacks_symbols};
use crate::answers::Moment;
use crate::error::CompileError;
use crate::usage::Usage;

/// Fewest jobs that pay for a precompiled header: it costs as much as the
/// headers cost one or two of them.
const MIN_HEADER_JOBS: usize = 3;
/// Fewest that pay for a header made with macros of theirs.
const MIN_SPECIAL_HEADER_JOBS: usize = 12;
/// Fewest jobs that pay for a reduced library.
const MIN_LIBRARY_JOBS: usize = 12;

/// Says a little of what kernels say, and nothing that needs a header.
const HIP_PROBE: &str = "
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
const OPENCL_PROBE: &str = "
__kernel void gfxpack_probe(__global float* out, __global const float* in, int size)
{
    __local float tile[64];
    const int lane = get_local_id(0) & 63;
    const int at   = get_global_id(0);
    tile[lane]     = at < size ? in[at] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if(at < size)
        out[at] = exp(tile[63 - lane]) + sqrt(in[at]) / log(fmax(tile[lane], 2.0f));
}
";

/// Jobs of one command whose sources begin with the same headers.
struct Group {
    toolchain: usize,
    commands: Arc<Vec<Command>>,
    headers: Vec<String>,
    members: Vec<Member>,
}

/// A small kernel that a shortcut is tried on.
struct Probe<'a> {
    commands: &'a [Command],
    text: &'a str,
    name: &'a str,
    defines: &'a [Define],
}

struct Member {
    job: usize,
    defines: Vec<Define>,
    macros: BTreeSet<String>,
}

/// Something made before the jobs that it is for may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub(crate) what: Prepared,
    pub(crate) toolchain: usize,
    /// The jobs that wait for it.
    pub(crate) jobs: Vec<usize>,
}

/// What is made before jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prepared {
    /// HIP's headers of one target, parsed.
    PrecompiledHeaders,
    /// OpenCL C's device library, cut down.
    ReducedLibrary,
}

impl Prepared {
    /// One word for machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PrecompiledHeaders => "precompiled-headers",
            Self::ReducedLibrary => "reduced-library",
        }
    }

    /// What the jobs are written in.
    #[must_use]
    pub fn language(self) -> Language {
        match self {
            Self::PrecompiledHeaders => Language::Hip,
            Self::ReducedLibrary => Language::OpenclC,
        }
    }
}

impl Engine<'_> {
    /// What may pay for these jobs, each job in one at most; what most jobs
    /// wait for first.
    pub(crate) fn preparations(&self, jobs: &[usize]) -> Vec<Preparation> {
        let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for &index in jobs {
            let job = &self.plan.jobs[index];
            let key = match job.language {
                Language::Hip if self.shortcuts.precompiled_header => {
                    (Prepared::PrecompiledHeaders, job.toolchain, Some(job.target_id.to_string()))
                }
                Language::OpenclC if self.shortcuts.reduced_library => {
                    (Prepared::ReducedLibrary, job.toolchain, None)
                }
                _ => continue,
            };
            found.entry(key).or_default().push(index);
        }
        let pays = |what: Prepared, jobs: usize| match what {
            Prepared::PrecompiledHeaders => true,
            Prepared::ReducedLibrary => jobs >= MIN_LIBRARY_JOBS,
        };
        let mut found: Vec<Preparation> = found
            .into_iter()
            .filter(|((what, ..), jobs)| pays(*what, jobs.len()))
            .map(|((what, toolchain, _), jobs)| Preparation { what, toolchain, jobs })
            .collect();
        found.sort_by_key(|one| (one.what, Reverse(one.jobs.len())));
        found
    }

    /// Makes it; gives what that took.
    ///
    /// # Errors
    /// [`CompileError`] where the disk is full or someone asked to stop; what
    /// can't be made is done without.
    pub(crate) fn prepare(&self, preparation: &Preparation) -> Result<Usage, CompileError> {
        let mut usage = Usage::default();
        let Preparation { what, toolchain, jobs } = preparation;
        match what {
            Prepared::PrecompiledHeaders => {
                for group in self.groups(jobs) {
                    let made = self.headers_of(group, &mut usage)?;
                    self.headers.write().expect("no panic inside").extend(made);
                }
            }
            Prepared::ReducedLibrary => {
                if let Some(made) = self.library(*toolchain, jobs, &mut usage)? {
                    let mut libraries = self.libraries.write().expect("no panic inside");
                    libraries.insert(*toolchain, Arc::new(made));
                }
            }
        }
        Ok(usage)
    }

    fn groups(&self, jobs: &[usize]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut by_key: HashMap<(Command, Vec<String>), usize> = HashMap::new();
        let mut preambles: HashMap<(usize, Vec<String>), Preamble> = HashMap::new();
        for &job in jobs {
            let planned = &self.plan.jobs[job];
            if planned.language != Language::Hip {
                continue;
            }
            let Some((defines, commands)) = self.commands_of(planned) else { continue };
            let Some(command) = commands.first().and_then(header_command) else { continue };
            let defines = defines.concat();
            if !are_plain(&defines) {
                continue;
            }
            let known = preambles
                .entry((planned.source, names(&defines)))
                .or_insert_with(|| self.preamble(job, &defines));
            let index = *by_key.entry((command, known.headers.clone())).or_insert_with(|| {
                groups.push(Group {
                    toolchain: planned.toolchain,
                    commands,
                    headers: known.headers.clone(),
                    members: Vec::new(),
                });
                groups.len() - 1
            });
            groups[index].members.push(Member { job, defines, macros: known.macros.clone() });
        }
        groups
    }

    /// What the job's source begins with.
    fn preamble(&self, job: usize, defines: &[Define]) -> Preamble {
        let job = &self.plan.jobs[job];
        let files = self.sources.files(job.source);
        let file = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| *text);
        let dirs: Vec<&str> =
            job.arguments.iter().filter_map(|word| word.strip_prefix("-I")).collect();
        let resolve = |path: &str, quoted: bool, includer: &str| {
            let beside = includer.rsplit_once('/').map_or("", |(dir, _)| dir);
            let places = quoted.then_some(beside).into_iter().chain(dirs.iter().copied());
            places.filter_map(|dir| include::join(dir, path)).find(|path| file(path).is_some())
        };
        let mut defined = BTreeSet::new();
        for define in defines {
            match define[0].as_str() {
                "-D" => defined.insert(macro_name(define).to_owned()),
                _ => defined.remove(macro_name(define)),
            };
        }
        let main = &self.plan.sources[job.source].main;
        preamble::read(main, &file, &resolve, &defined)
    }

    /// Headers for as many of a group's jobs as can be: one for those that
    /// define nothing the headers know, one for every other set of such
    /// macros, and for the rest one of the driver's own header alone.
    fn headers_of(
        &self,
        group: Group,
        usage: &mut Usage,
    ) -> Result<Vec<(usize, Arc<PrecompiledHeader>)>, CompileError> {
        let mut served = Vec::new();
        let mut rest = group.members;
        for headers in [group.headers.as_slice(), &[]] {
            let mut tried: HashSet<Vec<Define>> = HashSet::new();
            let mut wanted = Vec::new();
            loop {
                tried.insert(wanted.clone());
                let recipe = (group.commands.as_slice(), headers);
                let made = self.header(group.toolchain, recipe, wanted, &rest, usage)?;
                let Some(made) = made.map(Arc::new) else { break };
                let serves = |member: &Member| self.serves(&made, member);
                let (fitting, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(serves);
                served.extend(fitting.into_iter().map(|member| (member.job, Arc::clone(&made))));
                rest = others;
                // The largest set of jobs that agree in what the headers know.
                let mut sets: HashMap<Vec<Define>, usize> = HashMap::new();
                for member in &rest {
                    *sets.entry(made.conflicts(&member.defines)).or_default() += 1;
                }
                sets.retain(|set, _| !tried.contains(set));
                let next = sets.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
                match next {
                    Some((set, count)) if count >= MIN_SPECIAL_HEADER_JOBS => wanted = set,
                    _ => break,
                }
            }
        }
        Ok(served)
    }

    fn serves(&self, header: &PrecompiledHeader, member: &Member) -> bool {
        let source = self.plan.jobs[member.job].source;
        let files = &self.plan.sources[source].files;
        header.serves(Claims {
            defines: &member.defines,
            macros: &member.macros,
            files: files.iter().map(|file| file.path.as_str()).collect(),
        })
    }

    /// A header that was kept, or a new one where so many jobs pay for it.
    fn header(
        &self,
        index: usize,
        (commands, headers): (&[Command], &[String]),
        defines: Vec<Define>,
        members: &[Member],
        usage: &mut Usage,
    ) -> Result<Option<PrecompiledHeader>, CompileError> {
        let toolchain = &self.toolchains[index];
        let dir = self.headers_dir();
        let Some(recipe) = commands
            .first()
            .and_then(|command| Recipe::new(command, headers, defines, toolchain, &dir))
        else {
            return Ok(None);
        };
        let mut header = match recipe.found(toolchain, self.digests) {
            Some(Kept::Header(header)) => header,
            Some(Kept::Unfit) => return Ok(None),
            None if members.len() < MIN_HEADER_JOBS => return Ok(None),
            None => match self.new_header(index, commands, &recipe, usage)? {
                Some(made) => made,
                None => return Ok(None),
            },
        };
        let macros = members.iter().flat_map(|member| {
            let defined = member.defines.iter().map(macro_name);
            defined.chain(member.macros.iter().map(String::as_str))
        });
        let unknown = header.unknown(macros);
        if !unknown.is_empty() {
            let told = self.built_names(index, &recipe, &unknown, usage)?;
            recipe.learn(&mut header, told)?;
        }
        Ok(Some(header))
    }

    /// Makes a header and tries it.
    fn new_header(
        &self,
        index: usize,
        commands: &[Command],
        recipe: &Recipe,
        usage: &mut Usage,
    ) -> Result<Option<PrecompiledHeader>, CompileError> {
        let scratch = self.scratch("header-")?;
        let start = Start {
            words: recipe.prepare(scratch.path())?,
            directory: scratch.path(),
            environment: &self.environments[index].compiler,
            temp_dir: scratch.path(),
            time_limit: self.time_limit,
            fork_server: self.shortcuts.fork_server,
        };
        let started = Moment::now();
        let output = self.starter().run(&start, self.cancel)?;
        *usage = usage.then(output.usage);
        if self.cancel.is_cancelled() {
            return Err(CompileError::Interrupted);
        }
        let toolchain = &self.toolchains[index];
        toolchain.check_identity(Language::Hip)?;
        let made = if output.ok() {
            recipe.keep(scratch.path(), toolchain, self.digests, started)?
        } else {
            None
        };
        let Some(Kept::Header(made)) = made else {
            tracing::debug!(words = output.stderr, "no precompiled header");
            return Ok(None);
        };
        let probe = format!("{}{HIP_PROBE}", recipe.text);
        let with = |command: &Command| made.apply(command);
        let defines = &recipe.defines;
        let probe = Probe { commands, text: &probe, name: "probe.hip", defines };
        if self.same_both_ways(index, &probe, &with, usage)? {
            return Ok(Some(made));
        }
        recipe.forget();
        Ok(None)
    }

    fn library(
        &self,
        index: usize,
        jobs: &[usize],
        usage: &mut Usage,
    ) -> Result<Option<ReducedLibrary>, CompileError> {
        let mut identifiers = HashSet::new();
        add_identifiers(OPENCL_PROBE.as_bytes(), &mut identifiers);
        let sources: BTreeSet<usize> = jobs.iter().map(|&job| self.plan.jobs[job].source).collect();
        for source in sources {
            for (_, text) in self.sources.files(source) {
                add_identifiers(text, &mut identifiers);
            }
        }
        let first = &self.plan.jobs[jobs[0]];
        let toolchain = &self.toolchains[index];
        let dir = self.kept.join("libraries");
        let scratch = self.scratch("library-")?;
        let made = ReducedLibrary::make(
            toolchain,
            &identifiers,
            &dir,
            scratch.path(),
            self.digests,
            self.cancel,
        )?;
        if self.cancel.is_cancelled() {
            return Err(CompileError::Interrupted);
        }
        let Some((made, new)) = made else { return Ok(None) };
        let Some((_, commands)) = self.commands_of(first) else { return Ok(None) };
        let with = |command: &Command| made.apply(command);
        let probe =
            Probe { commands: &commands, text: OPENCL_PROBE, name: "probe.cl", defines: &[] };
        if !new || self.same_both_ways(index, &probe, &with, usage)? {
            return Ok(Some(made));
        }
        made.forget();
        Ok(None)
    }

    /// Whether a small kernel's object is the same with commands changed.
    fn same_both_ways(
        &self,
        toolchain: usize,
        probe: &Probe<'_>,
        change: &dyn Fn(&Command) -> Option<Command>,
        usage: &mut Usage,
    ) -> Result<bool, CompileError> {
        let Probe { commands, text, name, defines } = *probe;
        let scratch = self.scratch("probe-")?;
        let dir = scratch.path();
        let source = dir.join(name);
        fs::write(&source, text).map_err(CompileError::io("write", &source))?;
        let defines = [defines.to_vec()];
        let mut build = |output: &Path, changed: bool| -> Result<Option<Vec<u8>>, CompileError> {
            for command in commands {
                let command =
                    Some(command).filter(|_| changed).and_then(change).unwrap_or(command.clone());
                let deps_file = dir.join("d");
                let filling = Filling {
                    input: name,
                    defines: &defines,
                    output,
                    deps_file: &deps_file,
                    scratch: dir,
                };
                let start = Start {
                    words: command.fill(&filling),
                    directory: dir,
                    environment: &self.environments[toolchain].compiler,
                    temp_dir: dir,
                    time_limit: self.time_limit,
                    fork_server: self.shortcuts.fork_server,
                };
                let output = self.starter().run(&start, self.cancel)?;
                *usage = usage.then(output.usage);
                if !output.ok() {
                    return Ok(None);
                }
            }
            Ok(fs::read(output).ok().filter(|_| !lacks_symbols(output)))
        };
        let plain = build(&dir.join("plain"), false)?;
        let same = plain.is_some() && plain == build(&dir.join("changed"), true)?;
        if self.cancel.is_cancelled() {
            return Err(CompileError::Interrupted);
        }
        if !same {
            tracing::warn!(name, "a shortcut did not give the same bytes and is not used");
        }
        Ok(same)
    }

    /// Where precompiled headers are kept.
    pub(crate) fn headers_dir(&self) -> PathBuf {
        self.kept.join("headers")
    }

    pub(super) fn scratch(&self, prefix: &str) -> Result<tempfile::TempDir, CompileError> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(self.work);
        made.map_err(CompileError::io("create", self.work))
    }
}

fn names(defines: &[Define]) -> Vec<String> {
    defines.iter().map(|define| format!("{}{}", define[0], macro_name(define))).collect()
}
