//! Keys that are wanted but can't be built: their source was not found, or they
//! can't be compiled.

use std::collections::BTreeMap;

use gfxpack_model::{KernelKey, Target};
use gfxpack_plan::InputFault;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// By target: the keys that can't be built.
pub type Unbuildable = BTreeMap<Target, Vec<Unbuilt>>;

/// A key that can't be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbuilt {
    /// The key.
    pub key: KernelKey,
    /// Why it can't be built.
    pub reason: Reason,
}

/// Why a key can't be built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reason {
    /// Whether the source, or the right version of it, is missing.
    pub no_source: bool,
    /// The reason, for display.
    pub text: String,
}

impl From<&InputFault> for Reason {
    fn from(problem: &InputFault) -> Self {
        Self { no_source: problem.no_source, text: problem.to_string() }
    }
}

impl Reason {
    /// The kind of reason in messages.
    pub(crate) fn kind(&self) -> &'static str {
        if self.no_source { "no-source" } else { "not-compilable" }
    }
}

/// The keys grouped by reason, for messages and the report.
pub fn groups(unbuildable: &Unbuildable) -> Vec<Value> {
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
