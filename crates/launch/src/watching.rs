//! What a toolchain's programs may read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_process::watch::{Looks, Place, Places};
use gfxpack_toolchain::Toolchain;

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
