//! The results of a lookup by MIOpen and by gfxpack's runtime, as text and for
//! machines.

use std::path::Path;

use gfxpack_model::code_object;
use gfxpack_runtime::{
    Hit, KernelCache, KernelKey, Lookup, MiopenKdb, MiopenLookup, MiopenOutcome, Miss,
    UserDirectory, ask_as_miopen,
};
use serde_json::{Value, json};

use crate::error::in_full;
use crate::text::{display, size};

/// The results of one lookup.
#[derive(Debug)]
pub struct LookupAnswers {
    /// By MIOpen's rules.
    pub miopen: MiopenLookup,
    /// By gfxpack's runtime.
    pub runtime: Lookup,
    /// Why MIOpen's result does not cover the user's cache.
    note: Option<String>,
    /// The versions of MIOpen that have these rules.
    rules: &'static str,
}

impl LookupAnswers {
    /// Looks a key up in both ways.
    pub fn ask(cache: &KernelCache, key: &KernelKey) -> Self {
        let config = cache.config();
        let note = match (&config.directories.user, &config.directories.fallback) {
            (UserDirectory::Unknown { why }, _) | (_, Some(why)) => Some(why.clone()),
            _ => None,
        };
        let rules = config.directories.rules.versions;
        Self { miopen: ask_as_miopen(config, key), runtime: cache.get(key), note, rules }
    }

    /// Whether MIOpen finds the kernel.
    pub fn miopen_finds(&self) -> bool {
        self.miopen.outcome == MiopenOutcome::Finds
    }

    /// What MIOpen finds.
    pub fn found_by_miopen(&self) -> Option<&Hit> {
        self.miopen.lookup.found.as_ref().filter(|_| self.miopen_finds())
    }

    /// The device-wide kdb that MIOpen does not open although it has the kernel,
    /// and the kdb that MIOpen opens.
    pub fn hidden(&self) -> Option<(&Path, &Path)> {
        let MiopenKdb { file, hidden, .. } = self.miopen.kdb.as_ref()?;
        let hidden = hidden.as_deref()?;
        let runtime = self.runtime.found.as_ref()?.file.as_deref()?;
        (!self.miopen_finds() && runtime == hidden).then_some((hidden, file))
    }

    /// MIOpen's result as one line.
    pub fn miopen_in_words(&self) -> String {
        let fault = || {
            let misses = &self.miopen.lookup.misses;
            misses.iter().find(|miss| miss.reason.is_fault()).map(miss_in_words).unwrap_or_default()
        };
        match (self.miopen.outcome, self.found_by_miopen()) {
            (_, Some(found)) => hit_in_words(found),
            (MiopenOutcome::Fails, _) => format!("fails: {}", fault()),
            (MiopenOutcome::Unknown, _) => format!("unknown: {}", fault()),
            _ => match self.hidden() {
                None => "compiles it".to_owned(),
                Some((hidden, opened)) => format!(
                    "compiles it: {} has it, and is not opened since {} exists",
                    hidden.display(),
                    opened.display()
                ),
            },
        }
    }

    /// The runtime's result as one line.
    pub fn runtime_in_words(&self) -> String {
        match &self.runtime.found {
            Some(found) => hit_in_words(found),
            None => "no file has it".to_owned(),
        }
    }

    /// Sentences about how MIOpen's result was found.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!("MIOpen's answer is by the rules of MIOpen {}", self.rules)];
        let note = self.note.iter();
        remarks.extend(
            note.map(|note| format!("MIOpen's answer is without the user's cache: {note}")),
        );
        remarks
    }

    /// The part of MIOpen's result that is like the runtime's, for machines.
    pub fn miopen_answer(&self) -> Value {
        message(self.found_by_miopen(), &self.miopen.lookup.misses)
    }

    /// MIOpen's result for machines.
    pub fn miopen_message(&self) -> Value {
        let kdb = self.miopen.kdb.as_ref();
        let mut message = self.miopen_answer();
        message["outcome"] = self.miopen.outcome.name().into();
        message["rules"] = self.rules.into();
        message["opened"] = kdb.map(|kdb| display(&kdb.file)).into();
        message["not_opened"] = kdb.and_then(|kdb| kdb.hidden.as_ref()).map(display).into();
        message["note"] = self.note.clone().into();
        message
    }

    /// The runtime's result for machines.
    pub fn runtime_message(&self) -> Value {
        message(self.runtime.found.as_ref(), &self.runtime.misses)
    }
}

/// What was found, and why the other files do not have it, for machines.
fn message(found: Option<&Hit>, misses: &[Miss]) -> Value {
    let miss = |miss: &Miss| {
        json!({
            "layer": miss.layer.name(), "file": display(&miss.file), "reason": miss.reason.name(),
            "detail": in_full(&miss.reason), "hint": miss.reason.hint(),
        })
    };
    json!({
        "found": found.is_some(), "layer": found.map(|found| found.layer.name()),
        "file": found.and_then(|found| found.file.as_ref()).map(display),
        "object_bytes": found.map(|found| found.code_object.len()),
        "object_targets": found.map(object_targets),
        "misses": misses.iter().map(miss).collect::<Vec<_>>(),
    })
}

/// `system /opt/rocm/share/miopen/db/gfx906_60.kdb: 4.1 kB for gfx906`.
fn hit_in_words(found: &Hit) -> String {
    let file = found.file.as_deref().map(display).unwrap_or_default();
    let bytes = size(found.code_object.len() as u64);
    format!("{} {file}: {bytes} for {}", found.layer.name(), object_targets(found).join(", "))
}

/// The file and why it does not have the kernel, as one line.
pub fn miss_in_words(miss: &Miss) -> String {
    format!("{}: {}", miss.file.display(), in_full(&miss.reason))
}

fn object_targets(found: &Hit) -> Vec<String> {
    let targets = code_object::targets(&found.code_object).unwrap_or_default();
    targets.iter().map(ToString::to_string).collect()
}
