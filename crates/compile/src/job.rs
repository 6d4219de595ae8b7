//! One job: a compiler started, its result checked.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use gfxpack_plan::include;
use gfxpack_plan::plan::Job;
use gfxpack_process::Identity;
use gfxpack_model::{Digest, Language};
use gfxpack_model::code_object::{self, UnfitError};

use crate::answers::Moment;
use crate::engine::{Engine, Place, Starter, Way};
use crate::error::CompileError;
use crate::process::End;
use crate::remote::Site;
use crate::shadow::{absent, searched};
use crate::usage::Usage;
use crate::verdict;

/// A code object, as made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Bytes.
    pub size: u64,
    /// How long the compiler ran.
    pub duration: Duration,
    /// What it used.
    pub usage: Usage,
    /// Where it was made.
    pub site: Site,
}

/// A kernel that could not be made, with the compiler's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// What the compiler wrote, cut at a limit.
    pub output: String,
    /// How long the compiler ran.
    pub duration: Duration,
    /// What it used.
    pub usage: Usage,
    /// Where it was tried.
    pub site: Site,
}

/// Why a kernel could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The compiler said no, with this exit code.
    Refused(i32),
    /// The compiler was ended by this signal.
    Crashed(i32),
    /// It did not end within the time limit.
    TimedOut(Duration),
    /// Its arguments are more than this system gives a program.
    TooLong,
    /// It said yes and wrote nothing.
    NoOutput,
    /// It wrote something that is no code object.
    NoCodeObject(String),
    /// The object is for other targets than asked.
    WrongTarget {
        /// What was asked for.
        expected: String,
        /// What the object is for.
        found: String,
    },
}

impl FailureKind {
    /// One word for machines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Crashed(_) => "crashed",
            Self::TimedOut(_) => "timeout",
            Self::TooLong => "too-long",
            Self::NoOutput => "no-output",
            Self::NoCodeObject(_) => "no-code-object",
            Self::WrongTarget { .. } => "wrong-target",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the compiler refused it (exit code {code})"),
            Self::Crashed(signal) => write!(f, "the compiler crashed (signal {signal})"),
            Self::TimedOut(limit) => {
                write!(f, "the compiler was stopped after {} s", limit.as_secs())
            }
            Self::TooLong => f.write_str(
                "the compiler can't be started: its arguments are too long for this system",
            ),
            Self::NoOutput => f.write_str("the compiler reported success and wrote no object"),
            Self::NoCodeObject(reason) => {
                write!(f, "the compiler wrote something that is no code object: {reason}")
            }
            Self::WrongTarget { expected, found } => {
                write!(f, "the object is for {found}, not for {expected}")
            }
        }
    }
}

/// A code object with the system's files that went into it.
pub(crate) struct Object {
    pub(crate) bytes: Vec<u8>,
    pub(crate) deps: Vec<(PathBuf, Digest)>,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    pub(crate) site: Site,
}

/// A kernel that could not be made.
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    /// The system's files that it rests on, as an object does; `None` where
    /// it is not to be kept, since it might be no more the next time.
    pub(crate) deps: Option<Vec<(PathBuf, Digest)>>,
}

impl From<Failure> for Refusal {
    /// One that is not to be kept.
    fn from(failure: Failure) -> Self {
        Self { failure, deps: None }
    }
}

/// Runs a job in the directory of its staged source; `scratch` is its own.
pub(crate) fn run(
    engine: &Engine<'_>,
    starter: &mut Starter<'_>,
    index: usize,
    stage: &Path,
    scratch: &Path,
) -> Result<Result<Object, Refusal>, CompileError> {
    let started = Instant::now();
    let mut spent = Usage::default();
    for way in [Way::Short, Way::Driver] {
        let mut attempt = settled(engine, starter, index, stage, scratch, way)?;
        let (duration, usage) = match &mut attempt {
            None => continue,
            Some(Ok(object)) => (&mut object.duration, &mut object.usage),
            Some(Err(refusal)) => (&mut refusal.failure.duration, &mut refusal.failure.usage),
        };
        spent = spent.then(*usage);
        (*duration, *usage) = (started.elapsed(), spent);
        match attempt {
            // Whatever failed by a shortcut is for the driver to say.
            Some(Err(refusal)) if way == Way::Short => {
                let Failure { kind, output, .. } = &refusal.failure;
                tracing::debug!(%kind, output, "a shortcut failed");
                if matches!(kind, FailureKind::TimedOut(_)) {
                    return Ok(Err(refusal));
                }
            }
            Some(done) => return Ok(done),
            None => {}
        }
    }
    unreachable!("the driver runs every job")
}

