//! Wheels with Python's own tools, and the files that torch's MIOpen finds once they are installed.
//! A stand-in replaces the real torch, which has gigabytes; pip and Python are real.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::project::workspace;
use gfxpack_model::package::PackageSpec;
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_model::{InstallLayout, Target};
use gfxpack_package::Format;
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::{self, KdbToPackage, Release, SourceLicense};
use tempfile::TempDir;

use super::archives::check;
use super::installed::assert_installed;
use super::support::{noise, output, run, temp, tool, tree};

/// A program of the environment that xtask makes.
fn python_tool(name: &str) -> Command {
    let program = workspace().join("target/tools/wheels/bin").join(name);
    assert!(program.is_file(), "`cargo xtask test --setup` installs {name}");
    tool(program)
}

/// The spec of the wheel of a target's kdb, which is made in `dir`.
fn spec(dir: &Path, target: &str) -> PackageSpec {
    let target: Target = target.parse().expect("a target");
    let kdb = dir.join(target.kdb_file_name());
    fs::write(&kdb, noise(1, 300_000)).expect("written");
    let license =
        SourceLicense { license: "MIT".to_owned(), copyright: "2024 The authors".to_owned() };
    let release = Release {
        library: "kernels".to_owned(),
        description: "They are few.".to_owned(),
        homepage: "https://example.org/kernels".to_owned(),
        version: "3.4.0".to_owned(),
        revision: "1".to_owned(),
        maintainer: "Kernel Packagers <kernels@example.org>".to_owned(),
        licenses: [("a.cpp".to_owned(), license)].into(),
        layout: InstallLayout::Rocm { version: None },
        consumer: Consumer::Miopen,
        shares_file: false,
        exact_package: None,
        name_template: DEFAULT_NAME_TEMPLATE.to_owned(),
        source_date_epoch: 1_700_000_000,
    };
    let contents = KdbToPackage {
        target,
        kdb,
        kernels: 3,
        missing: 0,
        compiler: "clang".to_owned(),
        tuning: Vec::new(),
    };
    kernel_package::wheel_spec(&release, &contents).expect("MIOpen reads them")
}

fn kernels(dir: &Path, target: &str) -> PathBuf {
    Format::Wheel.write(&spec(dir, target), dir, 1, None).expect("written").path
}

#[test]
fn pythons_tools_read_every_byte() {
    let dir = temp();
    let spec = spec(dir.path(), "gfx90a@104");
    let written = Format::Wheel.write(&spec, dir.path(), 1, None).expect("written");
    assert_eq!(written.file_name, "miopen_hip_gfx90a_104kdb-3.4.0-py3-none-any.whl");
    let path = &written.path;
    assert!(run(python_tool("python").args(["-m", "zipfile", "-t"]).arg(path)).contains("Done"));
    run(python_tool("twine").args(["check", "--strict"]).arg(path));
    run(python_tool("check-wheel-contents").arg("--no-config").arg(path));
    run(python_tool("wheel").args(["unpack", "--dest"]).arg(dir.path()).arg(path));
    let root = dir.path().join("miopen_hip_gfx90a_104kdb-3.4.0");
    assert_installed(&spec, &root.join("miopen_hip_gfx90a_104kdb"));
    let listed = run(python_tool("python").args(["-m", "zipfile", "-l"]).arg(path));
    assert_eq!(listed.matches("2023-11-14 22:13:20").count(), listed.lines().count() - 1);
    let report = check(path);
    assert_eq!(report.findings, Vec::<String>::new());
    assert_eq!(report.about.expect("it says").name, "miopen-hip-gfx90a-104kdb");
}

/// A Python environment, with a cache directory of its own.
struct Environment(TempDir);

