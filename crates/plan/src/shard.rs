//! Shards: the part of a plan's jobs that one of several machines runs.

mod manifest;

use std::fmt;
use std::str::FromStr;

use gfxpack_model::{Digest, Error};
use serde::{Deserialize, Serialize};

pub use manifest::{JobState, ShardEntry, ShardManifest, ShardObject};

/// One of several shards, written `3/8`; counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// The shard with this number; `None` if the number is too large or 0.
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count })
    }

    /// The shard's number, from 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of shards.
    pub fn count(self) -> u32 {
        self.count
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok());
        text.split_once('/')
            .and_then(|(index, count)| Self::new(number(index)??, number(count)??))
            .ok_or_else(|| {
                let hint = "write which of how many, counted from 1, as 3/8";
                Error::usage(format!("failed to read shard `{text}`"), hint)
            })
    }
}

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
pub fn by_hash(job: Digest, count: u32) -> u32 {
    let bytes: &[u8] = job.as_ref();
    let number = u64::from_be_bytes(bytes[..8].try_into().expect("a digest has 32 bytes"));
    (number % u64::from(count)) as u32 + 1
}

/// Numbers in the form that schedulers take for arrays: `1,4-6`. They must be sorted.
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
        assert_eq!("3/8".parse::<Shard>().unwrap(), Shard { index: 3, count: 8 });
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

    #[test]
    fn every_job_has_one_shard_and_shards_have_about_equal_size() {
        let mut sums = [0_u64; 8];
        for (number, cost) in (0..10_000_u64).map(|number| (number, 1 + number % 97)) {
            sums[by_hash(Digest::of(&number.to_le_bytes()), 8) as usize - 1] += cost;
        }
        let mean = sums.iter().sum::<u64>() as f64 / 8.0;
        assert!(sums.iter().all(|sum| (*sum as f64) < 1.1 * mean), "{sums:?}");
    }
}
