//! Which entries are removed, and which are kept.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gfxpack_caches::now;

use crate::support::User;

const UKDB: &str = "home/.cache/miopen/3.3.0./gfx906_60.ukdb";

#[test]
fn only_recognised_entries_are_removed() {
    let user = User::new();
    let sentinels = [
        "home/.cache/pocl/kcache/notes.txt",
        "home/.cache/pocl/kcache/ZZ/mine",
        "home/.cache/pocl/other",
        "home/.cache/pytools/mine.sqlite",
        "home/x",
    ];
    for path in sentinels {
        user.write(path, "mine");
    }
    user.write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    user.write("home/.cache/pocl/kcache/tempfile_mm0IbA", "x");
    let dictionary = user.write("home/.cache/pytools/pdict-v5-x-3.11.sqlite", "x");
    user.write("home/.cache/pytools/pdict-v5-x-3.11.sqlite-wal", "x");
    for cache in &gfxpack_caches::CACHES {
        assert!(user.clear(cache.name, &user.cleaner()).is_empty(), "{}", cache.name);
    }
    assert!(!user.at("home/.cache/pocl/kcache/PP").exists() && !dictionary.exists());
    let left = fs::read_dir(user.at("home/.cache/pytools")).expect("there").count();
    assert_eq!(left, 1, "the log went with its database");
    for path in sentinels {
        assert!(user.at(path).exists(), "{path}");
    }
}

#[test]
fn results_of_tuning_are_kept_unless_requested() {
    let user = User::new();
    let path = user.write("home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt", "k=A:1\n");
    user.write("home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt.time", "1");
    let mut cleaner = user.cleaner();
    let kept = user.clear("miopen", &cleaner);
    assert_eq!(kept, ["home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt: tuning"]);
    cleaner.tuning = true;
    assert!(user.clear("miopen", &cleaner).is_empty());
    assert!(!path.exists() && !path.with_extension("txt.time").exists());
}

#[test]
fn recently_changed_entries_are_kept() {
    let user = User::new();
    let path = user.write(UKDB, "x");
    let mut cleaner = user.cleaner();
    cleaner.older_than = Some(Duration::from_secs(3600));
    assert_eq!(user.clear("miopen", &cleaner), ["home/.cache/miopen/3.3.0.: young"]);
    let file = File::options().write(true).open(&path).expect("opened");
    file.set_modified(now() - Duration::from_secs(7200)).expect("stamped");
    drop(file);
    assert!(user.clear("miopen", &cleaner).is_empty());
    assert!(!path.exists());
}

