//! Precompiled headers, made before the jobs, once for many of them. Each is
//! tried on a small kernel both ways before a job may use it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::Language;
use gfxpack_plan::include;
use gfxpack_plan::preamble::{self, Preamble};
use gfxpack_process::watch::{Answer, Answers, KeptAnswers, Place, settle};
use gfxpack_process::{Moment, Usage};

use super::command::{Command, Define, Filling};
use super::precompiled::{
    Claims, Kept, PrecompiledHeader, Recipe, are_plain, header_command, macro_name,
};
use super::starter::Start;
use super::{Commands, Engine, UsedHeader, recorded, recorder};
use crate::error::CompileError;
use crate::judge::searched;
use crate::store::HEADERS;

/// Fewest jobs that pay for a precompiled header: it costs as much as the
/// headers cost one or two of them.
const MIN_HEADER_JOBS: usize = 3;
/// Fewest that pay for a header made with macros of theirs.
const MIN_SPECIAL_HEADER_JOBS: usize = 12;

/// Says a little of what kernels say, and nothing that needs a header.
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
/// Jobs of one command whose sources begin with the same headers.
struct Group {
    toolchain: usize,
    commands: Arc<Commands>,
    headers: Vec<String>,
    members: Vec<Member>,
}

struct Member {
    job: usize,
    defines: Vec<Define>,
    macros: BTreeSet<String>,
}

/// Headers of one target that are precompiled before these jobs may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub(crate) jobs: Vec<usize>,
}

