//! The plan: every compile job and every kdb, decided before anything runs.

use std::collections::{HashMap, HashSet};
use std::ops::Index;
use std::sync::Arc;

use gfxpack_model::compiler::{CompilerFacts, Program, SuppliedConstant};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{
    Digest, Error, JobId, KdbId, KernelFileFormat, KernelKey, Language, SourceId, Target, TargetId,
    ToolchainId,
};
use serde::{Deserialize, Serialize};

use crate::arguments;
use crate::clock::Clock;
use crate::key_list::{KEYS_AT_ONCE, KeyRequest};
use crate::workers::Workers;

/// A source with everything that it includes, as it is staged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The source's file name.
    pub name: String,
    /// The source's path in the staged directory.
    pub main: String,
    /// Include directories in the staged directory, in search order.
    pub include_dirs: Vec<String>,
    /// Every file with the digest of its content, sorted by path.
    pub files: Vec<StagedFile>,
    /// More directories, sorted: a path with `..` leads through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<String>,
    /// Directories that are links, sorted, each with the directory that it leads to: a path with
    /// `..` after them leads elsewhere than its text. One that leads out of the sources is its own
    /// target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<(String, String)>,
}

/// One file of a staged directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Relative to the staged directory.
    pub path: String,
    /// SHA-256 of the content.
    pub digest: Digest,
    /// The path of another file of the closure, if both are one file under two names, which
    /// compilers read once if its text says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl Source {
    /// The digest of the whole closure.
    pub fn digest(&self) -> Digest {
        let files = self.files.iter();
        let same = files.clone().filter_map(|file| Some([&file.path, file.same_as.as_ref()?]));
        let same: Vec<&String> = same.flatten().collect();
        Hasher::new("gfxpack source 3")
            .field(self.main.as_bytes())
            .list(self.include_dirs.iter().map(String::as_bytes))
            .list(files.clone().map(|file| file.path.as_bytes()))
            .list(files.map(|file| file.digest))
            .list(same.into_iter().map(String::as_bytes))
            .list(self.dirs.iter().map(String::as_bytes))
            .list(self.links.iter().map(|(from, _)| from.as_bytes()))
            .list(self.links.iter().map(|(_, to)| to.as_bytes()))
            .finish()
    }
}

/// The digest of each source for its jobs. Sources with the same files may have different files
/// beside them, which headers of the system may name and the digest does not cover, so each gets
/// jobs of its own.
pub(crate) fn source_digests(sources: &[Source]) -> Vec<Digest> {
    let mut before: HashMap<Digest, usize> = HashMap::new();
    let mut own = |source: &Source| {
        let digest = source.digest();
        let count = before.entry(digest).or_default();
        *count += 1;
        match *count {
            1 => digest,
            count => Hasher::new("gfxpack source with the same files 1")
                .field(digest.as_ref())
                .field(&count.to_be_bytes())
                .finish(),
        }
    };
    sources.iter().map(&mut own).collect()
}

/// The properties of a compiler that a plan depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanToolchain {
    /// The compiler's name and version: `hipcc 5.2.21153, clang 15.0.6`.
    pub identity: String,
    /// Digest of the whole closure: programs, their libraries, device libraries, headers. HIP's
    /// objects depend on all of it.
    pub digest: Digest,
    /// Digest of the part that OpenCL C's objects depend on: all but HIP's headers and driver.
    pub opencl_c: Digest,
    /// Digest of the part that assembly's objects depend on: programs and their libraries.
    pub assembly: Digest,
    /// Constants that are added to the device libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supplied: Vec<SuppliedConstant>,
    /// The properties that arguments depend on.
    pub facts: CompilerFacts,
}

impl PlanToolchain {
    /// Digest of the part that the objects of a language depend on.
    pub fn digest_for(&self, language: Language) -> Digest {
        match language {
            Language::Hip => self.digest,
            Language::OpenclC => self.opencl_c,
            Language::Assembly => self.assembly,
        }
    }
}

/// One code object to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Digest of toolchain, arguments and source closure.
    pub digest: Digest,
    /// A key that needs it, for messages.
    pub key: Arc<KernelKey>,
    /// The source's language.
    pub language: Language,
    /// The target that the object must be for.
    pub target_id: TargetId,
    /// Index into [`Plan::sources`].
    pub source: SourceId,
    /// Index into [`Plan::toolchains`].
    pub toolchain: ToolchainId,
    /// The program of the toolchain.
    pub program: Program,
    /// Its arguments, without the output; placeholders as in [`arguments`]. Most are shared by many
    /// jobs.
    pub arguments: Vec<Arc<str>>,
}