impl Environment {
    fn new() -> Self {
        let dir = temp();
        run(python_tool("python")
            .args(["-m", "venv", "--without-pip"])
            .arg(dir.path().join("env")));
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pip(&self, args: &[&str], wheels: &[&Path]) -> String {
        let mut pip = python_tool("pip");
        pip.arg("--python").arg(self.path("env/bin/python")).args(args).args(wheels);
        run(pip.env("PIP_NO_INPUT", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1"))
    }

    fn install(&self, wheels: &[&Path]) {
        self.pip(&["install", "--quiet", "--no-index"], wheels);
        self.pip(&["check"], &[]);
    }

    fn uninstall(&self, name: &str) {
        self.pip(&["uninstall", "--quiet", "--yes", name], &[]);
    }

    fn python(&self, args: &[&str]) -> Command {
        let mut python = tool(self.path("env/bin/python"));
        python.args(args).env("XDG_CACHE_HOME", self.path("cache"));
        python.env_remove("MIOPEN_SYSTEM_DB_PATH").env_remove("PYTHONPATH");
        python
    }

    /// `MIOPEN_SYSTEM_DB_PATH` in a program that imports torch.
    fn variable(&self) -> Option<PathBuf> {
        Self::variable_of(&mut self.python(&["-c", IMPORT]))
    }

    fn variable_of(python: &mut Command) -> Option<PathBuf> {
        let printed = run(python);
        Some(PathBuf::from(printed.trim())).filter(|path| !path.as_os_str().is_empty())
    }

    /// The files that MIOpen sees, with the package that each one is of.
    fn databases(&self) -> BTreeMap<String, String> {
        let Some(dir) = self.variable() else { return BTreeMap::new() };
        let packages = fs::canonicalize(self.packages()).expect("there");
        let entries = fs::read_dir(dir).expect("lists");
        let entries = entries.map(|entry| {
            let path = entry.expect("reads").path();
            let real = fs::canonicalize(&path).expect("leads to a file");
            let inside = real.strip_prefix(&packages).expect("of this environment");
            let package = inside.components().next().expect("a package").as_os_str();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, package.to_string_lossy().into_owned())
        });
        entries.collect()
    }

    fn packages(&self) -> PathBuf {
        let lib = self.path("env/lib");
        let version = fs::read_dir(&lib).expect("lists").next().expect("a version").expect("reads");
        version.path().join("site-packages")
    }

    /// All files of one installed package.
    fn files(&self, package: &str) -> BTreeMap<String, Option<(Vec<u8>, u32)>> {
        let mut files = tree(&self.packages().join(package));
        files.retain(|name, _| !name.contains("__pycache__"));
        files
    }
}

const IMPORT: &str = "import os, torch; print(os.environ.get('MIOPEN_SYSTEM_DB_PATH', ''))";

/// A wheel of that name with these files, packed by Python's own tool.
fn packed(dir: &Path, name: &str, version: &str, files: &[&str]) -> PathBuf {
    let root = dir.join(format!("{name}-{version}"));
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    for file in files {
        write(file, &format!("# {file} of {name} {version}\n"));
    }
    let info = format!("{name}-{version}.dist-info");
    let about = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    write(&format!("{info}/METADATA"), &about);
    let tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    write(&format!("{info}/WHEEL"), tag);
    run(python_tool("wheel").args(["pack", "--dest-dir"]).arg(dir).arg(&root));
    dir.join(format!("{name}-{version}-py3-none-any.whl"))
}

/// As PyTorch's wheels for ROCm: the library, and databases where it looks.
fn torch(dir: &Path, version: &str, databases: &[&str]) -> PathBuf {
    let paths = databases.iter().map(|name| format!("torch/share/miopen/db/{name}"));
    let own = ["torch/__init__.py", "torch/lib/libMIOpen.so"].map(str::to_owned);
    let paths: Vec<String> = own.into_iter().chain(paths).collect();
    packed(dir, "torch", version, &paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn listed(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect()
}

#[test]
fn torch_finds_the_kernels_and_keeps_its_databases() {
    let env = Environment::new();
    let [wide, exact] = ["gfx1030", "gfx90a@104"].map(|target| kernels(env.0.path(), target));
    env.install(&[&wide]);
    let (name, module) = ("miopen-hip-gfx1030kdb", "miopen_hip_gfx1030kdb");
    let alone = output(&mut env.python(&["-m", module]));
    assert!(!alone.status.success());
    assert!(String::from_utf8_lossy(&alone.stderr).contains("torch is not installed"));
    let import = output(&mut env.python(&["-c", IMPORT]));
    assert!(String::from_utf8_lossy(&import.stderr).contains("No module named 'torch'"));

    let own = ["gfx1030_36.db.txt", "gfx90a68.HIP.fdb.txt", "gfx90a.kdb"];
    env.install(&[&torch(env.0.path(), "2.5.0", &own)]);
    let both = listed(&[
        ("gfx1030.kdb", module),
        ("gfx1030_36.db.txt", "torch"),
        ("gfx90a68.HIP.fdb.txt", "torch"),
        ("gfx90a.kdb", "torch"),
    ]);
    assert_eq!(env.databases(), both);
    let place = env.variable().expect("set").display().to_string();
    let printed = run(&mut env.python(&["-m", module]));
    assert_eq!(printed.trim(), format!("MIOPEN_SYSTEM_DB_PATH={place}"));
    let quiet = "import os; print(os.environ.get('MIOPEN_SYSTEM_DB_PATH', ''))";
    assert_eq!(run(&mut env.python(&["-c", quiet])).trim(), "", "torch is not imported");
    // A child of such a program, and a program whose user knows better.
    let set = |value: &str| {
        let mut python = env.python(&["-c", IMPORT]);
        Environment::variable_of(python.env("MIOPEN_SYSTEM_DB_PATH", value)).expect("set")
    };
    assert_eq!(set(&place), PathBuf::from(&place));
    assert_eq!(set("/opt/databases"), PathBuf::from("/opt/databases"));
    // MIOpen would open the exact kdb in place of torch's.
    env.install(&[&exact]);
    assert_eq!(env.databases(), both);
    // An environment without a cache directory works as without kernels.
    let mut nowhere = env.python(&["-c", IMPORT]);
    assert_eq!(Environment::variable_of(nowhere.env("XDG_CACHE_HOME", "/proc/self")), None);
    // Where others may write, nothing is linked.
    run(tool("chmod").arg("0777").arg(env.path("cache/gfxpack/miopen-databases")));
    assert_eq!(env.variable(), None);
    run(tool("chmod").arg("0700").arg(env.path("cache/gfxpack/miopen-databases")));

    // Another torch, without a kdb that would be hidden.
    env.install(&[&torch(env.0.path(), "2.6.0", &own[..2])]);
    let of_exact = "miopen_hip_gfx90a_104kdb";
    let mut all = both.clone();
    all.remove("gfx90a.kdb");
    all.insert("gfx90a68.kdb".to_owned(), of_exact.to_owned());
    assert_eq!(env.databases(), all);
    env.uninstall(name);
    all.remove("gfx1030.kdb");
    assert_eq!(env.databases(), all);
}

#[test]
fn nothing_of_torchs_is_overwritten_or_removed() {
    let env = Environment::new();
    let wheel = kernels(env.0.path(), "gfx1030");
    let (name, module) = ("miopen-hip-gfx1030kdb", "miopen_hip_gfx1030kdb");
    let [old, new] = [("2.5.0", &["gfx1030_36.db.txt"][..]), ("2.6.0", &["gfx1030.kdb"])]
        .map(|(version, databases)| torch(env.0.path(), version, databases));
    env.install(&[&old]);
    let torchs = env.files("torch");
    env.install(&[&wheel]);
    assert_eq!(env.files("torch"), torchs);
    env.databases();
    env.uninstall(name);
    assert_eq!(env.files("torch"), torchs, "kernels were uninstalled first");
    assert!(!env.packages().join(module).exists());
    assert_eq!(env.variable(), None);

    env.install(&[&wheel]);
    let ours = env.files(module);
    env.databases();
    env.uninstall("torch");
    assert_eq!(env.files(module), ours, "torch was uninstalled first");
    assert!(!env.packages().join("torch").exists(), "or `import torch` would find a directory");

    // A torch that brings the kernels itself is installed over one that doesn't.
    env.install(&[&old]);
    assert_eq!(env.databases().len(), 2);
    env.install(&[&new]);
    let torchs = env.files("torch");
    assert_eq!(env.variable(), None, "its own kernels are used");
    env.uninstall(name);
    assert_eq!(env.files("torch"), torchs);
    env.uninstall("torch");
    let left: BTreeSet<String> = fs::read_dir(env.packages())
        .expect("lists")
        .map(|entry| entry.expect("reads").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("torch") || name.contains("miopen"))
        .collect();
    assert_eq!(left, BTreeSet::new());
}

#[test]
fn libraries_beside_torch_are_found_if_there_is_one() {
    let env = Environment::new();
    let wheel = kernels(env.0.path(), "gfx942");
    let torch = packed(env.0.path(), "torch", "2.9.0", &["torch/__init__.py"]);
    let libraries = |family: &str| {
        let place = format!("_rocm_sdk_libraries_{family}");
        let files = ["__init__.py", "lib/libMIOpen.so.1", "share/miopen/db/gfx942130.db.txt"];
        let files = files.map(|file| format!("{place}/{file}"));
        let name = format!("rocm_sdk_libraries_{family}");
        packed(env.0.path(), &name, "7.0", &files.each_ref().map(String::as_str))
    };
    env.install(&[&torch, &wheel]);
    assert_eq!(env.variable(), None, "this torch is not for ROCm");
    env.install(&[&libraries("gfx94x")]);
    let found = [
        ("gfx942.kdb", "miopen_hip_gfx942kdb"),
        ("gfx942130.db.txt", "_rocm_sdk_libraries_gfx94x"),
    ];
    assert_eq!(env.databases(), listed(&found));
    env.install(&[&libraries("gfx110x")]);
    assert_eq!(env.variable(), None, "which of the two torch loads is not known");
}
