//! Keys that libMIOpen asks for, with sources that the library contains.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_miopen::Sources;
use gfxpack_model::{KernelKey, Target};
use gfxpack_plan::Location;
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_process::temporary_dir;

use super::collector::{InputCollector, SourceSearch};
use crate::ask::MiopenAnswer;
use crate::error::Result;
use crate::ledger::Absent;
use crate::text::counted;

impl InputCollector {
    /// Adds the keys that libMIOpen asks for. Sources in the library take
    /// precedence; `user` has those that it lacks, such as assembly in Debian's.
    pub(super) fn miopen(
        &mut self,
        answer: &MiopenAnswer,
        user: &SourceDirs,
        dfsg: bool,
    ) -> Result<()> {
        let own = self.write_sources(&answer.sources, user)?;
        let library = match &answer.library.version {
            Some(version) => format!("MIOpen {version}"),
            None => "libMIOpen".to_owned(),
        };
        let dirs = vec![&own, user];
        let mut search = SourceSearch { dirs, dfsg, of_library: true, found: HashMap::new() };
        let is_asked = |target: &Target| answer.keys.contains_key(target);
        self.requests.retain(|request| is_asked(&request.target) || !request.keys.is_empty());
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            let known: HashSet<Arc<KernelKey>> =
                self.requests[position].keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            for (line, asked) in (1..).zip(answer.keys.get(&target).into_iter().flatten()) {
                let key = &asked.key;
                if known.contains(key) || self.excludes(&target, key) {
                    continue;
                }
                let location = Location { file: library.as_str().into(), line };
                match KeyRequest::new(Arc::new(key.clone()), location.clone()) {
                    Ok(request) => {
                        let found = self.find_source(&request, &mut search);
                        self.add_key(position, Arc::new(request), found);
                    }
                    Err(fault) => {
                        self.inputs.key_errors.push(location.error(&fault));
                        self.inputs.absent.add(&target, Absent::faulty(key, &fault));
                    }
                }
            }
        }
        if self.inputs.library.version.is_none() {
            self.inputs.library.version = answer.library.version.clone();
        }
        self.inputs.library.prefix = answer.library.layout().map(|layout| layout.prefix());
        self.inputs.library.miopen = Some(answer.facts.clone());
        self.has_input = true;
        Ok(())
    }

    /// Writes the library's sources to a directory, and warns about sources of
    /// the user that differ from these.
    fn write_sources(&mut self, texts: &Sources, user: &SourceDirs) -> Result<SourceDirs> {
        let dir = temporary_dir()?;
        texts.write_to_compile(dir.path())?;
        let own = SourceDirs::list(&[dir.path().to_owned()])?;
        self.inputs.own_sources.push(Arc::new(dir));
        let differing = texts.differing(|name| std::fs::read(user.find(name).ok()??).ok());
        if let Some(first) = differing.first() {
            self.inputs.warnings.push(format!(
                "{} of --source-dir differ from those in the library, which are compiled: {first}{}",
                counted(differing.len(), "file"),
                if differing.len() > 1 { ", …" } else { "" }
            ));
        }
        Ok(own)
    }
}
