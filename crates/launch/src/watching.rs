//! What a toolchain's programs may read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_process::watch::{Looks, Place, Places, Process};
use gfxpack_toolchain::Toolchain;

use crate::arguments::searched;

/// What a toolchain's programs may read, by language.
#[derive(Debug)]
pub struct ToolchainPlaces(HashMap<Language, Places>);

impl ToolchainPlaces {
    /// With the directories that were admitted besides, and the one that
    /// precompiled headers are kept in, of which a run may read its own alone.
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
            admitted.iter().fold(places, |all, dir| all.with(Place::Readable, looks.real(dir)))
        };
        let languages = [Language::Hip, Language::OpenclC, Language::Assembly];
        Self(languages.map(|language| (language, of(language))).into())
    }

    /// What they may read for a source of this language; the source's own
    /// directory is not among it.
    #[must_use]
    pub fn for_language(&self, language: Language) -> &Places {
        &self.0[&language]
    }
}

/// The places with the directories too that these compilers search for headers,
/// which they may read.
#[must_use]
pub fn with_searched<'r>(
    places: Places,
    compilers: impl IntoIterator<Item = &'r Process>,
    looks: &Looks<'_>,
) -> Places {
    let dirs = compilers.into_iter().flat_map(|process| searched(&process.arguments));
    dirs.filter(|dir| dir.is_absolute())
        .fold(places, |places, dir| places.with(Place::Readable, looks.real(dir)))
}
