//! What a job's compilers may see, and the key of its object.
//!
//! A compiler sees the files that are named: by its source, by what these files include, by the
//! system's headers that they include, and by its command. Nothing else is there for it. So an object
//! is a function of its key, which covers the toolchain, the commands, and all of these files.
//!
//! For every name, every file counts that it may mean: in each directory that is searched, and beside
//! the includer. Which of them is read, the order of directories, `#include_next` and conditions
//! decide, which the key covers too.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gfxpack_launch::{
    CommandTemplate, Direct, DriverCommands, Drivers, HeaderInputs, HeaderSearch,
};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Language, SourceId, ToolchainId, relative_path};
use gfxpack_plan::include::{self, Include};
use gfxpack_plan::plan::{Job, StagedFile};
use gfxpack_plan::stored;
use gfxpack_process::Cancel;
use gfxpack_process::watch::{FileSystemCache, Visible};
use gfxpack_toolchain::{Toolchain, text_of};

use crate::context::command_of;
use crate::explain::ChangedPart;
use crate::nearby_files::{Beside, ClosureOrigin, FileId, file_id_of, is_file};
use crate::source::{File, SourceSet, leads_back};
use crate::store::{COMMANDS, ObjectStore};

mod admitted;
mod command_paths;
mod inputs;
mod search;

use admitted::Admitted;
use command_paths::CommandPaths;
pub(crate) use inputs::Inputs;
pub(crate) use search::OutsideFile;
use search::Search;

/// Headers that the compiler reads for OpenCL C although no file includes them.
///
/// Source: llvm-project, clang/lib/Headers/opencl-c-base.h and
/// clang/lib/Frontend/InitPreprocessor.cpp, `InitializeStandardPredefinedMacros`.
const IMPLICIT: [&str; 2] = ["opencl-c-base.h", "opencl-c.h"];

/// What was found out once, by what it is about.
type Known<K, V> = Mutex<HashMap<K, Arc<V>>>;

/// Finds out what jobs may see while a command of gfxpack runs: each file is looked at once, each
/// driver asked once.
#[derive(Debug)]
pub struct Declarer<'a> {
    pub(crate) file_system: &'a FileSystemCache<'a>,
    sources: &'a SourceSet,
    pub(crate) drivers: Drivers<'a>,
    admitted: Vec<Admitted>,
    /// By toolchain, language and searched directories.
    searches: Known<(ToolchainId, Language, Vec<PathBuf>), Search>,
    known: Known<(SourceId, Digest), OnceLock<Arc<Inputs>>>,
    /// What the toolchains' digests cover, without links.
    covered: Known<(ToolchainId, Language), [PathBuf]>,
    /// Makes keys that no other build has.
    once: Digest,
}

/// What a job may see, and the key of its object.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The key of the job's object.
    pub key: Digest,
    /// `None` if the commands of its driver are not known. Its object is for one build only.
    pub(crate) inputs: Option<Arc<Inputs>>,
}

/// One thing that a key covers: its kind, its name, and a digest of what it is.
pub(crate) type Listed = (ChangedPart, String, Digest);

impl Declared {
    /// Adds what is staged besides the source's closure to that of others, and passes each file's
    /// content on.
    ///
    /// # Errors
    /// The errors of `store`.
    pub fn add_beside<E>(
        &self,
        beside: &mut stored::Beside,
        store: impl Fn(Digest, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(inputs) = &self.inputs else { return Ok(()) };
        for (staged, file) in inputs.others.files.values() {
            store(staged.digest, &file.bytes)?;
            if !beside.files.contains(staged) {
                beside.files.push(staged.clone());
            }
        }
        beside.dirs.extend(inputs.others.dirs.iter().cloned());
        beside.links.extend(inputs.others.links.clone());
        Ok(())
    }
}

impl<'a> Declarer<'a> {
    /// For a plan's sources and toolchains, both in the plan's order. Besides the sources,
    /// compilers may read the directories `admitted`. The drivers' answers are kept in the store.
    pub fn new(
        file_system: &'a FileSystemCache<'a>,
        sources: &'a SourceSet,
        toolchains: &'a [Toolchain],
        store: &'a ObjectStore,
        cancel: &'a Cancel,
        admitted: &[PathBuf],
    ) -> Self {
        let kept = store.dir.join(COMMANDS);
        let drivers = Drivers::new(toolchains, sources, kept, file_system, cancel);
        let admit = |dir: &PathBuf| Admitted {
            dir: std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
            real: file_system.real(dir),
            content: OnceLock::new(),
        };
        // Every process finds files of its own there.
        let is_shared = |dir: &&PathBuf| !file_system.leads_to_proc(&dir.join("."));
        let admitted = admitted.iter().filter(is_shared).map(admit).collect();
        let random = RandomState::new().build_hasher().finish();
        let once = Hasher::new("gfxpack build 1")
            .field(&std::process::id().to_be_bytes())
            .field(&random.to_be_bytes())
            .finish();
        let (searches, known, covered) = Default::default();
        Self { file_system, sources, drivers, admitted, searches, known, covered, once }
    }

