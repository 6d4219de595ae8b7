//! Simulates how long a cluster takes for a plan's jobs, for
//! `cargo xtask bench scale`: shards by name, by hash and by cost, on nodes
//! of which some are slow. Prints a table of makespans over the ideal, the
//! work divided by the speed of all nodes together.
//!
//! `makespan JOBS`

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;

use gfxpack_model::Digest;
use gfxpack_plan::shard;

/// Kernels of MIOpen: percentage, median time in milliseconds, and the factor by which most differ
/// from it.
const LANGUAGES: [(u64, f64, f64); 3] = [(5, 1600.0, 3.0), (35, 170.0, 2.0), (60, 70.0, 1.6)];
/// The factor by which a cost from an earlier build is off.
const KNOWN_WITHIN: f64 = 1.3;
/// One node of this many runs at half speed.
const SLOW: usize = 10;

/// Reproducible numbers from 0 to 1.
fn fraction(of: &str, number: usize) -> f64 {
    let digest = Digest::of(format!("{of} {number}").as_bytes());
    let bytes: &[u8] = digest.as_ref();
    let head = u64::from_be_bytes(bytes[..8].try_into().expect("a digest has 32 bytes"));
    head as f64 / u64::MAX as f64
}

/// About normally distributed: the sum of twelve numbers.
fn normal(of: &str, number: usize) -> f64 {
    (0..12).map(|part| fraction(of, number * 12 + part)).sum::<f64>() - 6.0
}

struct Jobs {
    /// Each job with its real and its expected time, in microseconds; sorted by name, so that jobs
    /// of one source lie together.
    jobs: Vec<(Digest, u64, u64)>,
}

impl Jobs {
    fn new(count: usize) -> Self {
        // A hundred sources, each with kernels of about equal cost.
        let job = |number: usize| {
            let source = number * 100 / count;
            let mut rest = (fraction("language", source) * 100.0) as u64;
            let language = LANGUAGES.iter().find(|(share, ..)| {
                let found = rest < *share;
                rest = rest.saturating_sub(*share);
                found
            });
            let (_, median, spread) = language.unwrap_or(&LANGUAGES[2]);
            let time = median
                * spread.powf(normal("source", source))
                * 1.3_f64.powf(normal("job", number))
                * 1000.0;
            let expected = time * KNOWN_WITHIN.powf(normal("known", number));
            (Digest::of(&number.to_le_bytes()), time as u64 + 1, expected as u64 + 1)
        };
        Self { jobs: (0..count).map(job).collect() }
    }

    /// The time of each shard at full speed.
    fn shards(&self, way: &str, count: u32) -> Vec<u64> {
        let mut sums = vec![0; count as usize];
        let place: Vec<u32> = match way {
            "name" => {
                let per_shard = self.jobs.len().div_ceil(count as usize);
                (0..self.jobs.len()).map(|number| (number / per_shard) as u32 + 1).collect()
            }
            "hash" => self.jobs.iter().map(|(job, ..)| shard::by_hash(*job, count)).collect(),
            _ => {
                let expected: Vec<(Digest, u64)> =
                    self.jobs.iter().map(|(job, _, expected)| (*job, *expected)).collect();
                shard::by_cost(&expected, count)
            }
        };
        for ((_, time, _), shard) in self.jobs.iter().zip(place) {
            sums[shard as usize - 1] += time;
        }
        sums
    }
}

/// The time when the last node ends, in units of the ideal. Each node takes the next shard when it
/// is free.
fn makespan(shards: &[u64], nodes: usize, slow: bool) -> f64 {
    let is_slow = |node: usize| slow && node.is_multiple_of(SLOW);
    let mut free: BinaryHeap<Reverse<(u64, usize)>> =
        (0..nodes).map(|node| Reverse((0, node))).collect();
    let mut end = 0;
    for time in shards {
        let Some(Reverse((at, node))) = free.pop() else { break };
        let done = at + if is_slow(node) { 2 * time } else { *time };
        end = end.max(done);
        free.push(Reverse((done, node)));
    }
    let speed: f64 = (0..nodes).map(|node| if is_slow(node) { 0.5 } else { 1.0 }).sum();
    end as f64 / (shards.iter().sum::<u64>() as f64 / speed)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).ok_or("usage: makespan JOBS")?.parse()?;
    let jobs = Jobs::new(count);
    let mut table = String::from(
        "| nodes | shards each | by name | by hash | by cost | by name, slow nodes | by hash, slow \
         nodes | by cost, slow nodes |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for nodes in [16, 64, 256, 1000] {
        for each in [1, 4, 8, 16] {
            let shards = ["name", "hash", "cost"].map(|way| jobs.shards(way, nodes * each));
            table.push_str(&format!("| {nodes} | {each} |"));
            for slow in [false, true] {
                for shards in &shards {
                    let makespan = makespan(shards, nodes as usize, slow);
                    table.push_str(&format!(" {makespan:.2} |"));
                }
            }
            table.push('\n');
        }
    }
    use std::io::Write as _;
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(())
}
