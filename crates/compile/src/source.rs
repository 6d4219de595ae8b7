//! Source closures: a kernel source with all its includes, read once, hashed, and laid out so that
//! the compiler sees the same paths on every machine.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{Digest, Language, SourceId, relative_path};
use gfxpack_plan::InputFault;
use gfxpack_plan::include::{self, Include};
use gfxpack_plan::plan::{Source, StagedFile};
use gfxpack_plan::stored::{SourceTrees, Tree, TreeEntry, TreeKind};
use gfxpack_process::watch::{PathState, PathStates, tidy_path};
use gfxpack_process::{FileDigests, FileError};

use crate::error::CompileError;
use crate::nearby_files::{
    ClosureOrigin, FileId, SourceDirectories, StoredContent, StoredDirectories, file_id_of,
    include_root, is_file,
};
use crate::source_dirs::SourceDirs;

/// The sources of a build, each file read once.
#[derive(Debug, Default)]
pub struct SourceSet {
    /// By path and language; the language decides which lines are includes.
    files: HashMap<(PathBuf, Language), Arc<File>>,
    loaded: HashMap<Loaded, SourceId>,
    closures: Vec<Vec<(String, Arc<File>)>>,
    /// The origin of the files of each closure.
    origins: Vec<ClosureOrigin>,
    sources: Vec<Source>,
}

/// The key of a closure: source, staged path, language, include directories, and whether includes
/// are found by name.
type Loaded = (PathBuf, String, Language, Vec<PathBuf>, bool);

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    digest: Digest,
    includes: Vec<Include>,
}

/// The files of a closure, by staged path.
type Closure = BTreeMap<String, (PathBuf, Arc<File>)>;

/// A file to be added to a closure.
struct PendingFile {
    real: PathBuf,
    staged: String,
}