/// One kdb to assemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KdbPlan {
    /// The devices that it serves.
    pub target: Target,
    /// The format of its file.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub format: KernelFileFormat,
    /// Index into [`Plan::toolchains`]: the compiler of all its rows.
    pub toolchain: ToolchainId,
    /// Keys in canonical order, each with its index into [`Plan::jobs`].
    pub rows: Vec<Row>,
}

/// One row of a kdb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The key.
    pub key: Arc<KernelKey>,
    /// Index into [`Plan::jobs`].
    pub job: JobId,
}

/// Everything a build will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The compilers. Which one builds a target has already been decided.
    pub toolchains: Vec<PlanToolchain>,
    /// Source closures.
    pub sources: Vec<Source>,
    /// Each distinct job once, however many kdbs need it.
    pub jobs: Vec<Job>,
    /// One per target, in the order of the requests.
    pub kdbs: Vec<KdbPlan>,
}

/// The keys of one target's kdb, with indices into the list of sources.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    /// The devices.
    pub target: Target,
    /// The format of the file with their kernels.
    pub format: KernelFileFormat,
    /// Index into [`Plan::toolchains`].
    pub toolchain: ToolchainId,
    /// The keys.
    pub keys: Vec<(Arc<KeyRequest>, SourceId)>,
}

/// Adds the keys of each device-wide target to the targets for exact compute units of the same
/// devices. If an exact kdb is installed, MIOpen does not open the device-wide one, and would miss
/// kernels that are only there.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
pub fn add_to_exact(requests: &mut [TargetRequest]) {
    for wide in 0..requests.len() {
        if requests[wide].target.compute_units().is_some() {
            continue;
        }
        let (db_id, keys) = (requests[wide].target.id().db_id(), requests[wide].keys.clone());
        for exact in requests.iter_mut() {
            if exact.target.compute_units().is_none() || exact.target.id().db_id() != db_id {
                continue;
            }
            let own: HashSet<Arc<KernelKey>> =
                exact.keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            let missing = keys.iter().filter(|(key, _)| !own.contains(&key.key));
            exact.keys.extend(missing.cloned());
        }
    }
}

/// Makes the plan. The same input gives the same plan, whatever the order of keys. Jobs with equal
/// inputs are one job. Kernels that use the time get that of `clock`.
///
/// # Errors
/// If a key's options can't be given to a compiler.
///
/// # Panics
/// If a request refers to a missing toolchain or source.
pub fn plan(
    toolchains: Vec<PlanToolchain>,
    sources: Vec<Source>,
    requests: &[TargetRequest],
    clock: &Clock,
    workers: &impl Workers,
) -> Result<Plan, Error> {
    let source_digests = source_digests(&sources);
    let mut jobs: Vec<Job> = Vec::new();
    let mut by_digest: HashMap<Digest, JobId> = HashMap::new();
    let mut kdbs = Vec::new();
    let mut words = SharedWords::default();
    for request in requests {
        let toolchain = &toolchains[request.toolchain.0];
        let command = |(key, source): &(Arc<KeyRequest>, SourceId)| {
            let (program, arguments) =
                command(key, &sources[source.0], request.target.id(), &toolchain.facts, clock)?;
            let compiler = toolchain.digest_for(key.language);
            let digest = job_digest(compiler, program, &arguments, source_digests[source.0]);
            Ok::<_, Error>((digest, program, arguments))
        };
        let mut rows = Vec::with_capacity(request.keys.len());
        // Commands are made in parts, so that they are in memory twice only for a moment.
        for keys in request.keys.chunks(KEYS_AT_ONCE) {
            for ((key, source), command) in keys.iter().zip(workers.map(keys, command)) {
                let (digest, program, arguments) = command?;
                let job = *by_digest.entry(digest).or_insert_with(|| {
                    jobs.push(Job {
                        digest,
                        key: Arc::clone(&key.key),
                        language: key.language,
                        target_id: arguments::compile_target(key.language, request.target.id()),
                        source: *source,
                        toolchain: request.toolchain,
                        program,
                        arguments: words.shared(&arguments),
                    });
                    JobId(jobs.len() - 1)
                });
                rows.push(Row { key: Arc::clone(&key.key), job });
            }
        }
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        kdbs.push(KdbPlan {
            target: request.target.clone(),
            format: request.format,
            toolchain: request.toolchain,
            rows,
        });
    }
    Ok(Plan { toolchains, sources, jobs, kdbs })
}

