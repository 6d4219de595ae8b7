//! A toolchain, probed once, and identified by the bytes of everything that affects its objects.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_model::compiler::{CompilerFacts, DEVICE_LIBS, Program, ROCM, SuppliedConstant};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Error, Language};
use gfxpack_process::{FileDigests, Identity, Timestamp};
use rayon::prelude::*;

use crate::discover::{Candidate, Driver};
use crate::error;
use crate::isa_constants;
use crate::probe::{self, Probed, ProgramRunner};
use crate::probe_cache::ProbeCache;

/// Below a ROCm prefix.
const HIP_HEADERS: &str = "include/hip";

/// The bits of a mode that hold the file type.
const FILE_TYPE: u32 = 0o170_000;

/// The files and directories behind a toolchain's digest, taken before they were hashed.
#[derive(Debug)]
struct Snapshot {
    taken: Timestamp,
    identities: Vec<(PathBuf, Option<Identity>)>,
}

/// A probed toolchain.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The hipcc driver; `None` if clang alone was asked for.
    pub hipcc: Option<PathBuf>,
    /// The clang that hipcc runs, or the given one.
    pub clang: PathBuf,
    /// Clang's version: `15.0.6`.
    pub clang_version: String,
    /// HIP's version, if known.
    pub hip_version: Option<[u32; 3]>,
    /// The directory of the device libraries' bitcode that jobs use.
    pub device_libs: PathBuf,
    /// The directory of the device libraries as they are installed.
    pub installed_libs: PathBuf,
    /// Constants that the installed device libraries lack and `device_libs` contains.
    pub supplied: Vec<SuppliedConstant>,
    /// The prefix whose `include` holds HIP's headers.
    pub rocm: PathBuf,
    /// A digest of programs, shared libraries, device libraries, the headers of the compiler and
    /// HIP, and supplied constants.
    pub digest: Digest,
    /// A digest of what OpenCL C's objects depend on: all but HIP's headers and driver.
    pub opencl_c: Digest,
    /// A digest of what assembly's objects depend on: programs with their libraries.
    pub assembly: Digest,
    /// The digest without supplied constants.
    closure: Digest,
    /// Every file that the digest covers, with the digest of its content. Programs and their
    /// libraries have their file names, others `directory/file`. An entry `directory/` covers which
    /// directories and files in it are the same, and the targets of its links.
    pub covered_files: Arc<[(String, Digest)]>,
    /// Directories covered by the digest.
    covered: Vec<PathBuf>,
    /// Processors that clang knows.
    pub(crate) processors: BTreeSet<String>,
    /// ISA versions that the device libraries know: `906`, `90a`.
    pub(crate) isas: BTreeSet<String>,
    /// The programs with links resolved, their shared libraries, and configuration files.
    pub files: Vec<PathBuf>,
    /// The last snapshot after which the files had the digested content.
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    /// The complete environment of its programs.
    pub environment: Vec<(OsString, OsString)>,
}

