//! Signs with one of the user's keys.

use std::path::Path;

use gfxpack_process::FileError;

use super::error::SigningError;
use super::gpg::{GPG, last_line};
use super::secret_keys::{secret_keys, signing_part};
use crate::error::Error;
use crate::signature::Sign;

/// One secret key.
#[derive(Debug, Clone)]
pub struct Signer {
    /// Fingerprint of the key.
    key: String,
    /// The one of its parts that signs, as gpg takes it.
    signing: String,
    /// OpenPGP's number of the algorithm.
    algorithm: u8,
    /// When signatures say they were made.
    time: u64,
}

impl Signer {
    /// The key of that name, ID or fingerprint. Signatures bear the time
    /// `epoch`, or the key's own where that is later, so that they are the
    /// same every time.
    ///
    /// That time is what gpg takes for the present, so whether the key is
    /// still valid is found out here. Names match as gpg matches them, which
    /// several keys may: what signs and what is exported must be one key. One
    /// signature is made and thrown away, so that a passphrase that nobody
    /// gives ends the work before it begins.
    ///
    /// # Errors
    /// Where there is no such key, more than one, or one that can't sign.
    pub fn new(key: &str, epoch: u64) -> Result<Self, SigningError> {
        let words = ["--batch", "--with-colons", "--list-secret-keys", "--", key];
        let listing = GPG.capture(&words, Path::new("."), &[])?;
        let keys = secret_keys(&String::from_utf8_lossy(&listing.stdout));
        let named = key.to_owned();
        let whole = match keys.as_slice() {
            [whole] if listing.status.success() => whole,
            [] | [_] => {
                let why = last_line(&listing.stderr, "gpg lists none");
                return Err(SigningError::NoSecretKey { key: named, why });
            }
            several => {
                let fingerprints = several.iter().map(|key| key[0].fingerprint.clone()).collect();
                return Err(SigningError::AmbiguousKey { key: named, fingerprints });
            }
        };
        let primary = &whole[0].fingerprint;
        let part = signing_part(whole, key).map_err(|flaw| {
            let fingerprint = primary.clone();
            SigningError::UnusableKey { key: named, fingerprint, flaw }
        })?;
        let created = whole.iter().map(|part| part.created).max().unwrap_or(0);
        let signer = Self {
            key: primary.clone(),
            // Without the mark, gpg would choose again, as of another time.
            signing: format!("{}!", part.fingerprint),
            algorithm: part.algorithm,
            time: epoch.max(created),
        };
        signer.armoured(&[]).map(|_| signer)
    }

    /// Why rpm may not take what this key signs.
    ///
    /// Source: rpm 4.18, rpmio/digest_libgcrypt.c, `pgpPubkeyNew`: RSA, DSA
    /// and Ed25519.
    #[must_use]
    pub fn unknown_to_rpm(&self) -> Option<&'static str> {
        const ECDSA: u8 = 19;
        (self.algorithm == ECDSA).then_some(
            "the key is an ECDSA key, which rpm up to 4.18 neither imports nor checks: sign .rpm \
             packages with an RSA or Ed25519 key",
        )
    }

    /// The armoured detached signature of `bytes`.
    ///
    /// # Errors
    /// [`SigningError`], where gpg fails.
    pub fn armoured(&self, bytes: &[u8]) -> Result<Vec<u8>, SigningError> {
        self.sign(&["--armor", "--detach-sign"], bytes)
    }

    /// The text with a signature around it.
    ///
    /// # Errors
    /// [`SigningError`], where gpg fails.
    pub fn clear(&self, text: &[u8]) -> Result<Vec<u8>, SigningError> {
        self.sign(&["--clearsign"], text)
    }

    /// The armoured detached signature of a file, however large.
    ///
    /// # Errors
    /// [`SigningError`], where gpg fails.
    pub fn armoured_file(&self, path: &Path) -> Result<Vec<u8>, SigningError> {
        let path = std::path::absolute(path).map_err(FileError::io("find", path))?;
        let path = path.to_str().ok_or_else(|| SigningError::FileName { path: path.clone() })?;
        self.sign(&["--armor", "--output", "-", "--detach-sign", "--", path], &[])
    }

    /// The public key, armoured.
    ///
    /// # Errors
    /// [`SigningError`], where gpg fails.
    pub fn public_key(&self) -> Result<Vec<u8>, SigningError> {
        let words = [
            "--batch",
            "--armor",
            "--export-options",
            "export-minimal",
            "--export",
            "--",
            &self.key,
        ];
        Ok(GPG.output(&words, Path::new("."), &[])?)
    }

    fn sign(&self, how: &[&str], bytes: &[u8]) -> Result<Vec<u8>, SigningError> {
        let time = format!("{}!", self.time);
        let mut words = vec!["--batch", "--no-tty", "--digest-algo", "SHA256"];
        words.extend(["--faked-system-time", &time, "--local-user", &self.signing]);
        words.extend(how);
        let signed = GPG.capture(&words, Path::new("."), bytes)?;
        if signed.status.success() {
            return Ok(signed.stdout);
        }
        // The agent's own program for it has no terminal, or there is none.
        if ["ioctl for device", "pinentry"].iter().any(|sign| signed.stderr.contains(sign)) {
            let why = last_line(&signed.stderr, "no passphrase was asked for");
            return Err(SigningError::Passphrase { fingerprint: self.key.clone(), why });
        }
        Err(signed.failure().into())
    }
}

impl Sign for Signer {
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.sign(&["--detach-sign"], bytes).map_err(|error| Error::Sign(error.into()))
    }
}
