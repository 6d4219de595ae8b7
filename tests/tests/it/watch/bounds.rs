//! Forbidden operations of a run fail before they happen.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use gfxpack_process::watch::{Landlock, Recorder, RecorderOptions, WatchError, landlock_abi};
use tempfile::TempDir;

use super::place;
use super::support::{build, let_in, watched_with};

/// A directory and all in it, with when each was last changed in any way.
fn state(path: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let meta = path.symlink_metadata().unwrap();
    let mut all = vec![(path.to_owned(), meta.ino(), meta.ctime(), meta.ctime_nsec())];
    if meta.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let entries: BTreeSet<PathBuf> = entries.collect();
        all.extend(entries.iter().flat_map(|path| state(path)));
    }
    all
}

/// A directory that may be written, with links out of it, and one that may not.
fn two_places() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let [mine, other] = ["mine", "other"].map(|name| path.join(name));
    for dir in [&mine, &mine.join("below"), &other, &other.join("dir")] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(other.join("file"), "text").unwrap();
    fs::write(mine.join("own"), "").unwrap();
    for (name, to) in
        [("to-dir", "../other"), ("to-file", "../other/file"), ("to-nothing", "../other/new")]
    {
        symlink(to, mine.join(name)).unwrap();
    }
    (dir, mine, other)
}

#[test]
fn writes_elsewhere_fail_before_they_happen_and_are_recorded() {
    for class in ["-cc1", "a driver"] {
        let (dir, mine, other) = two_places();
        let forms = build(dir.path(), "forms.c", &[]);
        let before = state(&other);
        let outside = other.to_str().unwrap();
        let below = mine.join("below/../../other");
        let bases = [outside, "../other", "to-dir", below.to_str().unwrap(), "to-dir/dir/.."];
        let args = [&[forms.to_str().unwrap(), class, "write"], bases.as_slice()].concat();
        let writable = [mine.as_path()];
        let options = RecorderOptions { writable: Some(&writable), ..RecorderOptions::default() };
        let (outcome, record) = watched_with(&mine, &args, &options);
        assert_eq!(outcome, Ok(()), "{class}");
        assert_eq!(state(&other), before, "{class}");
        let record = record.unwrap();
        // What it writes where it may is its own matter.
        let mut accesses = record.accesses.iter();
        assert!(accesses.all(|it| it.is_refused() && it.operation.writes()), "{class}");
        assert_eq!(record.accesses.len(), 49 * bases.len() + 8, "{class}");
        // Where nothing was said, it may write anything.
        let free = watched_with(&mine, &["touch", "../other/file"], &RecorderOptions::default());
        assert!(free.0.is_ok() && state(&other) != before);
    }
}

#[test]
fn scripts_write_only_to_allowed_paths() {
    let (_dir, mine, other) = two_places();
    let writable = [mine.as_path()];
    let options = RecorderOptions { writable: Some(&writable), ..RecorderOptions::default() };
    let script = "echo x >own 2>/dev/null && mv own moved && perl -e 'open F, \">\", \"new\" or exit 1' && rm new";
    assert_eq!(watched_with(&mine, &["sh", "-c", script], &options).0, Ok(()));
    for script in ["echo x >../other/file", "mv own ../other/new", "sh -c 'rm to-dir/file'"] {
        let (outcome, record) = watched_with(&mine, &["sh", "-c", script], &options);
        assert!(outcome.is_err(), "{script}");
        let accesses = record.unwrap().accesses;
        assert!(
            accesses.iter().any(|access| access.operation.writes() && access.error == Some(13)),
            "{script}"
        );
    }
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "text");
}