impl Toolchain {
    /// Probes a candidate. `runner` runs its programs for unknown answers; with `keep`, answers are
    /// stored in `cache`.
    pub(crate) fn probe(
        candidate: &Candidate,
        environment: &[(OsString, OsString)],
        digests: &FileDigests,
        runner: &ProgramRunner<'_>,
        (cache, keep): (&Path, bool),
    ) -> Result<Self, Error> {
        let known = ProbeCache::new(cache, candidate, environment, digests);
        let ask = || known.ask(runner, Timestamp::now(), keep);
        let Probed { found, clang_version, processors, configuration } =
            known.read(runner).map_or_else(ask, Ok)?;
        let programs: BTreeSet<&PathBuf> = found.programs.iter().chain([&found.clang]).collect();
        let programs = programs.into_par_iter().map(|program| runner.with_libraries(program));
        let programs: Vec<Vec<PathBuf>> = programs.collect::<Result<_, _>>()?;
        let programs: BTreeSet<_> = programs.into_iter().flatten().chain(configuration).collect();
        let programs: Vec<PathBuf> = programs.into_iter().collect();
        let hipcc = match &candidate.driver {
            Driver::Hipcc(hipcc) => Some(hipcc.clone()),
            Driver::Clang(_) => None,
        };
        let hip_version = probe::header_version(&found.rocm).or(found.hip_version);
        let device_libs = as_asked_for(candidate, found.device_libs)?;
        let isas = probe::isas(&device_libs)?;
        let covered: Vec<PathBuf> =
            [device_libs.clone(), found.resource_dir.join("include"), found.rocm.join(HIP_HEADERS)]
                .into_iter()
                .filter(|dir| dir.is_dir())
                .collect();
        let decides = |dir: &&PathBuf| dir_decides(dir, Language::OpenclC);
        let of_opencl_c: Vec<PathBuf> = covered.iter().filter(decides).cloned().collect();
        let mut files = programs.clone();
        files.extend(hipcc.iter().flat_map(|hipcc| probe::wrapper_files(hipcc)));
        let snapshot = Arc::new(Snapshot::take(&files, &covered));
        let assembly = digest_of(&closure(&programs, &[], digests).map_err(unreadable)?);
        let opencl_c = digest_of(&closure(&programs, &of_opencl_c, digests).map_err(unreadable)?);
        let covered_files = closure(&files, &covered, digests).map_err(unreadable)?;
        let closure = digest_of(&covered_files);
        Ok(Self {
            hipcc,
            clang: found.clang,
            clang_version,
            hip_version,
            installed_libs: device_libs.clone(),
            device_libs,
            rocm: found.rocm,
            digest: closure,
            supplied: Vec::new(),
            closure,
            covered_files: covered_files.into(),
            opencl_c,
            assembly,
            covered,
            processors,
            isas,
            files,
            snapshot: Arc::new(Mutex::new(snapshot)),
            environment: environment.to_vec(),
        })
    }

    /// The same toolchain with the constants that its device libraries lack in a directory below
    /// `cache`, which is not created yet; `None` if nothing is lacking, or hipcc chooses the device
    /// libraries.
    pub(crate) fn with_constants(&self, cache: &Path) -> Option<Self> {
        let supplied = isa_constants::missing(&self.installed_libs, &self.processors, &self.isas);
        if supplied.is_empty() || self.hipcc.is_some() {
            return None;
        }
        let isas = supplied.iter().filter_map(|constant| constant.gfx.as_deref());
        let isas = isas.map(|gfx| gfx.trim_start_matches("gfx").to_owned());
        let with_constants = |closure: Digest| {
            Hasher::new("gfxpack toolchain with constants 1")
                .field(closure.as_ref())
                .field(isa_constants::digest(&supplied).as_ref())
                .finish()
        };
        let (digest, opencl_c) = (with_constants(self.closure), with_constants(self.opencl_c));
        Some(Self {
            isas: self.isas.iter().cloned().chain(isas).collect(),
            device_libs: isa_constants::directory(
                cache,
                &self.installed_libs,
                self.closure,
                &supplied,
            ),
            supplied,
            digest,
            opencl_c,
            ..self.clone()
        })
    }

    /// The same toolchain with the directory of supplied constants, if there is one, below another
    /// cache directory.
    pub(crate) fn with_libraries_in(&self, cache: &Path) -> Self {
        let mut other = self.clone();
        if !self.supplied.is_empty() {
            let libs = &self.installed_libs;
            other.device_libs = isa_constants::directory(cache, libs, self.closure, &self.supplied);
        }
        other
    }

    /// Creates the directory of device libraries, if it has supplied constants and does not exist.
    pub(crate) fn supply(&self, runner: &ProgramRunner<'_>) -> Result<(), Error> {
        if self.supplied.is_empty() {
            return Ok(());
        }
        isa_constants::make(
            &self.device_libs,
            &self.installed_libs,
            &self.clang,
            &self.supplied,
            runner,
        )
    }

