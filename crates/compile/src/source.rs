//! Source closures: a kernel source with all its includes, read once, hashed, and laid out so that
//! the compiler sees the same paths on every machine.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, Language, SourceId, relative_path};
use gfxpack_plan::include::{self, Include, Includes};
use gfxpack_plan::plan::{Source, StagedFile};
use gfxpack_plan::stored;

use crate::nearby_files::{
    Beside, ClosureOrigin, FileId, SourceDirectories, StoredContent, file_id_of, include_root,
    is_file, is_include_root,
};
use crate::source_dirs::SourceDirs;
use crate::stage::PARENT_LEVELS;
use crate::store::{VERSION as STORE_VERSION, is_store};

/// The most files that are laid out for a source that names files in a way that its text does not
/// show.
const MAX_TREE: usize = 20_000;
/// The most bytes of these files.
const MAX_TREE_BYTES: u64 = 256 << 20;
/// Where directories are laid out that are not below the sources' own. No source writes this name
/// by chance.
const OUTSIDE: &str = "gfxpack-outside";
/// The directories of version control, which have no sources.
const VERSION_CONTROL: [&str; 3] = [".git", ".hg", ".svn"];

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

/// The key of a closure: source, staged path, language, include directories, those of options, and
/// whether includes are found by name.
type Loaded = (PathBuf, String, Language, Vec<PathBuf>, Vec<String>, bool);

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) includes: Includes,
}

impl File {
    pub(crate) fn new(bytes: Vec<u8>, language: Language) -> Self {
        let mut includes = include::scan(&bytes, language);
        if includes.is_unclear {
            includes.add_words(&bytes);
        }
        Self { digest: Digest::of(&bytes), includes, bytes }
    }
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
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The closures of a stored plan's used sources, of these languages; the others get no files.
    /// Their paths were checked when the plan was read. `beside` are other files of their
    /// directories on the machine where the plan was made.
    ///
    /// # Errors
    /// If the bytes do not have the digest; and the errors of
    /// `content`.
    pub fn of_stored(
        sources: &[Source],
        beside: &[stored::Beside],
        used: &BTreeMap<SourceId, Language>,
        content: &StoredContent,
    ) -> Result<Self, Error> {
        let mut files: HashMap<(Digest, Language), Arc<File>> = HashMap::new();
        let (mut closures, mut origins) = (Vec::new(), Vec::new());
        let read = |file: &StagedFile, language, files: &mut HashMap<_, _>| {
            let key = (file.digest, language);
            if let Some(known) = files.get(&key) {
                return Ok(Arc::clone(known));
            }
            let bytes = content.read(file.digest, &file.path)?;
            let read = Arc::new(File::new(bytes, language));
            files.insert(key, Arc::clone(&read));
            Ok::<_, Error>(read)
        };
        for (index, source) in sources.iter().enumerate() {
            let mut closure = Vec::new();
            let mut others = Beside::default();
            if let Some(&language) = used.get(&SourceId(index)) {
                for file in &source.files {
                    closure.push((file.path.clone(), read(file, language, &mut files)?));
                }
                if let Some(beside) = beside.get(index) {
                    (others.dirs, others.links) = (beside.dirs.clone(), beside.links.clone());
                    for file in &beside.files {
                        let other = (file.clone(), read(file, language, &mut files)?);
                        others.files.insert(file.path.clone(), other);
                    }
                }
            }
            closures.push(closure);
            origins.push(ClosureOrigin::Stored(others));
        }
        Ok(Self { closures, origins, sources: sources.to_vec(), ..Self::default() })
    }

    /// The size in bytes of a source with all its includes.
    pub(crate) fn closure_size(&self, source: SourceId) -> usize {
        self.closures[source.0].iter().map(|(_, file)| file.bytes.len()).sum()
    }

    /// The files of a source's closure: staged path and content.
    pub fn files(&self, source: SourceId) -> Vec<(&str, &[u8])> {
        let files = self.closures[source.0].iter();
        files.map(|(path, file)| (path.as_str(), file.bytes.as_slice())).collect()
    }

