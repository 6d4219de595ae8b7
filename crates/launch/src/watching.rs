//! The directories that a toolchain's programs may read.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_process::watch::{Ask, Class, FileState, Looks, Place, Places, Process, Record, What};
use gfxpack_toolchain::Toolchain;

use crate::arguments::searched;

/// The directories that a toolchain's programs may read, by language.
#[derive(Debug)]
pub struct ToolchainPlaces(HashMap<Language, Places>);

impl ToolchainPlaces {
    /// With the directories that the user admitted, and the directory of precompiled headers, of
    /// which a run may read only its own files.
    #[must_use]
    pub fn new(
        toolchain: &Toolchain,
        admitted: &[PathBuf],
        headers: &Path,
        looks: &Looks<'_>,
    ) -> Self {
        let headers = looks.real(headers);
        let of = |language| {
            let places = Places::default().with(Place::Passed, &headers);
            let covered = toolchain.covered_paths(language);
            let cover = |all: Places, path: &PathBuf| all.with_linked(Place::Covered, path, looks);
            let places = covered.iter().fold(places, cover);
            admitted.iter().fold(places, |all, dir| all.with_linked(Place::Readable, dir, looks))
        };
        Self(Language::ALL.map(|language| (language, of(language))).into())
    }

    /// The directories that they may read for a source of this language; without those of the
    /// source.
    #[must_use]
    pub fn for_language(&self, language: Language) -> &Places {
        &self.0[&language]
    }
}

/// The places, plus the directories that these compilers search for headers, which they may read.
#[must_use]
pub fn with_searched<'r>(
    places: Places,
    compilers: impl IntoIterator<Item = &'r Process>,
    looks: &Looks<'_>,
) -> Places {
    let dirs = compilers.into_iter().flat_map(|process| searched(&process.arguments));
    dirs.filter(|dir| dir.is_absolute())
        .fold(places, |places, dir| places.with_linked(Place::Readable, dir, looks))
}

/// A directory that a compiler searches for headers by default and that is also an include
/// directory of its sources. The sources are in the directory `stage`; `place` returns device and
/// inode of a directory's original.
#[must_use]
pub fn searched_twice(
    record: &Record,
    stage: &Path,
    place: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Option<PathBuf> {
    let compiler = record.processes.iter().position(|it| it.class == Class::Compiler)?;
    let dirs = searched(&record.processes[compiler].arguments).filter(|dir| dir.is_relative());
    let own: HashSet<(u64, u64)> = dirs.filter_map(place).collect();
    // The compiler looks up all directories that it searches before it opens a source.
    let is_source =
        |ask: &Ask| matches!(ask.what, What::Open { .. }) && ask.path.starts_with(stage);
    let asks = record.asks.iter().filter(|ask| ask.process == compiler);
    let mut looks = asks.take_while(|ask| !is_source(ask));
    let is_own = |ask: &&Ask| {
        let place = ask.file.filter(FileState::is_dir).map(|file| file.identity.place());
        place.is_some_and(|place| own.contains(&place))
    };
    looks.find(is_own).map(|ask| ask.path.clone())
}
