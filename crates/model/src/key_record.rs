//! A key with statistics of its use: one line of a harvest.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::key::KernelKey;

/// A key, how often it was seen, and where. Written as one JSON object a line;
/// a line with only a key is valid too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRecord {
    /// The key.
    pub key: KernelKey,
    /// How often it was seen.
    pub counts: Counts,
    /// Where it was seen: processors, and the targets in names of kdbs; sorted.
    pub targets: Vec<String>,
}

/// The fields of a line, in their order. Declared by hand, since serde rejects
/// unknown fields only if nothing is flattened.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<Text, Targets> {
    kernel_name: Text,
    kernel_args: Text,
    #[serde(default)]
    seen: u64,
    #[serde(default)]
    hits: u64,
    #[serde(default)]
    misses: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    saved: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    kdbs: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    ukdbs: u64,
    #[serde(default)]
    targets: Targets,
    /// `gfxpack ask` also writes this and the following fields.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "accepted, so that its lists are key lists")]
    functions: IgnoredAny,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "likewise")]
    problems: IgnoredAny,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "likewise")]
    uses: IgnoredAny,
}

impl Serialize for KeyRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Counts { seen, hits, misses, saved, kdbs, ukdbs } = self.counts;
        let (kernel_name, kernel_args) = (&self.key.kernel_name, &self.key.kernel_args);
        let targets = &self.targets;
        let (functions, problems, uses) = (IgnoredAny, IgnoredAny, IgnoredAny);
        Line {
            kernel_name,
            kernel_args,
            seen,
            hits,
            misses,
            saved,
            kdbs,
            ukdbs,
            targets,
            functions,
            problems,
            uses,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeyRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::<String, Vec<String>>::deserialize(deserializer)?;
        let Line {
            kernel_name, kernel_args, seen, hits, misses, saved, kdbs, ukdbs, targets, ..
        } = line;
        let key = KernelKey { kernel_name, kernel_args };
        Ok(Self { key, counts: Counts { seen, hits, misses, saved, kdbs, ukdbs }, targets })
    }
}

/// How often a key was seen, by kind of event. Sums saturate at the largest
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// How often MIOpen was about to look it up.
    pub seen: u64,
    /// How often a database had it.
    pub hits: u64,
    /// How often no database had it.
    pub misses: u64,
    /// How often MIOpen saved it after compiling it.
    pub saved: u64,
    /// Number of installed kdbs that have it.
    pub kdbs: u64,
    /// Number of users' kdbs that have it.
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
    #[must_use]
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
        let record = KeyRecord { key, counts, targets: vec!["gfx906".to_owned()] };
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
