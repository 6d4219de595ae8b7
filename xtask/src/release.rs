//! `cargo xtask release`: makes everything that a release consists of in one
//! directory, and checks it. Nothing is published.

mod judges;
mod key;
mod provenance;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use self::key::Key;
use crate::ci::Ci;
use crate::crates::Crates;
use crate::dist::{self, clean_root};
use crate::files::files;
use crate::print::print;
use crate::root::{VERSION, root};

/// The Debian suite whose tools build gfxpack's own source package.
const SUITE: &str = "sid";

/// Make everything that a release consists of, in one directory, and check it
///
/// Sources, crates, packages of gfxpack and of the runtime library, packages
/// of kernels in every format, bills of materials, provenance, checksums and
/// signatures. At the end, it says which commands publish them.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Try a release of any commit, with a key that is made for this run unless `--sign-key`
    /// names one
    #[arg(long)]
    dry_run: bool,
    /// Sign with this gpg key
    #[arg(long, value_name = "KEY", required_unless_present = "dry_run")]
    sign_key: Option<String>,
    /// Where the files go; those of an earlier release are removed [default: target/release-VERSION]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Who builds, for the provenance: an address that names this machine or service
    #[arg(long, value_name = "URL", default_value = concat!(env!("CARGO_PKG_REPOSITORY"), "/xtask/release"))]
    builder: String,
    /// Leave out `cargo xtask ci`, `cargo xtask crates` and `cargo xtask dist --clean-root`, which
    /// were run for this commit
    #[arg(long)]
    skip_tests: bool,
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

impl Release {
    /// # Errors
    /// The error of the first step that fails. Files that were made before that
    /// stay.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let root = root();
        let out = self.directory(&root)?;
        sh.change_dir(&root);
        self.check_commit(sh)?;
        judges::ensure_tools(sh, self.setup)?;
        dist::ensure_tools(sh, self.setup)?;
        if !self.skip_tests {
            clean_root::ensure_possible(sh, self.setup)?;
        }
        sh.remove_path(&out)?;
        sh.create_dir(&out)?;
        let key = Key::new(sh, self.sign_key.as_deref())?;

        if self.skip_tests {
            print("tests: left out");
        } else {
            Ci { setup: self.setup }.run(sh)?;
            Crates { no_test: false }.run(sh)?;
            clean_root::build(sh, &root, SUITE, self.setup)?;
        }
        self.own_packages(sh, &root, &out)?;
        kernels(sh, &out, &key, self.setup)?;
        judges::bills(sh, &root, &out)?;
        let statement = provenance::write(sh, &root, &out, &self.builder)?;
        judges::provenance(sh, &statement)?;
        let signed = key.sign(sh, &out)?;
        judges::signatures(sh, &out, &signed)?;
        print(&format!("\n{} files in {}; to publish them:", files(&out)?.len(), out.display()));
        print("  cargo deny check advisories, which asks a server, before all else");
        if self.dry_run {
            print(&format!("  git tag --sign v{VERSION}"));
        }
        print(&format!("  git push origin v{VERSION}"));
        print("  cargo publish --workspace --exclude xtask --exclude gfxpack-tests");
        print("  upload the directory; `kernels` is a repository for apt, dnf and zypper");
        Ok(())
    }

    /// The directory for the files, which does not exist or was made by an earlier
    /// run.
    fn directory(&self, root: &Path) -> anyhow::Result<PathBuf> {
        let Some(given) = &self.out else {
            return Ok(root.join(format!("target/release-{VERSION}")));
        };
        let out = std::path::absolute(given).context("failed to find the directory")?;
        ensure!(
            !out.exists() || out.join("release-key.asc").exists(),
            "`{}` is there, and no earlier release\nhint: name a directory that is not there",
            out.display()
        );
        Ok(out)
    }

    /// Checks that the commit is tagged, and that there are no other changes.
    fn check_commit(&self, sh: &Shell) -> anyhow::Result<()> {
        let mut unready = Vec::new();
        if !cmd!(sh, "git status --porcelain").read()?.is_empty() {
            unready.push("there are changes that are not committed".to_owned());
        }
        let tag = format!("v{VERSION}");
        if !cmd!(sh, "git tag --points-at HEAD").read()?.lines().any(|line| line == tag) {
            unready.push(format!("the commit has no tag {tag}"));
        }
        let changes = sh.read_file("CHANGELOG.md")?;
        if changes.contains(&format!("## {VERSION}, unreleased")) {
            unready.push(format!("CHANGELOG.md says that {VERSION} is unreleased"));
        }
        if self.dry_run {
            unready
                .iter()
                .for_each(|reason| print(&format!("note: a release would be refused: {reason}")));
            return Ok(());
        }
        ensure!(
            unready.is_empty(),
            "not ready for a release: {}\nhint: give --dry-run to try one",
            unready.join("; ")
        );
        Ok(())
    }

    /// gfxpack and its libraries: sources, crates, .debs, .rpms.
    fn own_packages(&self, sh: &Shell, root: &Path, out: &Path) -> anyhow::Result<()> {
        let made = dist::own_packages(sh, root, self.setup)?;
        for path in made {
            sh.copy_file(&path, out)?;
        }
        if self.skip_tests {
            Crates { no_test: true }.run(sh)?;
        }
        let crates = out.join("crates");
        sh.create_dir(&crates)?;
        let ending = format!("-{VERSION}.crate");
        for path in sh.read_dir(root.join("target/package"))? {
            if path.to_string_lossy().ends_with(&ending) {
                sh.copy_file(&path, &crates)?;
            }
        }
        Ok(())
    }
}

