//! Checks the public keys that a repository offers: users trust what these have
//! signed.

use std::path::{Path, PathBuf};

use super::error::VerifyError;
use super::listed::{optional, suites};
use crate::finding::{Finding, Remedy};
use crate::repository::{KEY_FILE, RPM_KEY_FILE};
use crate::signing::{Keyring, SigningError};

/// The keys in a directory that did not make the signatures there, each with a
/// finding.
pub(super) fn check(dir: &Path) -> Result<Vec<(PathBuf, Finding)>, VerifyError> {
    let repomd = dir.join("repodata/repomd.xml");
    let mut indexes = of_suites(dir)?;
    indexes.extend(SignedFile::detached(&repomd, "repodata/repomd.xml.asc", dir));
    let mut sums = Vec::new();
    sums.extend(SignedFile::detached(&dir.join(crate::sums::FILE_NAME), "SHA256SUMS.asc", dir));
    // `repo` signs indexes; another key may have signed the checksums.
    let of_archive = if indexes.is_empty() { sums } else { indexes };
    let of_rpm: Vec<SignedFile> =
        SignedFile::detached(&repomd, "repodata/repomd.xml.asc", dir).collect();
    let mut findings = Vec::new();
    for (name, signed) in [(KEY_FILE, of_archive), (RPM_KEY_FILE, of_rpm)] {
        let key = dir.join(name);
        if key.symlink_metadata().is_ok() && !signed.is_empty() {
            findings.extend(one(&key, &signed)?.map(|finding| (key, finding)));
        }
    }
    Ok(findings)
}

/// What is wrong with a key that should have made these signatures.
fn one(key: &Path, signed: &[SignedFile]) -> Result<Option<Finding>, VerifyError> {
    let keyring = match Keyring::open(key) {
        Ok(keyring) => keyring,
        Err(SigningError::NoKeys { why, .. }) => {
            return Ok(Some(format!("it holds no public key: {why}").into()));
        }
        Err(error) => return Err(error.into()),
    };
    for SignedFile { name, signature, file } in signed {
        let Some(signature) = optional(signature).unwrap_or_default() else { continue };
        let refused = match file {
            Some(file) => keyring.check_file(&signature, file)?,
            None => keyring.check_clear_signed(&signature)?.err(),
        };
        // If the signature is damaged, the key is not to blame.
        if let Some(why) = refused.filter(|why| why.remedy == Remedy::Sign) {
            let what = format!("it did not make the signature `{name}`");
            return Ok(Some(why.in_part(&what)));
        }
    }
    Ok(None)
}

/// A signature in a directory.
struct SignedFile {
    name: String,
    signature: PathBuf,
    /// The signed file, if it is separate from the signature.
    file: Option<PathBuf>,
}

impl SignedFile {
    /// The detached signature `name` of a file, if both exist.
    fn detached(file: &Path, name: &str, dir: &Path) -> impl Iterator<Item = Self> {
        let signature = dir.join(name);
        let there = file.is_file() && signature.is_file();
        let signed = Self { name: name.to_owned(), signature, file: Some(file.to_owned()) };
        there.then_some(signed).into_iter()
    }
}

/// The signatures of all suites.
fn of_suites(dir: &Path) -> Result<Vec<SignedFile>, VerifyError> {
    let mut signed = Vec::new();
    for path in suites(dir)? {
        let suite = path.file_name().unwrap_or_default().display();
        let name = format!("dists/{suite}/InRelease");
        let inline = dir.join(&name);
        if inline.is_file() {
            signed.push(SignedFile { name, signature: inline, file: None });
        }
        let name = format!("dists/{suite}/Release.gpg");
        signed.extend(SignedFile::detached(&path.join("Release"), &name, dir));
    }
    Ok(signed)
}
