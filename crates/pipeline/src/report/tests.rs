//! What the page and the summary say of a build.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gfxpack_compile::{Compiled, Event, Failure, FailureKind, JobRun, ObjectInfo, Site, Usage};
use gfxpack_model::compiler::{CompilerFacts, Program};
use gfxpack_model::{Digest, JobId, KernelKey, Language, SourceId, ToolchainId};
use gfxpack_plan::plan::{Job, Plan, PlanToolchain, Source};
use gfxpack_process::Timestamp;
use serde_json::json;

use super::facts::BuildFacts;
use super::page::page;
use super::{FailureFiles, FailureGroups, HEAD, OUTPUT_LIMIT, data, property};
use crate::kernel_library::{KernelLibrary, MiopenFacts, ProblemsFact};
use crate::ledger::{Absences, Absent, Reason};

/// A plan with this number of jobs, with every language and two targets.
fn plan(jobs: usize) -> Plan {
    let languages = [
        (Language::Hip, "conv.cpp"),
        (Language::OpenclC, "MIOpenPooling.cl"),
        (Language::Assembly, "conv1x1u.s"),
        (Language::Assembly, "conv3x3.s"),
    ];
    let source = |name: &str| Source {
        dirs: Vec::new(),
        links: Vec::new(),
        name: name.to_owned(),
        main: name.to_owned(),
        include_dirs: Vec::new(),
        files: Vec::new(),
    };
    let job = |number: usize| {
        let kind = number % languages.len();
        let target = ["gfx906", "gfx90a:xnack-"][number % 2];
        Job {
            digest: Digest::of(&number.to_le_bytes()),
            key: Arc::new(KernelKey {
                kernel_name: format!("{}.o", languages[kind].1),
                kernel_args: format!(" -DTILE={} -DN={number} -mcpu={target}", number % 16),
            }),
            language: languages[kind].0,
            target_id: target.parse().unwrap(),
            source: SourceId(kind),
            toolchain: ToolchainId(0),
            program: Program::Hipcc,
            arguments: Vec::new(),
        }
    };
    Plan {
        toolchains: vec![PlanToolchain {
            identity: "hipcc 5.2.21153, clang 15.0.6".to_owned(),
            digest: Digest::of(b"toolchain"),
            opencl_c: Digest::of(b"toolchain"),
            assembly: Digest::of(b"toolchain"),
            supplied: Vec::new(),
            facts: CompilerFacts { hip_program: Program::Hipcc, hip_version: None },
        }],
        sources: languages.iter().map(|(_, name)| source(name)).collect(),
        jobs: (0..jobs).map(job).collect(),
        kdbs: Vec::new(),
    }
}

/// One kernel of the cache, one compiled, and one refused, of four.
fn facts(plan: &Plan, output: &str) -> BuildFacts {
    let mut facts = BuildFacts::new();
    let (duration, usage) =
        (Duration::from_secs(2), Usage { peak_memory: 3 << 20, ..Usage::default() });
    let run = JobRun { worker: 0, started: Instant::now() };
    facts.event(&Event::FoundInCache { cached: vec![(JobId(0), 1000)], refused: Vec::new() });
    facts.event(&Event::Queued { workers: 2, jobs: Vec::new() });
    let digest = Digest::of(b"object");
    let object = ObjectInfo { key: digest, sha256: digest, size: 4096, about: 0 };
    let compiled = Compiled { object, duration, usage, site: Site::Here };
    facts.event(&Event::Finished { job: JobId(1), run, compiled });
    let (kind, output) = (FailureKind::Refused(1), output.to_owned());
    let failure = Failure { kind, output, duration, usage, site: Site::Here };
    facts.event(&Event::Failed { job: JobId(2), run, failure });
    assert!(plan.jobs.len() >= 3);
    facts
}

fn page_of(facts: &BuildFacts, plan: &Plan, error: Option<&str>) -> String {
    let (name, version) = (Some("Kernels of mine".to_owned()), Some("1.2".to_owned()));
    let library = KernelLibrary { name, version, ..KernelLibrary::default() };
    page(facts, plan, &library, &facts.summary(plan, Duration::from_secs(500), error))
}

