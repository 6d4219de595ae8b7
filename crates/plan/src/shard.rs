//! Shards: the part of a plan's jobs that one of several machines runs.

mod manifest;
mod numbered;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gfxpack_model::Digest;

pub use self::numbered::{Shard, ShardError};
pub use manifest::{JobState, ReadError, ShardEntry, ShardManifest};

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

/// The shard, from 1, of a job by its digest alone: its first eight bytes, as a big-endian number,
/// modulo the count. Digests are evenly distributed, so shards have about equal size.
///
/// # Panics
/// If `count` is 0.
#[must_use]
pub fn by_hash(job: Digest, count: u32) -> u32 {
    let bytes: &[u8] = job.as_ref();
    let number = u64::from_be_bytes(bytes[..8].try_into().expect("a digest has 32 bytes"));
    (number % u64::from(count)) as u32 + 1
}

/// The shard, from 1, of each job by its expected cost, in any unit: the longest first, each to the
/// shard with the least cost so far. The result does not depend on the order of the jobs.
///
/// # Panics
/// If `count` is 0.
#[must_use]
pub fn by_cost(jobs: &[(Digest, u64)], count: u32) -> Vec<u32> {
    assert!(count > 0, "jobs need a shard to go to");
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_unstable_by_key(|&job| (Reverse(jobs[job].1), jobs[job].0));
    let mut least: BinaryHeap<Reverse<(u64, u32)>> =
        (1..=count).map(|shard| Reverse((0, shard))).collect();
    let mut shards = vec![0; jobs.len()];
    for job in order {
        let mut first = least.peek_mut().expect("one shard at least");
        shards[job] = first.0.1;
        first.0.0 += jobs[job].1;
    }
    shards
}

/// Numbers in the form that schedulers take for arrays: `1,4-6`. They must be sorted.
#[must_use]
pub fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_shard_numbers_are_read() {
        assert_eq!("3/8".parse(), Ok(Shard { index: 3, count: 8 }));
        for wrong in ["0/8", "9/8", "3", "3/", "/8", "+3/8", "3/8/1", "-1/8", "3 /8", "1/0", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_short() {
        for (numbers, text) in
            [(&[][..], ""), (&[1], "1"), (&[1, 2], "1-2"), (&[1, 3, 4, 5, 9], "1,3-5,9")]
        {
            assert_eq!(ranges(numbers), text);
        }
    }

    fn jobs(costs: impl IntoIterator<Item = u64>) -> Vec<(Digest, u64)> {
        let costs = costs.into_iter().enumerate();
        costs.map(|(number, cost)| (Digest::of(&number.to_le_bytes()), cost)).collect()
    }

    #[test]
    fn every_job_has_one_shard_and_shards_have_about_equal_size() {
        let jobs = jobs((0..10_000).map(|number| 1 + number % 97));
        let mut sums = [[0_u64; 8]; 2];
        for (shard, (job, cost)) in by_cost(&jobs, 8).into_iter().zip(&jobs) {
            sums[0][shard as usize - 1] += cost;
            sums[1][by_hash(*job, 8) as usize - 1] += cost;
        }
        let spread = |sums: &[u64]| {
            *sums.iter().max().unwrap() as f64 * 8.0 / sums.iter().sum::<u64>() as f64
        };
        assert!(spread(&sums[0]) < 1.001, "{sums:?}");
        assert!(spread(&sums[1]) < 1.1, "{sums:?}");
    }

    #[test]
    fn balance_does_not_depend_on_the_jobs_order() {
        let jobs = jobs([5, 5, 5, 9, 1, 1]);
        let shards = by_cost(&jobs, 3);
        let reversed: Vec<(Digest, u64)> = jobs.iter().rev().copied().collect();
        let mut of_reversed = by_cost(&reversed, 3);
        of_reversed.reverse();
        assert_eq!(shards, of_reversed);
        assert_eq!(by_cost(&jobs, 1), [1; 6]);
    }
}
