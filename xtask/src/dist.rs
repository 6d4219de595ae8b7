//! `cargo xtask dist`: packages the kernels that MIOpen needs for well-known networks, with
//! `gfxpack dist`. With `--tool`, it packages the tool itself and the runtime library as .debs;
//! with `--source`, it makes the source tarball for distributions; with `--rpm` and
//! `--clean-root`, it builds the distributions' packages from that.

mod clean_root;
mod library;
mod rpm;
mod source;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use crate::print;
use crate::root;
use crate::setup::{self, CargoTool, Need, need};

/// Build packages of the kernels that MIOpen asks for, by `gfxpack dist`
///
/// All other words are passed on to `gfxpack dist`. Unless among them, this
/// adds a network's problems, the libMIOpen that packaging/miopen.lock pins,
/// `--check`, `--out target/dist` and a few targets.
#[derive(Debug, Args)]
#[command(override_usage = "cargo xtask dist [--setup] [GFXPACK DIST ARGUMENTS]...\n       \
                            cargo xtask dist [--setup] --tool\n       \
                            cargo xtask dist --source\n       \
                            cargo xtask dist [--setup] --rpm\n       \
                            cargo xtask dist [--setup] --clean-root=SUITE")]
pub(crate) struct Dist {
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
    /// Build the .debs of the tool itself and of the runtime library instead
    #[arg(long, conflicts_with = "source")]
    tool: bool,
    /// Make a source tarball with all dependencies in it, to be built offline
    #[arg(long)]
    source: bool,
    /// Build the .rpms of the tool and of the runtime library by the recipes for distributions,
    /// offline, from the source tarball
    #[arg(long, conflicts_with_all = ["source", "tool"])]
    rpm: bool,
    /// Build the Debian source package in a clean root of a suite, as sid, offline and with its
    /// tools, and test the installed package there
    #[arg(long, value_name = "SUITE", require_equals = true, conflicts_with_all = ["source", "tool", "rpm"])]
    clean_root: Option<String>,
}

const CC: Need =
    need("cc", "build the bundled SQLite and compression libraries", "gcc libc6-dev", "gcc");
const HIPCC: Need =
    need("hipcc", "compile the kernels", "hipcc", "rocm-hip-devel").or(&["/opt/rocm/bin/hipcc"]);
const CURL: Need = need("curl", "fetch packages of Debian's archive", "curl", "curl");
/// Installed without recommended packages, which would add more than half of the
/// size.
pub(crate) const NEWER_CLANG: Need = need(
    "clang 19 with lld",
    "compile for gfx942, gfx1100 to gfx1152 and gfx12xx, which Debian's hipcc does not know",
    "clang-19 lld-19",
    "",
)
.lean()
.only(&["/usr/lib/llvm-19/bin/lld", "/opt/rocm/bin/hipcc"]);
/// GPUs that the hipcc of Debian 12 does not know.
const NEWER_TARGETS: &[&str] = &["gfx941", "gfx942", "gfx11", "gfx12"];
/// What `gfxpack dist` needs, including its compiler.
pub(crate) const NEEDS: &[Need] = &[CC, HIPCC, CURL];
const TOOL_NEEDS: &[Need] = &[
    CC,
    need(
        "dpkg-shlibdeps",
        "find out which libraries the tool's own package depends on",
        "dpkg-dev",
        "dpkg-dev",
    ),
];
const LINTIAN: Need = need("lintian", "hold .deb packages to Debian's policy", "lintian", "");

/// The networks to build if none are named, with a list of problems for each.
/// Building takes minutes on two cores; other batch sizes and training take
/// longer.
const NETWORKS: [&str; 2] = ["resnet18", "resnet50"];
/// How these networks are run, as options of `gfxpack problems`.
const SELECTION: &str = "--type fp32,fp16 --batch 1 --direction forward";
const DEFAULT_TARGETS: &[&str] = &["gfx906_60", "gfx90a@104", "gfx1030"];
const CARGO_DEB: CargoTool =
    CargoTool { name: "cargo-deb", version: "3.8.0", does: "packages the tool" };