#[test]
fn the_page_says_for_which_networks_and_by_which_library() {
    let problems = |file: &str| ProblemsFact {
        file: file.to_owned(),
        problems: 32,
        sha256: Digest::of(b"problems"),
    };
    let miopen = MiopenFacts {
        version: "3.4.0".to_owned(),
        origin: "Debian sid, libmiopen1 6.4.3-1".to_owned(),
        sha256: Digest::of(b"library"),
        uses: "search".to_owned(),
        databases: Vec::new(),
        problems: vec![problems("resnet18.txt"), problems("unet.txt")],
        finds_no_assembler: false,
    };
    let library = KernelLibrary { miopen: Some(miopen), ..KernelLibrary::default() };
    let plan = plan(4);
    let mut facts = facts(&plan, "");
    facts.date = Timestamp(1_735_689_600);
    let page = page(&facts, &plan, &library, &facts.summary(&plan, Duration::ZERO, None));
    for expected in [
        "<title>Build report: MIOpen 3.4.0 for resnet18, unet</title>",
        "<td>MIOpen 3.4.0 (Debian sid, libmiopen1 6.4.3-1; sha256 ",
        "<td>resnet18 (32 lines), unet (32 lines)</td>",
        "<td>date</td><td>2025-01-01 00:00:00 UTC</td>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn text_from_a_build_is_shown_as_text() {
    const HOSTILE: &str = "</pre><script>x</script><img src=x onerror=y> \"'";
    let mut plan = plan(4);
    plan.toolchains[0].identity = HOSTILE.to_owned();
    for job in &mut plan.jobs {
        let (kernel_name, kernel_args) = (format!("{HOSTILE}.cl.o"), HOSTILE.to_owned());
        job.key = Arc::new(KernelKey { kernel_name, kernel_args });
    }
    let mut page = page_of(&facts(&plan, HOSTILE), &plan, Some(HOSTILE));
    let key = KernelKey { kernel_name: HOSTILE.to_owned(), kernel_args: HOSTILE.to_owned() };
    let mut absences = Absences::default();
    let absent = Absent::new(&key, Reason::NoSource, HOSTILE);
    absences.add(&"gfx906_60".parse().unwrap(), absent);
    let mut summary = json!({ "unbuildable": absences.groups() });
    summary["error"] = HOSTILE.into();
    let library = KernelLibrary { name: Some(HOSTILE.to_owned()), ..KernelLibrary::default() };
    page += &super::page::page(&BuildFacts::new(), &plan, &library, &summary);
    assert!(page.contains("1 × &lt;/pre&gt;"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
}

#[test]
fn much_output_is_cut_and_every_failure_is_there() {
    let plan = plan(2000);
    let mut facts = BuildFacts::new();
    for job in 0..2000 {
        let run = JobRun { worker: 0, started: facts.begun };
        let output = format!("error: no room\n{}", format!("é{job} ").repeat(10_000));
        let (kind, duration, usage) =
            (FailureKind::Refused(1), Duration::from_secs(1), Usage::default());
        let failure = Failure { kind, output, duration, usage, site: Site::Here };
        facts.event(&Event::Failed { job: JobId(job), run, failure });
    }
    let page = page_of(&facts, &plan, None);
    assert!(page.len() < 2 << 20, "{}", page.len());
    let summary = facts.summary(&plan, Duration::ZERO, None);
    let group = &summary["failures"][0];
    assert_eq!((&summary["failed"], &group["count"]), (&json!(2000), &json!(2000)));
    assert!(group["output"].as_str().unwrap().ends_with("not shown here]"));
    assert!((0..2000).all(|job| page.contains(&format!("-DN={job} "))));
}

#[test]
fn text_cannot_end_an_annotation() {
    assert_eq!(data("50 %\r\n::error::x"), "50 %25%0D%0A::error::x");
    assert_eq!(property("a: b, c\n%"), "a%3A b%2C c%0A%25");
}

#[test]
fn a_log_is_removed_and_no_other_file() {
    let dir = tempfile::tempdir().unwrap();
    let files = FailureFiles::new(dir.path(), None, None);
    let log = dir.path().join("refused.log");
    let plan = plan(0);
    files.write_log(&FailureGroups::default(), &plan).unwrap();
    fs::write(&log, "somebody's notes").unwrap();
    files.write_log(&FailureGroups::default(), &plan).unwrap();
    assert!(log.exists());
    fs::write(&log, format!("{HEAD}and more")).unwrap();
    files.write_log(&FailureGroups::default(), &plan).unwrap();
    assert!(!log.exists());
}

#[test]
fn the_page_is_named_where_it_holds_all() {
    let shard = "2/3".parse().unwrap();
    let files = FailureFiles::new(Path::new("o"), Some(shard), Some(Path::new("r.html")));
    assert_eq!(files.holding("short"), Some(Path::new("r.html")));
    let long = "x".repeat(OUTPUT_LIMIT + 1);
    assert_eq!(files.holding(&long), Some(Path::new("o/refused-2-of-3.log")));
}