    /// The same, but writes nothing to the store.
    pub fn without_writing(self) -> Self {
        Self { drivers: self.drivers.without_writing(), ..self }
    }

    /// What one job of the plan may see, and its key.
    pub fn declared(&self, job: &Job) -> Declared {
        let Some((_, commands)) = self.drivers.direct(&command_of(job)) else {
            return Declared { key: self.key_for_one_build(job), inputs: None };
        };
        let inputs = self.inputs(job, &commands);
        let key = Hasher::new("gfxpack object 1")
            .field(job.digest.as_ref())
            .field(inputs.digest.as_ref())
            .finish();
        Declared { key, inputs: Some(inputs) }
    }

    /// A key that no other build has.
    pub(crate) fn key_for_one_build(&self, job: &Job) -> Digest {
        let hasher = Hasher::new("gfxpack object of one build 1");
        hasher.field(job.digest.as_ref()).field(self.once.as_ref()).finish()
    }

    /// The commands that a job's driver would run, if they are known.
    pub(crate) fn direct(&self, job: &Job) -> Option<Direct> {
        self.drivers.direct(&command_of(job))
    }

    pub(crate) fn toolchain(&self, toolchain: ToolchainId) -> &'a Toolchain {
        &self.drivers.toolchains[toolchain.0]
    }

    /// What the toolchain's digest covers, without links.
    fn covered(&self, toolchain: ToolchainId, language: Language) -> Arc<[PathBuf]> {
        let mut known = self.covered.lock().expect("no panic inside");
        let find = || {
            let paths = self.toolchain(toolchain).covered_paths(language);
            let paths = paths.iter().map(|path| self.file_system.real(path));
            let covered: BTreeSet<PathBuf> = paths.collect();
            covered.into_iter().collect()
        };
        Arc::clone(known.entry((toolchain, language)).or_insert_with(find))
    }

    fn inputs(&self, job: &Job, commands: &DriverCommands) -> Arc<Inputs> {
        let slot = {
            let mut known = self.known.lock().expect("no panic inside");
            Arc::clone(known.entry((job.source, commands.name)).or_default())
        };
        let make = || Arc::new(self.find_inputs(job, commands));
        Arc::clone(slot.get_or_init(make))
    }

    fn search(&self, toolchain: ToolchainId, language: Language, dirs: &[PathBuf]) -> Arc<Search> {
        let mut searches = self.searches.lock().expect("no panic inside");
        let make = || {
            let (covered, dirs) = (self.covered(toolchain, language), dirs.to_vec());
            Arc::new(Search { dirs, covered, found: Mutex::default() })
        };
        Arc::clone(searches.entry((toolchain, language, dirs.to_vec())).or_insert_with(make))
    }

