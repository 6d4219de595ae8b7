//! Jobs that differ in macros which their source never names: MIOpen passes
//! every parameter to every kernel, and some have no effect.
//!
//! Names say which jobs may be the same, the preprocessor whether they are:
//! a macro of a system header has an effect too, and two names may be pasted
//! into a third.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use gfxpack_plan::arguments::OWN_MACROS;
use gfxpack_plan::digest::Hasher;
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_plan::words::Words;
use gfxpack_plan::{Digest, Language};

use crate::engine::{Engine, Starter, add_identifiers};
use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::preprocessed::{has_no_locations, known, preprocess, remember};
use crate::source::SourceSet;
use crate::store::{About, ObjectInfo, ObjectStore, twin_path};

/// The jobs of a build that may have twins.
pub(crate) struct Twins<'a> {
    plan: &'a Plan,
    store: &'a ObjectStore,
    digests: &'a FileDigests,
    /// By job: what it is without the macros that its source does not name.
    bare: HashMap<usize, Digest>,
    /// By that: a job of this build whose object is there.
    done: Mutex<HashMap<Digest, Digest>>,
}

impl<'a> Twins<'a> {
    pub(crate) fn of(
        plan: &'a Plan,
        sources: &SourceSet,
        missing: &[usize],
        store: &'a ObjectStore,
        digests: &'a FileDigests,
    ) -> Self {
        let mut named: HashMap<usize, HashSet<String>> = HashMap::new();
        let mut bare = HashMap::new();
        for &index in missing {
            let job = &plan.jobs[index];
            if job.language == Language::Assembly || !has_no_locations(job) {
                continue;
            }
            let named = named.entry(job.source).or_insert_with(|| {
                let mut names = HashSet::new();
                for (_, text) in sources.files(job.source) {
                    add_identifiers(text, &mut names);
                }
                names
            });
            let (words, idle) = without_idle_macros(&job.arguments, named);
            if idle {
                bare.insert(index, digest(plan, job, &words));
            }
        }
        Self { plan, store, digests, bare, done: Mutex::default() }
    }

    /// The object of a job that preprocesses to the same text as this one,
    /// stored for this one too.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on.
    pub(crate) fn find(
        &self,
        engine: &Engine<'_>,
        starter: &mut Starter<'_>,
        index: usize,
        place: (&std::path::Path, &std::path::Path),
    ) -> Result<Option<ObjectInfo>, CompileError> {
        let Some(bare) = self.bare.get(&index) else { return Ok(None) };
        let (stage, scratch) = place;
        let job = &self.plan.jobs[index];
        let twin = self.done.lock().expect("no panic inside").get(bare).copied();
        let Some(twin) = twin.or_else(|| self.kept(*bare)) else { return Ok(None) };
        let Some(about) = self.store.about(twin) else { return Ok(None) };
        if twin == job.digest || about.target_id != job.target_id {
            return Ok(None);
        }
        let Some(info) = self.store.lookup(twin, self.digests) else { return Ok(None) };
        let theirs = match known(self.store, twin, &info) {
            Some(text) => Some(text),
            None => {
                let twin_job = Job { arguments: about.arguments, ..job.clone() };
                preprocess(engine, starter, &twin_job, stage, scratch)?
            }
        };
        let Some(theirs) = theirs else { return Ok(None) };
        let ours = preprocess(engine, starter, job, stage, scratch)?;
        engine.toolchains[job.toolchain].check_identity(job.language)?;
        // A header may have changed since it was looked up.
        if !self.store.holds_now(&info, self.digests) {
            return Ok(None);
        }
        remember(self.store, twin, &info, theirs)?;
        if ours != Some(theirs) {
            return Ok(None);
        }
        remember(self.store, job.digest, &info, theirs)?;
        tracing::debug!(key = %job.key, "it differs in macros without effect");
        match self.store.insert_same(job.digest, twin, &About::of(job)) {
            Err(CompileError::CorruptObject(_)) => Ok(None),
            other => other,
        }
    }

    /// A twin of an earlier build.
    fn kept(&self, bare: Digest) -> Option<Digest> {
        let text = self.store.read_file(&twin_path(bare)).ok()?;
        String::from_utf8(text).ok()?.parse().ok()
    }

    /// Notes that a job's object is there.
    ///
    /// # Errors
    /// [`CompileError::Io`] where that can't be kept.
    pub(crate) fn made(&self, index: usize) -> Result<(), CompileError> {
        let Some(&bare) = self.bare.get(&index) else { return Ok(()) };
        let job = self.plan.jobs[index].digest;
        let first = {
            let mut done = self.done.lock().expect("no panic inside");
            done.insert(bare, job).is_none()
        };
        if first {
            self.store.write(&twin_path(bare), &[job.to_string().as_bytes()])?;
        }
        Ok(())
    }
}

/// The arguments without macros that are not among the names, and whether
/// there was one.
fn without_idle_macros(arguments: &Words, named: &HashSet<String>) -> (Words, bool) {
    let mut left = Words::default();
    let mut idle = false;
    for word in arguments.iter() {
        let text = word.strip_prefix("-D").or_else(|| word.strip_prefix("-U"));
        let name = text.map(|text| text.split(['=', '(']).next().unwrap_or_default());
        let idle_name =
            |name: &str| !name.is_empty() && !named.contains(name) && !OWN_MACROS.contains(&name);
        if name.is_some_and(idle_name) {
            idle = true;
        } else {
            left.push(word);
        }
    }
    (left, idle)
}

fn digest(plan: &Plan, job: &Job, words: &Words) -> Digest {
    Hasher::new("gfxpack job without idle macros 1")
        .field(plan.toolchains[job.toolchain].digest_for(job.language).as_ref())
        .field(format!("{:?}", job.program).as_bytes())
        .list(words.iter().map(str::as_bytes))
        .field(plan.sources[job.source].digest().as_ref())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_that_the_source_names_stay() {
        let mut arguments = Words::default();
        for word in ["-O3", "-DA=1", "-DB", "-UC", "-D", "-DF(x)=x", "k.cl"] {
            arguments.push(word);
        }
        let named = HashSet::from(["A".to_owned(), "F".to_owned()]);
        let (left, idle) = without_idle_macros(&arguments, &named);
        assert_eq!(left.iter().collect::<Vec<_>>(), ["-O3", "-DA=1", "-D", "-DF(x)=x", "k.cl"]);
        assert!(idle);
        let all = ["A", "B", "C", "F"].map(str::to_owned);
        assert!(!without_idle_macros(&arguments, &HashSet::from(all)).1);
    }
}
