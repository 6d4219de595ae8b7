//! Signs with the user's gpg, and checks signatures against a key file.
//!
//! gpg and not a library: keys stay where they are kept, on a card or with an
//! agent too, and what package managers check was made by what they know.

use std::path::Path;

use gfxpack_package::Sign;

use crate::fail;
use crate::tools::{self, Tool};

const GPG: Tool = Tool { program: "gpg", from: "gnupg (gnupg2 on Fedora and openSUSE)" };

/// One secret key.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    key: String,
    /// When signatures say they were made.
    time: u64,
}

impl Signer {
    /// The key of that name, ID or fingerprint. Signatures bear the time
    /// `epoch`, or the key's own where that is later, so that they are the
    /// same every time.
    pub(crate) fn new(key: &str, epoch: u64) -> anyhow::Result<Self> {
        let words = ["--batch", "--with-colons", "--list-secret-keys", "--", key];
        let (status, listed, said) = tools::capture(GPG, &words, Path::new("."), &[])?;
        if !status.success() {
            return Err(fail::usage(
                format!("failed to find the secret key `{key}`: {}", said.trim()),
                "`gpg --list-secret-keys` lists them; GNUPGHOME says where they are",
            ));
        }
        // Source: GnuPG, doc/DETAILS, "Field 6 - Creation date".
        let listed = String::from_utf8_lossy(&listed);
        let keys =
            listed.lines().filter(|line| line.starts_with("sec:") || line.starts_with("ssb:"));
        let created = keys.filter_map(|line| line.split(':').nth(5)?.parse::<u64>().ok()).max();
        Ok(Self { key: key.to_owned(), time: epoch.max(created.unwrap_or(0)) })
    }

    /// The armoured detached signature of `bytes`.
    pub(crate) fn armoured(&self, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.sign(&["--armor", "--detach-sign"], bytes)
    }

    /// The text with a signature around it.
    pub(crate) fn clear(&self, text: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.sign(&["--clearsign"], text)
    }

    /// The armoured detached signature of a file, however large.
    pub(crate) fn armoured_file(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let path = std::path::absolute(path).map_err(fail::io("find", path))?;
        let path = path.to_str().ok_or_else(|| {
            fail::usage(format!("failed to sign `{}`", path.display()), "use a name in UTF-8")
        })?;
        self.sign(&["--armor", "--output", "-", "--detach-sign", "--", path], &[])
    }

    /// The public key, armoured.
    pub(crate) fn public_key(&self) -> anyhow::Result<Vec<u8>> {
        let words = [
            "--batch",
            "--armor",
            "--export-options",
            "export-minimal",
            "--export",
            "--",
            &self.key,
        ];
        tools::output(GPG, &words, Path::new("."), &[])
    }

    fn sign(&self, how: &[&str], bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        let time = format!("{}!", self.time);
        let mut words = vec!["--batch", "--no-tty", "--digest-algo", "SHA256"];
        words.extend(["--faked-system-time", &time, "--local-user", &self.key]);
        words.extend(how);
        tools::output(GPG, &words, Path::new("."), bytes)
    }
}

impl Sign for Signer {
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>, gfxpack_package::Error> {
        let signed = self.sign(&["--detach-sign"], bytes);
        signed.map_err(|error| gfxpack_package::Error::Sign(error.into()))
    }
}

/// Public keys whose signatures are trusted, and no others.
#[derive(Debug)]
pub(crate) struct Keyring {
    home: tempfile::TempDir,
}

impl Keyring {
    /// The keys of a file, armoured or not.
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
        let keys = std::fs::read(file).map_err(fail::io("read", file))?;
        let keyring = Self { home: fail::temporary_dir()? };
        let (status, _, said) = keyring.run(&["--import"], &keys)?;
        if status {
            return Ok(keyring);
        }
        Err(fail::usage(
            format!("failed to read keys from `{}`: {}", file.display(), said.trim()),
            "export them with `gpg --armor --export KEY`",
        ))
    }

    /// What is wrong with the detached `signature` of a file; `None` where it
    /// is good and by one of the keys.
    pub(crate) fn refuses(&self, signature: &[u8], file: &Path) -> anyhow::Result<Option<String>> {
        let path = self.home.path().join("signature");
        std::fs::write(&path, signature).map_err(fail::io("write", &path))?;
        let file = std::path::absolute(file).map_err(fail::io("find", file))?;
        let words = [Path::new("--verify"), Path::new("--"), &path, &file];
        let (good, _, said) = self.run(&words, &[])?;
        Ok((!good).then(|| last_line(&said)))
    }

    /// As [`Keyring::refuses`], of bytes in memory.
    pub(crate) fn refuses_bytes(
        &self,
        signature: &[u8],
        bytes: &[u8],
    ) -> anyhow::Result<Option<String>> {
        let path = self.home.path().join("signed");
        std::fs::write(&path, bytes).map_err(fail::io("write", &path))?;
        self.refuses(signature, &path)
    }

    /// The text that a clear-signed file signs, or what is wrong with it.
    pub(crate) fn text(&self, signed: &[u8]) -> anyhow::Result<Result<Vec<u8>, String>> {
        let (good, text, said) = self.run(&["--output", "-", "--decrypt"], signed)?;
        Ok(if good { Ok(text) } else { Err(last_line(&said)) })
    }

    fn run(
        &self,
        words: &[impl AsRef<std::ffi::OsStr>],
        input: &[u8],
    ) -> anyhow::Result<(bool, Vec<u8>, String)> {
        let home = self.home.path().as_os_str();
        let mut all: Vec<&std::ffi::OsStr> = vec!["--homedir".as_ref(), home];
        let quietly = ["--batch", "--no-tty", "--quiet", "--trust-model", "always"];
        all.extend(quietly.map(std::ffi::OsStr::new));
        all.extend(words.iter().map(AsRef::as_ref));
        let (status, stdout, stderr) = tools::capture(GPG, &all, Path::new("."), input)?;
        Ok((status.success(), stdout, stderr))
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no signature");
    line.trim_start_matches("gpg: ").to_owned()
}
