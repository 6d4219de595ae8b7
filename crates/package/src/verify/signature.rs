//! Signatures that lie beside what they sign.

use std::path::{Path, PathBuf};

use super::listed::read;
use crate::finding::Finding;
use crate::signing::{Keyring, SigningError};

/// Where the signature of a file lies that has no place for one.
pub(super) fn path_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".asc");
    name.into()
}

/// What is wrong with that signature.
pub(super) fn check(keyring: &Keyring, path: &Path) -> Result<Option<Finding>, SigningError> {
    match read(&path_of(path)) {
        Ok(signature) => {
            let refused = keyring.check_file(&signature, path)?;
            Ok(refused.map(|why| why.in_part("its signature")))
        }
        Err(_) => Ok(Some(Finding::unsigned("it is not signed"))),
    }
}
