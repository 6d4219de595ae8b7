//! `gfxpack kdb` on kdbs of real kernels: merges, converts, compares, repairs and inspects them.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gfxpack_tests::project::{Project, command, tool};
use serde_json::Value;

/// Python's reader, asking as MIOpen does: see `crates/kdb/tests`. Prints what
/// each key of a JSON Lines list gets.
const ASK_AS_MIOPEN: &str = r#"
import bz2, hashlib, json, sqlite3, sys
db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)
names = [row[1] for row in db.execute('PRAGMA table_info(kern_db);')]
assert all(golden in names for golden in ['kernel_name', 'kernel_args', 'kernel_blob'])
for line in open(sys.argv[2]):
    key = json.loads(line)
    (blob, md5, size), = db.execute(
        "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE "
        f"(kernel_name = '{key['kernel_name']}') AND (kernel_args = '{key['kernel_args']}');")
    blob = bz2.decompress(blob) if size else blob
    assert hashlib.md5(blob).hexdigest() == md5
    print(hashlib.sha256(blob).hexdigest())
"#;

/// `plain/kdb/gfx906_60.kdb` and `dense/kdb/gfx906_60.kdb` of one plan,
/// compiled once for all tests; `keys.jsonl` names what is in them.
fn built() -> Arc<Project> {
    // The last test that holds it removes it.
    static BUILT: Mutex<Weak<Project>> = Mutex::new(Weak::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.upgrade().unwrap_or_else(|| {
        let project = Arc::new(Project::small());
        let build = |out: &str, more: &[&str]| {
            let args = ["build", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out"];
            project.run(&[&args[..], &[out], more].concat()).expect_code(0);
        };
        build("plain", &[]);
        build("dense", &["--kdb-layout", "dense"]);
        build("origins", &["--provenance"]);
        let keys = project.run(&["kdb", "list", PLAIN, "--keys"]).expect_code(0);
        assert_eq!(keys.stdout.lines().count(), 5);
        project.write("keys.jsonl", &keys.stdout);
        *built = Arc::downgrade(&project);
        project
    })
}

const PLAIN: &str = "plain/kdb/gfx906_60.kdb";
const DENSE: &str = "dense/kdb/gfx906_60.kdb";

fn keys(project: &Project) -> Vec<[String; 2]> {
    let text = fs::read_to_string(project.path().join("keys.jsonl")).unwrap();
    let field = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|key| [field(&key, "kernel_name"), field(&key, "kernel_args")])
        .collect()
}

/// A directory of the test's own in the project.
fn scratch(project: &Project, name: &str) -> String {
    fs::create_dir(project.path().join(name)).unwrap();
    name.to_owned()
}

#[test]
fn both_layouts_of_a_plan_answer_every_key_the_same() {
    let project = &*built();
    project.run(&["kdb", "verify", PLAIN, DENSE]).expect_code(0);
    let answers =
        |kdb: &str| tool("python3", &["-c", ASK_AS_MIOPEN, kdb, "keys.jsonl"], project.path());
    let expected = answers(PLAIN);
    assert_eq!(answers(DENSE), expected);

    let out = scratch(project, "lookups");
    for ([name, args], digest) in keys(project).iter().zip(expected.lines()) {
        for dir in ["plain/kdb", "dense/kdb"] {
            let object = format!("{out}/kernel.o");
            let arguments = [
                "lookup",
                "--target",
                "gfx906_60",
                "--system-dir",
                dir,
                "--out",
                &object,
                name,
                args,
            ];
            let mut lookup = project.command(&arguments);
            lookup.env("HOME", project.path());
            let run = gfxpack_tests::project::finish(lookup).expect_code(0);
            let sum = tool("sha256sum", &[&object], project.path());
            assert!(sum.starts_with(digest), "{dir} {name} {args}: {sum} {}", run.stderr);
            let sql = format!(
                "SELECT kernel_hash, hex(kernel_blob), uncompressed_size FROM kern_db \
                 WHERE (kernel_name = '{name}') AND (kernel_args = '{args}');"
            );
            let shell = |kdb| tool("sqlite3", &["-readonly", kdb, &sql], project.path());
            assert_eq!(shell(PLAIN), shell(DENSE));
        }
    }
}

#[test]
fn converting_there_and_back_gives_the_same_bytes() {
    let project = &*built();
    let out = scratch(project, "converted");
    let (there, back) = (format!("{out}/there.kdb"), format!("{out}/back.kdb"));
    let bytes = |path: &str| fs::read(project.path().join(path)).unwrap();
    for (from, to) in [("miopen", "dense"), ("dense", "miopen")] {
        let input = if from == "dense" { DENSE } else { PLAIN };
        let other = if from == "dense" { PLAIN } else { DENSE };
        let convert = |input: &str, out: &str, layout: &str| {
            project.run(&["kdb", "convert", input, "-o", out, "--layout", layout]).expect_code(0)
        };
        convert(input, &there, to);
        assert!(bytes(&there) == bytes(other), "as if built so");
        convert(&there, &back, from);
        assert!(bytes(&back) == bytes(input));
    }
    project.run(&["kdb", "convert", PLAIN, "-o", &there, "--blob", "bz2"]).expect_code(0);
    project.run(&["kdb", "convert", &there, "-o", &back, "--blob", "auto"]).expect_code(0);
    assert!(bytes(&back) == bytes(PLAIN));
    let user = format!("{out}/gfx906_60.ukdb");
    let run = project.run(&["kdb", "convert", DENSE, "-o", &user]).expect_code(2);
    assert!(run.stderr.contains("writes to a user's kdb"), "{}", run.stderr);
}

#[test]
fn parts_merge_to_the_original_and_differences_are_listed() {
    let project = &*built();
    let out = scratch(project, "parts");
    let run = project.run(&["kdb", "split", PLAIN, "--by", "kernel", "-o", &out]).expect_code(0);
    let parts: Vec<&str> = run.stdout.lines().collect();
    let expected =
        ["add.cpp.o", "fill.s.o", "scale.cl.o"].map(|name| format!("parts/{name}/gfx906_60.kdb"));
    assert_eq!(parts, expected);
    let merged = format!("{out}/merged.kdb");
    let mut args = vec!["kdb", "merge", "-o", &merged];
    args.extend(parts.iter().rev());
    project.run(&args).expect_code(0);
    let bytes = |path: &str| fs::read(project.path().join(path)).unwrap();
    assert!(bytes(&merged) == bytes(PLAIN));

    project.run(&["kdb", "diff", PLAIN, DENSE, "--exit-code"]).expect_code(0);
    let args = ["kdb", "diff", parts[0], PLAIN, "--exit-code", "--json", "-"];
    let run = project.run(&args).expect_code(101);
    let summary = &run.of_type("diff")[0];
    assert_eq!((&summary["added"], &summary["same"]), (&3.into(), &2.into()));
    let changes = run.of_type("difference");
    assert!(changes.iter().all(|change| change["change"] == "added" && change["old"].is_null()));
    let run = project.run(&["kdb", "diff", PLAIN, parts[0]]).expect_code(0);
    assert_eq!(
        run.stdout.lines().filter(|line| line.starts_with("- ")).count(),
        3,
        "{}",
        run.stdout
    );

    // Another build of one kernel: refused unless a policy says which.
    let other = format!("{out}/other.kdb");
    fs::copy(project.path().join(PLAIN), project.path().join(&other)).unwrap();
    let sql = "UPDATE kern_db SET (kernel_blob, kernel_hash, uncompressed_size) = \
               (SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE id = 1) WHERE id = 2";
    tool("sqlite3", &[&other, sql], project.path());
    let run = project.run(&["kdb", "merge", PLAIN, &other, "-o", &merged]).expect_code(2);
    assert!(run.stderr.contains("--on-conflict"), "{}", run.stderr);
    let args = ["kdb", "merge", PLAIN, &other, "-o", &merged, "--on-conflict", "first"];
    project.run(&args).expect_code(0);
    assert!(bytes(&merged) == bytes(PLAIN));
}

#[test]
fn a_damaged_file_is_repaired_and_lost_rows_are_listed() {
    let project = &*built();
    let out = scratch(project, "repaired");
    let (damaged, saved) = (format!("{out}/damaged.kdb"), format!("{out}/gfx906_60.kdb"));
    let mut bytes = fs::read(project.path().join(PLAIN)).unwrap();
    bytes[..4096].fill(0xff);
    fs::write(project.path().join(&damaged), &bytes).unwrap();
    project.run(&["kdb", "info", &damaged]).expect_code(2);
    let run = project.run(&["kdb", "repair", &damaged, "-o", &saved]).expect_code(0);
    assert!(run.stderr.contains("header is damaged"), "{}", run.stderr);
    assert!(
        fs::read(project.path().join(&saved)).unwrap()
            == fs::read(project.path().join(PLAIN)).unwrap()
    );
    project.run(&["kdb", "repair", &damaged, "-o", &damaged]).expect_code(2);

    // The file is whole, and one row of it is not.
    fs::copy(project.path().join(PLAIN), project.path().join(&damaged)).unwrap();
    let sql = "UPDATE kern_db SET kernel_hash = substr(kernel_hash, 2) || 'x' WHERE id = 3";
    tool("sqlite3", &[&damaged, sql], project.path());
    let args = ["kdb", "repair", &damaged, "-o", &saved, "--json", "-"];
    let run = project.run(&args).expect_code(101);
    let lost = run.of_type("lost");
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0]["key"]["kernel_name"], keys(project)[2][0]);
    assert_eq!(run.of_type("repaired")[0]["rows"], 4);
    project.run(&["kdb", "verify", &saved]).expect_code(0);
}

