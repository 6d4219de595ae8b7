//! The directory where a source is laid out for its jobs, with what compilers
//! looked for besides the files that its text names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use gfxpack_model::{Digest, SourceId};
use gfxpack_process::watch::{Answer, Answers, tidy_below};
use gfxpack_process::{Identity, write_atomic};

use crate::error::CompileError;
use crate::source::SourceSet;

/// How many directories deep a source is laid out: so many times `..` leads to
/// nothing but what is laid out there too.
const DEPTH: usize = 24;

/// A source as it is laid out. What is one file or one directory under several
/// names among the sources is one here too, since a compiler tells files and
/// directories apart by device and inode (`#pragma once`, `-I`).
#[derive(Debug)]
pub(crate) struct Stage {
    source: SourceId,
    /// Absolute and without links.
    dir: PathBuf,
    layout: Mutex<Layout>,
}

/// What lies where, by paths seen from the staged directory.
#[derive(Debug, Default)]
struct Layout {
    /// By device and inode among the sources.
    places: HashMap<(u64, u64), PathBuf>,
    /// What was laid out because a compiler looked for it.
    more: BTreeMap<PathBuf, Answer>,
    /// What was found besides the files that the source's text names.
    found: HashMap<PathBuf, Option<Answer>>,
}

impl Stage {
    /// Lays out a source in an empty directory.
    pub(crate) fn new(
        sources: &SourceSet,
        source: SourceId,
        top: PathBuf,
    ) -> Result<Self, CompileError> {
        fs::create_dir(&top).map_err(CompileError::io("create", &top))?;
        let top = fs::canonicalize(&top).map_err(CompileError::io("read", &top))?;
        let dir = (0..DEPTH).fold(top.clone(), |dir, _| dir.join("s"));
        fs::create_dir_all(&dir).map_err(CompileError::io("create", &dir))?;
        let mut layout = Layout::default();
        let top = sources.place(source, Path::new(""));
        layout.places.extend(top.map(|place| (place, PathBuf::new())));
        let planned = &sources.sources()[source.0];
        let files = || planned.files.iter().map(|file| Path::new(&file.path));
        let dirs = files().filter_map(Path::parent);
        let stage = Self { source, dir, layout: Mutex::default() };
        for below in dirs.chain(planned.include_dirs.iter().map(Path::new)) {
            stage.add_dir(&mut layout, sources, below)?;
        }
        sources.stage(source, &stage.dir)?;
        for below in files() {
            let place = sources.place(source, below);
            layout.places.extend(place.map(|place| (place, below.to_owned())));
        }
        Ok(Self { layout: Mutex::new(layout), ..stage })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn source(&self) -> SourceId {
        self.source
    }

    /// What lies at a path where a compiler found something, unless it is a
    /// file of the source's own by its very name.
    pub(crate) fn found(&self, sources: &SourceSet, below: &Path) -> Option<Answer> {
        let mut layout = self.layout.lock().expect("no panic inside");
        let Layout { more, found, .. } = &mut *layout;
        if let Some(answer) = more.get(below) {
            return Some(answer.clone());
        }
        if sources.staged(self.source, below).is_some() {
            return None;
        }
        let look = || {
            let path = self.dir.join(below);
            if let Ok(bytes) = fs::read(&path) {
                return Some(Answer::File { digest: Digest::of(&bytes), real: None });
            }
            // Sources that are found by name have directories of their own.
            let counts = tidy_below(below) != below || sources.origin(self.source).is_dir(below);
            (path.is_dir() && counts).then_some(Answer::Directory)
        };
        found.entry(below.to_owned()).or_insert_with(look).clone()
    }

    /// Makes a directory above the staged one that is there above the sources,
    /// so that the compiler tells which file it wants there; whether it did.
    pub(crate) fn add_above(&self, tidy: &Path) -> Result<bool, CompileError> {
        let steps = tidy.components().take_while(|part| *part == Component::ParentDir).count();
        let Some(above) = self.dir.ancestors().nth(steps).filter(|_| steps <= DEPTH) else {
            return Ok(false);
        };
        let dir = above.join(tidy.components().skip(steps).collect::<PathBuf>());
        if dir.exists() {
            return Ok(false);
        }
        fs::create_dir_all(&dir).map_err(CompileError::io("create", dir))?;
        Ok(true)
    }

    /// Lays out what a compiler looked for, if it is there still.
    ///
    /// # Errors
    /// [`CompileError::Io`] where it can't be read or written.
    pub(crate) fn add(&self, sources: &SourceSet, below: &Path) -> Result<(), CompileError> {
        let origin = sources.origin(self.source);
        // Held so that each file is read once, whoever asks.
        let mut layout = self.layout.lock().expect("no panic inside");
        let answer = if origin.is_dir(below) {
            self.add_dir(&mut layout, sources, below)?;
            Answer::Directory
        } else if let Some(bytes) = origin.read(below)? {
            self.add_file(&mut layout, sources, below, &bytes)?
        } else {
            return Ok(());
        };
        layout.more.entry(below.to_owned()).or_insert(answer);
        Ok(())
    }

    fn add_file(
        &self,
        layout: &mut Layout,
        sources: &SourceSet,
        below: &Path,
        bytes: &[u8],
    ) -> Result<Answer, CompileError> {
        self.add_dir(layout, sources, below.parent().unwrap_or(Path::new("")))?;
        let staged = self.dir.join(below);
        if !staged.exists() {
            let place = sources.place(self.source, below);
            match place.and_then(|place| layout.places.get(&place)) {
                Some(other) => fs::hard_link(self.dir.join(other), &staged),
                None => write_atomic(&staged, &[bytes]),
            }
            .map_err(CompileError::io("write", &staged))?;
            layout.places.extend(place.map(|place| (place, below.to_owned())));
        }
        let bytes = fs::read(&staged).map_err(CompileError::io("read", &staged))?;
        Ok(Answer::File { digest: Digest::of(&bytes), real: None })
    }

    /// Makes a directory and those on the way to it.
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
            let place = sources.place(self.source, &dir);
            match place.and_then(|place| layout.places.get(&place)) {
                Some(other) => symlink(self.dir.join(other), &path),
                None => fs::create_dir(&path),
            }
            .map_err(CompileError::io("create", &path))?;
            layout.places.extend(place.map(|place| (place, dir.clone())));
        }
        Ok(())
    }

    /// Answers about the sources, with what is one file or directory here.
    pub(crate) fn answers(
        &self,
        sources: &SourceSet,
        mut asked: BTreeSet<(PathBuf, Answer)>,
    ) -> Answers {
        let digests: HashSet<Digest> =
            asked.iter().filter_map(|(_, answer)| answer.digest()).collect();
        // Which of the source's own files may be one with these.
        let own = &sources.sources()[self.source.0].files;
        asked.extend(own.iter().filter(|file| digests.contains(&file.digest)).map(|file| {
            (PathBuf::from(&file.path), Answer::File { digest: file.digest, real: None })
        }));
        Answers::of_relative(asked, |below| {
            fs::metadata(self.dir.join(below))
                .ok()
                .map(|meta| Identity::from_metadata(&meta).place())
        })
    }
}
