//! A stored plan is read back as it was planned, and a changed one is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use gfxpack_model::compiler::CompilerFacts;
use gfxpack_model::compiler::Program;
use gfxpack_model::{Digest, JobId, SourceId, ToolchainId};
use serde::Serialize;

use super::*;
use crate::clock::Clock;
use crate::key_list::parse_keys;
use crate::plan::{Plan, PlanToolchain, Source, StagedFile, TargetRequest, plan};
use crate::workers::InTurn;

fn toolchain() -> PlanToolchain {
    PlanToolchain {
        identity: "test".to_owned(),
        digest: Digest::of(b"all"),
        opencl_c: Digest::of(b"some"),
        assembly: Digest::of(b"least"),
        supplied: Vec::new(),
        facts: CompilerFacts { hip_program: Program::Hipcc, hip_version: Some([5, 2, 0]) },
    }
}

fn source(name: &str) -> Source {
    Source {
        name: name.to_owned(),
        main: format!("d/{name}"),
        include_dirs: vec!["gfxpack-include-0".to_owned()],
        dirs: Vec::new(),
        links: Vec::new(),
        files: vec![StagedFile {
            path: format!("d/{name}"),
            digest: Digest::of(b"text"),
            same_as: None,
        }],
    }
}

#[test]
fn paths_out_of_the_sources_and_other_arguments_are_refused() {
    let (header, lines) = stored(false);
    let check = |change: &dyn Fn(&mut Header<String>), expected: &str| {
        let mut header = header.clone();
        change(&mut header);
        let error = read(&header, &mut &lines[..], &Jobs::All, &InTurn);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    };
    for path in ["../a.cpp", "/a.cpp", "d/../../a.cpp", "d//a.cpp", "./a.cpp", "-a.cpp", "@a", ""] {
        let in_source = |change: &dyn Fn(&mut Source)| {
            check(
                &|header| change(&mut header.sources[0]),
                "source `a.cpp` has a path that leads out",
            );
        };
        in_source(&|source| {
            source.main = path.to_owned();
            source.files[0].path = path.to_owned();
        });
        in_source(&|source| source.include_dirs[0] = path.to_owned());
        in_source(&|source| source.files[0].same_as = Some(path.to_owned()));
        if !path.starts_with(['-', '@']) {
            let (path, digest) = (path.to_owned(), Digest::of(b""));
            in_source(&|source| source.links = vec![(path.clone(), "d".to_owned())]);
            let beside = |header: &mut Header<String>| {
                let file = StagedFile { path: path.clone(), digest, same_as: None };
                header.beside[0].files.push(file);
            };
            check(&beside, "the files beside its sources have a path that leads out");
        }
    }
    let second = |path: &str, text: &[u8]| StagedFile {
        path: path.to_owned(),
        digest: Digest::of(text),
        same_as: Some("d/a.cpp".to_owned()),
    };
    for (second, expected) in [
        (second("d/b.h", b"text"), "is not what its digest says"),
        (second("d/b.h", b"other"), "has a path that leads out"),
        (second("d/a.cpp", b"text"), "has a path that leads out"),
        (second("c.h", b"text"), "has a path that leads out"),
    ] {
        check(&|header| header.sources[0].files.push(second.clone()), expected);
    }
    check(&|header| header.sources[1].main = "d/other.cl".to_owned(), "source `b.cl`");

    let group = |header: &mut Header<String>, part: usize, at: usize, arg: &str| {
        let group = &mut header.groups[0];
        let args = [&mut group.before, &mut group.after][part..].first_mut().map(|args| {
            args[at] = arg.to_owned();
        });
        args.unwrap();
    };
    let others = "the arguments of `a.cpp.o` are not those that this gfxpack gives";
    check(&|header| group(header, 0, 1, "-fplugin=d/a.cpp"), others);
    check(&|header| group(header, 1, 2, "-fplugin=d/a.cpp"), others);
    check(&|header| group(header, 1, 2, "-D__DATE__=1\n#include \"/etc/passwd\""), others);
    check(
        &|header| group(header, 1, 2, "-D__DATE__=\"Jan  2 1970\""),
        "is not what its digest says",
    );
    check(&|header| header.groups[0].before.push("-v".to_owned()), others);
    check(&|header| header.groups[0].after.push("-v".to_owned()), others);
    check(&|header| header.groups[0].program = Program::Clang, others);

    for main in ["-fplugin=a.cpp", "@a.cpp"] {
        let mut sources = sources();
        sources[0].main = main.to_owned();
        let planned = plan(vec![toolchain()], sources, &requests(false), &Clock::at(0), &InTurn);
        let error = planned.unwrap_err().to_string();
        assert!(error.contains("a compiler would take it for an option"), "{error}");
    }
}