/// Every format, for kernels that MIOpen looks up.
const FORMATS: &str = "deb,rpm,tar.gz,tar.xz,tar.zst,wheel,oci,arch";

/// Builds the kernels of the networks that `cargo xtask dist` builds, as a repository; and a
/// smaller set twice, in different directories and without a cache: the bytes must be the same.
fn kernels(sh: &Shell, out: &Path, key: &Key, install: bool) -> anyhow::Result<()> {
    let _home = key.home().map(|home| sh.push_env("GNUPGHOME", home));
    let directory = out.join("kernels");
    let sign = ["--format", FORMATS, "--sign-key", key.fingerprint()];
    let setup = install.then_some("--setup");
    cmd!(sh, "cargo xtask dist {setup...} --out {directory} {sign...} --meta all")
        .args(["--license", "MIT", "--copyright", "Advanced Micro Devices, Inc."])
        .args(["--maintainer", "The gfxpack developers <gfxpack@example.org>"])
        .run()?;

    let gfxpack = root().join("target/release/gfxpack");
    let fingerprint = key.fingerprint();
    cmd!(sh, "{gfxpack} repo {directory} --sign-key {fingerprint} --origin gfxpack").run()?;
    let keyring = directory.join("archive-key.asc");
    cmd!(sh, "{gfxpack} verify {directory} --keyring {keyring}").run()?;

    let trials = tempfile::tempdir().context("failed to make a directory")?;
    let list = trials.path().join("problems.txt");
    cmd!(sh, "{gfxpack} problems resnet18 --batch 1 --type fp16 --quiet --out {list}").run()?;
    let mut sums = Vec::new();
    for name in ["first", "a directory whose name is longer"] {
        let trial = trials.path().join(name);
        let lock = format!("lock:{}", root().join("packaging/miopen.lock").display());
        cmd!(sh, "{gfxpack} dist --problems {list} --miopen {lock} --target gfx90a@104")
            .args(["--format", FORMATS, "--sign-key", fingerprint])
            .arg("--cache-dir")
            .arg(trial.join("cache"))
            .arg("--out")
            .arg(trial.join("out"))
            .run()?;
        sums.push(sh.read_file(trial.join("out/SHA256SUMS"))?);
    }
    ensure!(sums[0] == sums[1], "two builds differ:\n{}\n{}", sums[0], sums[1]);
    print(&format!("the same bytes in two builds: {} files", sums[0].lines().count()));
    Ok(())
}