impl Dist {
    /// # Errors
    /// If a tool is missing or a build fails. `gfxpack dist` replaces this
    /// process, so its exit code becomes this one's.
    pub(crate) fn run(&self, sh: &Shell, passed: Vec<OsString>) -> anyhow::Result<()> {
        let root = root();
        let is_own = self.source || self.rpm || self.tool || self.clean_root.is_some();
        ensure!(!is_own || passed.is_empty(), "these options take no other words: {passed:?}");
        if self.source {
            return source::write(sh, &root).map(drop);
        } else if self.rpm {
            let tarball = source::write(sh, &root)?;
            return rpm::build(sh, &root, &tarball, self.setup).map(drop);
        } else if let Some(suite) = &self.clean_root {
            return clean_root::build(sh, &root, suite, self.setup);
        } else if self.tool {
            return tool(sh, &root, self.setup).map(drop);
        }
        let needs = if chooses_compiler(sh, &passed) {
            vec![CC, CURL]
        } else if setup::is_on_path(sh, "apt-get") && is_for_newer(&passed) {
            [NEEDS, &[NEWER_CLANG]].concat()
        } else {
            NEEDS.to_vec()
        };
        setup::ensure(sh, &needs, self.setup)?;

        let manifest = root.join("Cargo.toml");
        cmd!(sh, "cargo build --release --manifest-path {manifest}")
            .args(["--package", "gfxpack", "--package", "gfxpack-miopen-probe"])
            .run()?;
        let args = complete(passed, &root);
        let gfxpack = || {
            let run = cmd!(sh, "cargo run --quiet --release --manifest-path {manifest}");
            run.args(["--package", "gfxpack", "--"])
        };
        for network in NETWORKS {
            let list = problems(&root, network);
            if args.contains(&list) {
                sh.create_dir(root.join("target/problems"))?;
                let arguments = ["problems", network, "--quiet"];
                gfxpack()
                    .args(arguments)
                    .args(SELECTION.split(' '))
                    .arg("--out")
                    .arg(list)
                    .run()?;
            }
        }
        let mut command = Command::from(gfxpack().arg("dist").args(args));
        Err(command.exec()).context("failed to start `cargo run`")
    }
}

/// Makes sure that everything needed to build and check a release is installed.
pub(crate) fn ensure_tools(sh: &Shell, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, &[NEEDS, TOOL_NEEDS, &[LINTIAN], rpm::NEEDS].concat(), install)?;
    CARGO_DEB.ensure(sh, install).map(drop)
}

/// gfxpack and its libraries as released: the source tarball, .debs and .rpms.
pub(crate) fn own_packages(sh: &Shell, root: &Path, install: bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = tool(sh, root, install)?;
    let tarball = source::write(sh, root)?;
    made.extend(rpm::build(sh, root, &tarball, install)?);
    made.push(tarball);
    Ok(made)
}

/// Writes the .debs to `target/dist`, and returns their paths.
fn tool(sh: &Shell, root: &Path, install: bool) -> anyhow::Result<Vec<PathBuf>> {
    setup::ensure(sh, TOOL_NEEDS, install)?;
    let cargo_deb = CARGO_DEB.ensure(sh, install)?;
    let out = root.join("target/dist");
    sh.create_dir(&out)?;
    share(sh, root)?;
    let manifest = root.join("Cargo.toml");
    let built =
        cmd!(sh, "{cargo_deb} deb --manifest-path {manifest} --package gfxpack --output {out}")
            .read()?;
    let package = PathBuf::from(built.lines().last().context("cargo-deb names no package")?);
    judged(sh, &package)?;
    let mut made = library::packages(sh, root, &cargo_deb, &out)?;
    made.push(package);
    Ok(made)
}

/// Reports a package that was built, and checks it with lintian.
fn judged(sh: &Shell, package: &Path) -> anyhow::Result<()> {
    print(&package.display().to_string());
    if !setup::is_on_path(sh, LINTIAN.name) {
        print("lintian is missing: the package is not held to Debian's policy");
        return Ok(());
    }
    Ok(cmd!(sh, "lintian --allow-root --fail-on error,warning {package}").run()?)
}

/// Writes manual pages and completions with the tool itself, to where its recipe
/// expects them.
fn share(sh: &Shell, root: &Path) -> anyhow::Result<()> {
    let (manifest, target) = (root.join("Cargo.toml"), root.join("target"));
    cmd!(sh, "cargo build --release --manifest-path {manifest} --target-dir {target}")
        .args(["--package", "gfxpack", "--package", "gfxpack-miopen-probe"])
        .run()?;
    let program = target.join("release/gfxpack");
    let script = root.join("packaging/share.sh");
    let out = target.join("gfxpack-share");
    sh.remove_path(&out)?;
    cmd!(sh, "sh {script} {program} {out}").run().context("failed to write manual pages")
}

/// Whether hipcc is not needed: another compiler is given, or nothing will be
/// compiled.
fn chooses_compiler(sh: &Shell, passed: &[OsString]) -> bool {
    let named = ["--hipcc", "--clang", "--rocm-path", "--help", "-h"];
    named.iter().any(|flag| has(passed, flag))
        || sh.var_os("HIPCC").is_some_and(|hipcc| !hipcc.is_empty())
}

