//! The directories that a toolchain's programs may read.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_process::watch::{
    FileAccess, FileStat, FileSystemCache, Operation, PathRole, PathRoles, Process, ProcessClass,
    Record,
};
use gfxpack_toolchain::Toolchain;

use crate::arguments::searched;

/// The directories that a toolchain's programs may read, by language.
#[derive(Debug)]
pub struct ToolchainPathRoles(HashMap<Language, PathRoles>);

impl ToolchainPathRoles {
    /// With the directories that the user admitted, and the directory of precompiled headers, of
    /// which a run may read only its own files.
    #[must_use]
    pub fn new(
        toolchain: &Toolchain,
        admitted: &[PathBuf],
        headers: &Path,
        file_system: &FileSystemCache<'_>,
    ) -> Self {
        let headers = file_system.real(headers);
        let of = |language| {
            PathRoles::default()
                .with(PathRole::Passed, &headers)
                .with_linked(PathRole::Covered, toolchain.covered_paths(language), file_system)
                .with_linked(PathRole::Readable, admitted, file_system)
        };
        Self(Language::ALL.map(|language| (language, of(language))).into())
    }

    /// The directories that they may read for a source of this language; without those of the
    /// source.
    #[must_use]
    pub fn for_language(&self, language: Language) -> &PathRoles {
        &self.0[&language]
    }
}

/// The roles, plus the directories that these compilers search for headers, which they may read.
#[must_use]
pub fn with_searched<'r>(
    roles: PathRoles,
    compilers: impl IntoIterator<Item = &'r Process>,
    file_system: &FileSystemCache<'_>,
) -> PathRoles {
    let dirs = compilers.into_iter().flat_map(|process| searched(&process.arguments));
    roles.with_linked(PathRole::Readable, dirs.filter(|dir| dir.is_absolute()), file_system)
}

/// A directory that a compiler searches for headers by default and that is also an include
/// directory of its sources. The sources are in the directory `stage`; `file_id` returns device and
/// inode of a directory's original.
#[must_use]
pub fn searched_twice(
    record: &Record,
    stage: &Path,
    file_id: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Option<PathBuf> {
    let compiler = record.processes.iter().position(|it| it.class == ProcessClass::Compiler)?;
    let dirs = searched(&record.processes[compiler].arguments).filter(|dir| dir.is_relative());
    let own: HashSet<(u64, u64)> = dirs.filter_map(file_id).collect();
    // The compiler looks up all directories that it searches before it opens a source.
    let is_source = |access: &FileAccess| {
        matches!(access.operation, Operation::Open { .. }) && access.path.starts_with(stage)
    };
    let accesses = record.accesses.iter().filter(|access| access.process == compiler);
    let mut searches = accesses.take_while(|access| !is_source(access));
    let is_own = |access: &&FileAccess| {
        let file_id = access.file.filter(FileStat::is_dir).map(|file| file.identity.file_id());
        file_id.is_some_and(|file_id| own.contains(&file_id))
    };
    searches.find(is_own).map(|access| access.path.clone())
}
