//! The time and memory that kernels took in earlier builds, kept in a file beside the object store,
//! and the estimates made from them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_model::Language;
use gfxpack_model::digest::Hasher;
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_process::write_atomic;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::job::Compiled;
use crate::store::VERSION;

/// The file, below the store's directory: JSON Lines, newest last.
const FILE: &str = "costs.jsonl";
/// Locked while the file is changed. A separate file, since the other one may be replaced.
const LOCK: &str = "costs.lock";
/// When the file would grow beyond this, its older half is dropped.
const MAX_BYTES: u64 = 32 << 20;
/// A record of more milliseconds (a week) or KiB (1 TiB) than this is damaged.
const MAX_COST: [u64; 2] = [7 * 24 * 3_600_000, 1 << 30];

/// The costs that a cache directory keeps. Any number of builds may read and
/// add at once.
#[derive(Debug, Clone)]
pub(crate) struct CostFile {
    file: PathBuf,
}

impl CostFile {
    pub(crate) fn in_dir(cache_dir: &Path) -> Self {
        Self { file: cache_dir.join(VERSION).join(FILE) }
    }

    pub(crate) fn read(&self) -> KnownCosts {
        KnownCosts::read(&self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        // The file may be anything; one this large was not written by gfxpack.
        let size = fs::metadata(&self.file).map_or(0, |meta| meta.len());
        if size > 2 * MAX_BYTES {
            return Vec::new();
        }
        fs::read(&self.file).unwrap_or_default()
    }

    /// Adds records.
    pub(crate) fn add(&self, new: &[CostRecord]) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        if let Some(dir) = self.file.parent() {
            fs::create_dir_all(dir)?;
        }
        let lock = File::create(self.file.with_file_name(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let size = fs::metadata(&self.file).map_or(0, |meta| meta.len());
        // A build that was killed, or a full disk, may have left half a line.
        let mut bytes = if size == 0 { Vec::new() } else { vec![b'\n'] };
        for record in new {
            serde_json::to_writer(&mut bytes, record)?;
            bytes.push(b'\n');
        }
        if size + bytes.len() as u64 > MAX_BYTES {
            let old = self.bytes();
            // The line in the middle is cut, so it is ignored when read.
            return write_atomic(&self.file, &[&old[old.len() / 2..], &bytes]);
        }
        File::options().append(true).create(true).open(&self.file)?.write_all(&bytes)
    }
}

/// The time and memory that a job is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Run time on an otherwise idle processor.
    pub(crate) time: Duration,
    /// Peak resident memory in bytes, with a margin.
    pub(crate) memory: u64,
    /// Whether this job itself was measured in an earlier build.
    pub(crate) measured: bool,
}

/// CPU time in milliseconds, and memory in KiB, 0 if not known.
type Cost = (u64, u64);

/// The stored cost of one job: identity, source, CPU time in milliseconds, memory in KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CostRecord(String, String, u64, u64);

impl CostRecord {
    pub(crate) fn new(plan: &Plan, job: &Job, compiled: &Compiled) -> Self {
        // CPU time if known: it depends less on the other processes.
        let cpu = compiled.usage.cpu;
        let time = if cpu.is_zero() { compiled.duration } else { cpu };
        let source = plan[job.source].name.clone();
        let kib = compiled.usage.peak_memory >> 10;
        Self(identity(job), source, time.as_millis() as u64, kib)
    }

    fn from_line(line: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(line).ok()?;
        (record.2 <= MAX_COST[0] && record.3 <= MAX_COST[1]).then_some(record)
    }
}

/// Identifies a kernel across versions of its source and compiler: a changed kernel costs about the
/// same as before.
fn identity(job: &Job) -> String {
    let mut digest = Hasher::new("gfxpack cost 1")
        .field(job.key.kernel_name.as_bytes())
        .field(job.target_id.to_string().as_bytes())
        .field(job.key.kernel_args.as_bytes())
        .finish()
        .to_string();
    digest.truncate(16);
    digest
}

/// What kernels took in earlier builds.
#[derive(Debug, Default)]
pub(crate) struct KnownCosts {
    /// By identity.
    kernels: HashMap<String, Cost>,
    /// The largest of each source.
    sources: HashMap<String, Cost>,
}

impl KnownCosts {
    /// Reads the records of a file; other lines are ignored.
    fn read(bytes: &[u8]) -> Self {
        // The newest of each kernel counts.
        let records = bytes.split(|byte| *byte == b'\n').filter_map(CostRecord::from_line);
        let newest: HashMap<String, CostRecord> =
            records.map(|record| (record.0.clone(), record)).collect();
        let mut known = Self::default();
        for (identity, CostRecord(_, source, milliseconds, kib)) in newest {
            let most = known.sources.entry(source).or_default();
            *most = (most.0.max(milliseconds), most.1.max(kib));
            known.kernels.insert(identity, (milliseconds, kib));
        }
        known
    }

