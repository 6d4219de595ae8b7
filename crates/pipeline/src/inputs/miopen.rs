//! Keys that libMIOpen asks for, with sources that the library contains.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::{SourceDirs, SourceSet};
use gfxpack_miopen::{Library, Sources, is_left_out_by_debian};
use gfxpack_model::{KernelKey, SourceId};
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_plan::{InputFault, Location, arguments};
use gfxpack_process::temporary_dir;

use super::collector::InputCollector;
use crate::ask::MiopenAnswer;
use crate::error::{self, Result};
use crate::licence_head::licence_of;
use crate::text::counted;
use crate::unbuildable::Reason;

/// The result of looking for a key's source.
#[derive(Debug, Clone)]
enum Place {
    /// Found and loaded.
    Loaded(SourceId),
    /// Not found.
    Absent,
    /// Not to be compiled, since Debian leaves it out.
    LeftOut,
    /// It can't be compiled.
    Unbuildable(Reason),
}

/// Looks sources up by name, and remembers the results.
struct SourceSearch<'a> {
    /// The library's sources, then the user's.
    dirs: [&'a SourceDirs; 2],
    /// Whether Debian's rules for free software apply.
    dfsg: bool,
    places: HashMap<String, Place>,
    /// Keys whose source is not found or left out.
    without_source: Vec<KernelKey>,
}

impl InputCollector {
    /// Adds the keys that libMIOpen asks for. Sources in the library take
    /// precedence; `user` has those that it lacks, such as assembly in Debian's.
    pub(super) fn miopen(
        &mut self,
        answer: &MiopenAnswer,
        user: &SourceDirs,
        dfsg: bool,
    ) -> Result<()> {
        let own = self.write_sources(&answer.library, user)?;
        let library = match &answer.library.version {
            Some(version) => format!("MIOpen {version}"),
            None => "libMIOpen".to_owned(),
        };
        let mut search = SourceSearch {
            dirs: [&own, user],
            dfsg,
            places: HashMap::new(),
            without_source: Vec::new(),
        };
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            let known: HashSet<Arc<KernelKey>> =
                self.requests[position].keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            for (line, asked) in (1..).zip(&answer.keys[&target]) {
                let key = &asked.key;
                if known.contains(key) || self.excluded.has(&target, key) {
                    continue;
                }
                let location = Location { file: library.as_str().into(), line };
                self.add_asked(position, key, location, &mut search)?;
            }
        }
        let mut facts = answer.facts.clone();
        facts.without_source.append(&mut search.without_source);
        facts.without_source.sort();
        facts.without_source.dedup();
        if self.inputs.library.version.is_none() {
            self.inputs.library.version = answer.library.version.clone();
        }
        self.inputs.library.miopen = Some(facts);
        Ok(())
    }

    /// Writes the library's sources to a directory, and warns about sources of
    /// the user that differ from these.
    fn write_sources(&mut self, library: &Library, user: &SourceDirs) -> Result<SourceDirs> {
        let texts = Sources::in_library(library)?;
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

    /// Adds one key to the request at `position`, or to the keys that can't be
    /// built.
    fn add_asked(
        &mut self,
        position: usize,
        key: &KernelKey,
        location: Location,
        search: &mut SourceSearch<'_>,
    ) -> Result<()> {
        let target = self.requests[position].target.clone();
        let request = match request(key, location.clone()) {
            Ok(request) => request,
            Err(problem) => {
                let reason = Reason::from(&problem);
                self.inputs.key_errors.push(location.error(problem));
                self.add_unbuildable(&target, key, reason);
                return Ok(());
            }
        };
        let name = request.source.display().to_string();
        let place = match search.places.get(&name) {
            Some(place) => place.clone(),
            None => {
                let place = self.place(&request, &name, search)?;
                search.places.insert(name, place.clone());
                place
            }
        };
        match place {
            Place::Loaded(index) => {
                self.requests[position].keys.push((Arc::new(request), index));
            }
            Place::Absent | Place::LeftOut => search.without_source.push(key.clone()),
            Place::Unbuildable(reason) => self.add_unbuildable(&target, key, reason),
        }
        Ok(())
    }

    /// Records a source of MIOpen's that Debian leaves out; returns whether it is
    /// one.
    pub(super) fn leave_out_by_debian(&mut self, name: &str) -> bool {
        let is_left_out = is_left_out_by_debian(name);
        if is_left_out {
            let reason = "Debian leaves it out: it is not what its authors edit".to_owned();
            self.inputs.left_out.insert(name.to_owned(), reason);
        }
        is_left_out
    }

    /// Finds a source and loads it.
    fn place(
        &mut self,
        request: &KeyRequest,
        name: &str,
        search: &SourceSearch<'_>,
    ) -> Result<Place> {
        let mut found = None;
        for dirs in search.dirs {
            match dirs.find(name) {
                Ok(Some(path)) => {
                    found = Some((path, dirs));
                    break;
                }
                Ok(None) => {}
                Err(problem) => {
                    return Ok(Place::Unbuildable(self.note_unusable(request, problem)));
                }
            }
        }
        let Some((path, dirs)) = found else { return Ok(Place::Absent) };
        if search.dfsg && self.leave_out_by_debian(name) {
            return Ok(Place::LeftOut);
        }
        let licences = self.inputs.library.licenses.entry(name.to_owned()).or_default();
        licences.extend(licence(path)?);
        let load =
            |sources: &mut SourceSet| sources.load(path, name, request.language, &[], Some(dirs));
        Ok(match load(&mut self.inputs.sources) {
            Ok(index) => Place::Loaded(index),
            Err(problem) => Place::Unbuildable(self.note_unusable(request, problem)),
        })
    }
}

fn licence(path: &Path) -> Result<Option<gfxpack_plan::kernel_package::SourceLicense>> {
    let text = std::fs::read(path).map_err(error::io("read", path))?;
    Ok(licence_of(&text))
}

/// The request for a key, if its options are allowed.
fn request(key: &KernelKey, location: Location) -> Result<KeyRequest, InputFault> {
    key.check()?;
    let name = key.source_name().unwrap_or_default();
    let language = InputFault::language_of(name, name)?;
    let source: Arc<Path> = Path::new(name).into();
    let request = KeyRequest { language, source, location, key: Arc::new(key.clone()) };
    arguments::parse(request.language, request.options())?;
    Ok(request)
}
