//! A key with statistics of its use: one line of a harvest.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::key::KernelKey;

/// A key, how often it was seen, and where. Written as one JSON object a line;
/// a line with only a key is valid too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Line")]
pub struct KeyRecord {
    /// The key.
    #[serde(flatten)]
    pub key: KernelKey,
    /// How often it was seen.
    #[serde(flatten)]
    pub counts: Counts,
    /// Where it was seen: processors, and the targets in names of kdbs; sorted.
    pub targets: Vec<String>,
    /// Whether a build's `kernels.jsonl` has it, which repeats keys for each target.
    #[serde(skip)]
    pub of_build: bool,
}

/// The fields of a line that is read. Declared by hand, since serde rejects
/// unknown fields only if nothing is flattened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    kernel_name: String,
    kernel_args: String,
    #[serde(default)]
    seen: u64,
    #[serde(default)]
    hits: u64,
    #[serde(default)]
    misses: u64,
    #[serde(default)]
    saved: u64,
    #[serde(default)]
    kdbs: u64,
    #[serde(default)]
    ukdbs: u64,
    #[serde(default)]
    targets: Vec<String>,
    /// `gfxpack ask` also writes this and the following fields.
    #[serde(default, rename = "functions")]
    _functions: IgnoredAny,
    #[serde(default, rename = "problems")]
    _problems: IgnoredAny,
    #[serde(default, rename = "uses")]
    _uses: IgnoredAny,
    /// A build's `kernels.jsonl` also has this and the following fields.
    target: Option<IgnoredAny>,
    #[serde(default, rename = "object")]
    _object: IgnoredAny,
    #[serde(default, rename = "size")]
    _size: IgnoredAny,
    #[serde(default, rename = "absent")]
    _absent: IgnoredAny,
    #[serde(default, rename = "why")]
    _why: IgnoredAny,
}

impl From<Line> for KeyRecord {
    fn from(line: Line) -> Self {
        let Line {
            kernel_name,
            kernel_args,
            seen,
            hits,
            misses,
            saved,
            kdbs,
            ukdbs,
            targets,
            target,
            ..
        } = line;
        let key = KernelKey { kernel_name, kernel_args };
        let counts = Counts { seen, hits, misses, saved, kdbs, ukdbs };
        Self { key, counts, targets, of_build: target.is_some() }
    }
}

/// How often a key was seen, by kind of event. Sums saturate at the largest
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Counts {
    /// How often MIOpen was about to look it up.
    pub seen: u64,
    /// How often a database had it.
    pub hits: u64,
    /// How often no database had it.
    pub misses: u64,
    /// How often MIOpen saved it after compiling it.
    #[serde(skip_serializing_if = "is_zero")]
    pub saved: u64,
    /// Number of installed kdbs that have it.
    #[serde(skip_serializing_if = "is_zero")]
    pub kdbs: u64,
    /// Number of users' kdbs that have it.
    #[serde(skip_serializing_if = "is_zero")]
    pub ukdbs: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        let Self { seen, hits, misses, saved, kdbs, ukdbs } = self;
        for (sum, number) in [
            (seen, other.seen),
            (hits, other.hits),
            (misses, other.misses),
            (saved, other.saved),
            (kdbs, other.kdbs),
            (ukdbs, other.ukdbs),
        ] {
            *sum = sum.saturating_add(number);
        }
    }

    /// Whether MIOpen had to compile it, as far as is known: no database had
    /// it, or it was saved to the user's.
    pub fn was_missing(&self) -> bool {
        self.misses > 0 || self.saved > 0 || self.ukdbs > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_parse_back() {
        let key = KernelKey {
            kernel_name: "a \"b\".cl.o".to_owned(),
            kernel_args: "  -D\u{dc}=\u{1f300}\t -mcpu=gfx906".to_owned(),
        };
        let counts = Counts { seen: 3, hits: 1, misses: 2, ukdbs: 1, ..Counts::default() };
        let record = KeyRecord { key, counts, targets: vec!["gfx906".to_owned()], of_build: false };
        let line = serde_json::to_string(&record).unwrap();
        assert!(line.ends_with(r#""seen":3,"hits":1,"misses":2,"ukdbs":1,"targets":["gfx906"]}"#));
        assert_eq!(serde_json::from_str::<KeyRecord>(&line).unwrap(), record);
        let bare = r#"{"kernel_name":"a","kernel_args":"b"}"#;
        assert_eq!(serde_json::from_str::<KeyRecord>(bare).unwrap().counts, Counts::default());
        for wrong in [r#"{"kernel_name":"a"}"#, r#"{"kernel_name":"a","kernel_args":"b","x":1}"#] {
            assert!(serde_json::from_str::<KeyRecord>(wrong).is_err());
        }
    }
}
