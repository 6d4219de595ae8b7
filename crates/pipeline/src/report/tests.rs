//! Opens the page in a headless browser: no script errors, all numbers are in
//! their place, and text from a build stays text.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gfxpack_compile::{Compiled, Event, Failure, FailureKind, JobRun, Site, Usage};
use gfxpack_model::args::Args;
use gfxpack_model::compiler::{CompilerFacts, Program};
use gfxpack_model::{Digest, JobId, KernelKey, Language, SourceId, ToolchainId};
use gfxpack_plan::plan::{Job, Plan, PlanToolchain, Source};
use serde_json::{Value, json};

use super::facts::BuildFacts;
use super::page::page;
use crate::unbuildable::{self, Reason, Unbuildable, Unbuilt};

const WORKERS: usize = 8;

/// A plan with this number of jobs, with every language and two targets.
pub(crate) fn plan(jobs: usize) -> Plan {
    let languages = [
        (Language::Hip, "conv.cpp"),
        (Language::OpenclC, "MIOpenPooling.cl"),
        (Language::Assembly, "conv1x1u.s"),
        (Language::Assembly, "conv3x3.s"),
    ];
    let source = |name: &str| Source {
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
            arguments: Args::default(),
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

/// A build of the plan, longest languages first. Every 50th kernel fails, for one
/// of two reasons.
fn facts(plan: &Plan) -> BuildFacts {
    let mut facts = BuildFacts::new();
    let mut order: Vec<usize> = (0..plan.jobs.len()).collect();
    order.sort_by_key(|&job| plan.jobs[job].language);
    facts.event(&Event::FoundInCache { cached: Vec::new(), refused: Vec::new() });
    facts.event(&Event::Queued { workers: WORKERS, jobs: Vec::new() });
    let mut free = [Duration::ZERO; WORKERS];
    for job in order {
        let worker = (0..WORKERS).min_by_key(|&worker| free[worker]).unwrap();
        let spread = 60 + Digest::of(&job.to_le_bytes()).as_ref()[0] as u64;
        let (time, memory) = match plan.jobs[job].language {
            Language::Hip => (10 * spread, 200),
            Language::OpenclC => (spread, 120),
            Language::Assembly => (spread / 3, 60),
        };
        let duration = Duration::from_millis(time);
        let run = JobRun { worker, started: facts.begun + free[worker] };
        free[worker] += duration + Duration::from_millis(1);
        let usage =
            Usage { cpu: duration.mul_f64(0.9), peak_memory: (memory << 20) + job as u64 * 1024 };
        facts.event(&if job % 50 == 3 {
            let words = if job % 100 == 3 {
                format!("x{job}.s:{job}:5: error: lds_direct is not supported on this GPU")
            } else {
                format!("x{job}.s:7:1: error: register index is out of range ({job})")
            };
            let (kind, output) = (FailureKind::Refused(1), words);
            Event::Failed {
                job: JobId(job),
                run,
                failure: Failure { kind, output, duration, usage, site: Site::Here },
            }
        } else {
            let size = 4096 + job as u64;
            Event::Finished {
                job: JobId(job),
                run,
                compiled: Compiled { size, duration, usage, site: Site::Here },
            }
        });
    }
    facts
}

fn page_of(facts: &BuildFacts, plan: &Plan, error: Option<&str>) -> String {
    page(facts, plan, &facts.summary(plan, Duration::from_secs(500), error))
}

/// Opens the page in Chromium with an additional script, which ends by calling
/// `done(value)`. Returns that value and the page's state.
fn open(page: &str, flags: &[&str], script: &str) -> (Value, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    let probe = format!(
        "<script type=module>const byId = (id) => document.getElementById(id);\n\
         const all = (css) => [...document.querySelectorAll(css)];\n\
         const done = (value) => {{ const made = document.createElement('pre'); made.id = 'probe'; \
         made.textContent = btoa(unescape(encodeURIComponent(JSON.stringify({{ value, \
         state: document.documentElement.dataset.state ?? 'none', \
         errors: byId('script-error').textContent }})))); document.body.append(made); }};\n\
         {script}</script></body>"
    );
    assert!(page.contains("</body>"));
    std::fs::write(&file, page.replace("</body>", &probe)).unwrap();
    let dom = chromium(dir.path(), &file, &[flags, &["--dump-dom"]].concat());
    let reply = dom.split_once("id=\"probe\">").and_then(|(_, rest)| rest.split_once('<'));
    let (reply, _) =
        reply.unwrap_or_else(|| panic!("the page did not get to its end:\n{dom:.3000}"));
    // Decoding base64 for a test needs no crate.
    let reply: Value = serde_json::from_slice(&from_base64(reply)).unwrap();
    assert_eq!(reply["errors"], "", "script errors");
    (reply["value"].clone(), reply["state"].as_str().unwrap().to_owned())
}

fn chromium(profile: &Path, file: &Path, flags: &[&str]) -> String {
    let names = ["chromium", "chromium-browser"];
    let start = |name: &str| {
        #[expect(clippy::disallowed_methods, reason = "the browser is what judges the page")]
        let mut command = Command::new(name);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--virtual-time-budget=30000", "--window-size=1400,1000"])
            .arg(format!("--user-data-dir={}", profile.join("profile").display()))
            .args(flags)
            .arg(format!("file://{}", file.display()))
            .stdin(Stdio::null())
            .output()
    };
    let output = names
        .into_iter()
        .find_map(|name| start(name).ok())
        .unwrap_or_else(|| panic!("chromium is needed: `cargo xtask test --setup` installs it"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for four in letters.chunks(4) {
        let bits = four
            .iter()
            .enumerate()
            .fold(0u32, |bits, (index, value)| bits | u32::from(*value) << (18 - 6 * index));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Sorts, filters and zooms, and returns what the page then shows.
const SORT_FILTER_AND_ZOOM: &str = "
    const column = (n) => all(`#jobs tbody td:nth-child(${n})`).map((cell) => cell.textContent);
    const sort = (name) => document.querySelector(`[data-sort=${name}]`).click();
    const colours = (id) => {
        const canvas = byId(id);
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Map();
        for (let at = 0; at < data.length; at += 4) {
            const key = `${data[at]},${data[at + 1]},${data[at + 2]},${data[at + 3]}`;
            seen.set(key, (seen.get(key) ?? 0) + 1);
        }
        return seen;
    };
    const before = { rows: column(1).length, matches: byId('matches').textContent };
    const bySize = (sort('size'), column(7));
    const bySizeUp = (sort('size'), column(7));
    const byName = (sort('name'), column(1));
    byId('more').click();
    const more = column(1).length;
    byId('filter').value = '-dn=4711 ';
    byId('filter').dispatchEvent(new Event('input'));
    const filtered = column(9);
    const view = () => document.documentElement.dataset.view.split('-').map(Number);
    const whole = view();
    document.querySelector('[data-zoom=in]').click();
    const half = view();
    byId('lanes').dispatchEvent(new KeyboardEvent('keydown', { key: '+' }));
    const quarter = view();
    const zoomed = colours('lanes').size;
    document.querySelector('[data-zoom=all]').click();
    const box = byId('lanes').getBoundingClientRect();
    byId('lanes').dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + 60, clientY: box.top + 5 }));
    const tip = byId('tip').textContent;
    all('#failure-groups > details > details').forEach((list) => (list.open = true));
    setTimeout(() => done({
        before, bySize, bySizeUp, byName, more, filtered, whole, half, quarter, zoomed, tip,
        again: view(), lanes: [...colours('lanes').values()].filter((count) => count > 50).length,
        memory: colours('memory').size, height: byId('lanes').clientHeight,
        legend: all('#legend li').map((item) => item.textContent),
        groups: all('#groups tbody tr').map((row) => [...row.cells].map((cell) => cell.textContent)),
        failures: all('#failure-groups > details > summary').map((line) => line.textContent),
        listed: all('#failure-groups .key').length,
        tiles: all('#tiles div').map((tile) => [...tile.children].map((part) => part.textContent)),
    }), 100);
";

#[test]
fn ten_thousand_jobs_are_shown_sorted_filtered_and_zoomed() {
    let plan = plan(10_000);
    let facts = facts(&plan);
    let (seen, state) = open(&page_of(&facts, &plan, None), &[], SORT_FILTER_AND_ZOOM);
    assert_eq!(state, "ready");
    assert_eq!(seen["before"], json!({ "rows": 50, "matches": "50 of 10,000 shown" }));
    assert_eq!(seen["bySize"][0], "14.1 kB", "the largest object first");
    assert_eq!(seen["bySizeUp"][0], "failed", "the smallest first");
    assert_eq!(seen["byName"][0], "MIOpenPooling.cl.o");
    assert_eq!(seen["more"], 200);
    assert_eq!(seen["filtered"], json!(["-DTILE=7 -DN=4711 -mcpu=gfx90a:xnack-"]));
    let span = |name: &str| seen[name][1].as_f64().unwrap() - seen[name][0].as_f64().unwrap();
    assert!((span("half") * 2.0 - span("whole")).abs() < 3.0, "{seen}");
    assert!((span("quarter") * 4.0 - span("whole")).abs() < 6.0, "{seen}");
    assert_eq!(seen["again"], seen["whole"]);
    assert!(seen["lanes"].as_u64() > Some(4), "languages, failures, lanes: {}", seen["lanes"]);
    assert!(seen["zoomed"].as_u64() > Some(4) && seen["memory"].as_u64() > Some(1));
    assert!(seen["height"].as_u64() < Some(700), "it fits a screen");
    assert!(seen["tip"].as_str().unwrap().starts_with("conv.cpp.o"), "{}", seen["tip"]);
    assert_eq!(
        seen["legend"],
        json!(["HIP (2,500)", "OpenCL C (2,400)", "Assembly (4,900)", "failed (200)"])
    );
    let groups = seen["groups"].as_array().unwrap();
    let opencl = groups.iter().find(|row| row[1] == "OpenCL C").unwrap();
    assert_eq!((groups.len(), &opencl[2], &opencl[4]), (4, &json!("2,400"), &json!("100")));
    let failures = seen["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 2);
    assert!(failures.iter().all(|line| line.as_str().unwrap().starts_with("100 × x")));
    assert!(seen["listed"].as_u64() >= Some(200), "{}", seen["listed"]);
    let tile = |label: &str| {
        let tiles = seen["tiles"].as_array().unwrap();
        tiles.iter().find(|tile| tile[0] == label).map(|tile| tile[1].clone())
    };
    assert_eq!(tile("Failed"), Some("200".into()));
    assert_eq!(tile("Compiled"), Some("9,800".into()));
    assert_eq!(tile("Not done"), None);
}

#[test]
fn precompiled_headers_are_shown_among_the_kernels() {
    let plan = plan(1);
    let mut facts = BuildFacts::new();
    let second = Duration::from_secs(1);
    let usage = Usage { cpu: second, peak_memory: 300 << 20 };
    let begun = facts.begun;
    let run = |after| JobRun { worker: 0, started: begun + after };
    let (first, then) = (run(Duration::ZERO), run(second));
    facts.event(&Event::FoundInCache { cached: Vec::new(), refused: Vec::new() });
    facts.event(&Event::Queued { workers: 1, jobs: Vec::new() });
    facts.event(&Event::HeadersPrecompiled { job: JobId(0), run: first, duration: second, usage });
    let compiled = Compiled { size: 5000, duration: second, usage, site: Site::Here };
    facts.event(&Event::Finished { job: JobId(0), run: then, compiled });
    let script = "
        const tip = (share) => {
            const { left, top, width } = byId('lanes').getBoundingClientRect();
            const place = { clientX: left + width * share, clientY: top + 5 };
            byId('lanes').dispatchEvent(new PointerEvent('pointermove', place));
            return byId('tip').textContent;
        };
        setTimeout(() => done({
            tips: [tip(0.25), tip(0.75)], view: document.documentElement.dataset.view,
            rows: all('#jobs tbody tr').length,
        }), 100);
    ";
    let (seen, _) = open(&page_of(&facts, &plan, None), &[], script);
    assert_eq!((&seen["view"], &seen["rows"]), (&json!("0-2000"), &json!(1)), "{seen}");
    let tip = |number: usize| seen["tips"][number].as_str().unwrap();
    assert!(tip(0).starts_with("precompiled headers"), "{seen}");
    assert!(tip(0).contains("315 MB") && !tip(0).contains("size"), "{seen}");
    assert!(tip(1).contains("size 5.0 kB"), "{seen}");
}

#[test]
fn text_from_a_build_is_shown_as_text() {
    const HOSTILE: &str = "</script><script>document.documentElement.dataset.hacked=1</script>\
        <!--<script> <img src=x onerror=document.documentElement.dataset.hacked=1> &lt; \u{2028} \
        /*STYLE*/ /*FACTS*/ \"'`${1}";
    let mut plan = plan(4);
    plan.toolchains[0].identity = HOSTILE.to_owned();
    for job in &mut plan.jobs {
        job.key = Arc::new(KernelKey {
            kernel_name: format!("{HOSTILE}.cl.o"),
            kernel_args: HOSTILE.to_owned(),
        });
    }
    let mut facts = facts(&plan);
    let (duration, usage) = (Duration::from_secs(1), Usage::default());
    for job in [0, 1] {
        let run = JobRun { worker: job, started: Instant::now() };
        let failure = Failure {
            kind: FailureKind::WrongTarget { expected: HOSTILE.into(), found: HOSTILE.into() },
            output: format!("error: {HOSTILE}\nmore {job}"),
            duration,
            usage,
            site: Site::Here,
        };
        facts.event(&Event::Failed { job: JobId(job), run, failure });
    }
    let script = "
        all('details').forEach((one) => (one.open = true));
        setTimeout(() => {
            all('details').forEach((one) => (one.open = true));
            done({
                hacked: document.documentElement.dataset.hacked ?? null,
                images: all('img').length, scripts: all('script').length,
                compiler: byId('compilers').textContent, error: byId('build-error').textContent,
                name: document.querySelector('#jobs td.name').textContent,
                words: all('pre').map((one) => one.textContent),
            });
        }, 100);
    ";
    let page = page_of(&facts, &plan, Some(HOSTILE));
    let own = page_of(&BuildFacts::new(), &self::plan(0), None).matches("<script").count();
    assert_eq!(page.matches("<script").count(), own, "no word begins an element");
    let (seen, state) = open(&page, &[], script);
    assert_eq!(state, "ready");
    assert_eq!(seen["hacked"], Value::Null);
    assert_eq!((&seen["images"], &seen["scripts"]), (&json!(0), &json!(own + 1)));
    assert_eq!(seen["compiler"], HOSTILE);
    assert_eq!(seen["name"], format!("{HOSTILE}.cl.o"));
    assert!(seen["error"].as_str().unwrap().ends_with(HOSTILE));
    let words: Vec<&str> =
        seen["words"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    for job in [0, 1] {
        assert!(words.contains(&format!("error: {HOSTILE}\nmore {job}").as_str()), "{words:?}");
    }
}

#[test]
fn dark_follows_the_reader_and_a_narrow_window_holds_the_page() {
    let plan = plan(300);
    let page = page_of(&facts(&plan), &plan, None);
    let script = "done({
        dark: matchMedia('(prefers-color-scheme: dark)').matches,
        back: getComputedStyle(document.body).backgroundColor,
        overflow: document.documentElement.scrollWidth - innerWidth,
        sections: all('section').filter((one) => !one.hidden).length,
    });";
    let light = open(&page, &["--blink-settings=preferredColorScheme=1"], script).0;
    let narrow = ["--blink-settings=preferredColorScheme=0", "--window-size=500,900"];
    let dark = open(&page, &narrow, script).0;
    assert_eq!((&light["dark"], &dark["dark"]), (&json!(false), &json!(true)));
    assert_ne!(light["back"], dark["back"]);
    for seen in [light, dark] {
        assert!(seen["overflow"].as_i64() <= Some(0), "nothing sticks out: {seen}");
        assert_eq!(seen["sections"], 4);
    }
}

#[test]
fn a_warm_and_an_interrupted_build_have_a_page_too() {
    let plan = plan(10);
    let mut warm = BuildFacts::new();
    warm.event(&Event::FoundInCache {
        cached: (0..10).map(|job| (JobId(job), 1000)).collect(),
        refused: Vec::new(),
    });
    let script = "done({
        tiles: all('#tiles div').map((tile) => tile.textContent),
        charts: !byId('timeline').hidden, error: byId('build-error').textContent,
        rows: all('#groups tbody tr').length,
    });";
    let (seen, state) = open(&page_of(&warm, &plan, None), &[], script);
    assert_eq!(state, "ready");
    assert_eq!((&seen["charts"], &seen["error"]), (&json!(false), &json!("")));
    assert!(seen["tiles"].to_string().contains("From the cache10100 %"), "{}", seen["tiles"]);
    assert!(seen["rows"].as_u64() > Some(2));
    let mut stopped = facts(&self::plan(4));
    stopped.jobs.retain(|job, _| job.0 < 3);
    let (seen, state) = open(&page_of(&stopped, &plan, Some("interrupted")), &[], script);
    assert_eq!(state, "ready");
    assert_eq!(seen["error"], "The build ended early: interrupted");
    assert!(seen["tiles"].to_string().contains("Not done7"), "{}", seen["tiles"]);
}

#[test]
fn keys_that_no_compiler_was_asked_for_are_listed() {
    let key = |n: u32| KernelKey {
        kernel_name: "gone.cl.o".to_owned(),
        kernel_args: format!(" -DN={n} -mcpu=gfx906"),
    };
    let reason = Reason { no_source: true, text: "failed to find source `gone.cl`".to_owned() };
    let keys = (0..3).map(|n| Unbuilt { key: key(n), reason: reason.clone() }).collect();
    let unbuildable = Unbuildable::from([("gfx906_60".parse().unwrap(), keys)]);
    let (plan, facts) = (plan(4), facts(&self::plan(4)));
    let mut summary = facts.summary(&plan, Duration::from_secs(500), None);
    summary["unbuildable"] = unbuildable::groups(&unbuildable).into();
    let script = "
        const list = document.querySelector('#unbuildable-groups details');
        list.open = true;
        list.addEventListener('toggle', () => done({
            hidden: byId('unbuildable').hidden, title: list.firstChild.textContent,
            keys: [...list.querySelectorAll('.key')].map((key) => key.textContent),
        }));";
    let (seen, state) = open(&page(&facts, &plan, &summary), &[], script);
    assert_eq!((state.as_str(), &seen["hidden"]), ("ready", &json!(false)));
    let title = "3 × failed to find source `gone.cl`, for gfx906@60 (source not found)";
    assert_eq!(seen["title"], title);
    let keys = seen["keys"].as_array().unwrap();
    assert_eq!((keys.len(), &keys[2]), (3, &json!("gone.cl.o  -DN=2 -mcpu=gfx906")));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = page_of(&BuildFacts::new(), &plan(1), None);
    for outside in ["http:", "https:", "src=", "@import", "url(", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("/*STYLE*/") && !page.contains("/*SCRIPT*/"));
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
        facts.event(&Event::Failed {
            job: JobId(job),
            run,
            failure: Failure { kind, output, duration, usage, site: Site::Here },
        });
    }
    let page = page_of(&facts, &plan, None);
    assert!(page.len() < 12 << 20, "{}", page.len());
    let summary = facts.summary(&plan, Duration::ZERO, None);
    assert_eq!(
        (&summary["failed"], &summary["failures"][0]["count"]),
        (&json!(2000), &json!(2000))
    );
    assert!(summary["failures"][0]["output"].as_str().unwrap().ends_with("not shown here]"));
    assert!((0..2000).all(|job| page.contains(&format!("-DN={job} "))));
}