    fn find_inputs(&self, job: &Job, commands: &DriverCommands) -> Inputs {
        let Job { source, toolchain, language, .. } = *job;
        let paths = CommandPaths::new(&commands.list, &self.covered(toolchain, language));
        let search = self.search(toolchain, language, &paths.searched);
        let closure = self.sources.closure_of(source);
        let mut named: BTreeSet<&Include> =
            closure.iter().flat_map(|(_, file)| &file.includes.named).collect();
        named.extend(&paths.included);
        let implicit = IMPLICIT.map(|name| Include { path: name.to_owned(), quoted: false });
        named.extend(implicit.iter().filter(|_| language == Language::OpenclC));
        let mut others = self.searched_by(job, &paths.own);
        let mut asked: HashSet<String> = HashSet::new();
        let mut own_names: BTreeSet<Include> = BTreeSet::new();
        let outside = loop {
            let names = named.iter().copied().chain(&own_names);
            let outside = search.reachable(names, &paths.files, self.file_system.digests());
            let by_outside = outside.iter().flat_map(|file| &file.includes.named);
            // The command may search more directories of the source than its plan.
            let new: Vec<String> = by_outside
                .chain(named.iter().copied())
                .chain(&own_names)
                .map(|include| include.path.clone())
                .filter(|name| asked.insert(name.clone()))
                .collect();
            let found = self.beside(job, &paths.own, &new, &mut others);
            if found.is_empty() {
                break outside;
            }
            for (staged, file) in found {
                own_names.extend(file.includes.named.iter().cloned());
                others.files.insert(staged.path.clone(), (staged, file));
            }
        };
        self.add_links(source, &mut others);
        let is_absolute = |include: &&Include| include.path.starts_with('/');
        let by_path = named.iter().copied().chain(&own_names).any(|it| is_absolute(&it));
        let names = named.into_iter().chain(&own_names);
        let (mut undeclared, admitted) = self.by_absolute_path(names, &outside, &search);
        undeclared.extend(self.above(source));
        let is_unclear = closure.iter().any(|(_, file)| file.includes.is_unclear);
        let admitted: Vec<&Admitted> =
            self.admitted.iter().filter(|it| is_unclear || admitted.contains(&it.dir)).collect();
        let (searches, twice) = self.conflicts(source, &paths.searched, &outside, &admitted);
        let mut listed = listed(commands, &outside, &others, &admitted);
        listed.extend(twice.iter().map(|(own, path)| {
            let digest = Digest::of(path.as_os_str().as_encoded_bytes());
            (ChangedPart::Source, text_of(own), digest)
        }));
        let mut dirs = paths.dirs;
        let mut trees = Vec::new();
        for it in &admitted {
            let has_links = it.content().is_none_or(|content| content.has_dir_links);
            let list = if has_links { &mut dirs } else { &mut trees };
            list.extend([it.dir.clone(), it.real.clone()]);
        }
        let mut names = paths.covered;
        names.extend(paths.searched.iter().cloned());
        names.extend(outside.iter().map(|file| file.path.clone()));
        let content = admitted.iter().filter_map(|it| it.content());
        names.extend(content.flat_map(|content| content.targets.iter().cloned()));
        Inputs {
            digest: digest_of(&listed),
            others_digest: digest_of(&listed_beside(&others).collect::<Vec<_>>()),
            listed,
            others,
            dirs,
            trees,
            names,
            outside,
            searches,
            twice,
            undeclared,
            admitted: admitted.iter().map(|it| (it.dir.clone(), it.digest())).collect(),
            is_closed: admitted.is_empty() && !by_path && !is_unclear && !self.leads_out(source),
        }
    }

    /// Files of a source's directories, besides its closure, that these names may mean.
    fn beside(
        &self,
        job: &Job,
        searched: &[PathBuf],
        names: &[String],
        others: &mut Beside,
    ) -> Vec<(StagedFile, Arc<File>)> {
        let dirs: Vec<&str> = searched.iter().filter_map(|dir| dir.to_str()).collect();
        if let ClosureOrigin::Here(here) = self.sources.origin(job.source) {
            for name in names.iter().filter(|name| leads_back(Path::new(name))) {
                others.dirs.extend(dirs.iter().flat_map(|dir| here.passed(dir, name)));
            }
        }
        let known = &others.files;
        let closure = self.sources.closure_of(job.source);
        let has = |path: &str| {
            known.contains_key(path)
                || closure.binary_search_by(|(own, _)| own.as_str().cmp(path)).is_ok()
        };
        let origin = self.sources.origin(job.source);
        let listed = |dir: &str| -> Option<HashSet<std::ffi::OsString>> {
            let ClosureOrigin::Here(here) = origin else { return None };
            let entries = fs::read_dir(here.path(Path::new(dir))).ok()?;
            Some(entries.flatten().map(|entry| entry.file_name()).collect())
        };
        let mut found = Vec::new();
        for dir in dirs {
            let dir = if dir == "." { "" } else { dir };
            let there = listed(dir);
            let is_there = |name: &str| {
                let first = Path::new(name).components().next();
                let there = there.as_ref();
                there.is_none_or(|it| first.is_some_and(|part| it.contains(part.as_os_str())))
            };
            for name in names.iter().filter(|name| !name.starts_with('/') && is_there(name)) {
                let Some(path) = relative_path::join(dir, name) else { continue };
                if has(&path) || found.iter().any(|(it, _): &(StagedFile, _)| it.path == path) {
                    continue;
                }
                found.extend(self.read_beside(job, path));
            }
        }
        found
    }

