//! The directory in which a source is staged for its jobs, with the files that compilers looked for
//! besides those that its text names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use gfxpack_launch::SourceFiles;
use gfxpack_model::{Digest, SourceId};
use gfxpack_process::watch::{PathState, PathStates, tidy_path};
use gfxpack_process::{FileError, write_atomic};

use crate::error::CompileError;
use crate::nearby_files::file_id_of;
use crate::source::{SourceSet, leads_back};

/// How many directories above the stage hold nothing but staged files, so that this many `..` lead
/// to no other file.
const PARENT_LEVELS: usize = 24;
/// The name of each of these directories, which no source writes by chance.
const PARENT_NAME: &str = "gfxpack-above";

/// A source laid out for its compiler. A file or directory that has several names among the sources
/// is one here too, since compilers distinguish files and directories by device and inode (`#pragma
/// once`, `-I`).
#[derive(Debug)]
pub(crate) struct Stage {
    source: SourceId,
    /// Absolute and without links.
    dir: PathBuf,
    layout: Mutex<Layout>,
}

/// The staged files, by path relative to the staged directory.
#[derive(Debug, Default)]
struct Layout {
    /// By device and inode of the originals.
    by_file_id: HashMap<(u64, u64), PathBuf>,
    /// Files that a compiler found, or that were laid out because it looked for them, besides those
    /// that the source's text names.
    found: HashMap<PathBuf, Option<PathState>>,
}

impl Stage {
    /// Lays out a source in an empty directory.
    pub(crate) fn new(
        sources: &SourceSet,
        source: SourceId,
        top: PathBuf,
    ) -> Result<Self, CompileError> {
        fs::create_dir(&top).map_err(FileError::io("create", &top))?;
        Self::lay_out(sources, source, (0..PARENT_LEVELS).fold(top, |dir, _| dir.join(PARENT_NAME)))
    }

