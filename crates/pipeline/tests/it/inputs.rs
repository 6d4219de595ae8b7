//! What is read before anything runs.

use std::os::unix::fs::symlink;

use gfxpack_pipeline::ask::LibraryAnswer;
use gfxpack_pipeline::error::{Error, ErrorKind};
use gfxpack_pipeline::inputs::read;
use gfxpack_pipeline::options::InputOptions;

use crate::project::{Project, TARGET, key};

#[test]
fn a_key_with_its_source_is_a_request() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let read = read(&project.inputs(), &LibraryAnswer::Nothing).expect("sound");
    let [request] = &read.requests[..] else { panic!("one target") };
    assert_eq!(request.target.to_string(), "gfx906@60");
    let keys: Vec<_> = request.keys.iter().map(|(request, _)| (*request.key).clone()).collect();
    assert_eq!(keys, [key("conv.s")]);
    assert!(read.inputs.key_errors.is_empty() && read.inputs.unbuildable.is_empty());
}

#[test]
fn a_source_that_is_nowhere_ends_the_run_as_wrong_input() {
    let project = Project::with(&[]);
    project.write("sources/other.s", "s_endpgm\n");
    project.write_keys(["conv.s"].into_iter());
    let error = read(&project.inputs(), &LibraryAnswer::Nothing).err().expect("no kernel is left");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let Error::Inputs(problems) = &error else { panic!("{error}") };
    assert!(problems[0].to_string().contains("conv.s"), "{}", problems[0]);
}

#[test]
fn with_partial_results_allowed_the_others_go_on() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    project.write_keys(["conv.s", "gone.s"].into_iter());
    let mut inputs = project.inputs();
    inputs.allow_partial = true;
    let read = read(&inputs, &LibraryAnswer::Nothing).expect("one kernel is left");
    assert_eq!(read.requests[0].keys.len(), 1);
    let unbuilt = &read.inputs.unbuildable[&TARGET.parse().expect("a target")];
    assert_eq!(unbuilt.iter().map(|it| &it.key).collect::<Vec<_>>(), [&key("gone.s")]);
}

#[test]
fn a_source_that_cannot_be_laid_out_costs_its_own_kernels_alone() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let includes = ".include \"x.inc\"\n.include \"link/../x.inc\"\n";
    project.write("sources/two.s", includes);
    project.write("sources/x.inc", "s_nop 1\n");
    project.write("elsewhere/x.inc", "s_nop 2\n");
    project.write("elsewhere/deep/y.inc", "");
    symlink("../elsewhere/deep", project.path("sources/link")).expect("linked");
    let kernel = |source: &str| format!("[[kernel]]\nsource = \"{source}\"\n");
    let library = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n";
    project.write(
        "sources/kernels.toml",
        &format!("{library}{}{}", kernel("two.s"), kernel("conv.s")),
    );
    let manifests = vec![project.path("sources/kernels.toml")];
    let targets = project.inputs().targets;
    let inputs = InputOptions { manifests, targets, ..InputOptions::default() };
    let read = read(&inputs, &LibraryAnswer::Nothing).expect("one kernel is left");
    let keys: Vec<_> =
        read.requests[0].keys.iter().map(|(request, _)| &request.key.kernel_name).collect();
    assert_eq!(keys, ["conv.s.o"]);
    let unbuilt = &read.inputs.unbuildable[&TARGET.parse().expect("a target")];
    let [unbuilt] = &unbuilt[..] else { panic!("{unbuilt:?}") };
    assert_eq!(unbuilt.key.kernel_name, "two.s.o");
    let [error] = &read.inputs.key_errors[..] else { panic!("{:?}", read.inputs.key_errors) };
    let says = error.to_string();
    assert!(says.contains("/sources/x.inc` and `") && says.contains("/link/../x.inc`"), "{says}");
    assert!(error.hint().contains("another name"), "{}", error.hint());
}

#[test]
fn keys_without_a_place_for_sources_are_wrong_usage() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    let mut inputs = project.inputs();
    inputs.source_dirs.clear();
    let error = read(&inputs, &LibraryAnswer::Nothing).err().expect("nowhere to look");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint().is_some_and(|hint| hint.contains("--source-dir")), "{error}");
}
