//! Keys become rows of a kdb.

use gfxpack_compile::{Origin, Summary};
use gfxpack_kdb::Reader;
use gfxpack_pipeline::error::ErrorKind;
use gfxpack_pipeline::ledger::Reason;

use crate::project::{Project, has, key};

/// How many objects were compiled, and how many the cache had.
fn counts(summary: &Summary) -> (usize, usize) {
    (summary.count(Origin::Here), summary.count(Origin::Cached))
}

#[test]
fn a_key_becomes_a_row() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let built = project.build();
    assert_eq!((counts(&built.summary), built.missing), ((1, 0), 0));
    let object = Reader::open(project.kdb()).unwrap().get(&key("conv.s")).unwrap().unwrap();
    assert!(object.starts_with(b"\x7fELF"));
    built.outcome().unwrap();
}

#[test]
fn the_second_run_compiles_nothing_and_makes_the_same_bytes() {
    let project = Project::with(&[("a.s", "s_endpgm\n"), ("b.s", "s_nop 0\n")]);
    project.build();
    let first = std::fs::read(project.kdb()).unwrap();
    std::fs::remove_dir_all(project.path("out")).unwrap();
    let summary = project.build().summary;
    assert_eq!(counts(&summary), (0, 2));
    assert!(std::fs::read(project.kdb()).unwrap() == first);
}

#[test]
fn what_changed_is_compiled_and_nothing_else() {
    let project = Project::with(&[("a.s", "s_endpgm\n"), ("b.s", "s_nop 0\n")]);
    project.build();
    project.write("sources/a.s", "s_nop 1\n");
    let summary = project.build().summary;
    assert_eq!(counts(&summary), (1, 1));
}

#[test]
fn a_refused_kernel_is_missing_and_the_others_go_on() {
    let project = Project::with(&[("bad.s", "refuse\n"), ("good.s", "s_endpgm\n")]);
    let built = project.build();
    assert!(has(&project.kdb(), "good.s") && !has(&project.kdb(), "bad.s"));
    let [absent] = built.absences.of(&built.kdbs[0].target) else { panic!("one is missing") };
    assert_eq!((&absent.key, absent.reason, built.missing), (&key("bad.s"), Reason::Refused, 1));
    assert!(absent.why.contains("error: refused as it asks for"), "{}", absent.why);
    let error = built.outcome().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
}

#[test]
fn a_refused_kernel_is_not_tried_again_unless_that_is_asked_for() {
    let project = Project::with(&[("bad.s", "refuse\n")]);
    project.build();
    assert_eq!(project.build().summary.refused_before, 1);
    let mut options = project.options();
    options.build.retry_refused = true;
    assert_eq!(project.run(&options).unwrap().summary.refused_before, 0);
}

#[test]
fn with_partial_results_allowed_a_refused_kernel_is_no_failure() {
    let project = Project::with(&[("bad.s", "refuse\n"), ("good.s", "s_endpgm\n")]);
    let mut options = project.options();
    options.build.allow_partial = true;
    let built = project.run(&options).unwrap();
    assert_eq!(built.missing, 1);
    built.outcome().unwrap();
}