    /// Loads the closure of `real`, which is to be staged at `staged`, and returns its id. Includes
    /// are looked up beside the includer, then in the include directories and those of options,
    /// which are below the source's root, then by name in `dirs`.
    /// Includes that are in none of them are left to the compiler, which has headers of its own.
    ///
    /// # Errors
    /// If a file can't be read, or if two files that are found by name have the same
    /// name.
    pub fn load(
        &mut self,
        real: &Path,
        staged: &str,
        language: Language,
        include_dirs: &[PathBuf],
        option_dirs: &[String],
        dirs: Option<&SourceDirs>,
    ) -> Result<SourceId, Error> {
        let (from, to, option_dirs) = (real.to_owned(), staged.to_owned(), option_dirs.to_vec());
        let request =
            (from, to, language, include_dirs.to_vec(), option_dirs.clone(), dirs.is_some());
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
        let files = BTreeMap::new();
        let mut here = SourceDirectories { root, include_dirs, option_dirs, files };
        let (placed, passed) = self.closure(real, staged, language, &here, dirs)?;
        let mut search = search_dirs(staged, language, &here.include_dirs);
        if dirs.is_some() {
            // Files found by name are all staged in one directory.
            search.insert(0, ".".to_owned());
        }
        here.files = placed.iter().map(|(path, (real, _))| (path.clone(), real.clone())).collect();
        let links = match dirs {
            Some(_) => BTreeMap::new(),
            None => {
                let parents = here.files.keys().filter_map(|path| path.rsplit_once('/'));
                let parents = parents.map(|(parent, _)| parent.to_owned());
                let searched = search.iter().chain(&here.option_dirs);
                here.links(parents.chain(searched.chain(&passed).cloned()))
            }
        };
        self.sources.push(Source {
            name: staged.rsplit('/').next().unwrap_or(staged).to_owned(),
            main: staged.to_owned(),
            include_dirs: search,
            files: staged_files(&placed),
            dirs: passed.into_iter().collect(),
            links: links.into_iter().collect(),
        });
        self.closures.push(placed.into_iter().map(|(path, (_, file))| (path, file)).collect());
        self.origins.push(ClosureOrigin::Here(here));
        let index = SourceId(self.sources.len() - 1);
        self.loaded.insert(request, index);
        Ok(index)
    }

