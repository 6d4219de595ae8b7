//! Checking answers again notices every change.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::FileDigests;
use crate::watch::Query;

fn file(text: &str, real: Option<&Path>) -> Answer {
    Answer::File { digest: Digest::of(text.as_bytes()), real: real.map(Path::to_owned) }
}

/// Whether answers hold in a new build.
fn hold(answers: &Answers) -> bool {
    answers.hold(&Looks::new(&FileDigests::in_memory()))
}

fn answers_of(dir: &Path, names: &[&str]) -> Answers {
    let digests = FileDigests::in_memory();
    let looks = Looks::new(&digests);
    let answer = |name: &&str| {
        let path = dir.join(name);
        let answer = looks.answer(&path, Query::What).unwrap();
        (path, answer)
    };
    Answers::new(names.iter().map(answer).collect(), &looks)
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
    let states: [(&str, &dyn Fn()); 7] = [
        ("absent", &|| {}),
        ("file", &|| fs::write(&path, "text").unwrap()),
        ("another file", &|| fs::write(&path, "other text").unwrap()),
        ("directory", &|| fs::create_dir(&path).unwrap()),
        ("link to a directory", &|| symlink(&other_dir, &path).unwrap()),
        ("link to the same text", &|| symlink(&other, &path).unwrap()),
        ("link to nothing", &|| symlink("nothing", &path).unwrap()),
    ];
    let absent = ["absent", "link to nothing"];
    for (before, make) in states {
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
        make();
        let answers = answers_of(&dir, &["x"]);
        assert!(hold(&answers), "{before}");
        for (after, make) in states {
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
            make();
            let same = before == after || [before, after].iter().all(|it| absent.contains(it));
            assert_eq!(hold(&answers), same, "{before}, then {after}");
        }
    }
}

#[test]
fn a_changed_target_is_noticed_if_the_link_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    symlink("nothing", &link).unwrap();
    let digests = FileDigests::in_memory();
    let looks = Looks::new(&digests);
    let answer = looks.answer(&link, Query::Link).unwrap();
    assert_eq!(answer, Answer::Link("nothing".into()));
    let answers = Answers::new([(link.clone(), answer)].into(), &looks);
    assert!(hold(&answers));
    fs::remove_file(&link).unwrap();
    assert!(!hold(&answers));
    symlink("other", &link).unwrap();
    assert!(!hold(&answers));
}

#[test]
fn a_path_that_becomes_a_link_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let (path, other) = (dir.join("x"), dir.join("other"));
    fs::create_dir(&path).unwrap();
    let digests = FileDigests::in_memory();
    let looks = Looks::new(&digests);
    let answer = looks.answer(&path, Query::Link).unwrap();
    assert_eq!(answer, Answer::NoLink);
    let answers = Answers::new([(path.clone(), answer)].into(), &looks);
    assert!(hold(&answers));
    fs::rename(&path, &other).unwrap();
    assert!(!hold(&answers));
    symlink(&other, &path).unwrap();
    assert!(!hold(&answers));
}

#[test]
fn relative_paths_to_one_directory_are_recorded_as_one() {
    let place = |path: &Path| Some((1, path.as_os_str().len() as u64));
    let dirs: BTreeSet<_> =
        ["a", "b", "cc"].map(|name| (PathBuf::from(name), Answer::Directory)).into();
    let answers = Answers::of_relative(dirs.clone(), place);
    let change = |place: &dyn Fn(&Path) -> Option<(u64, u64)>| {
        answers.first_change_by(|_, _| true, place).is_some()
    };
    assert!(!change(&place) && change(&|_| None) && change(&|_| Some((1, 1))));
    assert!(answers.have_same() && !Answers::of_separate(dirs).have_same());
}

#[test]
fn changed_names_are_noticed_if_the_directory_was_listed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let digests = FileDigests::in_memory();
    let looks = Looks::new(&digests);
    let answers = |query| {
        let answer = looks.answer(dir.path(), query).unwrap();
        Answers::new([(dir.path().to_owned(), answer)].into(), &looks)
    };
    let (listed, there) = (answers(Query::Names), answers(Query::What));
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
    let two = answers_of(&dir, &["a", "b"]);
    fs::remove_file(&b).unwrap();
    fs::hard_link(&a, &b).unwrap();
    let one = answers_of(&dir, &["a", "b"]);
    assert!(hold(&one) && !hold(&two));
    fs::remove_file(&b).unwrap();
    fs::copy(&a, &b).unwrap();
    assert!(!hold(&one) && hold(&two));
}

#[test]
fn equal_answers_have_equal_names_and_damaged_ones_are_refused() {
    let list = [
        (PathBuf::from("/b"), Answer::Absent),
        ("/a".into(), file("1", Some(Path::new("/c")))),
        ("/d".into(), Answer::Listing(Digest::of(b"2"))),
    ];
    let answers = Answers::of_separate(list.clone().into());
    let KeptAnswers { name, text } = answers.to_kept();
    let reversed = Answers::of_separate(list.into_iter().rev().collect());
    assert_eq!(reversed.to_kept().name, name);
    assert_eq!(Answers::from_text(name, &text), Some(answers));
    for at in 0..text.len() {
        let mut damaged = text.clone();
        damaged[at] ^= 1;
        assert_eq!(Answers::from_text(name, &damaged), None, "{at}");
        assert_eq!(Answers::from_text(name, &text[..at]), None, "{at}");
    }
}

#[test]
fn only_the_first_missing_directory_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let digests = FileDigests::in_memory();
    let looks = Looks::new(&digests);
    let first = |path: &str| looks.first_absent(&dir.path().join(path));
    assert_eq!(first("a/b/c.h"), dir.path().join("a"));
    assert_eq!(first("c.h"), dir.path().join("c.h"));
}

#[test]
fn paths_that_are_no_utf8_are_stored() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = Path::new(OsStr::from_bytes(b"\xff/a"));
    let real = Answer::File { digest: Digest::of(b""), real: Some(odd.to_owned()) };
    let answers = [("a".into(), real), (odd.to_owned(), Answer::Link(odd.to_owned()))];
    let answers = Answers::of_separate(answers.into());
    let KeptAnswers { name, text } = answers.to_kept();
    assert_eq!(Answers::from_text(name, &text), Some(answers));
}