/// Whether any argument names a newer GPU, by itself or after `=`, `,` or `-t`.
fn is_for_newer(passed: &[OsString]) -> bool {
    let arguments = passed.iter().filter_map(|arg| arg.to_str());
    let mut targets = arguments.flat_map(|arg| arg.trim_start_matches("-t").split([',', '=']));
    targets.any(|target| NEWER_TARGETS.iter().any(|newer| target.starts_with(newer)))
}

/// Whether the arguments have the flag, as itself, as `--flag=value`, or as
/// `-fvalue`.
fn has(passed: &[OsString], flag: &str) -> bool {
    let long = flag.starts_with("--");
    passed.iter().filter_map(|arg| arg.to_str()).any(|arg| {
        arg.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || !long || rest.starts_with('='))
    })
}

/// The file for a network's problems. Reports and packages show its name.
fn problems(root: &Path, network: &str) -> OsString {
    root.join(format!("target/problems/{network}-fp32-fp16-batch-1-forward.txt")).into()
}

/// The arguments for `gfxpack dist`: the given ones, followed by defaults.
fn complete(mut passed: Vec<OsString>, root: &Path) -> Vec<OsString> {
    let given = |flags: &[&str]| flags.iter().any(|flag| has(&passed, flag));
    let mut added: Vec<OsString> = Vec::new();
    let looks_only = given(&["--help", "-h", "--plan"]);
    if !looks_only && !given(&["--manifest", "--keys", "--problems", "--plans"]) {
        let lists = NETWORKS.iter().map(|network| problems(root, network));
        added.extend(lists.flat_map(|list| ["--problems".into(), list]));
        if !given(&["--miopen"]) {
            let lock = root.join("packaging/miopen.lock");
            added.extend(["--miopen".into(), format!("lock:{}", lock.display()).into()]);
        }
        if !given(&["--check"]) {
            added.push("--check".into());
        }
    }
    if !given(&["--out"]) {
        added.extend(["--out".into(), root.join("target/dist").into()]);
    }
    if !looks_only && !given(&["--target", "-t"]) {
        print(&format!("no --target is given: building for {}", DEFAULT_TARGETS.join(", ")));
        added.extend(DEFAULT_TARGETS.iter().flat_map(|target| ["--target".into(), target.into()]));
    }
    passed.append(&mut added);
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[track_caller]
    fn check(given: &str, expected: &str) {
        assert_eq!(complete(arguments(given), Path::new("/checkout")), arguments(expected));
    }

    #[test]
    fn newer_gpus_need_a_newer_compiler() {
        for line in
            ["--target gfx942", "--target=gfx906,gfx1100@48", "-tgfx1201", "-t gfx1030,gfx1103"]
        {
            assert!(is_for_newer(&arguments(line)), "{line}");
        }
        for line in ["", "--target gfx90a@104,gfx1036", "--out gfx", "-j2"] {
            assert!(!is_for_newer(&arguments(line)), "{line}");
        }
    }

    #[test]
    fn missing_options_get_defaults() {
        let lists = NETWORKS.map(|network| {
            format!(" --problems /checkout/target/problems/{network}-fp32-fp16-batch-1-forward.txt")
        });
        let lists = lists.concat();
        let lock = "lock:/checkout/packaging/miopen.lock";
        check(
            "",
            &format!(
                "{lists} --miopen {lock} --check --out /checkout/target/dist \
                 --target gfx906_60 --target gfx90a@104 --target gfx1030"
            ),
        );
        check(
            "--target gfx900 --jobs 1 --miopen /opt/rocm",
            &format!(
                "--target gfx900 --jobs 1 --miopen /opt/rocm \
                 {lists} --check --out /checkout/target/dist"
            ),
        );
        check("--plan p --out o", "--plan p --out o");
        check("--manifest m -tgfx900", "--manifest m -tgfx900 --out /checkout/target/dist");
        check("--keys k.jsonl --target=gfx900 --out=o", "--keys k.jsonl --target=gfx900 --out=o");
        check("--manifest m -ta --out o", "--manifest m -ta --out o");
    }

    #[test]
    fn a_flag_is_recognised_by_its_whole_name() {
        assert!(has(&arguments("--out x"), "--out") && has(&arguments("--out=x"), "--out"));
        assert!(has(&arguments("-t x"), "-t") && has(&arguments("-tx"), "-t"));
        assert!(!has(&arguments("--outer x out --t"), "--out"));
        assert!(!has(&arguments("--target x t"), "-t"));
    }
}
