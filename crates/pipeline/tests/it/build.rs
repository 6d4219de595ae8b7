//! Keys become rows of a kdb.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;

use gfxpack_compile::{
    Cancel, Dependencies, Event as JobEvent, ObjectPurpose, ObjectStore, Origin, Summary,
};
use gfxpack_kdb::Reader;
use gfxpack_model::JobId;
use gfxpack_pipeline::error::ErrorKind;
use gfxpack_pipeline::prepare::{self, Preparation};
use gfxpack_pipeline::progress::{Event, Progress};
use gfxpack_pipeline::shards;
use gfxpack_process::watch::{PathState, PathStates};

use crate::project::{Project, Silent, has, key};

/// Another build on the same cache. When a kernel is compiled for the first time,
/// it replaces all objects there by its own, which are for other sources.
struct Rival {
    cancel: Cancel,
    store: ObjectStore,
    started: Mutex<HashSet<JobId>>,
}

impl Rival {
    fn new(project: &Project) -> Self {
        let store = ObjectStore::open(&project.path("cache")).unwrap();
        Self { cancel: Cancel::default(), store, started: Mutex::default() }
    }
}

impl Progress for Rival {
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn event(&self, event: Event<'_>) {
        let Event::Job { plan, event } = event else { return };
        let JobEvent::Started { job, .. } = event else { return };
        if !self.started.lock().unwrap().insert(*job) {
            return;
        }
        while self.store.info(plan[*job].digest).is_none() {
            std::thread::yield_now();
        }
        let other = (PathBuf::from("/"), PathState::Absent);
        let system = PathStates::of_separate([other].into());
        let of_other = Dependencies { system, ..Dependencies::default() };
        for job in plan.jobs.iter().filter(|job| self.store.info(job.digest).is_some()) {
            let about = ObjectPurpose::from_job(job);
            self.store.insert(job.digest, b"another", &about, &of_other).unwrap();
        }
    }
}

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
fn what_another_build_replaces_in_the_cache_is_compiled_again() {
    let project = Project::with(&[("a.s", "s_endpgm\n"), ("b.s", "s_nop 0\n"), ("c.s", "")]);
    project.build();
    let undisturbed = std::fs::read(project.kdb()).unwrap();
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    std::fs::remove_dir_all(project.path("out")).unwrap();
    let rival = Rival::new(&project);
    let built = project.run_with(&project.options(), &rival).unwrap();
    assert_eq!(rival.started.lock().unwrap().len(), 3);
    assert_eq!(built.missing, 0);
    assert!(std::fs::read(project.kdb()).unwrap() == undisturbed);
}

#[test]
fn a_shard_never_holds_another_builds_objects() {
    let project = Project::with(&[("a.s", "s_endpgm\n"), ("b.s", "s_nop 0\n")]);
    let options = project.options();
    let plan_inputs = prepare::gather(&options.prepare, &Silent::default()).unwrap();
    let Preparation::ToDo(plan_inputs) = plan_inputs else { panic!("there is nothing to do") };
    let plan = project.path("plan");
    shards::stored::write(&plan, *plan_inputs, 1 << 20).unwrap();
    let shard = "1/1".parse().unwrap();
    let (cache, search) = (&options.prepare.cache, &options.prepare.search);
    let rival = Rival::new(&project);
    let built = shards::build::run(&plan, shard, cache, search, &options.build, &rival).unwrap();
    assert_eq!(rival.started.lock().unwrap().len(), 2);
    let made = ObjectStore::open_to_look(&project.path("out"));
    assert_eq!(built.manifest.jobs.len(), 2);
    for ended in &built.manifest.jobs {
        let (sha256, _) = *ended.result.as_ref().unwrap();
        assert!(made.read_known(ended.job, sha256).unwrap().starts_with(b"\x7fELF"));
    }
}

#[test]
fn a_refused_kernel_is_missing_and_the_others_go_on() {
    let project = Project::with(&[("bad.s", "refuse\n"), ("good.s", "s_endpgm\n")]);
    let built = project.build();
    assert!(has(&project.kdb(), "good.s") && !has(&project.kdb(), "bad.s"));
    let [missing] = &built.kdbs[0].missing[..] else { panic!("one is missing") };
    assert_eq!((&missing.key, built.missing), (&key("bad.s"), 1));
    assert!(!missing.reason.is_empty());
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
