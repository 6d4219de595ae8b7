//! The records beside a kdb.

use std::os::unix::fs::symlink;

use gfxpack_model::Digest;
use gfxpack_pipeline::error::Result;
use gfxpack_pipeline::options::parse_targets;
use gfxpack_pipeline::record;

use crate::project::Project;

/// The record of the kdb, looked up by its content.
fn recorded(project: &Project) -> Result<Option<record::KdbEntry>> {
    let content = std::fs::read(project.kdb()).unwrap();
    record::of_kdb(&project.kdb(), &Digest::of(&content).to_string())
}

#[test]
fn a_changed_kdb_or_one_without_a_record_has_no_entry() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    project.build();
    let manifest = project.path("out/manifest.json");
    let text = std::fs::read(&manifest).unwrap();
    assert!(recorded(&project).unwrap().is_some());
    std::fs::remove_file(&manifest).unwrap();
    assert!(recorded(&project).unwrap().is_none(), "without a record");
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert!(recorded(&project).unwrap().is_none(), "with half of one");
    std::fs::write(&manifest, text).unwrap();
    let mut kdb = std::fs::read(project.kdb()).unwrap();
    kdb.push(0);
    std::fs::write(project.kdb(), kdb).unwrap();
    assert!(recorded(&project).unwrap().is_none(), "of another file");
}

#[test]
fn a_damaged_record_of_an_earlier_run_is_written_anew() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    project.build();
    let whole = project.manifest();
    project.write("out/manifest.json", "{\"format\": 1, \"targets\": [");
    project.build();
    assert_eq!(project.manifest(), whole);
}

#[test]
fn targets_whose_kdbs_have_one_name_have_one_entry() {
    let project = Project::with(&[("good.s", "s_endpgm\n")]);
    let mut options = project.options();
    for target in ["gfx906:sramecc+@60", "gfx906@60"] {
        options.build.inputs.target = vec![parse_targets(target).unwrap()];
        project.run(&options).unwrap();
        let entries = project.manifest()["targets"].as_array().unwrap().clone();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(
            (&entry["target"], &entry["kdb"]["file"]),
            (&target.into(), &"kdb/gfx906_60.kdb".into())
        );
    }
}

#[test]
fn a_source_that_cant_be_read_is_the_fault_of_its_key_alone() {
    let project = Project::with(&[("conv.s", "s_endpgm\n")]);
    // It can be opened, and not be read.
    symlink("/proc/self/mem", project.path("sources/bad.s")).expect("linked");
    project.write_keys(["bad.s", "conv.s"].into_iter());
    let built = project.build();
    let all: Vec<_> = built.absences.all().map(|(_, absent)| absent).collect();
    let [absent] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*absent.key.kernel_name, built.missing), ("bad.s.o", 1));
}