    /// The directories of a source that a command searches, and its plan does not know.
    fn searched_by(&self, job: &Job, searched: &[PathBuf]) -> Beside {
        let mut others = Beside::default();
        let origin = self.sources.origin(job.source);
        let known = &self.sources.sources()[job.source.0].include_dirs;
        let dirs = searched.iter().filter_map(|dir| dir.to_str());
        for dir in dirs.filter(|dir| !known.iter().any(|known| known == dir)) {
            match origin {
                ClosureOrigin::Here(here) => {
                    others.dirs.extend(here.passed("", dir));
                    let is_dir = here.path(Path::new(dir)).is_dir() && !leads_back(Path::new(dir));
                    others.dirs.extend((is_dir && dir != ".").then(|| dir.to_owned()));
                }
                ClosureOrigin::Stored(stored) => {
                    let is_own =
                        |it: &&String| Path::new(dir).starts_with(it) || leads_back(Path::new(dir));
                    others.dirs.extend(stored.dirs.iter().filter(is_own).cloned());
                }
            }
        }
        others
    }

    /// Adds the links among what is staged besides the source's closure.
    fn add_links(&self, source: SourceId, others: &mut Beside) {
        let planned = &self.sources.sources()[source.0];
        let known = |dir: &String| planned.links.iter().any(|(from, _)| from == dir);
        let parents = others.files.keys().filter_map(|path| path.rsplit_once('/'));
        let parents = parents.map(|(parent, _)| parent.to_owned());
        let dirs: Vec<String> = parents.chain(others.dirs.iter().cloned()).collect();
        others.links = match self.sources.origin(source) {
            ClosureOrigin::Here(_) if self.sources.is_by_name(source) => BTreeMap::new(),
            ClosureOrigin::Here(here) => here.links(dirs),
            ClosureOrigin::Stored(stored) => {
                let is_on_the_way =
                    |from: &str| dirs.iter().any(|dir| Path::new(dir).starts_with(from));
                let own = stored.links.iter().filter(|(from, _)| is_on_the_way(from));
                own.map(|(from, to)| (from.clone(), to.clone())).collect()
            }
        };
        others.links.retain(|from, _| !known(from));
    }

    fn read_beside(&self, job: &Job, path: String) -> Option<(StagedFile, Arc<File>)> {
        match self.sources.origin(job.source) {
            ClosureOrigin::Stored(others) => others.files.get(&path).cloned(),
            ClosureOrigin::Here(here) => {
                let real = here.path(Path::new(&path));
                if !is_file(&real) {
                    return None;
                }
                let file = Arc::new(File::new(fs::read(&real).ok()?, job.language));
                // It may be a file of the closure under another name.
                let file_id = file_id_of(&real);
                let same = here.files.iter().find(|(_, own)| file_id_of(own) == file_id);
                let same_as = same.map(|(own, _)| own.clone());
                Some((StagedFile { path, digest: file.digest, same_as }, file))
            }
        }
    }

