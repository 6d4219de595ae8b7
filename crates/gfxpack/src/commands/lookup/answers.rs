//! What MIOpen and gfxpack's runtime answer a lookup with, each in words and
//! for machines.

use std::path::Path;

use gfxpack_model::code_object;
use gfxpack_runtime::{
    Config, Hit, KernelCache, KernelKey, Layer, Lookup, MIOPEN_RULES, MiopenKdb, MiopenLookup,
    MiopenOutcome, Miss, UserPlace, ask_as_miopen,
};
use serde_json::{Map, Value, json};

use crate::fail;
use crate::output::{Output, shown, size};

/// Both answers to one lookup.
pub(crate) struct Answers {
    /// MIOpen's, by its rules.
    pub(crate) miopen: MiopenLookup,
    /// That of programs with gfxpack's runtime.
    pub(crate) runtime: Lookup,
    /// Why MIOpen's answer is without the user's cache.
    note: Option<String>,
}

impl Answers {
    /// Asks both.
    pub(crate) fn ask(cache: &KernelCache, key: &KernelKey) -> Self {
        let config: &Config = cache.config();
        let note = match (&config.places.user, &config.places.fallback) {
            (UserPlace::Unknown { why }, _) | (_, Some(why)) => Some(why.clone()),
            _ => None,
        };
        Self { miopen: ask_as_miopen(config, key), runtime: cache.get(key), note }
    }

    /// Whether MIOpen finds the kernel.
    pub(crate) fn miopen_finds(&self) -> bool {
        self.miopen.outcome == MiopenOutcome::Finds
    }

    /// What MIOpen finds.
    pub(crate) fn of_miopen(&self) -> Option<&Hit> {
        self.miopen.lookup.found.as_ref().filter(|_| self.miopen_finds())
    }

    /// Whether MIOpen opens this one of the runtime's files.
    pub(crate) fn opens(&self, layer: Layer, file: &Path) -> bool {
        match layer {
            Layer::System => self.miopen.kdb.as_ref().is_some_and(|kdb| kdb.file == file),
            _ => self.miopen.user.as_deref() == Some(file),
        }
    }

    /// The device-wide kdb that MIOpen does not open although it has the kernel,
    /// with the one that it opens.
    pub(crate) fn hidden(&self) -> Option<(&Path, &Path)> {
        let MiopenKdb { file, hidden, .. } = self.miopen.kdb.as_ref()?;
        let hidden = hidden.as_deref()?;
        let runtime = self.runtime.found.as_ref()?.file.as_deref()?;
        (!self.miopen_finds() && runtime == hidden).then_some((hidden, file))
    }

    /// Tells both, a line each.
    pub(crate) fn print(&self, output: &Output) {
        let runtime = match &self.runtime.found {
            Some(found) => in_words(found),
            None => "no file has it".to_owned(),
        };
        let miopen = self.miopen_in_words();
        output.data(&format!("MIOpen:            {miopen}"));
        output.data(&format!("gfxpack's runtime: {runtime}"));
        output.say(&format!("MIOpen's answer is by the rules of MIOpen {MIOPEN_RULES}"));
        if let Some(note) = &self.note {
            output.say(&format!("MIOpen's answer is without the user's cache: {note}"));
        }
    }

    fn miopen_in_words(&self) -> String {
        let fault = || {
            let misses = &self.miopen.lookup.misses;
            let miss = misses.iter().find(|miss| miss.reason.is_fault());
            let told = miss.map(|miss| format!("{}: {}", miss.file.display(), reason(miss)));
            told.unwrap_or_default()
        };
        match (self.miopen.outcome, self.of_miopen()) {
            (_, Some(found)) => in_words(found),
            (MiopenOutcome::Fails, _) => format!("fails: {}", fault()),
            (MiopenOutcome::Unknown, _) => format!("can't be told: {}", fault()),
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

    /// MIOpen's answer for machines.
    pub(crate) fn miopen_body(&self) -> Value {
        let kdb = self.miopen.kdb.as_ref();
        let mut body = answer_body(self.of_miopen(), &self.miopen.lookup.misses);
        body.insert("outcome".to_owned(), self.miopen.outcome.name().into());
        body.insert("rules".to_owned(), MIOPEN_RULES.into());
        body.insert("opened".to_owned(), json!(kdb.map(|kdb| shown(&kdb.file))));
        let hidden = kdb.and_then(|kdb| kdb.hidden.as_ref());
        body.insert("not_opened".to_owned(), json!(hidden.map(shown)));
        body.insert("note".to_owned(), json!(self.note));
        body.into()
    }

    /// The runtime's answer for machines.
    pub(crate) fn runtime_body(&self) -> Value {
        answer_body(self.runtime.found.as_ref(), &self.runtime.misses).into()
    }
}

/// What was found, and why files have it not, for machines.
pub(super) fn answer_body(found: Option<&Hit>, misses: &[Miss]) -> Map<String, Value> {
    let misses: Vec<Value> = misses
        .iter()
        .map(|miss| {
            json!({
                "layer": miss.layer.name(), "file": shown(&miss.file), "reason": miss.reason.name(),
                "detail": reason(miss), "hint": miss.reason.hint(),
            })
        })
        .collect();
    let fields = [
        ("found", json!(found.is_some())),
        ("layer", json!(found.map(|found| found.layer.name()))),
        ("file", json!(found.and_then(|found| found.file.as_ref()).map(shown))),
        ("object_bytes", json!(found.map(|found| found.code_object.len()))),
        ("object_targets", json!(found.map(code_targets))),
        ("misses", json!(misses)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `system /opt/rocm/share/miopen/db/gfx906_60.kdb: 4.1 kB for gfx906`.
pub(crate) fn in_words(found: &Hit) -> String {
    let file = found.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
    let bytes = size(found.code_object.len() as u64);
    format!("{} {file}: {bytes} for {}", found.layer.name(), code_targets(found).join(", "))
}

fn code_targets(found: &Hit) -> Vec<String> {
    let targets = code_object::targets(&found.code_object).unwrap_or_default();
    targets.iter().map(ToString::to_string).collect()
}

/// The reason with its causes, on a line.
pub(crate) fn reason(miss: &Miss) -> String {
    fail::in_full(&miss.reason)
}
