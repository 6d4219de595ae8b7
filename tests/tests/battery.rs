//! What can decide an object does: after any change, a build with the same
//! cache makes what a build with a new one makes, by every route, and what the
//! plain compiler makes in the directory of the sources.
//!
//! The cases are data, in `battery/`: a source, the files that it may read,
//! what changes, and what comes of it before and after.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use gfxpack_tests::project::{Project, command, finish, tool};
use serde::Deserialize;
use serde_json::Value;

const INPUT: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906_60"];
const FILES: [&str; 2] =
    [include_str!("../battery/opencl_c_and_hip.toml"), include_str!("../battery/assembly.toml")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// Of cases that name none.
    languages: Vec<Language>,
    case: Vec<Case>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Language {
    OpenclC,
    Hip,
    Assembly,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    languages: Vec<Language>,
    #[serde(default)]
    options: String,
    /// What comes of the source before the change, and after it.
    #[serde(default)]
    before: Right,
    #[serde(default)]
    after: Right,
    /// Whether the change changes nothing.
    #[serde(default)]
    same: bool,
    source: String,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    change: BTreeMap<String, Content>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Right {
    #[default]
    Object,
    /// By the compiler.
    Refused,
    /// For reading what is not among the sources.
    ReadsOutside,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Content {
    /// `false`: there is none any more.
    Gone(bool),
    Text(String),
}

impl Language {
    fn extension(self) -> &'static str {
        match self {
            Self::OpenclC => "cl",
            Self::Hip => "cpp",
            Self::Assembly => "s",
        }
    }

    /// A kernel that does next to nothing, with V in it where headers decide it.
    fn kernel(self) -> &'static str {
        match self {
            Self::OpenclC => "__kernel void k(__global int *x) { *x = V; }",
            Self::Hip => "extern \"C\" __attribute__((global)) void k(int *x) { *x = V; }",
            Self::Assembly => {
                ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n s_endpgm\n\
                 .rodata\n.p2align 6\n.amdhsa_kernel k\n .amdhsa_next_free_vgpr 4\n \
                 .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel"
            }
        }
    }
}

/// A case in one language.
struct Kernel {
    /// Also of its directory.
    name: String,
    language: Language,
    case: Case,
}

impl Kernel {
    fn source(&self) -> String {
        format!("{0}/{0}.{1}", self.name, self.language.extension())
    }

    fn right(&self, changed: bool) -> Right {
        if changed { self.case.after } else { self.case.before }
    }

    /// Text with what it says of places filled in: `{dir}`, the source's
    /// directory from where its manifest lies; `{name}`, its name; `{lib}` and
    /// `{out}`, that directory and one outside by their absolute paths.
    fn fill(&self, root: &Path, text: &str) -> String {
        let place = |below: &str| root.join(below).join(&self.name).display().to_string();
        text.replace("{kernel}", self.language.kernel())
            .replace("{out}", &place("out"))
            .replace("{lib}", &place("lib"))
            .replace("{name}", &self.name)
            .replace("{dir}", &format!("{}/", self.name))
    }

    fn write(&self, root: &Path, files: &BTreeMap<String, Content>) {
        for (name, content) in files {
            let name = self.fill(root, name);
            let path = match name.strip_prefix("@out/") {
                Some(below) => root.join("out").join(&self.name).join(below),
                None => root.join("lib").join(&self.name).join(name),
            };
            let directory = path.parent().unwrap();
            fs::create_dir_all(directory).unwrap();
            let path = directory.canonicalize().unwrap().join(path.file_name().unwrap());
            if path.symlink_metadata().is_ok() {
                fs::remove_file(&path).unwrap();
            }
            let text = match content {
                Content::Text(text) => self.fill(root, text),
                Content::Gone(stays) => {
                    assert!(!stays, "{}: what is to be there has a text", self.name);
                    continue;
                }
            };
            if let Some(target) = text.strip_prefix("@link ") {
                symlink(target, path).unwrap();
            } else if let Some(digits) = text.strip_prefix("@bytes ") {
                let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
                let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
                fs::write(path, bytes).unwrap();
            } else {
                fs::write(path, text).unwrap();
            }
        }
    }
}

/// What became of each kernel: the MD5 of its object, or why it has none.
type Outcome = BTreeMap<String, Result<String, String>>;

/// All kernels, in one library.
struct Battery {
    project: Project,
    root: PathBuf,
    kernels: Vec<Kernel>,
}

impl Battery {
    fn new() -> Self {
        let project = Project::new();
        let root = project.path().canonicalize().unwrap();
        let kernels = FILES.iter().flat_map(|text| {
            let File { languages, case } = toml::from_str(text).unwrap();
            case.into_iter().flat_map(move |case| {
                let own = if case.languages.is_empty() { &languages } else { &case.languages };
                let kernel = |language: &Language| Kernel {
                    name: format!("{}-{}", language.extension(), case.name),
                    language: *language,
                    case: case.clone(),
                };
                own.iter().map(kernel).collect::<Vec<_>>()
            })
        });
        let battery = Self { root, kernels: kernels.collect(), project };
        battery.write();
        battery
    }

    /// The sources and the manifest, as they are before the change.
    fn write(&self) {
        let mut manifest =
            "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n".to_owned();
        for kernel in &self.kernels {
            let (root, case) = (&self.root, &kernel.case);
            let source = kernel.source();
            self.project.write(&format!("lib/{source}"), &kernel.fill(root, &case.source));
            fs::create_dir_all(root.join("out").join(&kernel.name)).unwrap();
            kernel.write(root, &case.files);
            write!(manifest, "[[kernel]]\nsource = \"{source}\"\n").unwrap();
            if !case.options.is_empty() {
                writeln!(manifest, "options = '{}'", kernel.fill(root, &case.options)).unwrap();
            }
        }
        self.project.write("lib/kernels.toml", &manifest);
    }

    fn change(&self) {
        self.kernels.iter().for_each(|kernel| kernel.write(&self.root, &kernel.case.change));
    }

    /// The messages of a run beside the manifest.
    fn run(&self, words: &[&str]) -> Vec<Value> {
        let mut command = self.project.command(words);
        command.args(["--message-format", "json"]).current_dir(self.root.join("lib"));
        finish(command).messages()
    }

    fn build(&self, via: &str, jobs: &str, cache: &str) -> Outcome {
        let out = self.root.join("o");
        let out_and_cache = [out.to_str().unwrap(), "--cache-dir", cache];
        let words = ["build", "--via", via, "--jobs", jobs, "--out"];
        let messages = self.run(&[&words, &out_and_cache[..], &INPUT].concat());
        let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
        let name = |of: &str| of.split_once('.').unwrap().0.to_owned();
        let failed = messages.iter().filter(|message| message["type"] == "job-failed");
        let refused =
            failed.map(|failed| (name(&text(failed, "kernel_name")), Err(text(failed, "reason"))));
        let kdb = out.join("kdb/gfx906_60.kdb");
        let query = "select kernel_name, kernel_hash from kern_db";
        let rows = tool("sqlite3", &["-separator", " ", kdb.to_str().unwrap(), query], &self.root);
        fs::remove_dir_all(out).unwrap();
        let made = rows.lines().filter_map(|row| row.split_once(' '));
        refused.chain(made.map(|(of, hash)| (name(of), Ok(hash.to_owned())))).collect()
    }

    /// What the plan's commands make in the directory of the sources, of those
    /// kernels that are to have an object.
    fn plain(&self, changed: bool) -> BTreeMap<String, String> {
        let plan = self.run(&[&["plan"], &INPUT[..]].concat()).remove(0);
        let toolchain = self.run(&["toolchains"]).remove(0);
        let has_object = |kernel: &&Kernel| kernel.right(changed) == Right::Object;
        let kernels: Vec<&Kernel> = self.kernels.iter().filter(has_object).collect();
        let objects = self.root.join(format!("plain-{changed}"));
        fs::create_dir(&objects).unwrap();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.compile(kernel, &plan["plan"], &toolchain, &objects);
                    }
                });
            }
        });
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let sums = tool("md5sum", &[&["--"], &names[..]].concat(), &objects);
        let pair = |line: &str| line.split_once("  ").map(|(sum, name)| (name.into(), sum.into()));
        sums.lines().filter_map(pair).collect()
    }

    fn compile(&self, kernel: &Kernel, plan: &Value, toolchain: &Value, objects: &Path) {
        let file = format!("{}.{}.o", kernel.name, kernel.language.extension());
        let mut jobs = plan["jobs"].as_array().unwrap().iter();
        let job = jobs.find(|job| job["key"]["kernel_name"] == file.as_str()).expect(&file);
        let field = if job["program"] == "clang" { "clang" } else { "program" };
        let libs = toolchain["device_libs"].as_str().unwrap();
        let arguments = job["arguments"].as_array().unwrap().iter();
        let mut driver = command(toolchain[field].as_str().unwrap());
        driver.args(arguments.map(|word| word.as_str().unwrap().replace("{device-libs}", libs)));
        driver.arg("-o").arg(objects.join(&kernel.name)).current_dir(self.root.join("lib"));
        let run = finish(driver);
        assert_eq!(run.code, Some(0), "{}: {}", kernel.name, run.stderr);
    }
}

