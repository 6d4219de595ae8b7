//! Checks that a shard's objects were made from the sources of the plan that they
//! are merged for. A plan's digest covers the files that sources name. Which other
//! files a compiler found, or looked for in vain, is stored with each object.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use gfxpack_compile::{FileDigests, ObjectInfo, ObjectStore, SourceSet};
use gfxpack_model::{Digest, SourceId};

/// Which sources an object or a refusal was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceMatch {
    /// From the plan's sources.
    OfThese,
    /// From other sources, in which this file differs.
    OfOthers(PathBuf),
    /// Unknown: the stored accesses are damaged or gone.
    Unknown,
}

/// Checks each set of file accesses once per source, since many objects share sets.
pub(super) struct SourceCheck<'a> {
    sources: &'a SourceSet,
    digests: &'a FileDigests,
    /// By set; also by source if the set is about sources.
    known: Mutex<HashMap<(Digest, Option<SourceId>), SourceMatch>>,
}

impl<'a> SourceCheck<'a> {
    /// For the sources of a stored plan.
    pub(super) fn new(sources: &'a SourceSet, digests: &'a FileDigests) -> Self {
        Self { sources, digests, known: Mutex::default() }
    }

    /// Which sources an object or a refusal in a shard's store was made from, for
    /// a job with this source. Answers about the system are from the machine that
    /// made it, and are not checked.
    pub(super) fn made_of(
        &self,
        store: &ObjectStore,
        info: &ObjectInfo,
        source: SourceId,
    ) -> SourceMatch {
        let sets = info.states.iter().map(|name| self.set(store, *name, source));
        sets.into_iter().find(|made| *made != SourceMatch::OfThese).unwrap_or(SourceMatch::OfThese)
    }

    fn set(&self, store: &ObjectStore, name: Digest, source: SourceId) -> SourceMatch {
        let known = || self.known.lock().expect("no panic inside");
        let keys = [(name, None), (name, Some(source))];
        if let Some(made) = keys.iter().find_map(|key| known().get(key).cloned()) {
            return made;
        }
        // Not remembered as unknown: another shard may have the answers.
        let Some(states) = store.read_states(name) else { return SourceMatch::Unknown };
        let (key, change) = if states.are_relative() {
            (keys[1], self.sources.first_change(source, &states, self.digests))
        } else {
            (keys[0], None)
        };
        let made =
            change.map_or(SourceMatch::OfThese, |(file, _)| SourceMatch::OfOthers(file.to_owned()));
        known().insert(key, made.clone());
        made
    }
}