/// What goes past the library: a program's own system calls, and those of one
/// that loads no libraries.
#[test]
fn landlock_refuses_writes_that_the_library_does_not_see() {
    use Landlock::{All, Compilers};
    let kernel = landlock_abi().is_some();
    let cases = [
        ("-cc1", None, false),
        ("-cc1", Some(Compilers), kernel),
        ("-cc1", Some(All), kernel),
        ("a driver", Some(Compilers), false),
        ("a driver", Some(All), kernel),
        ("static", Some(Compilers), false),
        ("static", Some(All), kernel),
    ];
    for (class, landlock, refused) in cases {
        let (dir, mine, other) = two_places();
        let options: &[&str] = if class == "static" { &["-static"] } else { &[] };
        let forms = build(dir.path(), "forms.c", options);
        let command = format!("{} {class:?} past {}; exit $?", forms.display(), other.display());
        let script = ["sh", "-c", &command];
        let direct = [forms.to_str().unwrap(), class, "past", other.to_str().unwrap()];
        let args: &[&str] = if class == "static" { &script } else { &direct };
        let before = state(&other);
        let writable = [mine.as_path()];
        let options =
            RecorderOptions { writable: Some(&writable), landlock, ..RecorderOptions::default() };
        let (outcome, record) = watched_with(&mine, args, &options);
        assert_eq!(outcome, Ok(()), "{class} {landlock:?}");
        assert_eq!(state(&other) == before, refused, "{class} {landlock:?}");
        let expected = match class {
            "-cc1" => Some(WatchError::NotRecordable("syscall".into())),
            "static" => Some(WatchError::NotWatched(forms)),
            _ => None,
        };
        assert_eq!(record.err(), expected, "{class} {landlock:?}");
        // Nothing of the recorder's is left.
        let names = fs::read_dir(&mine).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    }
}

#[test]
fn a_forked_job_starts_no_program() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let recorders = [(); 2].map(|()| Recorder::with(&RecorderOptions::default()).unwrap());
    let args = |what: &str| [forms.to_str().unwrap(), "-cc1", what].map(OsString::from);
    let (start, none) = (args("start nothing"), args("dirs"));
    let_in(&path, &forms, [(&recorders[0], &start), (&recorders[1], &none)]);
    let [start, none] = recorders.map(Recorder::finish);
    assert_eq!(start, Err(WatchError::NotRecordable("execve".into())));
    assert!(none.is_ok());
}

#[test]
fn forked_jobs_are_confined_separately() {
    let (dir, mine, other) = two_places();
    let forms = build(dir.path(), "forms.c", &[]);
    let recorder = |dir: &Path| {
        let options = RecorderOptions {
            writable: Some(&[dir]),
            landlock: Some(Landlock::Compilers),
            ..RecorderOptions::default()
        };
        Recorder::with(&options).unwrap()
    };
    let (held, free) = (recorder(&mine), recorder(dir.path()));
    let args = |what: &str, path: &str| ["forms", "-cc1", what, path].map(OsString::from);
    let (past, touch) = (args("past", "../other"), args("touch", "../other/file"));
    let_in(&mine, &forms, [(&held, &past), (&free, &touch)]);
    if landlock_abi().is_some() {
        let file = other.join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        assert_eq!(file.metadata().unwrap().mtime(), 1);
    }
}

#[test]
fn directories_with_separators_of_the_loader_are_watched() {
    for name in ["a b", "a:b", "$LIB"] {
        let dir = tempfile::tempdir().unwrap();
        let mine = dir.path().join(name);
        fs::create_dir(&mine).unwrap();
        let writable = [mine.as_path()];
        let (writable, landlock) = (Some(&writable[..]), Some(Landlock::All));
        let options = RecorderOptions { all: true, writable, landlock, visible: None };
        let (outcome, record) = watched_with(&mine, &["ls", "x"], &options);
        assert!(outcome.is_err(), "{name}");
        assert!(record.unwrap().accesses.iter().any(|access| access.path.ends_with("x")), "{name}");
    }
}

/// More processes deep than the kernel has layers of rules.
#[test]
fn more_nested_processes_are_confined_than_landlock_has_layers() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let writable = [path.as_path()];
    let options = RecorderOptions {
        writable: Some(&writable),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    };
    let nested = "test ${1:-0} -ge 20 && exec ls; sh -c \"$0\" \"$0\" $((${1:-0} + 1)); exit $?";
    let (outcome, record) = watched_with(&path, &["sh", "-c", nested, nested], &options);
    assert_eq!(outcome, Ok(()));
    assert!(record.unwrap().processes.len() > 20);
}