/// How often a job is run because a header is being changed.
const ATTEMPTS: usize = 5;

/// Runs a job until no header changed while it was read: a digest that is
/// taken afterwards would be that of another text.
fn settled(
    engine: &Engine<'_>,
    starter: &mut Starter<'_>,
    index: usize,
    stage: &Path,
    scratch: &Path,
    way: Way,
) -> Result<Option<Result<Object, Refusal>>, CompileError> {
    let mut before: Vec<Fresh> = Vec::new();
    let mut spent = Usage::default();
    for _ in 0..ATTEMPTS {
        let Some(made) = attempt(engine, starter, index, stage, scratch, way)? else {
            return Ok(None);
        };
        let (mut object, fresh) = match made {
            Ok(made) => made,
            Err(refusal) => return Ok(Some(Err(refusal))),
        };
        spent = spent.then(object.usage);
        // What did not change from the end of one attempt to that of the next
        // is what the next one read.
        if fresh.iter().all(|file| before.contains(file)) {
            object.usage = spent;
            return Ok(Some(Ok(object)));
        }
        tracing::debug!(index, ?fresh, "compiled again, as a header has just changed");
        before = fresh;
    }
    Err(CompileError::HeaderChanged(before.swap_remove(0).path))
}

/// An object, with files whose digests may not be of what was read for it.
type Made = (Object, Vec<Fresh>);

fn attempt(
    engine: &Engine<'_>,
    starter: &mut Starter<'_>,
    index: usize,
    stage: &Path,
    scratch: &Path,
    way: Way,
) -> Result<Option<Result<Made, Refusal>>, CompileError> {
    let started = Moment::now();
    let job = &engine.plan.jobs[index];
    let name = match way {
        Way::Short => "short",
        Way::Driver => "o",
    };
    let (output_file, deps_file) = (scratch.join(name), scratch.join(format!("{name}.d")));
    let place = Place { stage, scratch, output: &output_file, deps_file: &deps_file };
    let run = match engine.run(starter, index, &place, way) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(None),
        Err(CompileError::Start { source, .. }) if is_too_long(&source) => {
            let (output, usage, site) = (String::new(), Usage::default(), Site::Here);
            let (kind, duration) = (FailureKind::TooLong, Duration::ZERO);
            return Ok(Some(Err(Failure { kind, output, duration, usage, site }.into())));
        }
        Err(error) => return Err(error),
    };
    let (duration, usage) = (Duration::ZERO, run.usage);
    let kind = match run.end {
        End::Exited(0) => match checked_object(job, &output_file)? {
            Ok(bytes) => {
                let read = read_outside(engine, job, stage, &deps_file, started)?;
                let OutsideDeps { mut deps, fresh } = read.unwrap_or_else(OutsideDeps::unknown);
                // A header that changed since it was precompiled.
                let now: HashMap<&OsStr, Digest> =
                    deps.iter().map(|(path, digest)| (path.as_os_str(), *digest)).collect();
                let other = |(path, digest): &(PathBuf, Digest)| {
                    now.get(path.as_os_str()).is_some_and(|now| now != digest)
                };
                if run.deps.iter().any(other) {
                    return Ok(None);
                }
                deps.extend(run.deps);
                let object = Object { bytes, deps, duration, usage, site: Site::Here };
                return Ok(Some(Ok((object, fresh))));
            }
            Err(kind) => kind,
        },
        End::Exited(_) if lacks_room(&run.words) => {
            tracing::debug!(run.words, "the compiler could not write");
            return Err(CompileError::io("write", scratch)(io::ErrorKind::StorageFull.into()));
        }
        End::Exited(code) => match killed(&run.words) {
            Some(signal) => FailureKind::Crashed(signal),
            None => FailureKind::Refused(code),
        },
        End::Killed(signal) => FailureKind::Crashed(signal),
        End::TimedOut => FailureKind::TimedOut(engine.time_limit),
        End::Cancelled => return Err(CompileError::Interrupted),
    };
    let failure = Failure { kind, output: run.words, duration, usage, site: Site::Here };
    // The driver's word is the one that is told.
    let keep = way == Way::Driver && verdict::lasts(&failure.kind, &failure.output);
    let deps = keep.then(|| rests_on(engine, job, stage, &deps_file, started)).flatten();
    Ok(Some(Err(Refusal { failure, deps })))
}