    /// The compiler as text: `hipcc 5.2.21153, clang 15.0.6`.
    pub fn identity(&self) -> String {
        let hip = match (&self.hipcc, self.hip_version) {
            (Some(_), Some([major, minor, patch])) => format!("hipcc {major}.{minor}.{patch}, "),
            (Some(_), None) => "hipcc, ".to_owned(),
            (None, Some([major, minor, patch])) => format!("HIP {major}.{minor}.{patch}, "),
            (None, None) => String::new(),
        };
        format!("{hip}clang {}", self.clang_version)
    }

    /// Whether both are the same installation, not only equal ones in two directories.
    pub fn is(&self, other: &Self) -> bool {
        let parts = |toolchain: &Self| {
            let Self { hipcc, clang, device_libs, rocm, .. } = toolchain;
            (hipcc.clone(), clang.clone(), device_libs.clone(), rocm.clone())
        };
        self.digest == other.digest && parts(self) == parts(other)
    }

    /// Returns the result of `make`, which uses the files that affect a language's objects, unless
    /// one of these changed meanwhile, as while a package manager installs another version.
    ///
    /// # Errors
    /// The error of `make`, or one that names a file whose content changed.
    pub fn while_unchanged<T>(
        &self,
        language: Language,
        digests: &FileDigests,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let made = make()?;
        self.check_unchanged(language, digests)?;
        Ok(made)
    }

    /// Checks that the files that affect a language's objects have the digested content. Files
    /// that nobody touched since they had it are not read.
    fn check_unchanged(&self, language: Language, digests: &FileDigests) -> Result<(), Error> {
        if language != Language::Assembly && !self.has_sound_constants() {
            return Err(changed(&self.device_libs));
        }
        let before = Arc::clone(&self.snapshot.lock().expect("no panic inside"));
        let decides = |path: &Path| {
            let mut dirs = self.covered.iter().filter(|dir| path.starts_with(dir)).peekable();
            dirs.peek().is_none() || dirs.any(|dir| dir_decides(dir, language))
        };
        // A file that had just changed may have changed again without a difference in its times.
        let is_as_before = |(path, then): &(PathBuf, Option<Identity>)| {
            identity(path) == *then && then.is_none_or(|it| it.was_settled(before.taken))
        };
        if before.identities.iter().filter(|(path, _)| decides(path)).all(is_as_before) {
            return Ok(());
        }
        let now = Snapshot::take(&self.files, &self.covered);
        let files = closure(&self.files, &self.covered, digests);
        let files = files.map_err(|(path, _)| changed(&path))?;
        // A directory's entry changes with the files in it, which are better named.
        let names = different_names(&self.covered_files, &files).into_iter();
        if let Some(name) = names.min_by_key(|name| name.ends_with('/')) {
            let program = self.files.iter().find(|file| file.ends_with(name));
            return Err(changed(program.map_or(Path::new(name), PathBuf::as_path)));
        }
        *self.snapshot.lock().expect("no panic inside") = Arc::new(now);
        Ok(())
    }

    /// Whether the supplied constants exist and are undamaged.
    fn has_sound_constants(&self) -> bool {
        self.supplied.is_empty()
            || isa_constants::is_sound(&self.device_libs, &self.installed_libs, &self.supplied)
    }

    /// The directory of device libraries with supplied constants, which is in the cache; `None` if
    /// none are supplied.
    pub fn supplied_libs(&self) -> Option<&Path> {
        (!self.supplied.is_empty()).then_some(&*self.device_libs)
    }

    /// The files and directories of the digest for a language.
    pub fn covered_paths(&self, language: Language) -> Vec<PathBuf> {
        let dirs = self.covered.iter().chain([&self.device_libs]);
        let dirs: Vec<&PathBuf> = dirs.filter(|dir| dir_decides(dir, language)).collect();
        // The targets of links were hashed under the links' names.
        let linked = dirs.iter().flat_map(|dir| walk(dir)).flatten();
        let linked = linked.filter(|path| path.is_symlink());
        let linked = linked.filter_map(|path| fs::canonicalize(path).ok());
        self.files.iter().cloned().chain(linked).chain(dirs.iter().copied().cloned()).collect()
    }

    /// The properties on which the arguments of its commands depend.
    pub fn facts(&self) -> CompilerFacts {
        let hip_program = if self.hipcc.is_some() { Program::Hipcc } else { Program::Clang };
        CompilerFacts { hip_program, hip_version: self.hip_version }
    }

