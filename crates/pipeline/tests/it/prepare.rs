//! Inputs and toolchains become a plan, and nothing is compiled for that.

use gfxpack_pipeline::dist::DistOptions;
use gfxpack_pipeline::error::{Error, ErrorKind};
use gfxpack_pipeline::options::parse_targets;
use gfxpack_pipeline::prepare::{Preparation, Prepared, gather};

use crate::project::{Project, Silent};

fn prepared(options: &DistOptions) -> Result<Prepared, Error> {
    match gather(&options.prepare(), &Silent::default())? {
        Preparation::ToDo(plan_inputs) => Ok(plan_inputs.plan()?.0),
        Preparation::NothingToDo(_) => panic!("there is nothing to do"),
    }
}

#[test]
fn a_plan_has_a_job_for_each_kernel_and_a_kdb_for_each_target() {
    let project = Project::with(&[("a.s", "s_endpgm\n"), ("b.s", "refuse\n")]);
    let mut options = project.options();
    options.build.inputs.target.push(parse_targets("gfx906_64").unwrap());
    let prepared = prepared(&options).unwrap();
    // Both targets run the same code objects, by the same compiler.
    assert_eq!((prepared.plan.jobs.len(), prepared.plan.kdbs.len()), (2, 2));
    assert_eq!(prepared.toolchains.len(), 1);
    assert!(!project.path("out").exists(), "planning writes no results");
}

#[test]
fn without_a_compiler_for_a_target_nothing_is_planned() {
    let project = Project::with(&[("a.s", "s_endpgm\n")]);
    let mut options = project.options();
    options.build.inputs.target = vec![parse_targets("gfx1030_36").unwrap()];
    project.write("keys.jsonl", "{\"kernel_name\":\"a.s.o\",\"kernel_args\":\" -mcpu=gfx1030\"}\n");
    let error = prepared(&options).err().expect("the compiler knows gfx906 alone");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let text = gfxpack_model::in_full(&error);
    assert!(text.contains("gfx1030"), "{text}");
    assert!(error.hint().is_some());
}

#[test]
fn an_empty_list_is_nothing_to_do() {
    let project = Project::with(&[("a.s", "s_endpgm\n")]);
    project.write("keys.jsonl", "");
    let gathered = gather(&project.options().prepare(), &Silent::default()).unwrap();
    assert!(matches!(gathered, Preparation::NothingToDo(_)));
}

#[test]
fn without_a_target_the_error_says_how_to_give_one() {
    let project = Project::with(&[("a.s", "s_endpgm\n")]);
    let mut options = project.options();
    options.build.inputs.target.clear();
    let error = prepared(&options).err().expect("no GPU is named");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint().is_some_and(|hint| hint.contains("--target")), "{error}");
}
