//! Sources, their closures, and how they are laid out.

use gfxpack_launch::SourceFiles;

use super::*;
use crate::stage::stage;

pub(crate) fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), files);
    dir
}

fn paths(set: &SourceSet, index: SourceId) -> Vec<&str> {
    set.sources()[index.0].files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn a_manifests_closure_keeps_its_layout() {
    let dir = tree(&[
        (
            "cl/a.cl",
            "#include \"b.h\"\n#include \"../common/c.h\"\n#include <t.h>\n#include <vector>\n",
        ),
        ("cl/b.h", "#include \"t.h\"\n"),
        ("common/c.h", ""),
        ("include/t.h", ""),
        ("include/unused.h", ""),
    ]);
    let mut set = SourceSet::default();
    let include = [dir.path().join("none"), dir.path().join("include")];
    let real = dir.path().join("cl/a.cl");
    let index = set.load(&real, "cl/a.cl", Language::OpenclC, &include, &[], None).unwrap();
    assert_eq!(paths(&set, index), ["cl/a.cl", "cl/b.h", "common/c.h", "gfxpack-include-1/t.h"]);
    assert_eq!(set.sources()[index.0].include_dirs, ["gfxpack-include-1"]);
    let stage = tempfile::tempdir().unwrap();
    set.stage(index, None, stage.path()).unwrap();
    assert!(stage.path().join("gfxpack-include-1/t.h").is_file());
}

#[test]
fn no_directory_of_a_source_has_the_name_of_a_laid_out_one() {
    let dir = tree(&[
        ("a.cl", ""),
        ("include/x.h", ""),
        ("gfxpack-include-0/x.h", ""),
        ("gfxpack-include-1/x.h", ""),
    ]);
    let load = |include: &[&str]| {
        let include: Vec<PathBuf> = include.iter().map(|name| dir.path().join(name)).collect();
        let real = dir.path().join("a.cl");
        SourceSet::default().load(&real, "a.cl", Language::OpenclC, &include, &[], None)
    };
    assert!(load(&[]).is_ok() && load(&["gfxpack-include-0"]).is_ok());
    let taken = load(&["include"]).unwrap_err().to_string();
    assert!(taken.contains("/gfxpack-include-0` has the name that gfxpack lays"), "{taken}");
}

#[test]
fn bare_names_are_found_below_and_staged_in_one_directory() {
    let dir = tree(&[
        ("x/a.cpp", "#include \"u.hpp\"\n#include <hip/hip_runtime.h>\n"),
        ("x/inc/u.hpp", "#include \"v.hpp\""),
        ("y/inc/v.hpp", "1"),
        ("x/inc/deep/v.hpp", "2"),
        (".git/u.hpp", "3"),
    ]);
    let dirs = SourceDirs::list(&[dir.path().to_owned()]).unwrap();
    let real = dirs.find("a.cpp").unwrap().unwrap();
    let mut set = SourceSet::default();
    let index = set.load(real, "a.cpp", Language::Hip, &[], &[], Some(&dirs)).unwrap();
    assert_eq!(paths(&set, index), ["a.cpp", "u.hpp", "v.hpp"]);
    assert_eq!(set.sources()[index.0].include_dirs, ["."]);
    let nearer = &set.sources()[index.0].files[2];
    assert_eq!(nearer.digest, Digest::of(b"2"), "the nearer of two is taken");
    assert_eq!(dirs.find("none.cl").unwrap(), None);
    assert!(
        matches!(dirs.find("v.hpp"), Err(fault) if fault.kind() == gfxpack_model::ErrorKind::NotFound)
    );
}

#[test]
fn other_include_directories_are_another_closure() {
    let dir = tree(&[("a.cl", "#include <x.h>\n"), ("one/x.h", "1"), ("two/x.h", "2")]);
    let mut set = SourceSet::default();
    let real = dir.path().join("a.cl");
    let mut load = |include: &str| {
        let include = [dir.path().join(include)];
        set.load(&real, "a.cl", Language::OpenclC, &include, &[], None).unwrap()
    };
    let (first, second) = (load("one"), load("two"));
    assert_eq!(first, load("one"));
    assert_ne!(set.sources()[first.0].digest(), set.sources()[second.0].digest());
}

#[test]
fn a_file_and_a_directory_with_one_staged_path_are_an_error() {
    let dir = tree(&[
        ("a.cl", "#include \"ck\"\n#include \"ck/x.h\"\n"),
        ("one/ck", ""),
        ("two/ck/x.h", ""),
    ]);
    let dirs = SourceDirs::list(&[dir.path().to_owned()]).unwrap();
    let real = dir.path().join("a.cl");
    let load = SourceSet::default().load(&real, "a.cl", Language::OpenclC, &[], &[], Some(&dirs));
    let message = load.unwrap_err().to_string();
    assert!(
        message.contains("one/ck` and `") && message.contains("would both need `ck`"),
        "{message}"
    );
}

#[test]
fn parents_are_resolved_by_text_in_files_that_are_found_by_name() {
    let dir = tree(&[
        ("a.cl", "#include \"inc/u.h\"\n"),
        ("lib/inc/u.h", "#include \"../v.h\"\n"),
        ("lib/v.h", "1"),
    ]);
    let dirs = SourceDirs::list(&[dir.path().to_owned()]).unwrap();
    let mut set = SourceSet::default();
    let real = dir.path().join("a.cl");
    let index = set.load(&real, "a.cl", Language::OpenclC, &[], &[], Some(&dirs)).unwrap();
    assert_eq!(paths(&set, index), ["a.cl", "inc/u.h", "v.h"]);
    let stage = tempfile::tempdir().unwrap();
    set.stage(index, None, stage.path()).unwrap();
    assert_eq!(fs::read_to_string(stage.path().join("inc/../v.h")).unwrap(), "1");
}

#[test]
fn a_directory_that_leads_to_itself_is_read_once() {
    let dir = tree(&[
        ("a.cl", "#include <lib/x.h>\n"),
        ("include/x.h", "#include \"lib/y.h\"\n"),
        ("include/y.h", "#include \"lib/x.h\"\n"),
    ]);
    std::os::unix::fs::symlink(".", dir.path().join("include/lib")).unwrap();
    let mut set = SourceSet::default();
    let (real, include) = (dir.path().join("a.cl"), [dir.path().join("include")]);
    let index = set.load(&real, "a.cl", Language::OpenclC, &include, &[], None).unwrap();
    let below = |rest: &str| format!("gfxpack-include-0/lib/{rest}");
    let all = ["lib/lib/x.h", "lib/y.h", "x.h", "y.h"].map(below);
    assert_eq!(paths(&set, index)[1..], all);
    let stage = stage(&set, index, None, dir.path().join("stage")).unwrap();
    assert!(stage.join(&all[0]).is_file());
}

#[test]
fn equal_files_may_share_a_staged_path() {
    let dir = tree(&[
        ("x/a.cl", "#include \"u.h\"\n#include \"w.h\"\n"),
        ("x/u.h", "same"),
        ("x/sub/u.h", "same"),
        ("x/sub/w.h", "#include \"u.h\"\n"),
    ]);
    let dirs = SourceDirs::list(&[dir.path().to_owned()]).unwrap();
    let mut set = SourceSet::default();
    let real = dir.path().join("x/a.cl");
    let index = set.load(&real, "a.cl", Language::OpenclC, &[], &[], Some(&dirs)).unwrap();
    assert_eq!(paths(&set, index), ["a.cl", "u.h", "w.h"]);
}

#[test]
fn each_language_has_its_own_includes_of_one_file() {
    let dir = tree(&[
        ("a.cl", "#include \"c.inc\"\n"),
        ("b.s", ".include \"c.inc\"\n"),
        ("c.inc", "// x.include \"d.inc\"\n"),
        ("d.inc", ""),
    ]);
    let mut set = SourceSet::default();
    for (name, language) in [("a.cl", Language::OpenclC), ("b.s", Language::Assembly)] {
        set.load(&dir.path().join(name), name, language, &[], &[], None).unwrap();
    }
    assert_eq!(paths(&set, SourceId(0)), ["a.cl", "c.inc"]);
    assert_eq!(paths(&set, SourceId(1)), ["b.s", "c.inc", "d.inc"]);
}

#[test]
fn a_stored_closure_equals_the_loaded_one() {
    let dir = tree(&[("a.cl", "#include <x.h>\n"), ("i/x.h", "1")]);
    let mut set = SourceSet::default();
    let include = [dir.path().join("i")];
    let real = dir.path().join("a.cl");
    let index = set.load(&real, "a.cl", Language::OpenclC, &include, &[], None).unwrap();
    let stored = tempfile::tempdir().unwrap();
    let file = |dir: &Path, digest: Digest| dir.join(digest.to_string());
    for (_, text) in set.files(index) {
        fs::write(file(stored.path(), Digest::of(text)), text).unwrap();
    }
    let content = StoredContent { dir: stored.path().to_owned(), file };
    let used = BTreeMap::from([(index, Language::OpenclC)]);
    let beside = [stored::Beside::default()];
    let again = SourceSet::of_stored(set.sources(), &beside, &used, &content).unwrap();
    assert_eq!(again.files(index), set.files(index));
    assert_eq!(again.closure_size(index), set.closure_size(index));
    let wrong = StoredContent { file: |dir, _| dir.join("other"), ..content.clone() };
    fs::write(stored.path().join("other"), "2").unwrap();
    let other = SourceSet::of_stored(set.sources(), &beside, &used, &wrong);
    let other = other.unwrap_err();
    assert!(other.to_string().contains("not the one that the plan was made with"), "{other}");
}

#[test]
fn all_files_count_where_a_name_is_made_by_macros() {
    let dir = tree(&[
        ("k/a.cl", "asm(\".incbin \" NAME);"),
        ("k/bits", "1"),
        ("k/.git/x", ""),
        ("i/d/d.inc", "2"),
    ]);
    let mut set = SourceSet::default();
    let include = [dir.path().join("i")];
    let real = dir.path().join("k/a.cl");
    let index = set.load(&real, "k/a.cl", Language::OpenclC, &include, &[], None).unwrap();
    assert_eq!(paths(&set, index)[..2], ["gfxpack-include-0/d/d.inc", "i/d/d.inc"]);
    assert_eq!(paths(&set, index)[2..], ["k/a.cl", "k/bits"]);
}

#[test]
fn a_file_that_is_written_between_being_read_under_two_names_is_two() {
    let dir = tree(&[
        ("a.cl", "#include \"x.h\"\n"),
        ("b.cl", "#include \"x.h\"\n#include \"y.h\"\n"),
        ("x.h", "1"),
    ]);
    let path = |name: &str| dir.path().join(name);
    fs::hard_link(path("x.h"), path("y.h")).unwrap();
    let mut set = SourceSet::default();
    let mut load = |name| set.load(&path(name), name, Language::OpenclC, &[], &[], None).unwrap();
    load("a.cl");
    fs::write(path("y.h"), "2").unwrap();
    let index = load("b.cl");
    let stage = tempfile::tempdir().unwrap();
    set.stage(index, None, stage.path()).unwrap();
    let laid_out = |name: &str| fs::read_to_string(stage.path().join(name)).unwrap();
    assert_eq!(["x.h", "y.h"].map(laid_out), ["1", "2"]);
}

#[test]
fn a_missing_source_is_an_error_and_includes_leading_out_are_left_to_the_compiler() {
    let dir = tree(&[("d/a.cl", "")]);
    let mut set = SourceSet::default();
    let gone = dir.path().join("gone.cl");
    assert!(set.load(&gone, "gone.cl", Language::OpenclC, &[], &[], None).is_err());
    let dir = tree(&[("d/a.cl", "#include \"../b.h\"\n"), ("b.h", "")]);
    let real = dir.path().join("d/a.cl");
    let index = set.load(&real, "a.cl", Language::OpenclC, &[], &[], None).unwrap();
    assert_eq!(paths(&set, index), ["a.cl"]);
    let dir = tree(&[("a.s", ".include \"/etc/passwd\"\n")]);
    let real = dir.path().join("a.s");
    let index = set.load(&real, "a.s", Language::Assembly, &[], &[], None).unwrap();
    assert_eq!(paths(&set, index), ["a.s"]);
}

#[test]
fn a_file_that_came_with_a_plan_is_there_however_its_path_is_spelled() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("content"), "1").unwrap();
    let source = Source {
        name: "a.cl".to_owned(),
        main: "a.cl".to_owned(),
        include_dirs: Vec::new(),
        files: Vec::new(),
        dirs: Vec::new(),
        links: Vec::new(),
    };
    let (path, digest) = ("hip/own.h".to_owned(), Digest::of(b"1"));
    let files = vec![StagedFile { path, digest, same_as: None }];
    let beside = [stored::Beside { files, ..stored::Beside::default() }];
    let content = StoredContent { dir: dir.path().to_owned(), file: |dir, _| dir.join("content") };
    let used = BTreeMap::from([(SourceId(0), Language::Hip)]);
    let set = SourceSet::of_stored(&[source], &beside, &used, &content).unwrap();
    // It hides a header of the system from a compiler that searches `.`.
    let is_absent = |path| SourceFiles::is_absent(&set, SourceId(0), Path::new(path));
    assert!(!is_absent("hip/own.h") && !is_absent("./hip/own.h") && is_absent("./hip/other.h"));
}