fn plain(battery: &Battery, changed: bool) -> Outcome {
    battery.plain(changed).into_iter().map(|(a, b)| (a, Ok(b))).collect()
}

#[test]
fn what_changed_decides_with_an_old_cache_as_with_a_new_one() {
    let battery = Battery::new();
    let time = std::time::Instant::now();
    let mut rounds = Vec::new();
    for (via, jobs) in [("auto", "2"), ("direct", "1"), ("hipcc", "2")] {
        rounds.push((false, via, battery.build(via, jobs, via)));
        eprintln!("{via} {:?}", time.elapsed());
    }
    rounds.push((false, "plain", plain(&battery, false)));
    eprintln!("plain {:?}", time.elapsed());
    battery.change();
    rounds.push((true, "plain", plain(&battery, true)));
    eprintln!("plain {:?}", time.elapsed());
    for (via, jobs) in [("auto", "2"), ("direct", "1"), ("hipcc", "2")] {
        rounds.push((true, via, battery.build(via, jobs, via)));
        eprintln!("{via} {:?}", time.elapsed());
        rounds.push((true, via, battery.build(via, jobs, &format!("{via}-fresh"))));
        eprintln!("{via} {:?}", time.elapsed());
    }
    let mut wrong = Vec::new();
    for kernel in &battery.kernels {
        let mut said = Vec::new();
        let mut objects = [None, None];
        for (changed, via, outcome) in &rounds {
            if *via == "plain" && !outcome.contains_key(&kernel.name) {
                continue;
            }
            let right = match (kernel.right(*changed), &outcome[&kernel.name]) {
                (Right::Object, Ok(object)) => {
                    objects[usize::from(*changed)].get_or_insert(object) == &object
                }
                (Right::Refused, Err(reason)) => reason == "refused",
                (Right::ReadsOutside, Err(reason)) => reason == "reads-outside",
                _ => false,
            };
            if !right {
                said.push(format!("{via} {changed}: {:?}", outcome[&kernel.name]));
            }
        }
        if let [Some(before), Some(after)] = objects
            && (before == after) != kernel.case.same
        {
            said.push(format!("{before} before, {after} after"));
        }
        if !said.is_empty() {
            wrong.push((&kernel.name, said));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