/// The command for a key's object.
fn command(
    key: &KeyRequest,
    source: &Source,
    id: &TargetId,
    facts: &CompilerFacts,
    clock: &Clock,
) -> Result<(Program, Vec<String>), Error> {
    let (language, Source { main, include_dirs, .. }) = (key.language, source);
    let options = arguments::check_paths(main, include_dirs)
        .and_then(|()| arguments::parse(language, key.options()))
        .map_err(|problem| key.location.error(&problem))?;
    let (program, [before, after]) =
        arguments::around_options(language, &options, id, facts, main, include_dirs, clock);
    Ok((program, [before, options, after].concat()))
}

/// Words of which each is kept only once: a plan of many jobs has millions of arguments.
#[derive(Default)]
pub(crate) struct SharedWords(HashSet<Arc<str>>);

impl SharedWords {
    pub(crate) fn shared(&mut self, words: &[String]) -> Vec<Arc<str>> {
        let share = |word: &String| match self.0.get(word.as_str()) {
            Some(known) => Arc::clone(known),
            None => {
                let new: Arc<str> = word.as_str().into();
                self.0.insert(Arc::clone(&new));
                new
            }
        };
        words.iter().map(share).collect()
    }
}

/// The digest of a job: a program, a source and arguments.
pub(crate) fn job_digest(
    compiler: Digest,
    program: Program,
    arguments: &[String],
    source: Digest,
) -> Digest {
    Hasher::new("gfxpack job 1")
        .field(compiler.as_ref())
        .field(format!("{program:?}").as_bytes())
        .list(arguments.iter())
        .field(source.as_ref())
        .finish()
}

/// Each list has its own index type, so that they can't be confused.
macro_rules! index {
    ($($id:ident => $list:ident: $item:ty,)*) => {$(
        impl Index<$id> for Plan {
            type Output = $item;

            fn index(&self, id: $id) -> &$item {
                &self.$list[id.0]
            }
        }
    )*};
}

index! {
    JobId => jobs: Job,
    SourceId => sources: Source,
    ToolchainId => toolchains: PlanToolchain,
    KdbId => kdbs: KdbPlan,
}

impl KdbPlan {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        self.format.file_name(&self.target)
    }
}

impl Plan {
    /// Every job's id, in their order.
    pub fn job_ids(&self) -> impl ExactSizeIterator<Item = JobId> + use<> {
        (0..self.jobs.len()).map(JobId)
    }

    /// The digest of everything that the plan makes: which objects under which keys, in which kdbs.
    pub fn digest(&self) -> Digest {
        let kdbs = (0..self.kdbs.len()).map(|kdb| self.kdb_digest(KdbId(kdb)));
        Hasher::new("gfxpack plan 1").list(kdbs).finish()
    }