    /// Lays out a source in a directory, which is created if necessary.
    fn lay_out(sources: &SourceSet, source: SourceId, dir: PathBuf) -> Result<Self, CompileError> {
        fs::create_dir_all(&dir).map_err(FileError::io("create", &dir))?;
        let dir = fs::canonicalize(&dir).map_err(FileError::io("read", &dir))?;
        let mut layout = Layout::default();
        let top = sources.file_id(source, Path::new(""));
        layout.by_file_id.extend(top.map(|file_id| (file_id, PathBuf::new())));
        let planned = &sources.sources()[source.0];
        let files = || planned.files.iter().map(|file| Path::new(&file.path));
        let dirs = files().filter_map(Path::parent);
        let stage = Self { source, dir, layout: Mutex::default() };
        for below in dirs.chain(planned.include_dirs.iter().map(Path::new)) {
            stage.add_dir(&mut layout, sources, below)?;
        }
        sources.stage(source, &stage.dir)?;
        for below in files() {
            let file_id = sources.file_id(source, below);
            layout.by_file_id.extend(file_id.map(|file_id| (file_id, below.to_owned())));
        }
        Ok(Self { layout: Mutex::new(layout), ..stage })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn source(&self) -> SourceId {
        self.source
    }

    /// The answer for a path at which a compiler found something; `None` for a file of the closure
    /// under its own name.
    pub(crate) fn found(&self, sources: &SourceSet, below: &Path) -> Option<PathState> {
        let look = || {
            if sources.staged(self.source, below).is_some() {
                return None;
            }
            let path = self.dir.join(below);
            if let Ok(bytes) = fs::read(&path) {
                return Some(PathState::File { digest: Digest::of(&bytes), real: None });
            }
            // Sources that are found by name have directories of their own.
            let counts = tidy_path(below) != below || sources.origin(self.source).is_dir(below);
            (path.is_dir() && counts).then_some(PathState::Directory)
        };
        let found = &mut self.layout.lock().expect("no panic inside").found;
        found.entry(below.to_owned()).or_insert_with(look).clone()
    }

    /// Creates a directory above the staged one that also exists above the sources, so that the
    /// compiler goes on to look for a file in it. Returns whether it was created.
    pub(crate) fn add_above(&self, tidy: &Path) -> Result<bool, CompileError> {
        let steps = tidy.components().take_while(|part| *part == Component::ParentDir).count();
        let Some(above) = self.dir.ancestors().nth(steps).filter(|_| steps <= PARENT_LEVELS) else {
            return Ok(false);
        };
        let dir = above.join(tidy.components().skip(steps).collect::<PathBuf>());
        if dir.exists() {
            return Ok(false);
        }
        fs::create_dir_all(&dir).map_err(FileError::io("create", dir))?;
        Ok(true)
    }

    /// Whether a path with `..` leads to another file here than among the sources.
    pub(crate) fn is_other(&self, sources: &SourceSet, below: &Path) -> bool {
        let laid_out = || {
            let real = fs::canonicalize(self.dir.join(below)).ok()?;
            sources.file_id(self.source, real.strip_prefix(&self.dir).ok()?)
        };
        leads_back(below) && !sources.is_by_name(self.source) && {
            let file_id = sources.file_id(self.source, below);
            file_id.is_none() || file_id != laid_out()
        }
    }

    /// Lays out a file or directory that a compiler looked for, if it still exists. Returns whether
    /// the compiler may read it: `..` must not lead out of the sources.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be read or written.
    pub(crate) fn add(&self, sources: &SourceSet, below: &Path) -> Result<bool, CompileError> {
        let origin = sources.origin(self.source);
        let Some(named) = sources.as_named(self.source, below) else { return Ok(true) };
        let way = below.ancestors().map(|path| sources.without_parents(self.source, path));
        let Some(way) = way.collect::<Option<Vec<PathBuf>>>() else {
            // `..` leads out of the sources, unless the file was removed meanwhile.
            return Ok(sources.file_id(self.source, below).is_none());
        };
        // Locked so that each file is read only once.
        let mut layout = self.layout.lock().expect("no panic inside");
        for dir in way.iter().skip(1).rev() {
            self.add_dir(&mut layout, sources, dir)?;
        }
        let state = if origin.is_dir(&named) {
            self.add_dir(&mut layout, sources, &way[0])?;
            PathState::Directory
        } else if let Some(bytes) = origin.read(&named)? {
            self.add_file(&mut layout, sources, &way[0], &bytes)?
        } else {
            return Ok(true);
        };
        layout.found.insert(below.to_owned(), Some(state));
        Ok(!self.is_other(sources, below))
    }

    fn add_file(
        &self,
        layout: &mut Layout,
        sources: &SourceSet,
        below: &Path,
        bytes: &[u8],
    ) -> Result<PathState, CompileError> {
        self.add_dir(layout, sources, below.parent().unwrap_or(Path::new("")))?;
        let staged = self.dir.join(below);
        if !staged.exists() {
            let file_id = sources.file_id(self.source, below);
            let other = file_id.and_then(|file_id| layout.by_file_id.get(&file_id));
            match other {
                Some(other) => fs::hard_link(self.dir.join(other), &staged),
                None => write_atomic(&staged, &[bytes]),
            }
            .map_err(FileError::io("write", &staged))?;
            layout.by_file_id.extend(file_id.map(|file_id| (file_id, below.to_owned())));
        }
        let bytes = fs::read(&staged).map_err(FileError::io("read", &staged))?;
        Ok(PathState::File { digest: Digest::of(&bytes), real: None })
    }

    /// Creates a directory and its parents.
    fn add_dir(
        &self,
        layout: &mut Layout,
        sources: &SourceSet,
        below: &Path,
    ) -> Result<(), CompileError> {
        let mut dir = PathBuf::new();
        for part in below.components() {
            dir.push(part);
            let path = self.dir.join(&dir);
            if path.is_dir() {
                continue;
            }
            // The target of a link or an include directory, if it is among the sources.
            let real = sources.real_dir(self.source, &dir).filter(|real| *real != dir);
            if let Some(real) = real {
                self.add_dir(layout, sources, &real)?;
                if path.is_dir() {
                    continue;
                }
            }
            let file_id = sources.file_id(self.source, &dir);
            let other = file_id.and_then(|file_id| layout.by_file_id.get(&file_id));
            match other {
                Some(other) => self.link(other, &path),
                None => fs::create_dir(&path),
            }
            .map_err(FileError::io("create", &path))?;
            layout.by_file_id.extend(file_id.map(|file_id| (file_id, dir.clone())));
        }
        Ok(())
    }

    /// Creates a relative link to `other`, which stays valid when the staged directory is moved.
    fn link(&self, other: &Path, path: &Path) -> io::Result<()> {
        let dir = fs::canonicalize(path.parent().unwrap_or(&self.dir))?;
        let depth = dir.strip_prefix(&self.dir).map_or(0, |below| below.components().count());
        symlink(Path::new(".").join("../".repeat(depth)).join(other), path)
    }

    /// Answers about the sources, with the paths that are one file or directory here.
    pub(crate) fn path_states(
        &self,
        sources: &SourceSet,
        mut asked: BTreeSet<(PathBuf, PathState)>,
    ) -> PathStates {
        let digests: HashSet<Digest> =
            asked.iter().filter_map(|(_, state)| state.digest()).collect();
        // The closure's own files that may be the same files as these.
        let own = &sources.sources()[self.source.0].files;
        asked.extend(own.iter().filter(|file| digests.contains(&file.digest)).map(|file| {
            (PathBuf::from(&file.path), PathState::File { digest: file.digest, real: None })
        }));
        // Sources that are found by name have directories of their own.
        let is_own = |path: &Path| sources.is_by_name(self.source) && path.is_dir();
        let laid_out = |below: &Path| Some(self.dir.join(below)).filter(|path| !is_own(path));
        PathStates::of_relative(asked, |below| file_id_of(&laid_out(below)?))
    }
}

/// Lays out a source in a directory, which is created if necessary, as its compiler finds it.
///
/// # Errors
/// [`CompileError::File`] if it can't be written.
pub fn lay_out(sources: &SourceSet, source: SourceId, dir: &Path) -> Result<(), CompileError> {
    Stage::lay_out(sources, source, dir.to_owned()).map(drop)
}

impl SourceFiles for SourceSet {
    fn files(&self, source: SourceId) -> Vec<(&str, &[u8])> {
        self.files(source)
    }

