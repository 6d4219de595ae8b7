//! What jobs of earlier builds took, in a file beside the object store, and
//! what is to be expected of new ones from that.

mod expected;
mod report;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gfxpack_process::write_atomic;
use rustix::fs::{FlockOperation, flock};

use crate::store::VERSION;

pub(crate) use self::expected::{CostRecord, Costs, Expected, usual_memory, with_margin};
pub use report::KnownCosts;

/// The file, below the store's directory: JSON Lines, newest last.
const FILE: &str = "costs.jsonl";
/// Held while the file is changed. A file of its own, since the other one is
/// replaced.
const LOCK: &str = "costs.lock";
/// Where the file has grown beyond that, what is outdated is dropped, and
/// then the oldest until a quarter is free.
const MAX_BYTES: u64 = 32 << 20;

/// The costs that a cache directory keeps. Any number of builds may read and
/// add at once.
#[derive(Debug, Clone)]
pub(crate) struct CostFile {
    file: PathBuf,
    lock: PathBuf,
}

impl CostFile {
    pub(crate) fn in_dir(cache_dir: &Path) -> Self {
        let dir = cache_dir.join(VERSION);
        Self { file: dir.join(FILE), lock: dir.join(LOCK) }
    }

    /// What the file tells; lines that tell nothing are passed over.
    pub(crate) fn read(&self) -> Costs {
        let bytes = self.lines();
        let mut exact: HashMap<String, CostRecord> = HashMap::new();
        for record in records(&bytes) {
            exact.insert(record.0.clone(), record);
        }
        Costs::from_records(exact)
    }

    fn lines(&self) -> Vec<u8> {
        // Anything may lie there; what is too large was not written by us.
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
        let mut bytes = Vec::new();
        for record in new {
            serde_json::to_writer(&mut bytes, record)?;
            bytes.push(b'\n');
        }
        if let Some(dir) = self.file.parent() {
            fs::create_dir_all(dir)?;
        }
        let lock = File::create(&self.lock)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let size = fs::metadata(&self.file).map_or(0, |meta| meta.len());
        if size + bytes.len() as u64 > MAX_BYTES {
            let mut all = self.lines();
            all.extend_from_slice(&bytes);
            return write_atomic(&self.file, &[&newest(&all, MAX_BYTES / 4 * 3)]);
        }
        let mut file = File::options().append(true).create(true).open(&self.file)?;
        // A build that was killed, or had no room, may have left half a line.
        let whole = size == 0 || ends_line(&self.file)?;
        if !whole {
            bytes.insert(0, b'\n');
        }
        file.write_all(&bytes)
    }
}

fn ends_line(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let file = File::open(path)?;
    let mut last = [0];
    let size = file.metadata()?.len();
    file.read_exact_at(&mut last, size.saturating_sub(1))?;
    Ok(last == *b"\n")
}

fn records(bytes: &[u8]) -> impl DoubleEndedIterator<Item = CostRecord> + '_ {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        serde_json::from_slice::<CostRecord>(line).ok().filter(CostRecord::is_sound)
    })
}

/// The newest record of each job, oldest first, within a size.
fn newest(bytes: &[u8], limit: u64) -> Vec<u8> {
    let mut seen = std::collections::HashSet::new();
    let mut size = 0;
    let mut kept: Vec<String> = records(bytes)
        .rev()
        .filter(|record| seen.insert(record.0.clone()))
        .map(|record| serde_json::to_string(&record).expect("plain data") + "\n")
        .take_while(|line| {
            size += line.len() as u64;
            size <= limit
        })
        .collect();
    kept.reverse();
    kept.concat().into_bytes()
}