impl SourceSet {
    /// The closures in the order in which they were loaded, as in a plan.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The closures of a stored plan's used sources; the others get no files. Their paths were
    /// checked when the plan was read. `trees` and `origins` describe the directories around the
    /// files on the machine where the plan was made.
    ///
    /// # Errors
    /// [`CompileError::ForeignSource`] if the bytes do not have the digest, or a
    /// tree is invalid; and the errors of `content`.
    pub fn of_stored(
        sources: &[Source],
        (trees, origins): (&[Tree], &[SourceTrees]),
        is_used: impl Fn(SourceId) -> bool,
        content: &StoredContent,
    ) -> Result<Self, CompileError> {
        let mut files: HashMap<Digest, Arc<File>> = HashMap::new();
        let mut closures = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let mut closure = Vec::new();
            let used = if is_used(SourceId(index)) { &source.files[..] } else { &[] };
            for StagedFile { path, digest, .. } in used {
                let file = match files.get(digest) {
                    Some(file) => Arc::clone(file),
                    None => {
                        let bytes = content.read(*digest, path)?;
                        // The closure already has its includes.
                        let file = File { bytes, digest: *digest, includes: Vec::new() };
                        Arc::clone(files.entry(*digest).or_insert(Arc::new(file)))
                    }
                };
                closure.push((path.clone(), file));
            }
            closures.push(closure);
        }
        let trees: Vec<Arc<Tree>> = trees.iter().cloned().map(Arc::new).collect();
        let tree = |at: &usize| trees.get(*at).map(Arc::clone);
        let stored = sources.iter().enumerate().map(|(index, source)| {
            let stored = origins.get(index).and_then(|origin| {
                let include_dirs = origin.include_dirs.iter().map(tree).collect::<Option<_>>()?;
                let files = source.files.iter().zip(&origin.files).map(|(file, &number)| {
                    let kind = TreeKind::File(file.digest);
                    (file.path.clone(), TreeEntry { number, kind, is_link: false })
                });
                let whole = origin.files.len() == source.files.len();
                let (files, root) = (whole.then(|| files.collect())?, tree(&origin.root)?);
                let (absent, content) = (origin.absent.clone(), content.clone());
                Some(StoredDirectories { root, include_dirs, files, absent, content })
            });
            let stored = stored.ok_or_else(|| CompileError::ForeignSource(source.name.clone()))?;
            Ok(ClosureOrigin::Stored(stored))
        });
        let origins = stored.collect::<Result<_, CompileError>>()?;
        Ok(Self { closures, origins, sources: sources.to_vec(), ..Self::default() })
    }

    /// The directories of the sources, in their order; none for a source of a stored plan.
    pub fn directories(&self) -> impl Iterator<Item = &SourceDirectories> + Clone {
        self.origins.iter().filter_map(|origin| match origin {
            ClosureOrigin::Here(dirs) => Some(dirs),
            ClosureOrigin::Stored(_) => None,
        })
    }

    /// Whether a source comes with a stored plan.
    pub(crate) fn is_stored(&self, source: SourceId) -> bool {
        matches!(self.origins[source.0], ClosureOrigin::Stored(_))
    }

    /// The size in bytes of a source with all its includes.
    pub(crate) fn closure_size(&self, source: SourceId) -> usize {
        self.closures[source.0].iter().map(|(_, file)| file.bytes.len()).sum()
    }

    /// The files of a source's closure: staged path and content.
    #[must_use]
    pub fn files(&self, source: SourceId) -> Vec<(&str, &[u8])> {
        let files = self.closures[source.0].iter();
        files.map(|(path, file)| (path.as_str(), file.bytes.as_slice())).collect()
    }

    /// Loads the closure of `real`, which is to be staged at `staged`, and returns its id. Includes
    /// are looked up beside the includer, then in the include directories, then by name in `dirs`.
    /// Includes that are in none of them are left to the compiler, which has headers of its own.
    ///
    /// # Errors
    /// [`InputFault`] if a file can't be read, or if two files that are found by name have the same
    /// name.
    pub fn load(
        &mut self,
        real: &Path,
        staged: &str,
        language: Language,
        include_dirs: &[PathBuf],
        dirs: Option<&SourceDirs>,
    ) -> Result<SourceId, InputFault> {
        let (from, to) = (real.to_owned(), staged.to_owned());
        let request = (from, to, language, include_dirs.to_vec(), dirs.is_some());
        if let Some(index) = self.loaded.get(&request) {
            return Ok(*index);
        }
        let depth = Path::new(staged).components().count();
        let root = real.ancestors().nth(depth).unwrap_or(Path::new("/")).to_owned();
        // If includes are found by name, the files beside a source do not affect its layout.
        let is_other = |(number, dir): &(usize, &PathBuf)| {
            let own = fs::canonicalize(root.join(include_root(*number)));
            own.is_ok_and(|own| fs::canonicalize(dir).ok() != Some(own))
        };
        let mut laid_out = include_dirs.iter().enumerate().filter(|_| dirs.is_none());
        if let Some(name) = laid_out.find(is_other).map(|(number, _)| include_root(number)) {
            let reason = format!(
                "`{}` has the name that gfxpack lays an include directory out under: rename it",
                root.join(name).display()
            );
            return Err(unreadable(staged, &reason));
        }
        let include_dirs = include_dirs.to_vec();
        let mut here = SourceDirectories { root, include_dirs, files: BTreeMap::new() };
        let placed = self.closure(real, staged, language, &here, dirs)?;
        let mut search = search_dirs(staged, language, &here.include_dirs);
        if dirs.is_some() {
            // Files found by name are all staged in one directory.
            search.insert(0, ".".to_owned());
        }
        self.sources.push(Source {
            name: staged.rsplit('/').next().unwrap_or(staged).to_owned(),
            main: staged.to_owned(),
            include_dirs: search,
            files: staged_files(&placed),
        });
        here.files = placed.iter().map(|(path, (real, _))| (path.clone(), real.clone())).collect();
        self.closures.push(placed.into_iter().map(|(path, (_, file))| (path, file)).collect());
        self.origins.push(ClosureOrigin::Here(here));
        let index = SourceId(self.sources.len() - 1);
        self.loaded.insert(request, index);
        Ok(index)
    }

    /// A source and all its includes, by staged path.
    fn closure(
        &mut self,
        real: &Path,
        staged: &str,
        language: Language,
        here: &SourceDirectories,
        dirs: Option<&SourceDirs>,
    ) -> Result<Closure, InputFault> {
        let mut placed = Closure::new();
        let mut queue =
            VecDeque::from([PendingFile { real: real.to_owned(), staged: staged.to_owned() }]);
        let mut followed = HashSet::new();
        while let Some(found) = queue.pop_front() {
            let file = self.read(&found.real, language).map_err(|error| {
                unreadable(staged, &format!("`{}`: {error}", found.real.display()))
            })?;
            if let Some((other, placed)) = placed.get(&found.staged) {
                if placed.digest == file.digest {
                    continue;
                }
                return Err(one_place(staged, other, &found.real, "be", &found.staged));
            }
            // A directory that can be entered by two paths has the same files by both, but `..` may
            // lead out of the sources by one of them. Includes that are found by name have no such
            // paths.
            let dir = found.real.parent().and_then(file_id_of).filter(|_| dirs.is_none());
            let name = found.real.file_name().map(OsStr::to_owned);
            let is_first = dir.is_none_or(|dir| followed.insert((dir, name)));
            let next =
                file.includes.iter().filter(|it| is_first || leads_back(Path::new(&it.path)));
            queue.extend(next.filter_map(|it| resolve(it, &found, here, dirs)));
            placed.insert(found.staged, (found.real, file));
        }
        for (path, (real, _)) in &placed {
            let dirs = path.match_indices('/').map(|(end, _)| &path[..end]);
            if let Some((dir, (other, _))) = dirs.filter_map(|dir| placed.get_key_value(dir)).next()
            {
                return Err(one_place(staged, other, real, "need", dir));
            }
        }
        Ok(placed)
    }

    fn read(&mut self, path: &Path, language: Language) -> io::Result<Arc<File>> {
        let key = (path.to_owned(), language);
        if let Some(file) = self.files.get(&key) {
            return Ok(Arc::clone(file));
        }
        let bytes = fs::read(path)?;
        let (digest, includes) = (Digest::of(&bytes), include::scan(&bytes, language));
        let file = Arc::new(File { bytes, digest, includes });
        self.files.insert(key, Arc::clone(&file));
        Ok(file)
    }

    /// The answer to a lookup of a path among the sources, by a compiler that runs in the staged
    /// directory.
    pub(crate) fn path_state(
        &self,
        source: SourceId,
        below: &Path,
        digests: &FileDigests,
    ) -> PathState {
        let Some(below) = self.as_named(source, below) else { return PathState::Absent };
        let own = self.staged(source, &below);
        own.unwrap_or_else(|| self.origins[source.0].path_state(&below, digests))
    }

    /// Resolves a path. In sources whose includes are found by name, `..` is resolved by text if it
    /// follows one of their directories; otherwise the result is `None`. Other paths stay as they
    /// are.
    pub(crate) fn as_named<'p>(&self, source: SourceId, below: &'p Path) -> Option<Cow<'p, Path>> {
        if !leads_back(below) || !self.is_by_name(source) {
            return Some(below.into());
        }
        let files = || self.closures[source.0].iter().map(|(path, _)| Path::new(path));
        let is_dir = |dir: &Path| {
            let is_own = files().any(|path| path.starts_with(dir) && path != dir);
            is_own || self.origins[source.0].is_dir(dir)
        };
        let mut ways = below.ancestors().filter(|path| path.ends_with(".."));
        let left = |way: &Path| tidy_path(way.parent().unwrap_or(way));
        ways.all(|way| is_dir(&left(way))).then(|| tidy_path(below).into())
    }

    /// The origin of a source's files.
    pub(crate) fn origin(&self, source: SourceId) -> &ClosureOrigin {
        &self.origins[source.0]
    }

    /// The file or directory at a path among the sources. `None` for directories in which sources
    /// are only searched by name.
    pub(crate) fn file_id(&self, source: SourceId, below: &Path) -> Option<FileId> {
        let (origin, below) = (&self.origins[source.0], self.as_named(source, below)?);
        if self.is_by_name(source) && origin.is_dir(&below) { None } else { origin.file_id(&below) }
    }

    /// Whether a source's includes are found by name, so that they are staged under the names by
    /// which they include each other.
    pub(crate) fn is_by_name(&self, source: SourceId) -> bool {
        self.sources[source.0].include_dirs.iter().any(|dir| dir == ".")
    }

    /// The path of a directory among the sources, without links and `..`.
    pub(crate) fn real_dir(&self, source: SourceId, below: &Path) -> Option<PathBuf> {
        if self.is_by_name(source) { None } else { self.origins[source.0].real_dir(below) }
    }

    /// Whether a path with `..` leads to the same place as its text without `..`.
    pub(crate) fn leads_by_text(&self, source: SourceId, below: &Path) -> bool {
        if !leads_back(below) || self.is_by_name(source) {
            return true;
        }
        let (file_id, tidy) = (self.file_id(source, below), tidy_path(below));
        file_id.is_some()
            && tidy.is_relative()
            && !tidy.starts_with("..")
            && self.file_id(source, &tidy) == file_id
    }

    /// The path, without `..`, of the file or directory at a path among the sources; `None` outside
    /// of them. In sources whose includes are found by name, paths stay as they are.
    pub(crate) fn without_parents(&self, source: SourceId, below: &Path) -> Option<PathBuf> {
        if !leads_back(below) {
            return Some(below.to_owned());
        }
        if self.is_by_name(source) {
            return (!tidy_path(below).starts_with("..")).then(|| below.to_owned());
        }
        if self.leads_by_text(source, below) {
            return Some(tidy_path(below));
        }
        // There is a link on the way.
        self.file_id(source, below)?;
        match (below.parent(), below.file_name()) {
            (Some(dir), Some(name)) => Some(self.real_dir(source, dir)?.join(name)),
            _ => self.real_dir(source, below),
        }
    }

    /// The file of a closure that is staged at a path.
    pub(crate) fn staged(&self, source: SourceId, path: &Path) -> Option<PathState> {
        let mut files = self.closures[source.0].iter();
        let file = files.find(|(staged, _)| path.as_os_str() == staged.as_str())?;
        Some(PathState::File { digest: file.1.digest, real: None })
    }

    /// The first answer about the sources, relative to the staged directory, that would be
    /// different now.
    pub fn first_change<'a>(
        &self,
        source: SourceId,
        states: &'a PathStates,
        digests: &FileDigests,
    ) -> Option<(&'a Path, &'a PathState)> {
        let holds =
            |below: &Path, state: &PathState| self.path_state(source, below, digests) == *state;
        states.first_change_by(holds, |below| self.file_id(source, below))
    }

    /// Writes a closure below `dir`: the very bytes that were hashed, so that a file edited
    /// meanwhile can't get a wrong digest.
    ///
    /// # Errors
    /// [`CompileError::File`] if they can't be written.
    pub(crate) fn stage(&self, source: SourceId, dir: &Path) -> Result<(), CompileError> {
        let planned = &self.sources[source.0];
        let same = planned.files.iter().map(|file| file.same_as.as_deref());
        for ((staged, file), same) in self.closures[source.0].iter().zip(same) {
            let path = dir.join(staged);
            let parent = path.parent().unwrap_or(dir);
            fs::create_dir_all(parent).map_err(FileError::io("create", parent))?;
            match same {
                // The directory may be a link to that of the other file.
                Some(_) if path.exists() => Ok(()),
                Some(other) => fs::hard_link(dir.join(other), &path),
                None => fs::write(&path, &file.bytes),
            }
            .map_err(FileError::io("write", &path))?;
        }
        for searched in &planned.include_dirs {
            let path = dir.join(searched);
            fs::create_dir_all(&path).map_err(FileError::io("create", path))?;
        }
        Ok(())
    }
}