    /// A source and all its includes, by staged path, and the directories that these pass by `..`.
    fn closure(
        &mut self,
        real: &Path,
        staged: &str,
        language: Language,
        here: &SourceDirectories,
        dirs: Option<&SourceDirs>,
    ) -> Result<(Closure, BTreeSet<String>), Error> {
        let mut placed = Closure::new();
        let mut passed = BTreeSet::new();
        let mut queue =
            VecDeque::from([PendingFile { real: real.to_owned(), staged: staged.to_owned() }]);
        let mut followed = HashSet::new();
        let (mut is_unclear, mut has_tree) = (false, false);
        loop {
            let Some(found) = queue.pop_front() else {
                if !is_unclear || mem::replace(&mut has_tree, true) {
                    break;
                }
                let (files, links) = tree(staged, here, dirs.is_some())?;
                queue.extend(files);
                passed.extend(links);
                continue;
            };
            let file = self.read(&found.real, language).map_err(|error| {
                unreadable(staged, &format!("`{}`: {error}", found.real.display()))
            })?;
            if let Some((other, placed)) = placed.get(&found.staged) {
                if placed.digest == file.digest || has_tree {
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
            let named = file.includes.named.iter();
            let next = named.filter(|it| is_first || leads_back(Path::new(&it.path)));
            for include in next {
                queue.extend(resolve(include, &found, here, dirs));
                if dirs.is_none() && leads_back(Path::new(&include.path)) {
                    let parent = found.staged.rsplit_once('/').map_or("", |(dir, _)| dir);
                    let searched = (0..here.include_dirs.len()).map(include_root);
                    let searched = searched.chain(here.option_dirs.iter().cloned());
                    for from in searched.chain([parent.to_owned(), String::new()]) {
                        passed.extend(here.passed(&from, &include.path));
                    }
                }
            }
            is_unclear |= file.includes.is_unclear;
            placed.insert(found.staged, (found.real, file));
        }
        for (path, (real, _)) in &placed {
            let dirs = path.match_indices('/').map(|(end, _)| &path[..end]);
            if let Some((dir, (other, _))) = dirs.filter_map(|dir| placed.get_key_value(dir)).next()
            {
                return Err(one_place(staged, other, real, "need", dir));
            }
        }
        Ok((placed, passed))
    }

    fn read(&mut self, path: &Path, language: Language) -> io::Result<Arc<File>> {
        let key = (path.to_owned(), language);
        if let Some(file) = self.files.get(&key) {
            return Ok(Arc::clone(file));
        }
        let bytes = fs::read(path)?;
        let file = Arc::new(File::new(bytes, language));
        self.files.insert(key, Arc::clone(&file));
        Ok(file)
    }

    /// The origin of a source's files.
    pub(crate) fn origin(&self, source: SourceId) -> &ClosureOrigin {
        &self.origins[source.0]
    }

    /// Whether a source's includes are found by name, so that they are staged under the names by
    /// which they include each other.
    pub(crate) fn is_by_name(&self, source: SourceId) -> bool {
        self.sources[source.0].include_dirs.iter().any(|dir| dir == ".")
    }

    /// Whether a file of a source's closure names others by paths with `..`.
    pub(crate) fn any_leads_back(&self, source: SourceId) -> bool {
        let mut named = self.closures[source.0].iter().flat_map(|(_, file)| &file.includes.named);
        named.any(|include| leads_back(Path::new(&include.path)))
    }

    /// The files of a source's closure, by staged path.
    pub(crate) fn closure_of(&self, source: SourceId) -> &[(String, Arc<File>)] {
        &self.closures[source.0]
    }

    /// Writes a closure and other files of its directories below `dir`, as its compiler finds it:
    /// the very bytes that were hashed, so that a file edited meanwhile can't get a wrong digest.
    pub(crate) fn stage(
        &self,
        source: SourceId,
        others: Option<&Beside>,
        dir: &Path,
    ) -> Result<(), Error> {
        let planned = &self.sources[source.0];
        let links = planned.links.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        let more = others.iter().flat_map(|it| &it.links);
        let links: HashMap<&str, &str> =
            links.chain(more.map(|(from, to)| (from.as_str(), to.as_str()))).collect();
        let own = planned.files.iter().zip(self.closures[source.0].iter().map(|(_, file)| file));
        let more = || others.iter().flat_map(|it| it.files.values());
        let files = || own.clone().chain(more().map(|(staged, file)| (staged, file)));
        let parents = files().filter_map(|(staged, _)| staged.path.rsplit_once('/'));
        let listed = planned.include_dirs.iter().chain(&planned.dirs);
        let dirs: BTreeSet<&str> = parents
            .map(|(parent, _)| parent)
            .chain(listed.chain(others.iter().flat_map(|it| &it.dirs)).map(String::as_str))
            .chain(links.iter().flat_map(|(from, to)| [*from, *to]))
            .collect();
        for below in dirs {
            lay_out_dir(dir, below, &links)?;
        }
        for (staged, file) in files() {
            let path = dir.join(&staged.path);
            match &staged.same_as {
                // The directory may be a link to that of the other file.
                _ if path.exists() => Ok(()),
                Some(other) => fs::hard_link(dir.join(other), &path),
                None => fs::write(&path, &file.bytes),
            }
            .map_err(Error::io("write", &path))?;
        }
        Ok(())
    }
}

/// Creates a directory of a staged source and those above it; some are links to others.
fn lay_out_dir(top: &Path, below: &str, links: &HashMap<&str, &str>) -> Result<(), Error> {
    let ends = below.match_indices('/').map(|(at, _)| at).chain([below.len()]);
    for dir in ends.map(|end| &below[..end]).filter(|dir| !dir.is_empty()) {
        let path = top.join(dir);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        let made = match links.get(dir) {
            // It is outside of the sources.
            Some(&target) if target == dir => lay_out_outside(top, dir),
            None if is_include_root(dir) => lay_out_outside(top, dir),
            Some(target) => {
                lay_out_dir(top, target, links)?;
                link_below(top, &path, Path::new(target))
            }
            None => fs::create_dir(&path),
        };
        made.map_err(Error::io("create", &path))?;
    }
    Ok(())
}

/// Creates a link to a directory below `top`.
fn link_below(top: &Path, path: &Path, target: &Path) -> io::Result<()> {
    // Links that may be above it lead to directories below `top` too.
    let (top, parent) = (fs::canonicalize(top)?, path.parent().unwrap_or(top));
    let parent = fs::canonicalize(parent)?;
    let depth = parent.strip_prefix(top).map_or(0, |below| below.components().count());
    symlink(Path::new(".").join("../".repeat(depth)).join(target), path)
}

/// Lays out a directory that is not below the sources' own: `..` from there leads to nothing.
fn lay_out_outside(top: &Path, below: &str) -> io::Result<()> {
    let own = Path::new(OUTSIDE).join(below.replace('/', "%"));
    let target = (0..PARENT_LEVELS).fold(own, |dir, _| dir.join(OUTSIDE));
    fs::create_dir_all(top.join(&target))?;
    link_below(top, &top.join(below), &target)
}

/// Whether a directory is a cache or an output of gfxpack.
fn is_written_by_us(dir: &Path) -> bool {
    is_store(&dir.join(STORE_VERSION))
        || dir.join("kdb").is_dir() && dir.join("manifest.json").is_file()
}

/// Every file of a source's directories, and the links among these to directories above them, for a
/// source whose text does not show what it reads.
fn tree(
    staged: &str,
    here: &SourceDirectories,
    by_name: bool,
) -> Result<(Vec<PendingFile>, Vec<String>), Error> {
    let tops = [(String::new(), &here.root)].into_iter().chain(
        here.include_dirs.iter().enumerate().map(|(number, dir)| (include_root(number), dir)),
    );
    let (mut found, mut links, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (prefix, top) in tops {
        let walk = walkdir::WalkDir::new(top)
            .follow_links(true)
            .max_depth(if by_name { 1 } else { usize::MAX })
            .sort_by_file_name()
            .into_iter()
            .filter_entry(|entry| {
                let is_other = VERSION_CONTROL.iter().any(|name| entry.file_name() == *name);
                entry.depth() == 0 || !(is_other || is_written_by_us(entry.path()))
            });
        let staged_at = |real: &Path| {
            let below = real.strip_prefix(top).ok().and_then(Path::to_str);
            below.and_then(|below| relative_path::join(&prefix, below))
        };
        for entry in walk {
            let real = match entry {
                Ok(entry) => entry.into_path(),
                Err(error) => {
                    let path = error.path().filter(|_| error.loop_ancestor().is_some());
                    links.extend(path.and_then(staged_at));
                    // What can't be read is not there for the compiler either.
                    continue;
                }
            };
            let Some(staged) = staged_at(&real).filter(|_| is_file(&real)) else { continue };
            bytes += fs::metadata(&real).map_or(0, |meta| meta.len());
            found.push(PendingFile { real, staged });
            if found.len() > MAX_TREE || bytes > MAX_TREE_BYTES {
                return Err(Error::usage(
                    format!(
                        "failed to load source `{staged_name}`: a name that it includes is made by \
                         macros, and more than {MAX_TREE} files or {} MiB lie beside it",
                        MAX_TREE_BYTES >> 20,
                        staged_name = found[0].staged,
                    ),
                    "write the name into the #include, or put the kernel's sources into a \
                     directory of their own",
                ));
            }
        }
    }
    tracing::debug!(source = staged, files = found.len(), "all files beside it are declared");
    Ok((found, links))
}

fn unreadable(name: &str, reason: &str) -> Error {
    Error::usage(
        format!("failed to read source `{name}`: {reason}"),
        "check its permissions and content; an #include may name files below the manifest's \
         directory, its include-dirs, or --source-dir; assembly names a file by its path from the \
         manifest's directory (for keys, from the source's) or from an include-dir",
    )
}

/// Two files need the same staged path: they are found by name, or are a directory and a file.
fn one_place(source: &str, one: &Path, other: &Path, verb: &str, place: &str) -> Error {
    let (one, other) = (one.display(), other.display());
    Error::usage(
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

/// The files that an include may refer to, judged by its text alone: beside the includer, in every
/// include directory, and for the assembler in the directory that it runs in. Includes that are found
/// by name are only the nearest. An include that leads out of the sources' directory is left to the
/// compiler, which won't find it.
fn resolve(
    include: &Include,
    includer: &PendingFile,
    here: &SourceDirectories,
    dirs: Option<&SourceDirs>,
) -> Vec<PendingFile> {
    if include.path.starts_with('/') {
        return Vec::new();
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
    let staged_dir = includer.staged.rsplit_once('/').map_or("", |(dir, _)| dir);
    let beside = includer.real.parent().map(|parent| (parent.to_owned(), staged_dir.to_owned()));
    let root = (here.root.clone(), String::new());
    let quoted = include.quoted.then_some([beside, Some(root)]).into_iter().flatten().flatten();
    let searched = here.include_dirs.iter().enumerate();
    let searched = searched.map(|(number, dir)| (dir.clone(), include_root(number)));
    let by_option = here.option_dirs.iter().map(|dir| (here.root.join(dir), dir.clone()));
    let searched = searched.chain(by_option);
    let there = quoted.chain(searched).map(|(dir, staged)| (dir.join(&include.path), staged));
    let mut found = there
        .filter(|(real, _)| is_file(real))
        .filter_map(|(real, staged)| laid_out(real, &staged));
    match dirs {
        None => found.collect(),
        Some(dirs) => found
            .next()
            .or_else(|| laid_out(dirs.nearest(&include.path, &includer.real)?.to_owned(), ""))
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