#[cfg(test)]
pub(crate) use tests::small_plan;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gfxpack_model::compiler::{CompilerFacts, Program};
    use gfxpack_model::{Digest, ToolchainId};
    use gfxpack_plan::clock::Clock;
    use gfxpack_plan::expand::parse_keys;
    use gfxpack_plan::plan::{PlanToolchain, Source, TargetRequest, plan};
    use gfxpack_plan::workers::InTurn;
    use gfxpack_process::Usage;

    use std::time::Duration;

    use gfxpack_model::{JobId, Language, SourceId};
    use gfxpack_plan::plan::Plan;

    use super::expected::identity;
    use super::*;
    use crate::job::Built;

    /// Two OpenCL C sources with two keys each, and an assembly one.
    pub(crate) fn small_plan() -> Plan {
        let source = |name: &str| Source {
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
        let keys = parse_keys("k", &lines.join("\n")).unwrap().requests;
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
            format: gfxpack_plan::consumer::StoreFormat::Kdb,
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
        let built = Built { size: 1, duration, usage, site };
        CostRecord::new(plan, &plan.jobs[job], &built)
    }

    fn times(costs: &Costs, plan: &Plan) -> Vec<u128> {
        let jobs: Vec<JobId> = plan.job_ids().collect();
        let size = |source: SourceId| [1000, 3000, 1000][source.0];
        costs.expect(plan, &jobs, size).iter().map(|expected| expected.time.as_millis()).collect()
    }

    #[test]
    fn what_a_kernel_took_then_its_source_then_its_language_and_size() {
        let plan = small_plan();
        // Sizes 1000, 1000, 3000, 3000: the upper median is 3000.
        assert_eq!(times(&Costs::default(), &plan), [56, 56, 170, 170, 70]);
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        file.add(&[record(&plan, 0, 40, 100 << 20), record(&plan, 4, 9, 0)]).unwrap();
        file.add(&[record(&plan, 0, 900, 100 << 20)]).unwrap();
        let costs = file.read();
        assert_eq!(times(&costs, &plan), [900, 900, 170, 170, 9], "the newest, and its sibling");
        let expected = costs.expect(&plan, &[JobId(0), JobId(2)], |_| 1);
        assert!((116 << 20..160 << 20).contains(&expected[0].memory), "with a margin");
        assert_eq!(expected[1].memory, usual_memory(Language::OpenclC));
    }

    #[test]
    fn a_changed_source_or_compiler_finds_its_earlier_cost_and_another_target_does_not() {
        let plan = small_plan();
        let mut changed = plan.clone();
        changed.jobs[0].digest = Digest::of(b"another");
        assert_eq!(identity(&plan.jobs[0]), identity(&changed.jobs[0]));
        changed.jobs[0].target_id = "gfx90a".parse().unwrap();
        assert_ne!(identity(&plan.jobs[0]), identity(&changed.jobs[0]));
    }

    #[test]
    fn damage_costs_no_more_than_what_it_hit() {
        let plan = small_plan();
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        file.add(&[record(&plan, 0, 40, 1 << 20), record(&plan, 1, 50, 1 << 20)]).unwrap();
        let whole = fs::read(&file.file).unwrap();
        // Cut anywhere, then added to: the new record always counts.
        for length in 0..whole.len() {
            fs::write(&file.file, &whole[..length]).unwrap();
            file.add(&[record(&plan, 4, 33, 1 << 20)]).unwrap();
            assert_eq!(times(&file.read(), &plan)[4], 33, "cut to {length}");
        }
        fs::write(&file.file, b"\xff\0[\"x\"]\n[\"a\",\"b\",\"hip\",99999999999999,1]\n").unwrap();
        assert_eq!(times(&file.read(), &plan), times(&Costs::default(), &plan));
        fs::remove_file(&file.file).unwrap();
        fs::create_dir(&file.file).unwrap();
        assert_eq!(times(&file.read(), &plan), times(&Costs::default(), &plan));
        assert!(file.add(&[record(&plan, 0, 1, 1)]).is_err());
    }

    #[test]
    fn builds_at_once_lose_nothing() {
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
        assert_eq!(file.lines().iter().filter(|byte| **byte == b'\n').count(), 250);
        assert_eq!(times(&file.read(), &plan), [1000, 1001, 1002, 1003, 1004]);
    }

    #[test]
    fn the_file_is_bounded_and_the_newest_stay() {
        let plan = small_plan();
        let many: Vec<CostRecord> = (0..100)
            .map(|number| {
                let CostRecord(_, source, language, time, memory) =
                    record(&plan, 0, number, 1 << 20);
                CostRecord(format!("{:016x}", number % 60), source, language, time, memory)
            })
            .collect();
        let text = |records: &[CostRecord]| -> Vec<u8> {
            records
                .iter()
                .flat_map(|one| serde_json::to_vec(one).unwrap().into_iter().chain(*b"\n"))
                .collect()
        };
        assert_eq!(newest(&text(&many), u64::MAX), text(&many[40..]), "each job's newest");
        let cut = newest(&text(&many), 1000);
        assert!(cut.len() <= 1000 && text(&many).ends_with(&cut) && !cut.is_empty());
        // A file that is full is made smaller and still takes the new one.
        let dir = tempfile::tempdir().unwrap();
        let file = CostFile::in_dir(dir.path());
        fs::create_dir_all(file.file.parent().unwrap()).unwrap();
        let mut full = text(&many);
        full.resize(MAX_BYTES as usize, b'\n');
        fs::write(&file.file, full).unwrap();
        file.add(&[record(&plan, 4, 33, 1 << 20)]).unwrap();
        assert!(fs::metadata(&file.file).unwrap().len() < 10_000);
        assert_eq!(times(&file.read(), &plan)[4], 33);
    }
}