fn unreadable(name: &str, reason: &str) -> InputFault {
    InputFault::new(
        format!("failed to read source `{name}`: {reason}"),
        "check its permissions and content; an #include may name files below the manifest's \
         directory, its include-dirs, or --source-dir; assembly names a file by its path from the \
         manifest's directory (for keys, from the source's) or from an include-dir",
    )
}

/// Two files need the same staged path: they are found by name, or are a directory and a file.
fn one_place(source: &str, one: &Path, other: &Path, verb: &str, place: &str) -> InputFault {
    let (one, other) = (one.display(), other.display());
    InputFault::new(
        format!(
            "failed to lay out source `{source}`: `{one}` and `{other}` would both {verb} `{place}`"
        ),
        "give one of the two another name",
    )
}

/// The files of a closure. If a file has several names, each further one refers to the first.
fn staged_files(placed: &Closure) -> Vec<StagedFile> {
    // If the digests differ, the file was written between the two reads.
    let mut first: HashMap<(FileId, Digest), &str> = HashMap::new();
    let files = placed.iter().map(|(path, (real, file))| {
        let first =
            file_id_of(real).map(|file_id| *first.entry((file_id, file.digest)).or_insert(path));
        let same_as = first.filter(|first| first != path).map(str::to_owned);
        StagedFile { path: path.clone(), digest: file.digest, same_as }
    });
    files.collect()
}