    /// Files that are named by an absolute path and not declared, and the admitted directories of
    /// others.
    fn by_absolute_path<'i>(
        &self,
        names: impl Iterator<Item = &'i Include>,
        outside: &'i [Arc<OutsideFile>],
        search: &Search,
    ) -> (Vec<PathBuf>, BTreeSet<PathBuf>) {
        let by_outside = outside.iter().flat_map(|file| &file.includes.named);
        let paths = names.chain(by_outside).map(|include| Path::new(&include.path));
        let (mut undeclared, mut admitted) = (Vec::new(), BTreeSet::new());
        for path in paths.filter(|path| path.is_absolute()) {
            let real = self.file_system.real(path);
            let below = self
                .admitted
                .iter()
                .find(|it| path.starts_with(&it.dir) || real.starts_with(&it.real));
            let is_declared = search.dirs.iter().any(|dir| path.starts_with(dir));
            match below {
                Some(below) => drop(admitted.insert(below.dir.clone())),
                None if !is_declared => undeclared.push(path.to_owned()),
                None => {}
            }
        }
        (undeclared, admitted)
    }

    /// Files that a source includes by paths that lead out of its directories, as it names them.
    fn above(&self, source: SourceId) -> Vec<PathBuf> {
        let ClosureOrigin::Here(here) = self.sources.origin(source) else { return Vec::new() };
        let mut above = Vec::new();
        for (staged, file) in self.sources.closure_of(source) {
            let parent = staged.rsplit_once('/').map_or("", |(dir, _)| dir);
            let named = file.includes.named.iter().map(|include| &include.path);
            let leads_out = |path: &&String| {
                let there = here.path(Path::new(parent)).join(path);
                is_file(&there) && there.parent().is_some_and(|dir| here.laid_out(dir).is_none())
            };
            let there = named.filter(|path| leads_back(Path::new(path))).filter(leads_out);
            above.extend(there.map(PathBuf::from));
        }
        above
    }

    /// Whether an include may lead out of a source's directories by `..`.
    fn leads_out(&self, source: SourceId) -> bool {
        let closure = self.sources.closure_of(source);
        let depth = |path: &str| path.matches('/').count();
        let deepest = closure.iter().map(|(path, _)| depth(path)).max().unwrap_or_default();
        let ups = |include: &Include| {
            let parts = Path::new(&include.path).components();
            parts.filter(|part| *part == std::path::Component::ParentDir).count()
        };
        let named = closure.iter().flat_map(|(_, file)| &file.includes.named);
        named.map(ups).max().unwrap_or_default() > deepest
    }

    /// What would be one directory or file for a user's compiler, and is two in the stage.
    fn conflicts(
        &self,
        source: SourceId,
        searched: &[PathBuf],
        outside: &[Arc<OutsideFile>],
        admitted: &[&Admitted],
    ) -> (Option<PathBuf>, Vec<(PathBuf, PathBuf)>) {
        let admitted = admitted.iter().filter_map(|it| it.content());
        let admitted = admitted.flat_map(|content| &content.files);
        let ClosureOrigin::Here(here) = self.sources.origin(source) else {
            // A stored plan does not record which files of this machine its sources are.
            let admitted: HashMap<Digest, &Path> =
                admitted.map(|(path, _, digest)| (*digest, &**path)).collect();
            let twice = self.sources.closure_of(source).iter().filter_map(|(below, file)| {
                Some((PathBuf::from(below), admitted.get(&file.digest)?.to_path_buf()))
            });
            return (None, twice.collect());
        };
        let own_dirs: HashSet<FileId> =
            here.include_dirs.iter().filter_map(|dir| file_id_of(dir)).collect();
        let is_own = |dir: &&PathBuf| file_id_of(dir).is_some_and(|it| own_dirs.contains(&it));
        let searches = searched.iter().find(is_own).cloned();
        let mut others: HashMap<FileId, &Path> =
            admitted.map(|(path, id, _)| (*id, &**path)).collect();
        others.extend(outside.iter().map(|file| (file.identity.file_id(), &*file.path)));
        let twice = here.files.iter().filter_map(|(below, real)| {
            Some((PathBuf::from(below), others.get(&file_id_of(real)?)?.to_path_buf()))
        });
        (searches, twice.collect())
    }
}

