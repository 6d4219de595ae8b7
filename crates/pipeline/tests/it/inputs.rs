//! What is read and checked before anything runs.

use std::os::unix::fs::symlink;

use gfxpack_pipeline::ask::LibraryAnswer;
use gfxpack_pipeline::error::ErrorKind;
use gfxpack_pipeline::inputs::read;
use gfxpack_pipeline::ledger::Reason;
use gfxpack_pipeline::options::PrepareOptions;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::license::Allowed;

use crate::project::{Project, TARGET, key};

#[test]
fn a_key_with_its_source_is_a_request() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let (requests, inputs) =
        read(&project.options().prepare(), &LibraryAnswer::Nothing).expect("sound");
    let [request] = &requests[..] else { panic!("one target") };
    assert_eq!(request.target.to_string(), "gfx906@60");
    let keys: Vec<_> = request.keys.iter().map(|(request, _)| (*request.key).clone()).collect();
    assert_eq!(keys, [key("conv.s")]);
    assert!(inputs.key_errors.is_empty() && inputs.absent.all().next().is_none());
}

#[test]
fn a_missing_source_ends_the_run_as_wrong_input() {
    let project = Project::with(&[]);
    project.write("sources/other.s", "s_endpgm\n");
    project.write_keys(["conv.s"].into_iter());
    let error = read(&project.options().prepare(), &LibraryAnswer::Nothing)
        .err()
        .expect("no kernel is left");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let problems = error.parts();
    assert!(problems[0].to_string().contains("conv.s"), "{}", problems[0]);
}

#[test]
fn with_partial_results_allowed_the_others_go_on() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    project.write_keys(["conv.s", "gone.s"].into_iter());
    let mut options = project.options();
    options.build.allow_partial = true;
    let (requests, inputs) =
        read(&options.prepare(), &LibraryAnswer::Nothing).expect("one kernel is left");
    assert_eq!(requests[0].keys.len(), 1);
    let [absent] = inputs.absent.of(&TARGET.parse().expect("a target")) else { panic!() };
    assert_eq!((&absent.key, absent.reason), (&key("gone.s"), Reason::NoSource));
}

#[test]
fn assembly_that_debian_leaves_out_is_no_fault_whether_it_is_here_or_not() {
    let project = Project::with(&[("here.s", "s_endpgm\n"), ("conv.cl", "")]);
    let mut options = project.options();
    options.build.inputs.license_allow = vec![Allowed::Dfsg];
    let (license, copyright) = ("MIT".to_owned(), String::new());
    let stated_license = Some(SourceLicense { license, copyright });
    let options = PrepareOptions { stated_license, ..options.prepare() };
    let line = |name: &&str| {
        format!("{{\"kernel_name\":\"{name}.o\",\"kernel_args\":\" -mcpu=gfx906\"}}\n")
    };
    let read_keys = |names: &[&str]| {
        project.write("keys.jsonl", &names.iter().map(line).collect::<String>());
        read(&options, &LibraryAnswer::Nothing)
    };
    let (_, found) = read_keys(&["here.s", "gone.s", "conv.cl"]).expect("one source is left");
    assert!(found.absent.left_out().into_keys().eq(["gone.s", "here.s"]));
    let sources = found.sources.sources();
    assert!(sources.iter().map(|source| &source.name[..]).eq(["conv.cl"]), "{sources:?}");
    assert!(found.key_errors.is_empty() && found.absent.groups().is_empty());
    let none = read_keys(&["here.s"]).err().expect("no source is left");
    assert!(none.to_string().contains("failed to find a source that may be compiled"), "{none}");
    let gone = read_keys(&["here.s", "gone.cl"]).err().expect("no source is left");
    let problems = gone.parts();
    assert!(problems[0].to_string().contains("gone.cl"), "{}", problems[0]);
}

#[test]
fn a_source_that_cant_be_read_is_the_fault_of_its_key_alone() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    // It can be opened, and not be read.
    symlink("/proc/self/mem", project.path("sources/bad.s")).expect("linked");
    project.write_keys(["bad.s", "conv.s"].into_iter());
    let (requests, inputs) =
        read(&project.options().prepare(), &LibraryAnswer::Nothing).expect("one source is left");
    assert_eq!(requests[0].keys.len(), 1);
    let [fault] = &inputs.key_errors[..] else { panic!("{:?}", inputs.key_errors) };
    assert!(fault.to_string().contains("bad.s"), "{fault}");
}

#[test]
fn keys_without_a_place_for_sources_are_wrong_usage() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let mut options = project.options();
    options.build.inputs.source_dir.clear();
    let error = read(&options.prepare(), &LibraryAnswer::Nothing).err().expect("nowhere to look");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint().is_some_and(|hint| hint.contains("--source-dir")), "{error}");
}
