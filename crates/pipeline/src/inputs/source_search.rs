//! Finds and loads the sources of keys by name, each once for all of its keys.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_miopen::is_left_out_by_debian;
use gfxpack_model::SourceId;
use gfxpack_plan::key_list::KeyRequest;

use super::collector::InputCollector;
use crate::error::Result;
use crate::ledger::{Absent, Reason};
use crate::license_head::license_of;

/// The result of looking for a key's source.
#[derive(Debug, Clone)]
pub(super) enum FoundSource {
    /// Found and loaded.
    Loaded(SourceId),
    /// Not found.
    NotFound,
    /// Not to be compiled, for this reason.
    Unbuilt(Reason, String),
}

impl From<Absent> for FoundSource {
    fn from(absent: Absent) -> Self {
        Self::Unbuilt(absent.reason, absent.why)
    }
}

/// Looks sources up by name, and remembers the results.
pub(super) struct SourceSearch<'a> {
    /// The first one that has a source is used.
    dirs: Vec<&'a SourceDirs>,
    /// Whether Debian's rules for free software apply.
    dfsg: bool,
    found: HashMap<Arc<Path>, FoundSource>,
}

impl<'a> SourceSearch<'a> {
    pub(super) fn new(dirs: Vec<&'a SourceDirs>, dfsg: bool) -> Self {
        Self { dirs, dfsg, found: HashMap::new() }
    }

    /// Remembers that the source of a key can't be compiled.
    pub(super) fn give_up(&mut self, key: &KeyRequest, absent: Absent) -> FoundSource {
        let found = FoundSource::from(absent);
        self.found.insert(Arc::clone(&key.source), found.clone());
        found
    }
}

impl InputCollector {
    /// Finds the source of a key and loads it. An error is reported once, at the
    /// first key that has it.
    pub(super) fn find_source(
        &mut self,
        key: &KeyRequest,
        search: &mut SourceSearch<'_>,
    ) -> FoundSource {
        if let Some(known) = search.found.get(&key.source) {
            return known.clone();
        }
        let name = key.source.display().to_string();
        let found = if search.dfsg && is_left_out_by_debian(&name) {
            let why = "Debian leaves it out: it is not what its authors edit".to_owned();
            self.left_out.insert(name, why.clone());
            FoundSource::Unbuilt(Reason::LeftOut, why)
        } else {
            self.load_source(key, &name, &search.dirs)
                .unwrap_or_else(|fault| FoundSource::from(self.note_unusable(key, fault)))
        };
        search.found.insert(Arc::clone(&key.source), found.clone());
        found
    }

    fn load_source(
        &mut self,
        key: &KeyRequest,
        name: &str,
        dirs: &[&SourceDirs],
    ) -> Result<FoundSource> {
        for dirs in dirs {
            if let Some(path) = dirs.find(name)? {
                let licenses = self.inputs.library.licenses.entry(name.to_owned()).or_default();
                // Loading reports a file that can't be read.
                licenses.extend(std::fs::read(path).ok().as_deref().and_then(license_of));
                let loaded =
                    self.inputs.sources.load(path, name, key.language, &[], &[], Some(dirs))?;
                return Ok(FoundSource::Loaded(loaded));
            }
        }
        Ok(FoundSource::NotFound)
    }

    /// Adds a key to the request at `position` if its source was found, otherwise
    /// to the keys that are not built.
    pub(super) fn add_key(&mut self, position: usize, key: Arc<KeyRequest>, found: FoundSource) {
        let request = &mut self.requests[position];
        let (reason, why) = match found {
            FoundSource::Loaded(source) => return request.keys.push((key, source)),
            FoundSource::NotFound => {
                (Reason::NotCarried, "the library that asks for it lacks its source".to_owned())
            }
            FoundSource::Unbuilt(reason, why) => (reason, why),
        };
        self.inputs.absent.add(&request.target, Absent::new(&key.key, reason, why));
    }
}
