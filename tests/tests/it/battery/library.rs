//! One library of all cases: built by gfxpack, and made by hand.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::project::{Project, Run, command, finish, strace, tool};
use serde_json::Value;

use super::cases::{Kernel, Right};
use super::trace::{self, Trace};

const INPUT: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906_60"];
const HEAD: &str = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
                    include-dirs = [\"shared\"]\n";

/// What became of each kernel: the MD5 of its object, or the reason why it has
/// none.
pub(crate) type Outcome = BTreeMap<String, Result<String, String>>;

/// Kernels in one library, and the compiler that they are for.
pub(crate) struct Library {
    pub(crate) kernels: Vec<Kernel>,
    compiler: Vec<String>,
    root: PathBuf,
    project: Project,
}

/// Where the newer clang searches for headers of its own, in this order.
const SEARCHED: [&str; 2] = ["system/first", "system/second"];

impl Library {
    /// For a newer clang, whose configuration file names two directories more.
    pub(crate) fn of_newer_clang(kernels: Vec<Kernel>) -> Self {
        let mut library = Self::of_hipcc(kernels);
        library.project.add_newer_clang();
        let searched = SEARCHED.map(|dir| {
            let dir = library.root.join(dir);
            fs::create_dir_all(&dir).unwrap();
            format!("-isystem {}\n", dir.display())
        });
        library.project.write("newer/bin/clang.cfg", &searched.concat());
        let clang = library.root.join("newer/bin/clang");
        library.compiler = vec!["--clang".to_owned(), clang.display().to_string()];
        library
    }

    /// For the usual compilers.
    pub(crate) fn of_hipcc(kernels: Vec<Kernel>) -> Self {
        let project = Project::new();
        let root = project.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("lib/shared")).unwrap();
        kernels.iter().for_each(|kernel| kernel.write(&root));
        let entries = kernels.iter().map(|kernel| kernel.manifest_entry(&root));
        project.write("lib/kernels.toml", &entries.fold(HEAD.to_owned(), |text, it| text + &it));
        Self { kernels, compiler: Vec::new(), root, project }
    }

    /// Changes what each case says.
    pub(crate) fn change(&self) {
        self.kernels.iter().for_each(|kernel| kernel.change(&self.root));
    }

    /// A run beside the manifest.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.args(["--json", "-"]).args(&self.compiler);
        command.current_dir(self.root.join("lib"));
        command
    }

    /// What a build makes whose cache lies beside the manifest, and the kernels whose objects were
    /// not there.
    pub(crate) fn build(&self, (via, jobs): (&str, &str), cache: &str) -> (Outcome, Vec<String>) {
        let out = self.root.join("o");
        let args = ["build", "--via", via, "--jobs", jobs, "--cache-dir", cache, "--out"];
        self.outcome(finish(self.command(&[&args, &[out.to_str().unwrap()][..], &INPUT].concat())))
    }

    /// What a build of a stored plan makes, without Landlock behind the watching, and what strace
    /// says of it and of storing the plan.
    pub(crate) fn trace_stored(&self, cache: &str) -> (Outcome, Trace) {
        let own = ["plan", "o", &format!("lib/{cache}")].map(|dir| self.root.join(dir));
        let [plan, out] = [&own[0], &own[1]].map(|dir| dir.to_str().unwrap());
        let log = self.root.join("trace");
        let mut trace = Trace::default();
        let mut traced = |args: &[&str]| {
            let mut command = self.command(&[args, &["--cache-dir", cache]].concat());
            command.env("GFXPACK_NO_LANDLOCK", "1");
            let run = finish(strace(&command, trace::CALLS, &log));
            trace.add_log(&log, &self.root.join("out"), &own);
            run
        };
        traced(&[&["plan", "--out", plan][..], &INPUT].concat()).expect_code(0);
        let run = traced(&["build", "--jobs", "2", "--plan", plan, "--out", out]);
        (self.outcome(run).0, trace)
    }

    fn outcome(&self, run: Run) -> (Outcome, Vec<String>) {
        // Those that are refused are told one by one.
        let run = if run.code == Some(100) { run } else { run.expect_code(0) };
        let messages = run.messages();
        let out = self.root.join("o");
        let of_type = |kind: &'static str| messages.iter().filter(move |it| it["type"] == kind);
        let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
        let name = |of: &str| of.split_once('.').unwrap().0.to_owned();
        let refused = of_type("job-failed")
            .map(|failed| (name(&text(failed, "kernel_name")), Err(text(failed, "reason"))));
        let kdb = out.join("kdb/gfx906_60.kdb");
        let query = "select kernel_name, kernel_hash from kern_db";
        let rows = tool("sqlite3", &["-separator", " ", kdb.to_str().unwrap(), query], &self.root);
        fs::remove_dir_all(out).unwrap();
        let made = rows.lines().filter_map(|row| row.split_once(' '));
        let made = made.map(|(of, hash)| (name(of), Ok(hash.to_owned())));
        let compiled = of_type("job-finished").map(|job| name(&text(job, "kernel_name")));
        let compiled = compiled.collect();
        (refused.chain(made).collect(), compiled)
    }

    /// What the compilers make of the kernels that are to have an object, with
    /// a plan's arguments in the directory of the sources.
    pub(crate) fn plain(&self, changed: bool) -> Outcome {
        let first = |args: &[&str]| finish(self.command(args)).messages().remove(0);
        let plan = first(&[&["plan"], &INPUT[..]].concat());
        let toolchain = first(&["targets", "--toolchains"]);
        let has_object = |kernel: &&Kernel| kernel.right(changed) == Right::Object;
        let kernels: Vec<&Kernel> = self.kernels.iter().filter(has_object).collect();
        let objects = self.root.join(format!("plain-{changed}"));
        fs::create_dir(&objects).unwrap();
        // The name of that directory where gfxpack lays out sources.
        let shared = self.root.join("lib/gfxpack-include-0");
        symlink("shared", &shared).unwrap();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.compile(kernel, &plan["plan"]["jobs"], &toolchain, &objects);
            }
        };
        std::thread::scope(|scope| [scope.spawn(work), scope.spawn(work)].map(drop));
        fs::remove_file(shared).unwrap();
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let sums = tool("md5sum", &[&["--"], &names[..]].concat(), &objects);
        let sum = |line: &str| {
            line.split_once("  ").map(|(sum, name)| (name.to_owned(), Ok(sum.to_owned())))
        };
        sums.lines().filter_map(sum).collect()
    }

    fn compile(&self, kernel: &Kernel, jobs: &Value, toolchain: &Value, objects: &Path) {
        let file = format!("{}.{}.o", kernel.name, kernel.language.extension());
        let mut jobs = jobs.as_array().unwrap().iter();
        let job = jobs.find(|job| job["key"]["kernel_name"] == file.as_str()).unwrap();
        let field = if job["program"] == "clang" { "clang" } else { "program" };
        let [libs, rocm] = ["device_libs", "rocm"].map(|field| toolchain[field].as_str().unwrap());
        let arguments = job["arguments"].as_array().unwrap().iter();
        let mut driver = command(toolchain[field].as_str().unwrap());
        let filled = |arg: &str| arg.replace("{device-libs}", libs).replace("{rocm}", rocm);
        driver.args(arguments.map(|arg| filled(arg.as_str().unwrap())));
        driver.arg("-o").arg(objects.join(&kernel.name)).current_dir(self.root.join("lib"));
        let run = finish(driver);
        assert_eq!(run.code, Some(0), "{}: {}", kernel.name, run.stderr);
    }
}
