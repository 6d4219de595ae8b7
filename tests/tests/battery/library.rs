//! One library of all cases: built by gfxpack, and made by hand.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use gfxpack_tests::project::{Project, command, finish, tool};
use serde_json::Value;

use crate::cases::{Kernel, Right};

const INPUT: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906_60"];
const HEAD: &str = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n";

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

/// Where `hipcc` searches for headers of its own, in this order.
const SEARCHED: [&str; 2] = ["system/first", "system/second"];

impl Library {
    /// For a hipcc that searches two directories more.
    pub(crate) fn of_hipcc(kernels: Vec<Kernel>) -> Self {
        let mut library = Self::of_compiler(kernels, Vec::new());
        let searched = SEARCHED.map(|dir| {
            let dir = library.root.join(dir);
            fs::create_dir_all(&dir).unwrap();
            format!("-isystem {}", dir.display())
        });
        let script = format!("#!/bin/sh\nexec hipcc {} \"$@\"\n", searched.join(" "));
        let hipcc = library.project.write("bin/hipcc", &script);
        fs::set_permissions(&hipcc, Permissions::from_mode(0o755)).unwrap();
        library.compiler = vec!["--hipcc".to_owned(), hipcc.display().to_string()];
        library
    }

    pub(crate) fn of_compiler(kernels: Vec<Kernel>, compiler: Vec<String>) -> Self {
        let project = Project::new();
        let root = project.path().canonicalize().unwrap();
        kernels.iter().for_each(|kernel| kernel.write(&root));
        let entries = kernels.iter().map(|kernel| kernel.manifest_entry(&root));
        project.write("lib/kernels.toml", &entries.fold(HEAD.to_owned(), |text, it| text + &it));
        Self { kernels, compiler, root, project }
    }

    /// Changes what each case says.
    pub(crate) fn change(&self) {
        self.kernels.iter().for_each(|kernel| kernel.change(&self.root));
    }

    /// The messages of a run beside the manifest.
    fn run(&self, words: &[&str]) -> Vec<Value> {
        let mut command = self.project.command(words);
        command.args(["--message-format", "json"]).args(&self.compiler);
        command.current_dir(self.root.join("lib"));
        finish(command).messages()
    }

    /// What a build makes, and how many objects were not in the cache.
    pub(crate) fn build(&self, via: &str, jobs: &str, cache: &str) -> (Outcome, u64) {
        let out = self.root.join("o");
        let words = ["build", "--via", via, "--jobs", jobs, "--cache-dir", cache, "--out"];
        let messages = self.run(&[&words, &[out.to_str().unwrap()][..], &INPUT].concat());
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
        let finished = of_type("build-finished").next().unwrap();
        (refused.chain(made).collect(), finished["compiled"].as_u64().unwrap())
    }

    /// What the compilers make of the kernels that are to have an object, with
    /// a plan's arguments in the directory of the sources.
    pub(crate) fn plain(&self, changed: bool) -> Outcome {
        let plan = self.run(&[&["plan"], &INPUT[..]].concat()).remove(0);
        let toolchain = self.run(&["toolchains"]).remove(0);
        let has_object = |kernel: &&Kernel| kernel.right(changed) == Right::Object;
        let kernels: Vec<&Kernel> = self.kernels.iter().filter(has_object).collect();
        let objects = self.root.join(format!("plain-{changed}"));
        fs::create_dir(&objects).unwrap();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.compile(kernel, &plan["plan"]["jobs"], &toolchain, &objects);
            }
        };
        std::thread::scope(|scope| [scope.spawn(work), scope.spawn(work)].map(drop));
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
        let libs = toolchain["device_libs"].as_str().unwrap();
        let arguments = job["arguments"].as_array().unwrap().iter();
        let mut driver = command(toolchain[field].as_str().unwrap());
        driver.args(arguments.map(|word| word.as_str().unwrap().replace("{device-libs}", libs)));
        driver.arg("-o").arg(objects.join(&kernel.name)).current_dir(self.root.join("lib"));
        let run = finish(driver);
        assert_eq!(run.code, Some(0), "{}: {}", kernel.name, run.stderr);
    }
}