    /// The digest of one kdb, by its index: its keys in their order, each with its job's digest.
    ///
    /// # Panics
    /// If there is no such kdb.
    pub fn kdb_digest(&self, kdb: KdbId) -> Digest {
        let KdbPlan { target, rows, .. } = &self[kdb];
        Hasher::new("gfxpack kdb plan 1")
            .field(target.to_string().as_bytes())
            .list(rows.iter().map(|row| row.key.kernel_name.as_bytes()))
            .list(rows.iter().map(|row| row.key.kernel_args.as_bytes()))
            .list(rows.iter().map(|row| self[row.job].digest))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_list::parse_keys;
    use crate::workers::InTurn;

    fn source(content: &[u8]) -> Source {
        Source {
            dirs: Vec::new(),
            links: Vec::new(),
            name: "a.cl".to_owned(),
            main: "a.cl".to_owned(),
            include_dirs: Vec::new(),
            files: vec![StagedFile {
                path: "a.cl".to_owned(),
                digest: Digest::of(content),
                same_as: None,
            }],
        }
    }

    fn toolchain(content: &[u8]) -> PlanToolchain {
        PlanToolchain {
            identity: "test".to_owned(),
            digest: Digest::of(content),
            opencl_c: Digest::of(content),
            assembly: Digest::of(content),
            supplied: Vec::new(),
            facts: CompilerFacts { hip_program: Program::Hipcc, hip_version: None },
        }
    }

    fn clock() -> Clock {
        Clock::at(1_735_689_600)
    }

    fn made(targets: &[&str], options: &[&str], source_text: &[u8], compiler: &[u8]) -> Plan {
        let lines: Vec<String> = options
            .iter()
            .map(|options| {
                format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#)
            })
            .collect();
        let keys = parse_keys("k", &lines.join("\n")).unwrap().keys;
        let requests: Vec<TargetRequest> = targets
            .iter()
            .map(|target| TargetRequest {
                target: target.parse().unwrap(),
                format: KernelFileFormat::Kdb,
                toolchain: ToolchainId(0),
                keys: keys.iter().map(|key| (Arc::new(key.clone()), SourceId(0))).collect(),
            })
            .collect();
        plan(vec![toolchain(compiler)], vec![source(source_text)], &requests, &clock(), &InTurn)
            .unwrap()
    }

    #[test]
    fn compute_units_share_jobs_and_features_do_not() {
        let plan = made(&["gfx906_60", "gfx906_64"], &[" -DA=1", " -DA=2"], b"s", b"c");
        assert_eq!((plan.kdbs.len(), plan.jobs.len()), (2, 2));
        let plan = made(&["gfx906_60", "gfx906:xnack+@60"], &[" -DA=1"], b"s", b"c");
        assert_eq!((plan.kdbs.len(), plan.jobs.len()), (2, 2));
    }

    #[test]
    fn each_target_has_a_toolchain_of_its_own() {
        let text = r#"{"kernel_name":"a.cl.o","kernel_args":" -DA=1 -mcpu=gfx906"}"#;
        let keys = parse_keys("k", text).unwrap().keys;
        let request = |target: &str, toolchain| TargetRequest {
            target: target.parse().unwrap(),
            format: KernelFileFormat::Kdb,
            toolchain: ToolchainId(toolchain),
            keys: keys.iter().map(|key| (Arc::new(key.clone()), SourceId(0))).collect(),
        };
        let requests = [request("gfx906_60", 0), request("gfx1100", 1)];
        let toolchains = vec![toolchain(b"old"), toolchain(b"new")];
        let plan = plan(toolchains, vec![source(b"s")], &requests, &clock(), &InTurn).unwrap();
        let used: Vec<usize> = plan.jobs.iter().map(|job| job.toolchain.0).collect();
        assert_eq!(used, [0, 1]);
        assert_eq!(plan.kdbs[1].toolchain, ToolchainId(1));
        // The position of a toolchain in the list is not part of any digest.
        let (toolchains, request) = (vec![toolchain(b"new")], [request("gfx1100", 0)]);
        let alone = super::plan(toolchains, vec![source(b"s")], &request, &clock(), &InTurn);
        assert_eq!(alone.unwrap().jobs[0].digest, plan.jobs[1].digest);
    }

    #[test]
    fn keys_that_differ_only_in_blanks_share_a_job() {
        let plan = made(&["gfx906"], &[" -DA=1", "  -DA=1 "], b"s", b"c");
        assert_eq!((plan.kdbs[0].rows.len(), plan.jobs.len()), (2, 1));
        assert!(plan.kdbs[0].rows[0].key < plan.kdbs[0].rows[1].key);
    }

    #[test]
    fn sources_with_the_same_files_share_no_job() {
        let key = |options: &str| {
            let text =
                format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#);
            Arc::new(parse_keys("k", &text).unwrap().keys.remove(0))
        };
        let request = TargetRequest {
            target: "gfx906".parse().unwrap(),
            format: KernelFileFormat::Kdb,
            toolchain: ToolchainId(0),
            keys: vec![(key(" -DA=1"), SourceId(0)), (key("  -DA=1"), SourceId(1))],
        };
        let sources = vec![source(b"s"), source(b"s")];
        let both = plan(vec![toolchain(b"c")], sources, &[request], &clock(), &InTurn).unwrap();
        assert_eq!(both.jobs.iter().map(|job| job.source.0).collect::<Vec<_>>(), [0, 1]);
        // The first source's job is the same without the second source.
        let one = made(&["gfx906"], &[" -DA=1"], b"s", b"c");
        assert_eq!(one.jobs[0].digest, both.jobs[0].digest);
        assert_ne!(one.jobs[0].digest, both.jobs[1].digest);
    }

    #[test]
    fn the_digest_covers_source_compiler_and_options_and_not_order() {
        let base = made(&["gfx906"], &[" -DA=1", " -DA=2"], b"s", b"c");
        assert_eq!(made(&["gfx906"], &[" -DA=2", " -DA=1"], b"s", b"c").digest(), base.digest());
        for other in [
            made(&["gfx906"], &[" -DA=1", " -DA=2"], b"t", b"c"),
            made(&["gfx906"], &[" -DA=1", " -DA=2"], b"s", b"d"),
            made(&["gfx906"], &[" -DA=1", " -DA=3"], b"s", b"c"),
        ] {
            assert_ne!(other.digest(), base.digest());
        }
    }
}
