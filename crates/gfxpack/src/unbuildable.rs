//! Keys that are asked for and that no compiler is asked for: their source
//! was not found, or they can't be compiled.

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_model::{KernelKey, Target};
use gfxpack_plan::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::output::Output;

/// By target, the keys.
pub(crate) type Unbuildable = BTreeMap<Target, Vec<Unbuilt>>;

/// One key, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unbuilt {
    pub(crate) key: KernelKey,
    pub(crate) reason: Reason,
}

/// Why a key can't be compiled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Reason {
    /// The source, or a file with its name that is the right one, is missing.
    pub(crate) no_source: bool,
    pub(crate) text: String,
}

impl From<&Problem> for Reason {
    fn from(problem: &Problem) -> Self {
        let no_source =
            matches!(problem, Problem::MissingSource(_) | Problem::AmbiguousSource { .. });
        Self { no_source, text: problem.to_string() }
    }
}

impl Reason {
    fn kind(&self) -> &'static str {
        if self.no_source { "no-source" } else { "not-compilable" }
    }
}

/// The keys by reason, for machines and the report.
pub(crate) fn groups(unbuildable: &Unbuildable) -> Vec<Value> {
    let mut groups: BTreeMap<(&Reason, &Target), Vec<&KernelKey>> = BTreeMap::new();
    for (target, keys) in unbuildable {
        for Unbuilt { key, reason } in keys {
            groups.entry((reason, target)).or_default().push(key);
        }
    }
    groups
        .into_iter()
        .map(|((reason, target), keys)| {
            json!({
                "target": target, "kind": reason.kind(), "reason": reason.text,
                "count": keys.len(), "keys": keys,
            })
        })
        .collect()
}

/// Tells how many there are; machines get every one.
pub(crate) fn tell(unbuildable: &Unbuildable, output: &Output) {
    for group in groups(unbuildable) {
        output.message("unbuildable", &group);
    }
    for (target, keys) in unbuildable {
        if keys.is_empty() {
            continue;
        }
        let without: Vec<&Unbuilt> = keys.iter().filter(|key| key.reason.no_source).collect();
        let sources: BTreeSet<&str> = without
            .iter()
            .map(|unbuilt| unbuilt.key.source_name().unwrap_or(&unbuilt.key.kernel_name))
            .collect();
        let others = keys.len() - without.len();
        let mut parts = Vec::new();
        if !without.is_empty() {
            parts.push(format!(
                "{} whose source was not found ({} sources)",
                without.len(),
                sources.len()
            ));
        }
        if others > 0 {
            parts.push(format!("{others} that no compiler takes"));
        }
        output.say(&format!("{target}: keys that can't be built: {}", parts.join(", ")));
    }
}