/// What a refusal rests on; `None` where that can't be told: a compiler that
/// looked for a file in vain lists nothing, and where it is not known which
/// directories are searched, neither are the names that were not there. What
/// has just changed may not be what was read.
fn rests_on(
    engine: &Engine<'_>,
    job: &Job,
    stage: &Path,
    deps_file: &Path,
    started: Moment,
) -> Option<Vec<(PathBuf, Digest)>> {
    let is_searched = job.language == Language::Assembly || engine.direct(job).is_some();
    let read = is_searched.then(|| read_outside(engine, job, stage, deps_file, started));
    let OutsideDeps { deps, fresh } = read?.ok()??;
    fresh.is_empty().then_some(deps)
}

/// What a compiler read outside of stage and toolchain; `None` where it lists
/// nothing.
fn read_outside(
    engine: &Engine<'_>,
    job: &Job,
    stage: &Path,
    deps_file: &Path,
    started: Moment,
) -> Result<Option<OutsideDeps>, CompileError> {
    let listed = match job.language {
        // The assembler lists nothing, and reads nothing but the stage.
        Language::Assembly => Some(Vec::new()),
        Language::Hip | Language::OpenclC => listed(deps_file)?,
    };
    let Some(listed) = listed else { return Ok(None) };
    let mut paths = Vec::new();
    for path in listed {
        paths.extend(outside_stage(stage, path)?);
    }
    // What a precompiled header was made of is named by its text.
    let headers = engine.headers_dir();
    let paths = paths.into_iter().filter(|path| !path.starts_with(&headers));
    outside_deps(engine, job, paths, started).map(Some)
}

/// The signal that ended the compiler behind a driver, which itself exits:
/// what runs out of memory is not refused. A crash is the compiler's own word.
///
/// Source: LLVM, `llvm/lib/Support/Unix/Program.inc` and clang's
/// `Compilation::ExecuteCommand`, which print `strsignal`'s words.
fn killed(words: &str) -> Option<i32> {
    let of = |name: &str| words.contains(&format!("unable to execute command: {name}"));
    if of("Killed") {
        Some(9)
    } else if of("Terminated") {
        Some(15)
    } else {
        None
    }
}

/// Whether a compiler failed for want of room on the disk, which is no word
/// on the kernel. What it says of a place in a source is one.
///
/// Source: LLVM, `llvm/lib/Support/raw_ostream.cpp`, `report_fatal_error` of
/// its destructor; clang's `err_fe_unable_to_open_output`; `strerror`'s words.
fn lacks_room(words: &str) -> bool {
    const SAID: [&str; 4] = [
        "No space left on device",
        "Disk quota exceeded",
        "IO failure on output stream",
        "File too large",
    ];
    words.lines().any(|line| {
        let at = line.to_ascii_lowercase().find("error:");
        at.is_some_and(|at| {
            !verdict::names_place(line) && SAID.iter().any(|said| line[at..].contains(said))
        })
    })
}

fn checked_object(job: &Job, file: &Path) -> Result<Result<Vec<u8>, FailureKind>, CompileError> {
    match fs::read(file) {
        Ok(bytes) => Ok(checked(job, bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Err(FailureKind::NoOutput)),
        Err(error) => Err(CompileError::io("read", file)(error)),
    }
}

/// The bytes, if they are an object that a kdb of the job's target takes.
pub(crate) fn checked(job: &Job, bytes: Vec<u8>) -> Result<Vec<u8>, FailureKind> {
    if bytes.is_empty() {
        return Err(FailureKind::NoOutput);
    }
    match code_object::check_for_kdb(&bytes, &job.target_id) {
        Ok(()) => Ok(bytes),
        Err(UnfitError::OtherTarget { found, needed }) => Err(FailureKind::WrongTarget {
            expected: needed.to_string(),
            found: code_object::spelled(&found),
        }),
        Err(error) => Err(FailureKind::NoCodeObject(error.to_string())),
    }
}

/// Whether a program could not be started for the length of its arguments.
fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ArgumentListTooLong
}

