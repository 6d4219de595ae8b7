//! Keys that libMIOpen asks for, with sources out of the library itself.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::{SourceDirs, SourceSet};
use gfxpack_miopen::{Sources, is_left_out_by_debian};
use gfxpack_model::{KernelKey, Language, SourceId};
use gfxpack_plan::expand::KeyRequest;
use gfxpack_plan::{InputFault, Location, arguments};

use super::reader::Reader;
use crate::ask::Asked;
use crate::error::{self, Result};
use crate::licence_head::licence_of;
use crate::text::counted;
use crate::unbuildable::{Reason, Unbuilt};

/// Where a key's source is.
#[derive(Debug, Clone)]
enum Place {
    /// Loaded.
    Loaded(SourceId),
    /// Nowhere.
    Absent,
    /// It is not to be compiled, since Debian leaves it out.
    LeftOut,
    /// It can't be compiled.
    Refused(Reason),
}

impl Reader {
    /// Adds the keys that libMIOpen asks for. Its own texts decide; `user`
    /// has what it does not hold, which is assembly in Debian's.
    pub(super) fn asked(&mut self, asked: &Asked, user: &SourceDirs, dfsg: bool) -> Result<()> {
        let texts = Sources::of(&asked.library)?;
        let dir = tempfile::Builder::new()
            .prefix("gfxpack-sources-")
            .tempdir()
            .map_err(error::io("create", &std::env::temp_dir()))?;
        texts.write_to_compile(dir.path())?;
        let own = SourceDirs::list(&[dir.path().to_owned()])?;
        let theirs = |name: &str| std::fs::read(user.find(name).ok()??).ok();
        let differing = texts.differing(theirs);
        if let Some(first) = differing.first() {
            self.warnings.push(format!(
                "{} of --source-dir differ from those in the library, which are compiled: {first}{}",
                counted(differing.len(), "file"),
                if differing.len() > 1 { ", …" } else { "" }
            ));
        }
        let library = match &asked.library.version {
            Some(version) => format!("MIOpen {version}"),
            None => "libMIOpen".to_owned(),
        };
        let mut places: HashMap<String, Place> = HashMap::new();
        let mut facts = asked.facts.clone();
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            let known: std::collections::HashSet<Arc<KernelKey>> =
                self.requests[position].keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            for (line, asked) in (1..).zip(&asked.keys[&target]) {
                let key = &asked.key;
                if known.contains(key) {
                    continue;
                }
                if self.excluded.has(&target, key) {
                    continue;
                }
                let location = Location { file: library.as_str().into(), line };
                let request = request(key, location.clone());
                let checked = request.and_then(|request| {
                    arguments::parse(request.language, request.options())?;
                    Ok(request)
                });
                let place = match &checked {
                    Ok(request) => {
                        let name = request.source.display().to_string();
                        match places.get(&name) {
                            Some(place) => place.clone(),
                            None => {
                                let place = self.place(request, &name, [&own, user], dfsg)?;
                                places.insert(name, place.clone());
                                place
                            }
                        }
                    }
                    Err(problem) => {
                        self.key_errors.push(location.error(problem.clone()));
                        Place::Refused(Reason::from(problem))
                    }
                };
                match (place, checked) {
                    (Place::Loaded(index), Ok(request)) => {
                        self.requests[position].keys.push((Arc::new(request), index));
                    }
                    (Place::Absent | Place::LeftOut, _) => facts.without_source.push(key.clone()),
                    (Place::Refused(reason), _) => {
                        let unbuilt = Unbuilt { key: key.clone(), reason };
                        self.unbuildable.entry(target.clone()).or_default().push(unbuilt);
                    }
                    (Place::Loaded(_), _) => {}
                }
            }
        }
        self.own_sources.push(dir);
        facts.without_source.sort();
        facts.without_source.dedup();
        if self.library.version.is_none() {
            self.library.version = asked.library.version.clone();
        }
        self.library.asked = Some(facts);
        Ok(())
    }

    fn place(
        &mut self,
        request: &KeyRequest,
        name: &str,
        dirs: [&SourceDirs; 2],
        dfsg: bool,
    ) -> Result<Place> {
        let mut found = None;
        for dirs in dirs {
            match dirs.find(name) {
                Ok(Some(path)) => {
                    found = Some((path, dirs));
                    break;
                }
                Ok(None) => {}
                Err(problem) => return Ok(Place::Refused(self.note_unusable(request, problem))),
            }
        }
        let Some((path, dirs)) = found else { return Ok(Place::Absent) };
        if dfsg && is_left_out_by_debian(name) {
            let reason = "Debian leaves it out: it is not what its authors edit".to_owned();
            self.left_out_by_debian.insert(name.to_owned(), reason);
            return Ok(Place::LeftOut);
        }
        let licences = self.library.licenses.entry(name.to_owned()).or_default();
        licences.extend(licence(path)?);
        let load =
            |sources: &mut SourceSet| sources.load(path, name, request.language, &[], Some(dirs));
        Ok(match load(&mut self.sources) {
            Ok(index) => Place::Loaded(index),
            Err(problem) => Place::Refused(self.note_unusable(request, problem)),
        })
    }
}

fn licence(path: &Path) -> Result<Option<gfxpack_plan::kernel_package::SourceLicense>> {
    let text = std::fs::read(path).map_err(error::io("read", path))?;
    Ok(licence_of(&text))
}

/// The key as an input names it.
fn request(key: &KernelKey, location: Location) -> Result<KeyRequest, InputFault> {
    key.check()?;
    let name = key.source_name().unwrap_or_default();
    let language =
        Language::of_source(name).ok_or_else(|| InputFault::Language(name.to_owned()))?;
    let source: Arc<Path> = Path::new(name).into();
    Ok(KeyRequest { language, source, location, key: Arc::new(key.clone()) })
}