    fn is_absent(&self, source: SourceId, below: &Path) -> bool {
        self.as_named(source, below).is_none_or(|below| self.origin(source).is_absent(&below))
    }

    fn is_dir(&self, source: SourceId, below: &Path) -> bool {
        self.as_named(source, below).is_some_and(|below| self.origin(source).is_dir(&below))
    }

    fn lay_out(&self, source: SourceId, dir: &Path) -> Result<bool, FileError> {
        match lay_out(self, source, dir) {
            Ok(()) => Ok(true),
            Err(CompileError::File(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::Language;
    use gfxpack_process::FileDigests;

    use super::*;
    use crate::source_dirs::SourceDirs;

    #[test]
    fn the_parent_of_a_link_or_include_directory_is_that_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, text) in [
            ("proj/k.cl", "#include \"l/a.h\"\n#include \"out/sub/b.h\"\n#include <c.h>\n"),
            ("proj/deep/one/a.h", "#include \"../x.h\"\n"),
            ("proj/deep/two/w.h", "6"),
            ("proj/deep/x.h", "1"),
            ("proj/deep/inc/c.h", "#include \"../x.h\"\n"),
            ("far/inc/d.h", ""),
            ("far/x.h", "2"),
            ("other/sub/b.h", ""),
            ("other/y.h", "3"),
            ("z.h", "4"),
            ("proj/t.h", "5"),
        ] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), text).unwrap();
        }
        symlink("deep/one", path("proj/l")).unwrap();
        symlink("../two", path("proj/deep/one/m")).unwrap();
        symlink("../other", path("proj/out")).unwrap();
        let mut sources = SourceSet::default();
        let include = [path("proj/deep/inc"), path("far/inc")];
        let main = path("proj/k.cl");
        let source = sources.load(&main, "k.cl", Language::OpenclC, &include, None).unwrap();
        let stage = Stage::new(&sources, source, path("stage")).unwrap();
        let laid_out = |name: &str| fs::read_to_string(stage.dir().join(name)).ok();

        for (below, expected) in [
            ("l/../x.h", "1"),
            ("gfxpack-include-0/../x.h", "1"),
            ("gfxpack-include-0/../../t.h", "5"),
            ("out/sub/../y.h", "3"),
            ("l/../one/../x.h", "1"),
            ("l/m/w.h", "6"),
        ] {
            assert!(stage.add(&sources, Path::new(below)).unwrap(), "{below}");
            assert_eq!(laid_out(below).as_deref(), Some(expected), "{below}");
            assert!(!stage.is_other(&sources, Path::new(below)), "{below}");
        }
        // Directories outside of the sources have parents that are no sources either.
        for below in ["gfxpack-include-1/../x.h", "out/../z.h", "../other/y.h", "../proj/t.h"] {
            assert!(!stage.add(&sources, Path::new(below)).unwrap(), "{below}");
        }
        assert_eq!([laid_out("x.h"), laid_out("z.h")], [None, None]);
        fs::write(stage.dir().join("x.h"), "1").unwrap();
        assert!(stage.is_other(&sources, Path::new("gfxpack-include-1/../x.h")));
        for link in ["l", "gfxpack-include-0", "l/m"] {
            assert!(fs::read_link(stage.dir().join(link)).unwrap().is_relative(), "{link}");
        }

        let include = [path("far/inc"), path("far")];
        let source = sources.load(&main, "k.cl", Language::OpenclC, &include, None).unwrap();
        let stage = Stage::new(&sources, source, path("other stage")).unwrap();
        assert!(stage.add(&sources, Path::new("gfxpack-include-0/../x.h")).unwrap());
    }

    #[test]
    fn answers_about_sources_found_by_name_hold_in_a_new_build() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("k.cl"), "").unwrap();
        let dirs = SourceDirs::list(&[dir.path().to_owned()]).unwrap();
        let (main, language) = (dir.path().join("k.cl"), Language::OpenclC);
        let mut sources = SourceSet::default();
        let source = sources.load(&main, "k.cl", language, &[], Some(&dirs)).unwrap();
        let stage = Stage::new(&sources, source, dir.path().join("stage")).unwrap();
        assert!(stage.add(&sources, Path::new("sub")).unwrap());
        let asked = ["sub/..", "."].map(|below| (PathBuf::from(below), PathState::Directory));
        let states = stage.path_states(&sources, asked.into());
        let digests = FileDigests::in_memory();
        assert_eq!(sources.first_change(source, &states, &digests), None);
        let is_among = |below| sources.without_parents(source, Path::new(below)).is_some();
        assert!(is_among("sub/../k.cl") && !is_among("../k.cl") && !is_among("sub/../../k.cl"));
    }
}