/// All that jobs with these commands see besides what their own digests cover, by name.
fn listed(
    commands: &DriverCommands,
    outside: &[Arc<OutsideFile>],
    others: &Beside,
    admitted: &[&Admitted],
) -> Vec<Listed> {
    let unknown = Digest::from_bytes([0; 32]);
    let mut listed = vec![(ChangedPart::Driver, "what it would run".to_owned(), commands.name)];
    // Which names are one file decides what `#pragma once` does.
    let mut first: HashMap<FileId, &Path> = HashMap::new();
    listed.extend(outside.iter().map(|file| {
        let one = *first.entry(file.identity.file_id()).or_insert(&file.path);
        let content = if file.is_covered { unknown } else { file.digest };
        let digest = Hasher::new("gfxpack file 1")
            .field(content.as_ref())
            .field(file.real.as_os_str().as_encoded_bytes())
            .field(one.as_os_str().as_encoded_bytes())
            .finish();
        (ChangedPart::SystemFile, text_of(&file.path), digest)
    }));
    listed.extend(listed_beside(others));
    listed.extend(
        admitted
            .iter()
            .map(|it| (ChangedPart::AllowRead, text_of(&it.real), it.digest().unwrap_or(unknown))),
    );
    listed
}

/// What is staged besides a source's closure.
fn listed_beside(others: &Beside) -> impl Iterator<Item = Listed> {
    fn entry(path: &str, what: [&[u8]; 2]) -> Listed {
        let digest = Hasher::new("gfxpack staged 1").field(what[0]).field(what[1]).finish();
        (ChangedPart::Source, path.to_owned(), digest)
    }
    let files = others.files.values().map(|(staged, _)| {
        let same_as = staged.same_as.as_deref().unwrap_or_default();
        entry(&staged.path, [staged.digest.as_ref(), same_as.as_bytes()])
    });
    let dirs = others.dirs.iter().map(|dir| entry(dir, [b"directory", b""]));
    let links = others.links.iter().map(|(from, to)| entry(from, [b"link", to.as_bytes()]));
    files.chain(dirs).chain(links)
}

fn digest_of(listed: &[Listed]) -> Digest {
    Hasher::new("gfxpack inputs 1")
        .list(listed.iter().map(|(what, ..)| [*what as u8]))
        .list(listed.iter().map(|(_, name, _)| name.as_bytes()))
        .list(listed.iter().map(|(.., digest)| digest))
        .finish()
}

impl HeaderSearch for Declarer<'_> {
    fn inputs(
        &self,
        toolchain: ToolchainId,
        command: &CommandTemplate,
        text: &str,
    ) -> HeaderInputs {
        let commands = std::slice::from_ref(command);
        let covered = self.covered(toolchain, Language::Hip);
        let paths = CommandPaths::new(commands, &covered);
        let search = self.search(toolchain, Language::Hip, &paths.searched);
        let own = include::scan(text.as_bytes(), Language::Hip).named;
        let outside = search.reachable(
            own.iter().chain(&paths.included),
            &paths.files,
            self.file_system.digests(),
        );
        let named = outside.iter().flat_map(|file| &file.includes.named);
        let names = named.chain(&own).chain(&paths.included);
        let names = names.map(|include| PathBuf::from(&include.path)).collect();
        let lists = outside.iter().map(|file| (file.path.as_os_str().as_encoded_bytes(), file));
        let digest = Hasher::new("gfxpack inputs of a header 1")
            .list(lists.clone().map(|(path, _)| path))
            .list(lists.map(|(_, file)| file.digest))
            .finish();
        let files: BTreeSet<PathBuf> = outside.iter().map(|file| file.path.clone()).collect();
        let visible = Visible {
            dirs: paths.dirs,
            names: paths.covered.into_iter().chain(paths.searched).chain(files.clone()).collect(),
            ..Visible::default()
        };
        HeaderInputs { digest, names, files, visible }
    }

    fn are_unchanged(&self, inputs: &HeaderInputs) -> bool {
        let searches = self.searches.lock().expect("no panic inside");
        searches.values().all(|search| {
            let found = search.lock();
            let read = found.files.iter().filter(|file| inputs.files.contains(&file.path));
            read.into_iter().all(|file| file.is_unchanged())
        })
    }
}