impl Engine<'_> {
    /// What may pay for these jobs, each job in one at most; what most jobs
    /// wait for first.
    pub(crate) fn preparations(&self, jobs: &[usize]) -> Vec<Preparation> {
        let mut found: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        if self.shortcuts.precompiled_header {
            for &index in jobs {
                let job = &self.plan.jobs[index];
                if job.language == Language::Hip {
                    let key = (job.toolchain, job.target_id.to_string());
                    found.entry(key).or_default().push(index);
                }
            }
        }
        let mut found: Vec<Preparation> =
            found.into_values().map(|jobs| Preparation { jobs }).collect();
        found.sort_by_key(|one| Reverse(one.jobs.len()));
        found
    }

    /// Makes it; gives what that took.
    ///
    /// # Errors
    /// [`CompileError`] where the disk is full or someone asked to stop; what
    /// can't be made is done without.
    pub(crate) fn prepare(&self, preparation: &Preparation) -> Result<Usage, CompileError> {
        let mut usage = Usage::default();
        for group in self.groups(&preparation.jobs) {
            let made = self.headers_of(group, &mut usage)?;
            self.headers.write().expect("no panic inside").extend(made);
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
            let Some(command) = commands.list.first().and_then(header_command) else { continue };
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
    ) -> Result<Vec<(usize, UsedHeader)>, CompileError> {
        let dirs = group.commands.list.first().map(own_dirs).unwrap_or_default();
        let mut served = Vec::new();
        let mut rest = group.members;
        for headers in [group.headers.as_slice(), &[]] {
            let mut tried: HashSet<Vec<Define>> = HashSet::new();
            let mut wanted = Vec::new();
            loop {
                tried.insert(wanted.clone());
                let recipe = (group.commands.list.as_slice(), headers);
                let made = self.header(group.toolchain, recipe, wanted, &rest, usage)?;
                let Some(made) = made.map(Arc::new) else { break };
                let mut hiding: HashMap<usize, Option<Arc<KeptAnswers>>> = HashMap::new();
                let mut others = Vec::new();
                for member in rest {
                    let source = self.plan.jobs[member.job].source;
                    let claims = Claims { defines: &member.defines, macros: &member.macros };
                    let absent = made.serves(claims).then(|| {
                        let absent = hiding.entry(source);
                        absent.or_insert_with(|| self.not_hiding(&made, source, &dirs)).clone()
                    });
                    match absent.flatten() {
                        Some(absent) => {
                            let header = Arc::clone(&made);
                            served.push((member.job, UsedHeader { header, absent }));
                        }
                        None => others.push(member),
                    }
                }
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

    /// That none of the paths is there which would hide one of a header's
    /// headers from a source's jobs; `None` where one is.
    fn not_hiding(
        &self,
        header: &PrecompiledHeader,
        source: usize,
        dirs: &[PathBuf],
    ) -> Option<Arc<KeptAnswers>> {
        let paths: Vec<PathBuf> = header.hiding(dirs).collect();
        let absent =
            |path: &PathBuf| self.sources.answer(source, path, self.digests) == Answer::Absent;
        let staged = self.sources.files(source);
        let is_staged = |path: &PathBuf| staged.iter().any(|(name, _)| path == Path::new(name));
        let none = paths.iter().all(|path| absent(path) && !is_staged(path));
        let answers = paths.into_iter().map(|path| (path, Answer::Absent)).collect();
        none.then(|| Arc::new(Answers::of_relative(answers).to_kept()))
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
        let mut header = match recipe.found(toolchain, self.looks) {
            Some(Kept::Header(header)) => *header,
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
            environment: &self.environments[index],
            temp_dir: scratch.path(),
            time_limit: self.time_limit,
            fork_server: self.shortcuts.fork_server,
            record: None,
        };
        let since = Moment::now();
        let (output, record) = recorded(recorder(scratch.path()), |record| {
            let words = start.words.clone();
            self.starter().run(&Start { record, words, ..start }, self.cancel)
        })?;
        *usage = usage.then(output.usage);
        if self.cancel.is_cancelled() {
            return Err(CompileError::Interrupted);
        }
        let toolchain = &self.toolchains[index];
        toolchain.check_identity(Language::Hip)?;
        let made = match record {
            Ok(record) if output.ok() => {
                let dir = self.looks.real(scratch.path());
                let places = self.places[index].of(Language::Hip).with_stage(&dir);
                let dirs = record.processes.iter().flat_map(|process| searched(&process.arguments));
                let places = dirs
                    .filter(|dir| dir.is_absolute())
                    .fold(places, |places, dir| places.with(Place::Readable, self.looks.real(dir)));
                let places = places.with(Place::Scratch, dir);
                let settled = settle(&record, |_| &places, self.looks, since.seconds());
                recipe.keep(scratch.path(), toolchain, &record, settled, self.looks)?
            }
            Ok(_) => None,
            Err(reason) => {
                tracing::debug!(%reason, "no precompiled header");
                None
            }
        };
        let Some(Kept::Header(made)) = made else {
            tracing::debug!(words = output.stderr, "no precompiled header");
            return Ok(None);
        };
        if self.same_both_ways(index, commands, recipe, &made, usage)? {
            return Ok(Some(*made));
        }
        recipe.forget();
        Ok(None)
    }

    /// Whether a small kernel's object is the same with the header.
    fn same_both_ways(
        &self,
        toolchain: usize,
        commands: &[Command],
        recipe: &Recipe,
        header: &PrecompiledHeader,
        usage: &mut Usage,
    ) -> Result<bool, CompileError> {
        let scratch = self.scratch("probe-")?;
        let dir = scratch.path();
        let name = "probe.hip";
        let source = dir.join(name);
        let text = format!("{}{PROBE}", recipe.text);
        fs::write(&source, text).map_err(CompileError::io("write", &source))?;
        let defines = std::slice::from_ref(&recipe.defines);
        let mut build = |output: &Path, with: bool| -> Result<Option<Vec<u8>>, CompileError> {
            for command in commands {
                let with_header = Some(header).filter(|_| with).and_then(|it| it.apply(command));
                let command = with_header.as_ref().unwrap_or(command);
                let deps_file = dir.join("d");
                let filling =
                    Filling { input: name, defines, output, deps_file: &deps_file, scratch: dir };
                let start = Start {
                    words: command.fill(&filling),
                    directory: dir,
                    environment: &self.environments[toolchain],
                    temp_dir: dir,
                    time_limit: self.time_limit,
                    fork_server: self.shortcuts.fork_server,
                    record: None,
                };
                let output = self.starter().run(&start, self.cancel)?;
                *usage = usage.then(output.usage);
                if !output.ok() {
                    return Ok(None);
                }
            }
            Ok(fs::read(output).ok())
        };
        let plain = build(&dir.join("plain"), false)?;
        let same = plain.is_some() && plain == build(&dir.join("with"), true)?;
        if self.cancel.is_cancelled() {
            return Err(CompileError::Interrupted);
        }
        if !same {
            tracing::warn!("a precompiled header did not give the same bytes and is not used");
        }
        Ok(same)
    }

    /// Where precompiled headers are kept.
    pub(crate) fn headers_dir(&self) -> PathBuf {
        self.kept.join(HEADERS)
    }

    pub(super) fn scratch(&self, prefix: &str) -> Result<tempfile::TempDir, CompileError> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(self.work);
        made.map_err(CompileError::io("create", self.work))
    }
}

/// The directories of its own sources that a command searches.
fn own_dirs(command: &Command) -> Vec<PathBuf> {
    let words: Vec<&str> = command.texts().into_iter().map(Option::unwrap_or_default).collect();
    searched(&words).filter(|dir| dir.is_relative()).map(Path::to_owned).collect()
}

fn names(defines: &[Define]) -> Vec<String> {
    defines.iter().map(|define| format!("{}{}", define[0], macro_name(define))).collect()
}