/// Reads a page as a browser would, and makes sure that it loads nothing.
const READ_PAGE: &str = r#"
import html.parser, sys
class Reader(html.parser.HTMLParser):
    void = {'meta', 'link', 'img', 'br'}
    def __init__(self):
        super().__init__(); self.open = []; self.seen = {}; self.text = ''
    def handle_starttag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        assert not any(name in ('src', 'href', 'srcset') for name, _ in attributes), attributes
        if tag not in self.void: self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data): self.text += data
reader = Reader()
page = open(sys.argv[1], encoding='utf-8').read()
reader.feed(page); reader.close()
assert not reader.open
assert 'prefers-color-scheme: dark' in page and '://' not in page and '@import' not in page
assert reader.seen['svg'] == 4 and reader.seen['rect'] > 20 and 'script' not in reader.seen
assert reader.seen['tr'] == 1 + int(sys.argv[2])
print(reader.text)
"#;

#[test]
fn stats_account_for_all_bytes() {
    let project = &*built();
    let run = project.run(&["kdb", "stats", PLAIN]).expect_code(0);
    for expected in ["objects", "keys", "add.cpp.o", "scale.cl.o", "fill.s.o"] {
        assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
    }
    let run = project.run(&["kdb", "stats", DENSE, "--json", "-"]).expect_code(0);
    let stats = &run.of_type("kdb-stats")[0];
    assert_eq!(stats["layout"], "dense");
    assert_eq!(stats["all"]["rows"], 5);
    assert_eq!(stats["file_bytes"], project.path().join(DENSE).metadata().unwrap().len());
    let rows: u64 = stats["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| kernel["sums"]["rows"].as_u64().unwrap())
        .sum();
    assert_eq!(rows, 5);
    let out = scratch(project, "stats");
    let page = format!("{out}/page.html");
    project.run(&["kdb", "stats", PLAIN, "--html", &page]).expect_code(0);
    let text = tool("python3", &["-c", READ_PAGE, &page, "3"], project.path());
    assert!(text.contains("add.cpp.o") && text.contains("gfx906_60.kdb"), "{text}");

    let named = format!("{out}/gfx906_60.kdb");
    fs::copy(project.path().join(PLAIN), project.path().join(&named)).unwrap();
    let name = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
                db.execute('UPDATE kern_db SET kernel_name = char(27)||kernel_name'); db.commit()";
    tool("python3", &["-c", name, &named], project.path());
    let run = project.run(&["kdb", "stats", &named]).expect_code(0);
    assert!(run.stdout.contains("\\u{1b}add.cpp.o"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    let stdout = project.run(&["kdb", "stats", PLAIN, "--html", "-"]).expect_code(0).stdout;
    assert!(stdout == project.text(&page));
    let json = ["kdb", "stats", PLAIN, "--html", "-", "--json", "-"];
    project.run(&json).expect_code(2);
    assert!(!project.path().join("-").exists());
}

#[test]
fn verify_has_a_hint_for_its_findings() {
    let project = &*built();
    let out = scratch(project, "hints");
    let change = |name: &str, how: &str| {
        let kdb = format!("{out}/{name}.kdb");
        fs::copy(project.path().join(PLAIN), project.path().join(&kdb)).unwrap();
        let how = format!("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); {how}");
        tool("python3", &["-c", &how, &kdb], project.path());
        project.run(&["kdb", "verify", &kdb, "--target", "gfx906_60"]).expect_code(101)
    };
    let wal = change("wal", "db.execute('PRAGMA journal_mode = wal'); db.close()");
    assert!(wal.stderr.contains("pragma journal_mode=delete"), "{}", wal.stderr);
    // Killed before it was done.
    let hot = change(
        "hot",
        "db.execute('PRAGMA cache_size = 1'); db.execute('PRAGMA cache_spill = 1'); \
         db.execute('BEGIN'); db.execute('UPDATE kern_db SET kernel_blob = kernel_blob || 1'); \
         os._exit(0)",
    );
    assert!(hot.stdout.contains("journal: "), "{}", hot.stdout);
    assert!(hot.stderr.contains("close the program that writes"), "{}", hot.stderr);
    for run in [wal, hot] {
        assert!(!run.stderr.contains("build the file again"), "{}", run.stderr);
    }
    let hash = change("hash", "db.execute('UPDATE kern_db SET kernel_hash = 1'); db.commit()");
    assert!(hash.stderr.contains("build the file again"), "{}", hash.stderr);
}

#[test]
fn symbols_and_disassembly_are_those_of_llvm() {
    let project = &*built();
    let [name, args] = &keys(project)[0];
    assert_eq!(name, "add.cpp.o");
    let run = project.run(&["kdb", "symbols", PLAIN, name, args]).expect_code(0);
    for expected in ["for gfx906", "VGPRs", "wave64", " function add", " object   add.kd"] {
        assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
    }
    let arguments = ["kdb", "symbols", DENSE, name, args, "--json", "-"];
    let run = project.run(&arguments).expect_code(0);
    let symbols = &run.of_type("symbols")[0];
    let kernel = &symbols["metadata"]["amdhsa.kernels"][0];
    assert_eq!((&kernel[".name"], &kernel[".symbol"]), (&"add".into(), &"add.kd".into()));
    let add = symbols["symbols"].as_array().unwrap().iter().find(|s| s["name"] == "add").unwrap();

    let run = project.run(&["kdb", "disasm", PLAIN, name, args]).expect_code(0);
    assert!(run.stdout.contains("<add>:") && run.stdout.contains("s_endpgm"), "{}", run.stdout);
    let address = format!("{:016x} <add>:", add["address"].as_u64().unwrap());
    assert!(run.stdout.contains(&address), "{address}: {}", run.stdout);
    project.run(&["kdb", "disasm", PLAIN, "no.cl.o", args]).expect_code(3);

    let mut bare = project.command(&["kdb", "disasm", PLAIN, name, args]);
    bare.env("PATH", project.path());
    let run = gfxpack_tests::project::finish(bare).expect_code(2);
    assert!(run.stderr.contains("llvm-objdump"), "{}", run.stderr);
}

#[test]
fn provenance_is_stored_on_request() {
    let project = &*built();
    let with = "origins/kdb/gfx906_60.kdb";
    project.run(&["kdb", "verify", with]).expect_code(0);
    let info = |kdb: &str| {
        let run = project.run(&["kdb", "info", kdb, "--json", "-"]).expect_code(0);
        run.of_type("kdb-info")[0].clone()
    };
    assert_eq!(info(PLAIN)["made_by"], serde_json::json!([]));
    let made_by = info(with)["made_by"][0].clone();
    assert_eq!(made_by["rows"], 5);
    assert!(made_by["generator"].as_str().unwrap().starts_with("gfxpack "), "{made_by}");
    assert!(made_by["compiler"].as_str().unwrap().contains("clang"), "{made_by}");
    // What manifest.json says of the same build, by object.
    let manifest = fs::read_to_string(project.path().join("origins/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let sql = "SELECT source, source_digest FROM kern_origins ORDER BY source";
    let rows = tool("sqlite3", &["-readonly", with, sql], project.path());
    let sources: String = manifest["targets"][0]["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| {
            format!("{}|{}\n", source["name"].as_str().unwrap(), source["digest"].as_str().unwrap())
        })
        .collect();
    assert_eq!(rows, sources);
    let difference =
        command("cmp").arg(Path::new(PLAIN)).arg(with).current_dir(project.path()).status();
    assert!(!difference.unwrap().success());
}

/// On a terminal every command that takes long shows how far it is, and
/// leaves nothing of that behind; elsewhere it says only what it did.
#[test]
fn long_commands_show_progress() {
    let project = &*built();
    let out = scratch(project, "bars");
    let on_a_terminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let gfxpack = gfxpack_tests::project::binary().to_str().unwrap();
    let (kdb, log) = (format!("{out}/a.kdb"), format!("{out}/app.log"));
    fs::write(
        project.path().join(&log),
        "MIOpen(HIP): Info2 [LoadBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906\n",
    )
    .unwrap();
    for (args, what) in [
        (&["kdb", "merge", PLAIN, DENSE, "-o", &kdb][..], "merging"),
        (&["kdb", "convert", PLAIN, "-o", &kdb], "converting"),
        (&["kdb", "split", PLAIN, "--by", "kernel", "-o", &out], "splitting"),
        (&["kdb", "repair", PLAIN, "-o", &kdb], "saving"),
        (&["kdb", "stats", PLAIN], "reading"),
        (&["kdb", "verify", PLAIN], "verifying"),
        (&["harvest", &log], "reading"),
    ] {
        let mut shown = command("python3");
        shown.args(["-c", on_a_terminal, gfxpack]).args(args).current_dir(project.path());
        shown.env("TERM", "xterm").env("COLUMNS", "100");
        let run = gfxpack_tests::project::finish(shown).expect_code(0);
        assert!(run.stdout.contains(what), "{args:?}: {}", run.stdout);
        assert!(run.stdout.contains("\u{1b}["), "{args:?} clears its bar");
        let plain = project.run(args).expect_code(0);
        let output = plain.stdout + &plain.stderr;
        assert!(!output.contains('\u{1b}') && !output.contains(&format!("{what}:")), "{output}");
    }
}