/// What a compiler lists as read; `None` where it lists nothing.
fn listed(deps_file: &Path) -> Result<Option<Vec<PathBuf>>, CompileError> {
    match fs::read_to_string(deps_file) {
        Ok(text) => Ok(Some(depfile_paths(&text)).filter(|paths| !paths.is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CompileError::io("read", deps_file)(error)),
    }
}

/// A file that a compiler lists, if it does not lie in the stage, which it ran
/// in: whatever led there, nothing else covers it.
pub(crate) fn outside_stage(stage: &Path, path: PathBuf) -> Result<Option<PathBuf>, CompileError> {
    let rises = path.components().any(|part| part == Component::ParentDir);
    if path.is_absolute() && !(rises && path.starts_with(stage)) {
        return Ok((!path.starts_with(stage)).then_some(path));
    }
    let within = || path.to_str().is_some_and(|path| include::join("", path).is_some());
    if path.is_relative() && within() {
        return Ok(None);
    }
    // Where a link lies on the way, names do not tell where `..` leads.
    let real = |path: &Path| fs::canonicalize(path).map_err(CompileError::io("read", path));
    let path = real(&stage.join(path))?;
    Ok((!path.starts_with(real(stage)?)).then_some(path))
}

/// Of the files that the compiler read, those that neither the source's digest
/// nor the toolchain's covers: the C and C++ libraries' headers.
///
/// With them come those that would have been read instead, had they been
/// there. `started` is before the compiler was.
pub(crate) fn outside_deps(
    engine: &Engine<'_>,
    job: &Job,
    paths: impl Iterator<Item = PathBuf>,
    started: Moment,
) -> Result<OutsideDeps, CompileError> {
    if job.language == Language::Assembly {
        return Ok(OutsideDeps::default());
    }
    let toolchain = &engine.toolchains[job.toolchain];
    let paths: Vec<PathBuf> = paths.collect();
    let mut found = OutsideDeps::default();
    let add = |path: &PathBuf, found: &mut OutsideDeps| -> Result<(), CompileError> {
        if !toolchain.covers(path, job.language) {
            let meta = fs::metadata(path).map_err(CompileError::io("read", path))?;
            let identity = Identity::of(&meta);
            let digest = engine.digests.digest(path)?;
            if !started.is_after(&identity) {
                found.fresh.push(Fresh { path: path.clone(), identity, digest });
            }
            found.deps.push((path.clone(), digest));
        }
        Ok(())
    };
    paths.iter().try_for_each(|path| add(path, &mut found))?;
    let commands = engine.direct(job).map(|(_, commands)| commands);
    let command = commands.as_ref().and_then(|commands| commands.first());
    let dirs = command.map(searched).unwrap_or_default();
    let read = found.deps.iter().map(|(_, digest)| *digest).collect();
    let asked = engine.sources.asked(job.source);
    let shadows = engine.shadows.of(&dirs, paths, read, asked, started);
    shadows.present.iter().try_for_each(|path| add(path, &mut found))?;
    // A new file among those that the digest covers changes the digest.
    let others = shadows.absent.iter().filter(|path| !toolchain.covers(path, job.language));
    found.deps.extend(others.map(|path| (path.clone(), absent())));
    found.deps.extend(shadows.listings.iter().cloned());
    let late = shadows.late.iter();
    let late = late.map(|(path, identity)| (path.clone(), *identity));
    found.fresh.extend(late.map(|(path, identity)| Fresh { path, identity, digest: absent() }));
    Ok(found)
}

/// What [`outside_deps`] finds.
#[derive(Default)]
pub(crate) struct OutsideDeps {
    pub(crate) deps: Vec<(PathBuf, Digest)>,
    /// Those that changed while the compiler ran or shortly before, as they
    /// are now.
    pub(crate) fresh: Vec<Fresh>,
}

impl OutsideDeps {
    /// Of a compiler that does not list what it read: what it made is for this
    /// build alone.
    fn unknown() -> Self {
        Self { deps: vec![(PathBuf::from("/"), absent())], ..Self::default() }
    }
}

/// A file that has just changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    path: PathBuf,
    identity: Identity,
    digest: Digest,
}

