//! Signs with one of the user's keys.

use std::path::Path;

use gfxpack_model::{Error, Result};

use super::Sign;
use super::gpg::{GPG, REFUSED, last_line};
use super::keyring::dearmoured;
use super::secret_keys::{EXPIRED, secret_keys, signing_part};
use super::weak_keys;

/// One secret key.
#[derive(Debug, Clone)]
pub struct Signer {
    /// Fingerprint of the key.
    key: String,
    /// The part of the key that signs, as an argument for gpg.
    signing: String,
    /// OpenPGP's number for the algorithm.
    algorithm: u8,
    /// The time in signatures.
    time: u64,
    /// What is wrong with the part that signs.
    flaw: Option<String>,
}

impl Signer {
    /// The key with this name, ID or fingerprint. Signatures have the time
    /// `epoch`, or the key's own time if that is later, so that they are always
    /// the same.
    ///
    /// gpg takes this time for the present, so whether the key is still valid is
    /// checked here. gpg may find several keys for a name, but the key that signs and
    /// the one that is exported must be the same. A test signature is made, so
    /// that a passphrase that nobody enters ends the run before the work begins.
    ///
    /// # Errors
    /// If there is no such key, more than one, or one that can't sign.
    pub fn new(key: &str, epoch: u64) -> Result<Self> {
        let arguments = ["--batch", "--with-colons", "--list-secret-keys", "--", key];
        let listing = GPG.capture(&arguments, Path::new("."), &[])?;
        let keys = secret_keys(&String::from_utf8_lossy(&listing.stdout));
        let whole = match keys.as_slice() {
            [whole] if listing.status.success() => whole,
            [] | [_] => {
                let why = last_line(&listing.stderr, "gpg lists none");
                return Err(Error::usage(
                    format!("failed to find the secret key `{key}`: {why}"),
                    "`gpg --list-secret-keys` lists them; GNUPGHOME says where they are",
                ));
            }
            several => {
                let all: Vec<&str> = several.iter().map(|key| &*key[0].fingerprint).collect();
                return Err(Error::usage(
                    format!("failed to choose: {} secret keys match `{key}`", all.len()),
                    format!("give the fingerprint of one: {}", all.join(", ")),
                ));
            }
        };
        let primary = &whole[0].fingerprint;
        let part = signing_part(whole, key).map_err(|flaw| {
            let message = format!("failed to sign with the key `{key}`: {flaw}");
            Error::usage(
                message,
                if flaw == EXPIRED {
                    format!(
                        "choose another key, or `gpg --quick-set-expire {primary} 1y` lets it live \
                         on (with `'*'` after it, its subkeys)"
                    )
                } else {
                    "choose another key: `gpg --list-secret-keys` lists them".to_owned()
                },
            )
        })?;
        let created = whole.iter().map(|part| part.created).max().unwrap_or(0);
        let mut signer = Self {
            key: primary.clone(),
            // Without the exclamation mark, gpg would choose a part again, based
            // on another time.
            signing: format!("{}!", part.fingerprint),
            algorithm: part.algorithm,
            time: epoch.max(created),
            flaw: None,
        };
        signer.armoured(&[])?;
        let public = dearmoured(&signer.public_key()?).unwrap_or_default();
        signer.flaw = weak_keys::flaws(&public).remove(&part.fingerprint);
        Ok(signer)
    }

    /// Why newer package managers refuse signatures of this key.
    pub fn weakness(&self) -> Option<String> {
        let flaw = self.flaw.as_ref()?;
        Some(format!(
            "the key `{}` {flaw}: {REFUSED}; sign with an Ed25519 key or an RSA key of 2048 bits \
             or more, made by today's gpg",
            self.key
        ))
    }

    /// Why rpm may not accept signatures of this key.
    ///
    /// Source: rpm 4.18, rpmio/digest_libgcrypt.c, `pgpPubkeyNew`: RSA, DSA
    /// and Ed25519.
    pub fn unknown_to_rpm(&self) -> Option<&'static str> {
        const ECDSA: u8 = 19;
        (self.algorithm == ECDSA).then_some(
            "the key is an ECDSA key, which rpm up to 4.18 neither imports nor checks: sign .rpm \
             packages with an RSA or Ed25519 key",
        )
    }

    /// An armoured detached signature of `bytes`.
    pub fn armoured(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.sign(&["--armor", "--detach-sign"], bytes)
    }

    /// The text, clear-signed.
    pub fn clear(&self, text: &[u8]) -> Result<Vec<u8>> {
        self.sign(&["--clearsign"], text)
    }

    /// An armoured detached signature of a file, which may be large.
    pub fn armoured_file(&self, path: &Path) -> Result<Vec<u8>> {
        let path = std::path::absolute(path).map_err(Error::io("find", path))?;
        let path = path.to_str().ok_or_else(|| {
            Error::usage(format!("failed to sign `{}`", path.display()), "use a name in UTF-8")
        })?;
        self.sign(&["--armor", "--output", "-", "--detach-sign", "--", path], &[])
    }

    /// The public key, armoured.
    pub fn public_key(&self) -> Result<Vec<u8>> {
        let arguments = [
            "--batch",
            "--armor",
            "--export-options",
            "export-minimal",
            "--export",
            "--",
            &self.key,
        ];
        GPG.output(&arguments, Path::new("."), &[])
    }

    fn sign(&self, how: &[&str], bytes: &[u8]) -> Result<Vec<u8>> {
        let time = format!("{}!", self.time);
        let mut arguments = vec!["--batch", "--no-tty", "--digest-algo", "SHA256"];
        arguments.extend(["--faked-system-time", &time, "--local-user", &self.signing]);
        arguments.extend(how);
        let signed = GPG.capture(&arguments, Path::new("."), bytes)?;
        if signed.status.success() {
            return Ok(signed.stdout);
        }
        // pinentry has no terminal, or is missing.
        if ["ioctl for device", "pinentry"].iter().any(|sign| signed.stderr.contains(sign)) {
            let why = last_line(&signed.stderr, "no passphrase was asked for");
            return Err(Error::usage(
                format!("failed to ask for the passphrase of the key `{}`: {why}", self.key),
                "on a terminal, `export GPG_TTY=$(tty)`; else give it to gpg-agent before, with \
                 gpg-preset-passphrase, or sign with a key that has none",
            ));
        }
        Err(signed.failure())
    }
}

impl Sign for Signer {
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.sign(&["--detach-sign"], bytes).map_err(|error| {
            let hint = error.hint().unwrap_or_default().to_owned();
            Error::new(error.kind(), "failed to sign", hint).caused_by(error)
        })
    }
}
