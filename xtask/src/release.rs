//! `cargo xtask release`: makes the files that a release consists of, by the other tasks.

use anyhow::ensure;
use clap::Args;
use xshell::{Shell, cmd};

use crate::dist;
use crate::print;
use crate::{VERSION, root};

/// Make everything that a release consists of in target/release-VERSION
///
/// The source tarball, crates, packages of gfxpack and of the runtime library, packages of kernels
/// as a repository, checksums and signatures. Nothing is published. Without `--sign-key`, it is a
/// trial: any commit will do, and nothing is signed.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Sign with this gpg key; the commit must be a release's
    #[arg(long, value_name = "KEY")]
    sign_key: Option<String>,
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

/// Every format, for kernels that MIOpen looks up.
const FORMATS: &str = "deb,rpm,tar.gz,tar.xz,tar.zst,wheel,oci,arch";

impl Release {
    /// # Errors
    /// The error of the first step that fails. Files that were made before that stay.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let root = root();
        let out = root.join(format!("target/release-{VERSION}"));
        sh.change_dir(&root);
        if self.sign_key.is_some() {
            check_commit(sh)?;
        }
        dist::ensure_tools(sh, self.setup)?;
        let crates = out.join("crates");
        sh.remove_path(&out)?;
        sh.create_dir(&crates)?;

        for path in dist::own_packages(sh, &root, self.setup)? {
            sh.copy_file(&path, &out)?;
        }
        // cargo also builds every crate from its packed files alone.
        cmd!(sh, "cargo package --workspace --exclude xtask --exclude gfxpack-tests").run()?;
        for path in sh.read_dir("target/package")? {
            if path.to_string_lossy().ends_with(&format!("-{VERSION}.crate")) {
                sh.copy_file(&path, &crates)?;
            }
        }
        let sign: &Vec<_> = &self.sign_key.iter().flat_map(|key| ["--sign-key", key]).collect();
        let kernels = out.join("kernels");
        cmd!(sh, "cargo xtask dist --out {kernels} --format {FORMATS} {sign...} --meta all")
            .args(["--license", "MIT", "--copyright", "Advanced Micro Devices, Inc."])
            .run()?;
        let gfxpack = root.join("target/release/gfxpack");
        cmd!(sh, "{gfxpack} repo {kernels} {sign...} --origin gfxpack").run()?;
        let key = kernels.join("archive-key.asc");
        let keyring = self.sign_key.is_some().then_some(["--keyring".as_ref(), key.as_os_str()]);
        cmd!(sh, "{gfxpack} verify {kernels}").args(keyring.iter().flatten()).run()?;

        sh.change_dir(&out);
        let sums = "find . -type f -printf '%P\\0' | sort -z | xargs -0 sha256sum >../sums && \
                    mv ../sums SHA256SUMS";
        cmd!(sh, "sh -c {sums}").run()?;
        if let Some(key) = &self.sign_key {
            cmd!(sh, "gpg --local-user {key} --armor --detach-sign SHA256SUMS").run()?;
        }
        print(&format!("a release is in {}; to publish it:", out.display()));
        print(&format!("  git push origin v{VERSION}"));
        print("  cargo publish --workspace --exclude xtask --exclude gfxpack-tests");
        print("  upload the directory; `kernels` is a repository for apt, dnf and zypper");
        Ok(())
    }
}

/// Checks that the commit is tagged, and that there are no other changes.
fn check_commit(sh: &Shell) -> anyhow::Result<()> {
    ensure!(cmd!(sh, "git status --porcelain").read()?.is_empty(), "not all is committed");
    let tag = format!("v{VERSION}");
    ensure!(
        cmd!(sh, "git tag --points-at HEAD").read()?.lines().any(|line| line == tag),
        "the commit has no tag {tag}"
    );
    let changes = sh.read_file("CHANGELOG.md")?;
    ensure!(
        !changes.contains(&format!("## {VERSION}, unreleased")),
        "CHANGELOG.md says that {VERSION} is unreleased"
    );
    Ok(())
}
