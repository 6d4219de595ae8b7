//! What jobs cost, and what they are expected to cost.

use std::collections::HashMap;
use std::time::Duration;

use gfxpack_model::digest::Hasher;
use gfxpack_model::{JobId, KernelKey, Language, SourceId};
use gfxpack_plan::plan::{Job, Plan};
use serde::{Deserialize, Serialize};

use crate::job::Built;

/// More than this is no job's cost but damage.
pub(super) const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) const MAX_MEMORY: u64 = 1 << 40;

/// What a language's records tell counts from so many on.
pub(super) const ENOUGH: usize = 8;

/// What a job is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// How long it runs where it has a processor to itself.
    pub(crate) time: Duration,
    /// The most bytes it will have resident, with a margin.
    pub(crate) memory: u64,
    /// Whether this very job was measured in an earlier build.
    pub(crate) measured: bool,
}

/// One job's cost as it is kept: identity, source, language, milliseconds of
/// CPU time, KiB of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CostRecord(
    pub(super) String,
    pub(super) String,
    pub(super) Language,
    pub(super) u64,
    pub(super) u64,
);

impl CostRecord {
    pub(crate) fn new(plan: &Plan, job: &Job, built: &Built) -> Self {
        // CPU time where it is known: it depends less on what else runs.
        let cpu = built.usage.cpu;
        let time = if cpu.is_zero() { built.duration } else { cpu };
        let source = plan[job.source].name.clone();
        let kib = built.usage.peak_memory >> 10;
        Self(identity(job), source, job.language, time.as_millis() as u64, kib)
    }

    pub(super) fn is_sound(&self) -> bool {
        Duration::from_millis(self.3) <= MAX_TIME && self.4 << 10 <= MAX_MEMORY
    }
}

/// A job whatever its source's content and compiler: a changed kernel costs
/// about what its earlier self did.
pub(super) fn identity(job: &Job) -> String {
    identity_of(&job.key, &job.target_id.to_string())
}

pub(super) fn identity_of(key: &KernelKey, target_id: &str) -> String {
    let mut digest = Hasher::new("gfxpack cost 1")
        .field(key.kernel_name.as_bytes())
        .field(target_id.as_bytes())
        .field(key.kernel_args.as_bytes())
        .finish()
        .to_string();
    digest.truncate(16);
    digest
}

/// What is known of jobs' costs.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    pub(super) exact: HashMap<String, CostRecord>,
    /// By source name and language: what its kernels took.
    sources: HashMap<(String, Language), Typical>,
    languages: HashMap<Language, Typical>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Typical {
    /// The median, in milliseconds.
    time: u64,
    /// What nine of ten stay below, in KiB.
    memory: u64,
}

impl Costs {
    pub(super) fn from_records(exact: HashMap<String, CostRecord>) -> Self {
        type Groups<K> = HashMap<K, (Vec<u64>, Vec<u64>)>;
        let mut sources: Groups<(String, Language)> = HashMap::new();
        let mut languages: Groups<Language> = HashMap::new();
        for CostRecord(_, source, language, time, memory) in exact.values() {
            let add = |(times, memories): &mut (Vec<u64>, Vec<u64>)| {
                times.push(*time);
                memories.push(*memory);
            };
            add(sources.entry((source.clone(), *language)).or_default());
            add(languages.entry(*language).or_default());
        }
        let typical = |(mut times, mut memories): (Vec<u64>, Vec<u64>)| {
            times.sort_unstable();
            memories.sort_unstable();
            Typical { time: times[times.len() / 2], memory: memories[memories.len() * 9 / 10] }
        };
        languages.retain(|_, (times, _)| times.len() >= ENOUGH);
        Self {
            sources: sources.into_iter().map(|(key, all)| (key, typical(all))).collect(),
            languages: languages.into_iter().map(|(key, all)| (key, typical(all))).collect(),
            exact,
        }
    }

    /// What the jobs are expected to take: what they took last time, else
    /// what other kernels of their source took, else what is usual for their
    /// language, larger sources taking longer.
    pub(crate) fn expect(
        &self,
        plan: &Plan,
        jobs: &[JobId],
        closure_size: impl Fn(SourceId) -> usize,
    ) -> Vec<Expected> {
        let sizes: HashMap<SourceId, usize> = jobs
            .iter()
            .map(|&job| plan[job].source)
            .collect::<std::collections::HashSet<_>>()
            .into_iter()
            .map(|source| (source, closure_size(source)))
            .collect();
        let mut by_language: HashMap<Language, Vec<usize>> = HashMap::new();
        for &job in jobs {
            let job = &plan[job];
            by_language.entry(job.language).or_default().push(sizes[&job.source]);
        }
        for sizes in by_language.values_mut() {
            sizes.sort_unstable();
        }
        let one = |&job: &JobId| {
            let job = &plan[job];
            if let Some(CostRecord(_, _, _, time, memory)) = self.exact.get(&identity(job)) {
                let expected = expected(*time as f64, *memory, job.language);
                return Expected { measured: *memory > 0, ..expected };
            }
            let name = plan[job.source].name.clone();
            if let Some(typical) = self.sources.get(&(name, job.language)) {
                return expected(typical.time as f64, typical.memory, job.language);
            }
            let usual = self.languages.get(&job.language).copied();
            let usual = usual.unwrap_or(Typical { time: usual_time(job.language), memory: 0 });
            let all = &by_language[&job.language];
            let factor = sizes[&job.source].max(1) as f64 / all[all.len() / 2].max(1) as f64;
            expected(usual.time as f64 * factor.clamp(0.25, 4.0), usual.memory, job.language)
        };
        jobs.iter().map(one).collect()
    }
}

pub(super) fn expected(milliseconds: f64, memory_kib: u64, language: Language) -> Expected {
    let memory = match memory_kib {
        0 => usual_memory(language),
        kib => with_margin(kib << 10),
    };
    // No job is free: the rounding must not make it so.
    Expected {
        time: Duration::from_secs_f64(milliseconds.max(1.0) / 1000.0),
        memory,
        measured: false,
    }
}

/// What to expect of a job where another had so many bytes: another version
/// of the source or the compiler, or another kernel of the source, may need
/// more, and a driver and the linker run beside the compiler.
pub(crate) fn with_margin(bytes: u64) -> u64 {
    bytes / 4 * 5 + (16 << 20)
}

/// Medians of MIOpen's own kernels with clang 15, in milliseconds.
pub(super) fn usual_time(language: Language) -> u64 {
    match language {
        Language::Hip => 1600,
        Language::OpenclC => 170,
        Language::Assembly => 70,
    }
}

/// The largest of MIOpen's own kernels take 225 MB; nearly all of that is the
/// compiler and the device libraries, which assembly does without.
pub(crate) fn usual_memory(language: Language) -> u64 {
    match language {
        Language::Hip => 384 << 20,
        Language::OpenclC => 256 << 20,
        Language::Assembly => 128 << 20,
    }
}