    /// The expected cost of a job: its last cost, else that of its source's largest kernel, else
    /// what is usual for its language.
    pub(crate) fn expect(&self, plan: &Plan, job: &Job) -> Expected {
        let own = self.kernels.get(&identity(job));
        let known = own.or_else(|| self.sources.get(&plan[job.source].name));
        let (milliseconds, kib) = known.copied().unwrap_or((usual_time(job.language), 0));
        Expected {
            // No job is free.
            time: Duration::from_millis(milliseconds.max(1)),
            memory: if kib == 0 { usual_memory(job.language) } else { with_margin(kib << 10) },
            measured: own.is_some() && kib > 0,
        }
    }
}

/// The memory to expect of a job, given the bytes that a similar one used. Another version of the
/// source or the compiler, or another kernel of the source, may need more; a driver and the linker
/// run beside the compiler.
pub(crate) fn with_margin(bytes: u64) -> u64 {
    bytes / 4 * 5 + (16 << 20)
}

/// Medians of MIOpen's own kernels with clang 15, in milliseconds.
fn usual_time(language: Language) -> u64 {
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

#[cfg(test)]
pub(crate) use tests::small_plan;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gfxpack_model::compiler::{CompilerFacts, Program};
    use gfxpack_model::{Digest, JobId, SourceId, ToolchainId};
    use gfxpack_plan::clock::Clock;
    use gfxpack_plan::key_list::parse_keys;
    use gfxpack_plan::plan::{PlanToolchain, Source, TargetRequest, plan};
    use gfxpack_plan::workers::InTurn;
    use gfxpack_process::Usage;

    use super::*;
    use crate::store::ObjectInfo;

    /// Two OpenCL C sources with two keys each, and an assembly one.
    pub(crate) fn small_plan() -> Plan {
        let source = |name: &str| Source {
            dirs: Vec::new(),
            links: Vec::new(),
            name: name.to_owned(),
            main: name.to_owned(),
            include_dirs: Vec::new(),
            files: Vec::new(),
        };
        let key = |name: &str, options: &str| {
            format!(r#"{{"kernel_name":"{name}.o","kernel_args":"{options} -mcpu=gfx906"}}"#)
        };
        let lines = [
            key("a.cl", " -DN=1"),
            key("a.cl", " -DN=2"),
            key("b.cl", " -DN=1"),
            key("b.cl", " -DN=2"),
            key("c.s", ""),
        ];
        let keys = parse_keys("k", &lines.join("\n")).unwrap().keys;
        let keys = keys.into_iter().map(Arc::new).zip([0, 0, 1, 1, 2].map(SourceId)).collect();
        let toolchain = PlanToolchain {
            identity: String::new(),
            digest: Digest::of(b""),
            opencl_c: Digest::of(b""),
            assembly: Digest::of(b""),
            supplied: Vec::new(),
            facts: CompilerFacts { hip_program: Program::Hipcc, hip_version: None },
        };
        let request = TargetRequest {
            target: "gfx906".parse().unwrap(),
            format: gfxpack_model::KernelFileFormat::Kdb,
            toolchain: ToolchainId(0),
            keys,
        };
        plan(
            vec![toolchain],
            ["a.cl", "b.cl", "c.s"].map(source).to_vec(),
            &[request],
            &Clock::at(0),
            &InTurn,
        )
        .unwrap()
    }

    fn record(plan: &Plan, job: usize, milliseconds: u64, memory: u64) -> CostRecord {
        let usage = Usage { cpu: Duration::from_millis(milliseconds), peak_memory: memory };
        let (duration, site) = (Duration::from_secs(100), crate::job::Site::Here);
        let digest = Digest::of(b"object");
        let object = ObjectInfo { key: digest, sha256: digest, size: 1, about: 0 };
        let compiled = Compiled { object, duration, usage, site };
        CostRecord::new(plan, &plan.jobs[job], &compiled)
    }

    /// In milliseconds.
    fn times(costs: &KnownCosts, plan: &Plan) -> Vec<u64> {
        plan.jobs.iter().map(|job| costs.expect(plan, job).time.as_millis() as u64).collect()
    }

    fn nothing() -> KnownCosts {
        KnownCosts::default()
    }

    #[test]
    fn expected_cost_is_the_kernels_then_its_sources_then_its_languages() {
        let plan = small_plan();
        assert_eq!(times(&nothing(), &plan), [170, 170, 170, 170, 70]);
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        file.add(&[record(&plan, 0, 40, 100 << 20), record(&plan, 4, 9, 0)]).unwrap();
        file.add(&[record(&plan, 0, 900, 100 << 20)]).unwrap();
        let costs = file.read();
        assert_eq!(times(&costs, &plan), [900, 900, 170, 170, 9], "the newest");
        file.add(&[record(&plan, 2, 30, 0)]).unwrap();
        let costs = file.read();
        assert_eq!(times(&costs, &plan), [900, 900, 30, 30, 9], "its source's");
        let memory = |job| costs.expect(&plan, &plan[JobId(job)]).memory;
        assert!((116 << 20..160 << 20).contains(&memory(0)), "with a margin");
        assert_eq!(memory(2), usual_memory(Language::OpenclC));
    }

    #[test]
    fn damage_loses_only_the_damaged_records() {
        let plan = small_plan();
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        file.add(&[record(&plan, 0, 40, 1 << 20), record(&plan, 1, 50, 1 << 20)]).unwrap();
        let whole = fs::read(&file.file).unwrap();
        // A file cut anywhere, then added to: the new record always counts.
        for length in 0..whole.len() {
            fs::write(&file.file, &whole[..length]).unwrap();
            file.add(&[record(&plan, 4, 33, 1 << 20)]).unwrap();
            assert_eq!(times(&file.read(), &plan)[4], 33, "cut to {length}");
        }
        fs::write(&file.file, b"\xff\0[\"x\"]\n[\"a\",\"b\",99999999999999,1]\n").unwrap();
        assert_eq!(times(&file.read(), &plan), times(&nothing(), &plan));
        fs::remove_file(&file.file).unwrap();
        fs::create_dir(&file.file).unwrap();
        assert_eq!(times(&file.read(), &plan), times(&nothing(), &plan));
        assert!(file.add(&[record(&plan, 0, 1, 1)]).is_err());
    }

    #[test]
    fn concurrent_builds_lose_no_costs() {
        let plan = small_plan();
        let dir = tempfile::tempdir().unwrap();
        let one = |job: usize| record(&plan, job, 1000 + job as u64, 1 << 20);
        std::thread::scope(|scope| {
            for job in 0..5 {
                let file = CostFile::in_dir(dir.path());
                let record = one(job);
                scope.spawn(move || {
                    (0..50).for_each(|_| file.add(std::slice::from_ref(&record)).unwrap())
                });
            }
        });
        let file = CostFile::in_dir(dir.path());
        let lines = file.bytes();
        assert_eq!(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 250);
        assert_eq!(times(&file.read(), &plan), [1000, 1001, 1002, 1003, 1004]);
    }

    #[test]
    fn the_cost_file_is_bounded_and_keeps_the_newest() {
        let plan = small_plan();
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        file.add(&[record(&plan, 0, 20, 1 << 20)]).unwrap();
        let mut full = fs::read(&file.file).unwrap();
        full.resize(MAX_BYTES as usize - 100, b'\n');
        let newer = serde_json::to_vec(&record(&plan, 1, 30, 1 << 20)).unwrap();
        full.extend_from_slice(&newer);
        fs::write(&file.file, full).unwrap();
        file.add(&[record(&plan, 4, 40, 1 << 20), record(&plan, 2, 50, 1 << 20)]).unwrap();
        assert!(fs::metadata(&file.file).unwrap().len() < MAX_BYTES / 2 + 1000);
        assert_eq!(times(&file.read(), &plan), [30, 30, 50, 50, 40], "the first is forgotten");
    }
}
