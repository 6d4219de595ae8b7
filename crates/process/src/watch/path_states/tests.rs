//! Checking answers again notices every change.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::FileDigests;
use crate::watch::path_states::PathQuery;

/// Whether answers hold in a new build.
fn hold(states: &PathStates) -> bool {
    states.hold(&FileSystemCache::new(&FileDigests::default()))
}

fn states_of(dir: &Path, names: &[&str]) -> PathStates {
    let digests = FileDigests::default();
    let file_system = FileSystemCache::new(&digests);
    let state = |name: &&str| {
        let path = dir.join(name);
        let state = file_system.state(&path, PathQuery::Content).unwrap();
        (path, state)
    };
    PathStates::new(names.iter().map(state).collect())
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
    let digests = FileDigests::default();
    let file_system = FileSystemCache::new(&digests);
    let state = file_system.state(&link, PathQuery::Link).unwrap();
    assert_eq!(state, PathState::Link("nothing".into()));
    let states = PathStates::new([(link.clone(), state)].into());
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
    let digests = FileDigests::default();
    let file_system = FileSystemCache::new(&digests);
    let state = file_system.state(&path, PathQuery::Link).unwrap();
    assert_eq!(state, PathState::NoLink);
    let states = PathStates::new([(path.clone(), state)].into());
    assert!(hold(&states));
    fs::rename(&path, &other).unwrap();
    assert!(!hold(&states));
    symlink(&other, &path).unwrap();
    assert!(!hold(&states));
}

#[test]
fn changed_names_are_noticed_if_the_directory_was_listed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let digests = FileDigests::default();
    let file_system = FileSystemCache::new(&digests);
    let states = |query| {
        let state = file_system.state(dir.path(), query).unwrap();
        PathStates::new([(dir.path().to_owned(), state)].into())
    };
    let (listed, there) = (states(PathQuery::Listing), states(PathQuery::Content));
    assert!(hold(&listed) && hold(&there));
    fs::write(dir.path().join("b"), "").unwrap();
    assert!(!hold(&listed) && hold(&there));
}