#[test]
fn links_are_kept_and_not_followed() {
    let user = User::new();
    user.write("home/real/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    fs::create_dir_all(user.at("home/.cache/pocl/kcache")).expect("made");
    let link = user.at("home/.cache/pocl/kcache/PP");
    symlink(user.at("home/real/PP"), &link).expect("made");
    assert_eq!(user.clear("pocl", &user.cleaner()), ["home/.cache/pocl/kcache/PP: link"]);
    fs::remove_dir_all(user.at("home/.cache/pocl")).expect("removed");
    fs::create_dir_all(user.at("home/.cache/pocl")).expect("made");
    symlink(user.at("home/real"), user.at("home/.cache/pocl/kcache")).expect("made");
    assert_eq!(user.clear("pocl", &user.cleaner()), ["home/.cache/pocl/kcache/PP: link"]);
    assert!(user.at("home/real/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc").exists());
}

#[test]
fn a_link_in_an_entry_is_removed_and_its_target_kept() {
    let user = User::new();
    let real = user.write("home/real", "mine");
    user.write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    symlink(
        &real,
        user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/link"),
    )
    .expect("made");
    assert!(user.clear("pocl", &user.cleaner()).is_empty());
    assert!(real.exists() && !user.at("home/.cache/pocl/kcache/PP").exists());
}

#[test]
fn a_place_that_is_the_home_directory_or_above_it_is_kept() {
    for dir in ["home", "."] {
        let mut user = User::new();
        user.set("POCL_CACHE_DIR", dir);
        user.write(&format!("{dir}/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc"), "x");
        let kept = user.clear("pocl", &user.cleaner());
        assert!(kept.len() == 1 && kept[0].ends_with(": unsafe"), "{dir}: {kept:?}");
    }
}

#[test]
fn unreadable_entries_are_kept() {
    if rustix::process::geteuid().is_root() {
        // Permissions do not apply to root; another user's files are tested
        // instead.
        return foreign();
    }
    let user = User::new();
    user.write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    let closed = user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    let kept = user.clear("pocl", &user.cleaner());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("opened");
    assert_eq!(kept, ["home/.cache/pocl/kcache/PP: unreadable"]);
}

/// Entries with files of another user are kept, however deep these are.
fn foreign() {
    let user = User::new();
    let deep = user
        .write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    std::os::unix::fs::chown(&deep, Some(12345), None).expect("given away");
    assert_eq!(user.clear("pocl", &user.cleaner()), ["home/.cache/pocl/kcache/PP: foreign"]);
    let dir = user.at("home/.cache/pocl/kcache");
    std::os::unix::fs::chown(&deep, Some(0), None).expect("taken back");
    std::os::unix::fs::chown(&dir, Some(12345), None).expect("given away");
    assert_eq!(user.clear("pocl", &user.cleaner()), ["home/.cache/pocl/kcache/PP: foreign"]);
}

#[test]
fn an_entry_that_changed_after_it_was_found_is_kept() {
    let user = User::new();
    let digest = "DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA";
    user.write(&format!("home/.cache/pocl/kcache/PP/{digest}/program.bc"), "x");
    let (directory, entry) = user.entries("pocl").remove(0);
    let mine = user.write("home/.cache/pocl/kcache/PP/mine", "x");
    let mut cleaner = user.cleaner();
    let kept = cleaner.remove(&directory, &entry).expect("it is not tried").expect("a reason");
    assert_eq!(kept.name, "replaced", "not PoCL's any more");
    fs::remove_file(&mine).expect("removed");
    // Old enough when it was found, and written to since.
    let file = entry.path.join(digest).join("program.bc");
    let stamp = |time| {
        let file = File::options().write(true).open(&file);
        file.and_then(|file| file.set_modified(time)).expect("stamped");
    };
    cleaner.older_than = Some(Duration::from_secs(3600));
    stamp(now() - Duration::from_secs(7200));
    let (directory, entry) = user.entries("pocl").remove(0);
    assert_eq!(cleaner.reason_to_keep(&directory, &entry), None);
    stamp(now());
    let kept = cleaner.remove(&directory, &entry).expect("it is not tried").expect("a reason");
    assert_eq!(kept.name, "young");
    fs::remove_dir_all(&entry.path).expect("removed");
    assert_eq!(cleaner.remove(&directory, &entry).expect("it is gone"), None);
}

#[test]
fn an_entry_with_results_of_tuning_is_kept() {
    let user = User::new();
    let path = user.write("tmp/torchinductor_ada/zk/0123.best_config", "{}");
    user.write("tmp/torchinductor_ada/zk/czk.py", "x");
    let mut cleaner = user.cleaner();
    assert_eq!(user.clear("inductor", &cleaner), ["tmp/torchinductor_ada/zk: tuning-within"]);
    cleaner.tuning = true;
    assert!(user.clear("inductor", &cleaner).is_empty());
    assert!(!path.exists());
}

#[test]
fn entries_below_a_directory_that_everybody_may_rename_are_kept() {
    let user = User::new();
    user.write(UKDB, "x");
    let open = |mode| {
        fs::set_permissions(user.at("home/.cache"), fs::Permissions::from_mode(mode)).expect("set");
    };
    open(0o777);
    assert_eq!(user.clear("miopen", &user.cleaner()), ["home/.cache/miopen/3.3.0.: foreign"]);
    open(0o1777);
    assert!(user.clear("miopen", &user.cleaner()).is_empty());
}

#[test]
fn the_listed_home_directory_is_kept_too() {
    let mut user = User::new();
    user.set("POCL_CACHE_DIR", "other");
    user.write("other/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc", "x");
    let environment = user.environment().with_listed_home(Some(user.at("other")));
    let cleaner = gfxpack_caches::CacheCleaner::new(&environment, now());
    assert_eq!(user.clear("pocl", &cleaner), ["other/PP: unsafe"]);
}

/// A process that has a database open, in a mode and state, until dropped.
struct Holder(Child);

impl Holder {
    #[expect(clippy::disallowed_methods, reason = "a test needs another process")]
    fn new(path: &Path, statements: &str) -> Self {
        let script = "import sqlite3, sys\n\
                      db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      rows = [db.execute(one).fetchall() for one in sys.argv[2].split(';')]\n\
                      print('held', flush=True)\n\
                      sys.stdin.read()";
        let mut python = Command::new("python3");
        python.args(["-c", script]).arg(path).arg(statements);
        let mut child =
            python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("read");
        assert_eq!(line, "held\n");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn databases_are_kept_as_long_as_they_are_in_use() {
    let open_only = "CREATE TABLE t (x)";
    let logged = "PRAGMA journal_mode=WAL;CREATE TABLE t (x);INSERT INTO t VALUES (1)";
    let locked = "CREATE TABLE t (x);BEGIN IMMEDIATE";
    for statements in [open_only, logged, locked] {
        let user = User::new();
        let path = user.at(UKDB);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        let holder = Holder::new(&path, statements);
        let kept = user.clear("miopen", &user.cleaner());
        assert_eq!(kept, ["home/.cache/miopen/3.3.0.: live"], "{statements}");
        assert!(path.exists());
        drop(holder);
        assert!(user.clear("miopen", &user.cleaner()).is_empty(), "{statements}");
        assert!(!path.exists());
    }
}

#[test]
fn a_database_opened_after_the_list_was_made_is_kept_by_its_lock() {
    let user = User::new();
    let path = user.at(UKDB);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    // Before any process had it open: only the lock shows it.
    let cleaner = user.cleaner();
    let logged = "PRAGMA journal_mode=WAL;CREATE TABLE t (x)";
    let _holder = Holder::new(&path, logged);
    assert_eq!(user.clear("miopen", &cleaner), ["home/.cache/miopen/3.3.0.: live"]);
}
