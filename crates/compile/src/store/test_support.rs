//! An empty store, and questions to it, for tests.

use std::path::{Path, PathBuf};

use gfxpack_launch::{Command, Drivers};
use gfxpack_model::compiler::Program;
use gfxpack_model::{Digest, KernelKey, Language, SourceId, ToolchainId};
use gfxpack_process::watch::{FileSystemCache, PathState, PathStates};
use gfxpack_process::{Cancel, FileDigests};

use super::{Dependencies, ObjectPurpose, ObjectStore, ValidityCheck};
use crate::source::SourceSet;

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: ObjectStore,
    pub(crate) job: Digest,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = ObjectStore::open(dir.path()).unwrap();
    Fixture { store, dir, job: Digest::of(b"job") }
}

/// The purpose of an example object.
pub(crate) fn about_it() -> ObjectPurpose {
    let key = KernelKey::for_source("a.cl", " -DA", "gfx906");
    let arguments = ["-DA", "a.cl"].map(Into::into).to_vec();
    ObjectPurpose { key, target_id: "gfx906".parse().unwrap(), arguments }
}

/// Dependencies on files: on the content of each, or on its absence.
pub(crate) fn depends_on<const N: usize>(files: [(&Path, Option<&str>); N]) -> Dependencies {
    let file = |text: &str| PathState::File { digest: Digest::of(text.as_bytes()), real: None };
    let answer = |(path, text): (&Path, Option<&str>)| {
        (path.to_owned(), text.map_or(PathState::Absent, file))
    };
    let system = PathStates::of_separate(files.map(answer).into());
    Dependencies { system, ..Dependencies::default() }
}

/// Asks a store as another build does, one without sources and toolchains.
pub(crate) fn as_another_build<T>(ask: impl FnOnce(ValidityCheck<'_>) -> T) -> T {
    let (digests, cancel) = (FileDigests::in_memory(), Cancel::default());
    let file_system = &FileSystemCache::new(&digests);
    let drivers = &Drivers::new(&[], PathBuf::new(), file_system, &cancel);
    let ObjectPurpose { target_id, arguments, .. } = &about_it();
    let command = Command {
        job: Digest::of(b"job"),
        toolchain: ToolchainId(0),
        program: Program::Clang,
        language: Language::OpenclC,
        target: target_id,
        source: SourceId(0),
        arguments,
    };
    let sources = &SourceSet::default();
    ask(ValidityCheck { file_system, sources, drivers, command, admitted: &[] })
}