    /// A planned command in shell syntax.
    pub fn command_line(&self, program: Program, arguments: &[Arc<str>]) -> String {
        let program = self.program(program).display().to_string();
        let args: Vec<String> = std::iter::once(program)
            .chain(arguments.iter().map(|arg| self.fill(arg).to_string_lossy().into_owned()))
            .collect();
        shlex::try_join(args.iter().map(String::as_str)).unwrap_or_else(|_| args.join(" "))
    }

    /// The path of one of its programs.
    pub fn program(&self, program: Program) -> &Path {
        match (program, &self.hipcc) {
            (Program::Hipcc, Some(hipcc)) => hipcc,
            _ => &self.clang,
        }
    }

    /// A planned argument with the toolchain's own directories filled in.
    pub fn fill(&self, argument: &str) -> OsString {
        for (placeholder, dir) in [(DEVICE_LIBS, &self.device_libs), (ROCM, &self.rocm)] {
            if let Some(before) = argument.strip_suffix(placeholder) {
                let mut filled = OsString::from(before);
                filled.push(dir);
                return filled;
            }
        }
        argument.into()
    }
}

/// The device libraries that hipcc will link; an error if they are not the given ones.
fn as_asked_for(candidate: &Candidate, used: PathBuf) -> Result<PathBuf, Error> {
    match &candidate.device_libs {
        Some(given) if fs::canonicalize(given).ok() != fs::canonicalize(&used).ok() => {
            let (given, used) = (given.display(), used.display());
            Err(Error::internal(
                format!("failed to use the device libraries in `{given}`: hipcc takes `{used}`"),
                "this hipcc looks for its own; use --clang with --device-libs",
            ))
        }
        _ => Ok(used),
    }
}

/// Whether a directory of the digest affects a language's objects.
fn dir_decides(dir: &Path, language: Language) -> bool {
    match language {
        Language::Hip => true,
        Language::OpenclC => !dir.ends_with(HIP_HEADERS),
        Language::Assembly => false,
    }
}

/// A digest of the content of all files and their layout, under names that do not depend on where
/// the toolchain is installed.
fn digest_of(entries: &[(String, Digest)]) -> Digest {
    Hasher::new("gfxpack toolchain 1")
        .list(entries.iter().map(|(name, _)| name.as_bytes()))
        .list(entries.iter().map(|(_, digest)| digest))
        .finish()
}

impl Snapshot {
    /// A snapshot of these files, and of directories with everything below them.
    fn take(files: &[PathBuf], dirs: &[PathBuf]) -> Self {
        let taken = Timestamp::now();
        // Unreadable directories are reported when the digest is computed.
        let below = dirs.iter().flat_map(|dir| walk(dir)).flatten();
        let paths: BTreeSet<PathBuf> = files.iter().cloned().chain(below).collect();
        let with_identity = |path: PathBuf| {
            let identity = identity(&path);
            (path, identity)
        };
        let identities = paths.into_iter().map(with_identity).collect();
        Self { taken, identities }
    }
}

/// The error that a toolchain changed while it was used: one of its files, as its digest names it, or
/// the path of a missing file or of the directory with supplied constants.
fn changed(path: &Path) -> Error {
    let file = path.display();
    Error::internal(
        format!("failed to trust what was compiled: the toolchain's `{file}` changed meanwhile"),
        "wait until the installation is complete and run again; what was compiled before the \
         change is kept",
    )
}

/// Names that are in one of two lists of [`Toolchain::covered_files`] only, or whose
/// digests differ.
pub fn different_names<'a>(
    these: &'a [(String, Digest)],
    those: &'a [(String, Digest)],
) -> BTreeSet<&'a str> {
    let [these, those] = [these, those].map(|files| files.iter().collect::<BTreeSet<_>>());
    these.symmetric_difference(&those).map(|(name, _)| name.as_str()).collect()
}

/// `None` for a dangling link.
fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|meta| Identity::from_metadata(&meta))
}

/// A file that can't be read.
type ReadFailure = (PathBuf, io::Error);

