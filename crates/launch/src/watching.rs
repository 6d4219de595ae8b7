//! What programs may touch, and how what they ask of the file system is
//! recorded.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_process::watch::{
    Landlock, Looks, Place, Places, Record, Recorder, RecorderOptions, Unwatched,
};
use gfxpack_toolchain::Toolchain;

use crate::error::LaunchError;

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
            let places =
                covered.iter().fold(places, |all, path| all.with(Place::Covered, looks.real(path)));
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

/// A record of one compiler, which may write nothing but what is in `scratch`.
pub(crate) fn recorder(scratch: &Path) -> io::Result<Recorder> {
    Recorder::with(&RecorderOptions {
        writable: Some(&[scratch]),
        landlock: Some(Landlock::Compilers),
        ..RecorderOptions::default()
    })
}

/// Likewise of a driver and all that it starts, and whether it tells what it
/// asks too.
pub(crate) fn driver_recorder(scratch: &Path, all: bool) -> io::Result<Recorder> {
    Recorder::with(&RecorderOptions {
        all,
        writable: Some(&[scratch]),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    })
}

/// Runs something with a record of what it asks of the file system.
pub(crate) fn recorded<T>(
    recorder: io::Result<Recorder>,
    run: impl FnOnce(Option<&Recorder>) -> Result<T, LaunchError>,
) -> Result<(T, Result<Record, Unwatched>), LaunchError> {
    let recorder = recorder.ok();
    let done = run(recorder.as_ref())?;
    Ok((done, recorder.map_or(Err(Unwatched::Nothing), Recorder::finish)))
}