/// Two kdbs that share jobs and a third that does not, with keys in this or the reverse order.
fn requests(reversed: bool) -> Vec<TargetRequest> {
    let options = [" -DA=1", "  -DA=1 ", " -DA=2 -std=c++14", " -DS=\"x y\"", "", " -DA=\u{e9}"];
    let keys = |gfx: &str| {
        let mut keys = Vec::new();
        for (number, name) in ["a.cpp", "b.cl", "c.s"].iter().enumerate() {
            let lines: Vec<String> = options
                .iter()
                .filter(|options| !(*name == "c.s" && options.contains("std")))
                .map(|options| {
                    let key = KernelKeyText {
                        kernel_name: format!("{name}.o"),
                        kernel_args: format!("{options} -mcpu={gfx}"),
                    };
                    serde_json::to_string(&key).unwrap()
                })
                .collect();
            let parsed = parse_keys("k", &lines.join("\n")).unwrap();
            keys.extend(parsed.keys.into_iter().map(|key| (Arc::new(key), SourceId(number))));
        }
        if reversed {
            keys.reverse();
        }
        keys
    };
    let request = |target: &str, gfx: &str| TargetRequest {
        target: target.parse().unwrap(),
        format: gfxpack_model::KernelFileFormat::Kdb,
        toolchain: ToolchainId(0),
        keys: keys(gfx),
    };
    vec![
        request("gfx906_60", "gfx906"),
        request("gfx906_64", "gfx906"),
        request("gfx90a@104", "gfx90a"),
    ]
}

#[derive(Serialize)]
struct KernelKeyText {
    kernel_name: String,
    kernel_args: String,
}

fn sources() -> Vec<Source> {
    ["a.cpp", "b.cl", "c.s"].map(source).to_vec()
}

fn stored(reversed: bool) -> (Header<String>, Vec<u8>) {
    let (plan, mut lines) = (planned(reversed), Vec::new());
    let mut write = |line: &[u8]| {
        lines.extend_from_slice(line);
        Ok(())
    };
    let written = write_jobs(&plan, &mut write).unwrap();
    let header = Header {
        beside: sources().iter().map(|_| Beside::default()).collect(),
        format: FORMAT,
        generator: "test".to_owned(),
        digest: plan.digest(),
        jobs: written.jobs,
        jobs_sha256: written.jobs_sha256,
        toolchains: vec![StoredToolchain {
            toolchain: toolchain(),
            closure: vec![("clang".to_owned(), Digest::of(b"all"))],
        }],
        sources: sources(),
        groups: written.groups,
        kdbs: written.kdbs,
        about: "more".to_owned(),
    };
    (header, lines)
}

fn planned(reversed: bool) -> Plan {
    plan(vec![toolchain()], sources(), &requests(reversed), &Clock::at(0), &InTurn).unwrap()
}

fn by_digest(plan: &Plan) -> Vec<(Digest, Vec<Arc<str>>, KernelKeyOf, SourceId)> {
    let mut jobs: Vec<_> = plan
        .jobs
        .iter()
        .map(|job| {
            let key = (job.key.kernel_name.clone(), job.key.split_device().map(|(_, d)| d.into()));
            (job.digest, job.arguments.clone(), key, job.source)
        })
        .collect();
    jobs.sort_by_key(|(digest, ..)| *digest);
    jobs
}

type KernelKeyOf = (String, Option<String>);