fn unreadable((path, error): ReadFailure) -> Error {
    error::io("read", path)(error)
}

/// A directory and everything below it, links followed, ordered by name. A dangling link, or one to
/// a directory above it, is included, with nothing below it.
fn walk(dir: &Path) -> impl Iterator<Item = Result<PathBuf, ReadFailure>> {
    let entries = walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name();
    entries.into_iter().map(move |entry| match entry {
        Ok(entry) => Ok(entry.into_path()),
        Err(error) => {
            let path = error.path().unwrap_or(dir).to_owned();
            let is_end = error.loop_ancestor().is_some() || fs::metadata(&path).is_err();
            if is_end && path.is_symlink() { Ok(path) } else { Err((path, error.into())) }
        }
    })
}

/// A path as text, another one for each path that does not begin with `//`.
pub fn text_of(path: &Path) -> String {
    let escaped = || format!("//{}", path.as_os_str().as_encoded_bytes().escape_ascii());
    path.to_str().map_or_else(escaped, str::to_owned)
}

/// Every file with the digest of its content, and for each directory an entry `directory/` of its
/// layout: the directories in it, dangling links, and which files or directories are the same.
/// `#pragma once` and `..` depend on that. The entries do not depend on the path of the toolchain.
fn closure(
    files: &[PathBuf],
    dirs: &[PathBuf],
    digests: &FileDigests,
) -> Result<Vec<(String, Digest)>, ReadFailure> {
    let name_of = |path: &Path| text_of(Path::new(path.file_name().unwrap_or_default()));
    let mut named: Vec<_> = files.iter().map(|file| (name_of(file), file.clone())).collect();
    let mut layouts = Vec::new();
    // The first name of each file or directory, by device and inode.
    let mut first_names: HashMap<(u64, u64), String> = HashMap::new();
    for dir in dirs {
        let mut layout = Vec::new();
        for path in walk(dir) {
            let path = path?;
            let relative = path.strip_prefix(dir).unwrap_or(&path);
            let name = format!("{}/{}", name_of(dir), text_of(relative));
            let what = match fs::metadata(&path) {
                Err(error) => format!("{:?}", error.raw_os_error()),
                Ok(meta) => {
                    let first = first_names.entry((meta.dev(), meta.ino())).or_insert(name.clone());
                    if meta.is_file() {
                        named.push((name.clone(), path));
                    }
                    if *first != name {
                        first.clone()
                    } else if meta.is_file() {
                        continue;
                    } else {
                        (meta.mode() & FILE_TYPE).to_string()
                    }
                }
            };
            layout.push((name, what));
        }
        let digest = Hasher::new("gfxpack toolchain directory 1")
            .list(layout.iter().map(|(name, _)| name))
            .list(layout.iter().map(|(_, what)| what))
            .finish();
        layouts.push((format!("{}/", name_of(dir)), digest));
    }
    let digest = |(name, file): (String, PathBuf)| {
        let digest = digests.digest(&file).map_err(|error| (file, error))?;
        Ok((name, digest))
    };
    let mut entries: Vec<_> =
        named.into_par_iter().map(digest).collect::<Result<_, ReadFailure>>()?;
    entries.extend(layouts);
    entries.sort();
    entries.dedup();
    Ok(entries)
}

#[cfg(test)]
impl Toolchain {
    /// A toolchain without files.
    fn for_tests() -> Self {
        let snapshot = Arc::new(Snapshot::take(&[], &[]));
        let (digest, dir) = (Digest::of(b""), PathBuf::new);
        Self {
            hipcc: None,
            clang: dir(),
            clang_version: String::new(),
            hip_version: None,
            device_libs: dir(),
            installed_libs: dir(),
            supplied: Vec::new(),
            rocm: dir(),
            digest,
            opencl_c: digest,
            assembly: digest,
            closure: digest,
            covered_files: Arc::new([]),
            covered: Vec::new(),
            processors: BTreeSet::new(),
            isas: BTreeSet::new(),
            files: Vec::new(),
            snapshot: Arc::new(Mutex::new(snapshot)),
            environment: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
