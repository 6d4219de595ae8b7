//! The records beside a kdb.

use gfxpack_model::Digest;
use gfxpack_pipeline::error::Result;
use gfxpack_pipeline::options::parse_targets;
use gfxpack_pipeline::{ledger, record};

use crate::project::Project;

/// The record of the kdb, looked up by its content.
fn recorded(project: &Project) -> Result<Option<record::KdbEntry>> {
    let content = std::fs::read(project.kdb()).unwrap();
    record::of_kdb(&project.kdb(), &Digest::of(&content).to_string())
}

#[test]
fn the_manifest_has_the_kdb_and_what_is_missing_from_it() {
    let project = Project::with(&[("bad.s", "refuse\n"), ("good.s", "s_endpgm\n")]);
    project.build();
    let manifest = project.manifest();
    assert_eq!(manifest["complete"], false);
    let entry = &manifest["targets"][0];
    assert_eq!(
        (&entry["kernels"], &entry["kdb"]["file"]),
        (&1.into(), &"kdb/gfx906_60.kdb".into())
    );
    assert_eq!(entry["absent"], serde_json::json!({ "refused": 1 }));
    let entry_of_kdb = recorded(&project).unwrap().expect("it is recorded");
    assert_eq!(ledger::missing(&entry_of_kdb.absent), 1);
    let lines = std::fs::read_to_string(project.path("out/kernels.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [bad, good] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&bad["kernel_name"], &bad["absent"]), (&"bad.s.o".into(), &"refused".into()));
    assert_eq!((&good["kernel_name"], &good["target"]), (&"good.s.o".into(), &"gfx906@60".into()));
    assert!(good["size"].as_u64().unwrap() > 0 && good["object"].as_str().unwrap().len() == 64);
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
    let project = Project::with(&[("bad.s", "refuse\n"), ("good.s", "s_endpgm\n")]);
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