/// Whether `..` is in a path.
pub(crate) fn leads_back(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// The directories of the staged directory in which includes are searched.
fn search_dirs(staged: &str, language: Language, include_dirs: &[PathBuf]) -> Vec<String> {
    // Unlike the preprocessor, the assembler does not look beside the includer.
    let parent = staged.rsplit_once('/').filter(|_| language == Language::Assembly);
    let there = include_dirs.iter().enumerate().filter(|(_, dir)| dir.is_dir());
    let there = there.map(|(number, _)| include_root(number));
    parent.map(|(parent, _)| parent.to_owned()).into_iter().chain(there).collect()
}

/// The file that an include refers to, judged by its text alone. An include that leads out of the
/// sources' directory is left to the compiler, which won't find it.
fn resolve(
    include: &Include,
    includer: &PendingFile,
    here: &SourceDirectories,
    dirs: Option<&SourceDirs>,
) -> Option<PendingFile> {
    if include.path.starts_with('/') {
        return None;
    }
    let laid_out = |real: PathBuf, dir: &str| {
        let by_text = relative_path::join(dir, &include.path);
        let is_there =
            |staged: &String| file_id_of(&real) == file_id_of(&here.path(Path::new(staged)));
        let staged = match by_text {
            staged if dirs.is_some() || !leads_back(Path::new(&include.path)) => staged?,
            Some(staged) if is_there(&staged) => staged,
            // There is a link or an include directory on the way.
            _ => here.laid_out(real.parent()?)?.join(real.file_name()?).to_str()?.to_owned(),
        };
        Some(PendingFile { real, staged })
    };
    if include.quoted
        && let Some(parent) = includer.real.parent()
        && is_file(&parent.join(&include.path))
    {
        let staged_dir = includer.staged.rsplit_once('/').map_or("", |(dir, _)| dir);
        return laid_out(parent.join(&include.path), staged_dir);
    }
    for (number, dir) in here.include_dirs.iter().enumerate() {
        let real = dir.join(&include.path);
        if is_file(&real) {
            return laid_out(real, &include_root(number));
        }
    }
    laid_out(dirs?.nearest(&include.path, &includer.real)?.to_owned(), "")
}

#[cfg(test)]
mod tests;