/// The prerequisites of a depfile's one rule.
pub(crate) fn depfile_paths(text: &str) -> Vec<PathBuf> {
    let rule = text.split_once(": ").map_or("", |(_, paths)| paths);
    let mut paths = Vec::new();
    let mut current = String::new();
    let mut letters = rule.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'\n') => {
                letters.next();
            }
            '\\' if matches!(letters.peek(), Some(' ' | '#' | '\\')) => {
                current.extend(letters.next());
            }
            '$' if letters.peek() == Some(&'$') => {
                letters.next();
                current.push('$');
            }
            c if c.is_whitespace() => {
                if !current.is_empty() {
                    paths.push(PathBuf::from(std::mem::take(&mut current)));
                }
            }
            c => current.push(c),
        }
    }
    if !current.is_empty() {
        paths.push(PathBuf::from(current));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_was_killed_is_told_from_one_that_refuses() {
        let words = |name| format!("clang: error: unable to execute command: {name}\n");
        assert_eq!(killed(&words("Killed")), Some(9));
        assert_eq!(killed(&words("Terminated")), Some(15));
        assert_eq!(killed(&words("Segmentation fault")), None);
        assert_eq!(killed("k.cl:1:1: error: unknown type name\n"), None);
    }

    #[test]
    fn a_full_disk_is_told_from_what_a_source_says() {
        for words in [
            "fatal error: error in backend: IO failure on output stream: No space left on device",
            "error: unable to open output file 'x.o': 'No space left on device'",
            "ld.lld: error: failed to write output 'x': Disk quota exceeded\n1 error generated.",
            "LLVM ERROR: IO failure on output stream: File too large\n",
        ] {
            assert!(lacks_room(words), "{words}");
        }
        for words in [
            "k.cl:1:2: error: No space left on device\n#error No space left on device\n",
            "k.cl:1:2: fatal error: No space left on device",
            "k.cl:3:5: error: use of undeclared identifier 'x'\n puts(\"No space left on device\");",
            "",
        ] {
            assert!(!lacks_room(words), "{words}");
        }
    }

    #[test]
    fn what_lies_outside_the_stage_is_told_however_it_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let stage = dir.join("deep/stage");
        for file in ["secret.h", "deep/beside.h", "deep/stage/inc/in.h", "elsewhere/x.h"] {
            fs::create_dir_all(dir.join(file).parent().unwrap()).unwrap();
            fs::write(dir.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(&stage, dir.join("elsewhere/link")).unwrap();
        let check = |stage: &Path, path: &str, expected: Option<&str>| {
            let found = outside_stage(stage, path.into()).unwrap();
            assert_eq!(found, expected.map(|path| dir.join(path)), "{path}");
        };
        let absolute = |path: &str| dir.join(path).display().to_string();
        check(&stage, "a.cl", None);
        check(&stage, "inc/../inc/in.h", None);
        check(&stage, "../../secret.h", Some("secret.h"));
        check(&stage, "inc/../../beside.h", Some("deep/beside.h"));
        check(&stage, "../stage/inc/in.h", None);
        check(&stage, &absolute("deep/stage/inc/in.h"), None);
        check(&stage, &absolute("deep/stage/../beside.h"), Some("deep/beside.h"));
        check(&stage, &absolute("elsewhere/x.h"), Some("elsewhere/x.h"));
        // Its parent is not the directory that its name says.
        check(&dir.join("elsewhere/link"), "../beside.h", Some("deep/beside.h"));
        assert!(outside_stage(&stage, "../gone.h".into()).is_err());
    }

    #[test]
    fn depfiles_are_read_with_their_escapes() {
        let text = "/w/o: a.cpp /usr/include/x.h \\\n  /opt/a\\ b/c$$.h\n";
        let expected = ["a.cpp", "/usr/include/x.h", "/opt/a b/c$.h"].map(PathBuf::from);
        assert_eq!(depfile_paths(text), expected);
        assert!(depfile_paths("").is_empty());
    }
}