#[test]
fn the_plan_is_read_back_as_it_was_planned() {
    let (header, lines) = stored(false);
    let text = serde_json::to_string(&header).unwrap();
    let header: Header<String> = serde_json::from_str(&text).unwrap();
    let read = read(&header, &mut &lines[..], &Jobs::All, &InTurn).unwrap();
    let planned = planned(false);
    assert_eq!(read.digest(), planned.digest());
    assert_eq!(read.digest(), header.digest);
    assert_eq!(by_digest(&read), by_digest(&planned));
    assert!(read.jobs.len() < read.kdbs.iter().map(|kdb| kdb.rows.len()).sum());
    for (a, b) in read.kdbs.iter().zip(&planned.kdbs) {
        let keys = |kdb: &crate::plan::KdbPlan| -> Vec<gfxpack_model::KernelKey> {
            kdb.rows.iter().map(|row| (*row.key).clone()).collect()
        };
        assert_eq!((&a.target, keys(a)), (&b.target, keys(b)));
    }
}

#[test]
fn the_stored_plan_does_not_depend_on_the_order_of_keys() {
    assert_eq!(stored(false), stored(true));
}

#[test]
fn some_jobs_are_part_of_all() {
    let (header, lines) = stored(false);
    let chosen = |digest: Digest| digest.as_ref()[0].is_multiple_of(2);
    let some = read(&header, &mut &lines[..], &Jobs::Only(&chosen), &InTurn).unwrap();
    let all = planned(false);
    let expected: BTreeSet<Digest> =
        all.jobs.iter().map(|job| job.digest).filter(|digest| chosen(*digest)).collect();
    assert!(!expected.is_empty() && expected.len() < all.jobs.len());
    assert_eq!(some.jobs.iter().map(|job| job.digest).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_changed_header_is_refused() {
    let (header, _) = stored(false);
    let text = header.to_text().unwrap();
    let parsed = |text: &[u8]| Header::<String>::from_text(text, "p");
    assert_eq!(parsed(&text).unwrap(), header);
    for at in 0..text.len() {
        let mut flipped = text.clone();
        flipped[at] ^= 1;
        assert!(parsed(&flipped).is_err(), "byte {at}");
    }
    for end in [0, 1, text.len() / 2, text.len() - 1] {
        assert!(parsed(&text[..end]).is_err());
    }
    // A header without a digest of its own.
    let bare = serde_json::to_vec(&header).unwrap();
    assert!(parsed(&bare).unwrap_err().to_string().starts_with("failed to read the plan `p`: "));
    let other = serde_json::to_vec(&Header { format: FORMAT + 1, ..header }).unwrap();
    assert!(parsed(&other).unwrap_err().to_string().contains("plan format 3"));
}

#[test]
fn changed_lines_are_refused() {
    let (header, lines) = stored(false);
    let text = String::from_utf8(lines).unwrap();
    let fails = |header: &Header<String>, text: &str| {
        for wanted in [Jobs::All, Jobs::Only(&|_| true)] {
            read(header, &mut text.as_bytes(), &wanted, &InTurn).unwrap_err();
        }
    };
    for changed in [
        text.replacen("-DA=1", "-DA=7", 1),
        text.lines().skip(1).map(|line| format!("{line}\n")).collect(),
        text.replacen("[\"", "[\"0", 1),
        format!("{text}{text}"),
        String::new(),
    ] {
        fails(&header, &changed);
    }
    let change = |change: &dyn Fn(&mut Header<String>)| {
        let mut header = header.clone();
        change(&mut header);
        fails(&header, &text);
    };
    change(&|header| header.groups[0].after = vec!["another".to_owned()]);
    change(&|header| header.groups[0].source = SourceId(9));
    change(&|header| header.groups.clear());
    change(&|header| header.toolchains[0].toolchain.digest = Digest::of(b"x"));
    change(&|header| header.sources[1].files[0].digest = Digest::of(b"x"));
    change(&|header| header.kdbs[0].rows.push(Rows::Run(JobId(1), usize::MAX)));
    // The rows of kdbs are read only together with all jobs.
    let mut header = header.clone();
    header.kdbs[0].rows.pop();
    read(&header, &mut text.as_bytes(), &Jobs::All, &InTurn).unwrap_err();
}
