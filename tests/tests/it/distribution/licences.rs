//! `--license-allow`: which sources are left out, and how this is reported.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::project::{Project, SMALL_MANIFEST, tool};

/// The small library with one source that is not free and one that a program
/// wrote.
fn project() -> Project {
    let project = Project::small();
    let manifest = SMALL_MANIFEST
        .replace(
            "source = \"src/scale.cl\"",
            "source = \"src/scale.cl\"\nlicense = \"CC-BY-NC-4.0\"",
        )
        .replace("source = \"src/fill.s\"", "source = \"src/fill.s\"\ngenerated = true");
    project.write("kernels.toml", &manifest);
    project
}

fn dist(project: &Project, more: &[&str]) -> crate::support::project::Run {
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906", "--out", "o"];
    project.run(&[&args[..], &["--format", "deb"], more].concat())
}

fn left_out(project: &Project) -> BTreeMap<String, String> {
    let text = fs::read_to_string(project.path().join("o/kernels.jsonl")).expect("written");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let left_out = lines.filter(|line| line["absent"] == "left-out");
    let text = |value: &Value| value.as_str().expect("text").trim_end_matches(".o").to_owned();
    left_out.map(|line| (text(&line["kernel_name"]), text(&line["why"]))).collect()
}

#[test]
fn only_free_sources_are_compiled_and_others_are_listed() {
    let project = project();
    let run = dist(&project, &["--license-allow=dfsg"]).expect_code(0);
    let kernels = project.run(&["kdb", "list", "o/kdb/gfx906.kdb"]).expect_code(0);
    assert_eq!(kernels.stdout.lines().count(), 2, "{}", kernels.stdout);
    let names: Vec<String> = left_out(&project).into_keys().collect();
    assert_eq!(names, ["fill.s", "scale.cl"]);
    for expected in [
        "left out `fill.s`: it was generated",
        "left out `scale.cl`: CC-BY-NC-4.0 is not known to be free",
    ] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let deb = project.path().join("o/miopen-hip-gfx906kdb_1.2.3-1_all.deb");
    let deb = deb.to_str().expect("UTF-8");
    tool("dpkg-deb", &["--extract", deb, "x"], project.path());
    let copyright = project.path().join("x/usr/share/doc/miopen-hip-gfx906kdb/copyright");
    let copyright = fs::read_to_string(copyright).expect("there");
    assert!(!copyright.contains("CC-BY-NC"), "{copyright}");
}

#[test]
fn only_listed_licences_are_compiled() {
    let project = project();
    dist(&project, &["--license-allow", "MIT,ISC"]).expect_code(0);
    let reason = "CC-BY-NC-4.0 is not allowed".to_owned();
    assert_eq!(left_out(&project), [("scale.cl".to_owned(), reason)].into());
    dist(&project, &[]).expect_code(0);
    assert!(left_out(&project).is_empty());
    let none = dist(&project, &["--license-allow", "Zlib"]).expect_code(2);
    assert!(
        none.stderr.contains("failed to find a source that may be compiled"),
        "{}",
        none.stderr
    );
    let wrong = dist(&project, &["--license-allow", "free"]).expect_code(2);
    assert!(wrong.stderr.contains("hint: write one SPDX licence"), "{}", wrong.stderr);
}

#[test]
fn assembly_of_a_key_list_is_left_out_as_debian_does() {
    let project = Project::small();
    let key = |name: &str, options: &str| {
        format!("{{\"kernel_name\": \"{name}.o\", \"kernel_args\": \"{options} -mcpu=gfx906\"}}\n")
    };
    let keys = key("scale.cl", " -DWIDTH=2") + &key("fill.s", " -Wa,-defsym,VALUE=2");
    project.write("keys.jsonl", &keys);
    let args = ["dist", "--keys", "keys.jsonl", "--source-dir", "src", "--license", "MIT"];
    let more = ["--target", "gfx906", "--license-allow=dfsg", "--out", "o", "--dry-run"];
    let run = project.run(&[&args[..], &more].concat()).expect_code(0);
    assert!(run.stderr.contains("left out `fill.s`: Debian leaves it out"), "{}", run.stderr);
    assert!(run.stdout.contains(" 1 kernel (1 OpenCL C)"), "{}", run.stdout);
}

#[test]
fn what_included_files_state_counts_too() {
    let project = Project::small();
    let holder = SMALL_MANIFEST.replace("copyright = \"2026 Somebody\"\n", "");
    assert_ne!(holder, SMALL_MANIFEST);
    project.write("kernels.toml", &holder);
    let head = "// Copyright 2026 Bob\n// SPDX-License-Identifier: GPL-3.0-only\n";
    project.write("include/step.h", &(head.to_owned() + &project.text("include/step.h")));
    let run = dist(&project, &[]).expect_code(0);
    assert!(run.stderr.contains("the copyright holder of 3 of 3 sources"), "{}", run.stderr);
    dist(&project, &["--copyright", "2026 Alice"]).expect_code(0);
    let deb = "o/miopen-hip-gfx906kdb_1.2.3-1_all.deb";
    tool("dpkg-deb", &["--extract", deb, "x"], project.path());
    let copyright = project.text("x/usr/share/doc/miopen-hip-gfx906kdb/copyright");
    assert!(
        copyright.contains("Files: step.h\nCopyright: 2026 Bob\nLicense: GPL-3"),
        "{copyright}"
    );
    assert!(copyright.contains("Copyright: 2026 Alice\n"), "{copyright}");
    let bill = project.text("o/miopen-hip-gfx906kdb-1.2.3-1.spdx.json");
    assert!(bill.contains("GPL-3.0-only"), "{bill}");
    dist(&project, &["--license-allow", "MIT"]).expect_code(0);
    let reason = "it includes `step.h`: GPL-3.0-only is not allowed".to_owned();
    let both = ["add.cpp", "scale.cl"].map(|source| (source.to_owned(), reason.clone()));
    assert_eq!(left_out(&project), both.into());
}
