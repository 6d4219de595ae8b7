//! The key that signs a release.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use xshell::{Shell, cmd};

use crate::files::files;
use crate::print::print;

/// A temporary directory for keys, which only its owner may read.
pub(super) fn keyring() -> anyhow::Result<tempfile::TempDir> {
    let private = std::fs::Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(private).tempdir();
    directory.context("failed to make a directory for keys")
}

/// A secret key in gpg.
pub(super) struct Key {
    fingerprint: String,
    /// gpg's home directory; `None` for the user's own.
    home: Option<tempfile::TempDir>,
}

impl Key {
    /// The named key, or a new one that exists only during this run.
    ///
    /// # Errors
    /// If gpg has no such key, or can't make one.
    pub(super) fn new(sh: &Shell, named: Option<&str>) -> anyhow::Result<Self> {
        let home = match named {
            Some(_) => None,
            None => Some(keyring()?),
        };
        let _home = home.as_ref().map(|home| sh.push_env("GNUPGHOME", home.path()));
        let name = named.unwrap_or("A trial <trial@example.org>");
        if home.is_some() {
            print("note: signing with a key that is made for this run");
            cmd!(sh, "gpg --batch --quiet --passphrase")
                .args(["", "--quick-generate-key", name, "ed25519", "sign", "never"])
                .run()
                .context("failed to make a key")?;
        }
        let listed =
            cmd!(sh, "gpg --batch --with-colons --list-secret-keys {name}").read().context(
                "gpg has no such secret key\nhint: `gpg --list-secret-keys` lists those it has",
            )?;
        let keys = listed.lines().filter(|line| line.starts_with("sec:")).count();
        ensure!(keys == 1, "`{name}` names {keys} keys\nhint: name one by its fingerprint");
        let fingerprint = listed.lines().find_map(|line| line.strip_prefix("fpr:"));
        let fingerprint = fingerprint.context("gpg lists a key without a fingerprint")?;
        let fingerprint = fingerprint.trim_matches(':').to_owned();
        // Detect an unusable key now and not after an hour.
        cmd!(sh, "gpg --batch --quiet --local-user {fingerprint} --detach-sign")
            .stdin("trial")
            .ignore_stdout()
            .run()
            .context("the key can't sign")?;
        Ok(Self { fingerprint, home })
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_ref().map(tempfile::TempDir::path)
    }

    /// Writes SHA256SUMS of all files, and a signature for each file directly in `out`; returns the
    /// signed files.
    ///
    /// # Errors
    /// If gpg or sha256sum fails.
    pub(super) fn sign(&self, sh: &Shell, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let _home = self.home().map(|home| sh.push_env("GNUPGHOME", home));
        let key = self.fingerprint();
        let public = out.join("release-key.asc");
        cmd!(sh, "gpg --batch --quiet --armor --output {public} --export {key}").run()?;
        let mut relative = Vec::new();
        for path in files(out)? {
            relative.push(path.strip_prefix(out).context("a file elsewhere")?.to_owned());
        }
        let _in = sh.push_dir(out);
        let sums = cmd!(sh, "sha256sum {relative...}").quiet().read()?;
        let list = out.join("SHA256SUMS");
        sh.write_file(&list, sums + "\n")?;
        let mut signed: Vec<PathBuf> = sh.read_dir(out)?;
        signed.retain(|path| path.is_file() && *path != public);
        for path in &signed {
            cmd!(sh, "gpg --batch --quiet --local-user {key} --armor --detach-sign {path}")
                .run()?;
        }
        Ok(signed)
    }
}
