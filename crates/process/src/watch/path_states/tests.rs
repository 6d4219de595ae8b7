//! Checking answers again notices every change.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::FileDigests;
use crate::watch::PathQuery;

fn file(text: &str, real: Option<&Path>) -> PathState {
    PathState::File { digest: Digest::of(text.as_bytes()), real: real.map(Path::to_owned) }
}

/// Whether answers hold in a new build.
fn hold(states: &PathStates) -> bool {
    states.hold(&FileSystemCache::new(&FileDigests::in_memory()))
}

fn states_of(dir: &Path, names: &[&str]) -> PathStates {
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    let state = |name: &&str| {
        let path = dir.join(name);
        let state = file_system.state(&path, PathQuery::Content).unwrap();
        (path, state)
    };
    PathStates::new(names.iter().map(state).collect(), &file_system)
}

#[test]
fn every_change_of_a_path_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let path = dir.join("x");
    let other = dir.join("other");
    fs::write(&other, "text").unwrap();
    let other_dir = dir.join("other-dir");
    fs::create_dir(&other_dir).unwrap();
    let changes: [(&str, &dyn Fn()); 7] = [
        ("absent", &|| {}),
        ("file", &|| fs::write(&path, "text").unwrap()),
        ("another file", &|| fs::write(&path, "other text").unwrap()),
        ("directory", &|| fs::create_dir(&path).unwrap()),
        ("link to a directory", &|| symlink(&other_dir, &path).unwrap()),
        ("link to the same text", &|| symlink(&other, &path).unwrap()),
        ("link to nothing", &|| symlink("nothing", &path).unwrap()),
    ];
    let absent = ["absent", "link to nothing"];
    for (before, make) in &changes {
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
        make();
        let states = states_of(&dir, &["x"]);
        assert!(hold(&states), "{before}");
        for (after, make) in &changes {
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
            make();
            let same = before == after || [before, after].iter().all(|it| absent.contains(it));
            assert_eq!(hold(&states), same, "{before}, then {after}");
        }
    }
}

#[test]
fn a_changed_target_is_noticed_if_the_link_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    symlink("nothing", &link).unwrap();
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    let state = file_system.state(&link, PathQuery::Link).unwrap();
    assert_eq!(state, PathState::Link("nothing".into()));
    let states = PathStates::new([(link.clone(), state)].into(), &file_system);
    assert!(hold(&states));
    fs::remove_file(&link).unwrap();
    assert!(!hold(&states));
    symlink("other", &link).unwrap();
    assert!(!hold(&states));
}

#[test]
fn a_path_that_becomes_a_link_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let (path, other) = (dir.join("x"), dir.join("other"));
    fs::create_dir(&path).unwrap();
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    let state = file_system.state(&path, PathQuery::Link).unwrap();
    assert_eq!(state, PathState::NoLink);
    let states = PathStates::new([(path.clone(), state)].into(), &file_system);
    assert!(hold(&states));
    fs::rename(&path, &other).unwrap();
    assert!(!hold(&states));
    symlink(&other, &path).unwrap();
    assert!(!hold(&states));
}

#[test]
fn relative_paths_to_one_directory_are_recorded_as_one() {
    let place = |path: &Path| Some((1, path.as_os_str().len() as u64));
    let dirs: BTreeSet<_> =
        ["a", "b", "cc"].map(|name| (PathBuf::from(name), PathState::Directory)).into();
    let states = PathStates::of_relative(dirs.clone(), place);
    let change = |place: &dyn Fn(&Path) -> Option<(u64, u64)>| {
        states.first_change_by(|_, _| true, place).is_some()
    };
    assert!(!change(&place) && change(&|_| None) && change(&|_| Some((1, 1))));
    assert!(states.have_same() && !PathStates::of_separate(dirs).have_same());
}

#[test]
fn changed_names_are_noticed_if_the_directory_was_listed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    let states = |query| {
        let state = file_system.state(dir.path(), query).unwrap();
        PathStates::new([(dir.path().to_owned(), state)].into(), &file_system)
    };
    let (listed, there) = (states(PathQuery::Listing), states(PathQuery::Content));
    assert!(hold(&listed) && hold(&there));
    fs::write(dir.path().join("b"), "").unwrap();
    assert!(!hold(&listed) && hold(&there));
}

#[test]
fn a_change_in_which_names_are_one_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let (a, b) = (dir.join("a"), dir.join("b"));
    fs::write(&a, "#pragma once\n").unwrap();
    fs::copy(&a, &b).unwrap();
    let two = states_of(&dir, &["a", "b"]);
    fs::remove_file(&b).unwrap();
    fs::hard_link(&a, &b).unwrap();
    let one = states_of(&dir, &["a", "b"]);
    assert!(hold(&one) && !hold(&two));
    fs::remove_file(&b).unwrap();
    fs::copy(&a, &b).unwrap();
    assert!(!hold(&one) && hold(&two));
}

#[test]
fn equal_answers_have_equal_names_and_damaged_ones_are_refused() {
    let list = [
        (PathBuf::from("/b"), PathState::Absent),
        ("/a".into(), file("1", Some(Path::new("/c")))),
        ("/d".into(), PathState::Listing(Digest::of(b"2"))),
    ];
    let states = PathStates::of_separate(list.clone().into());
    let StoredPathStates { name, text } = states.to_kept();
    let reversed = PathStates::of_separate(list.into_iter().rev().collect());
    assert_eq!(reversed.to_kept().name, name);
    assert_eq!(PathStates::from_text(name, &text), Some(states));
    for at in 0..text.len() {
        let mut damaged = text.clone();
        damaged[at] ^= 1;
        assert_eq!(PathStates::from_text(name, &damaged), None, "{at}");
        assert_eq!(PathStates::from_text(name, &text[..at]), None, "{at}");
    }
}

#[test]
fn only_the_first_missing_directory_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    let first = |path: &str| file_system.first_absent(&dir.path().join(path));
    assert_eq!(first("a/b/c.h"), dir.path().join("a"));
    assert_eq!(first("c.h"), dir.path().join("c.h"));
}

#[test]
fn paths_that_are_no_utf8_are_stored() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = Path::new(OsStr::from_bytes(b"\xff/a"));
    let real = PathState::File { digest: Digest::of(b""), real: Some(odd.to_owned()) };
    let states = [("a".into(), real), (odd.to_owned(), PathState::Link(odd.to_owned()))];
    let states = PathStates::of_separate(states.into());
    let StoredPathStates { name, text } = states.to_kept();
    assert_eq!(PathStates::from_text(name, &text), Some(states));
}
