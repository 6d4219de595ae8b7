//! Checks files that an index or a list names, and detached signatures.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::io;
use std::path::{Component, Path, PathBuf};

use gfxpack_model::{Error, Result};

use crate::finding::Finding;
use crate::read::{self, INDEX_MAX};
use crate::repository::packages;
use crate::signing::Keyring;
use crate::sums;

/// Whether a listed package matters.
pub(super) type Wanted<'a> = &'a dyn Fn(&Path) -> bool;

/// The bytes of an index or a signature, which must be a regular file of limited
/// size.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read::bytes(path, INDEX_MAX)
}

/// Like [`read()`], for a file that need not exist.
pub(super) fn optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path of a listed file; `None` if its name leads out of the directory.
pub(super) fn within(dir: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| dir.join(name))
}

/// Checks a file that `index` lists; returns what is wrong with it.
pub(super) fn check_file(
    path: &Path,
    name: &str,
    size: Option<u64>,
    sha256: &str,
    index: &str,
) -> Option<String> {
    let other = || Some(format!("`{name}` is not what {index} says"));
    // If the size differs, the file need not be read.
    if size.is_some_and(|size| path.metadata().is_ok_and(|there| there.len() != size)) {
        return other();
    }
    match sums::digest_file(path) {
        Ok(file) if file.sha256 == sha256 => None,
        Ok(_) => other(),
        Err(error) => Some(unreadable(name, &error)),
    }
}

/// The path of a file's detached signature.
pub(super) fn signature_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".asc");
    name.into()
}

/// Checks the detached signature of a file; returns what is wrong with it.
pub(super) fn check_signature(keyring: &Keyring, path: &Path) -> Result<Option<Finding>> {
    match read(&signature_of(path)) {
        Ok(signature) => {
            let refused = keyring.check_file(&signature, path)?;
            Ok(refused.map(|why| why.in_part("its signature")))
        }
        Err(_) => Ok(Some(Finding::unsigned("it is not signed"))),
    }
}

/// The finding about a listed file that can't be read.
pub(super) fn unreadable(name: &str, error: &Error) -> String {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("`{name}`: {error}{cause}")
}

/// Findings about packages below `dir` with this extension that no index lists.
pub(super) fn unlisted(
    dir: &Path,
    ending: &str,
    wanted: Wanted<'_>,
    listed: &BTreeSet<PathBuf>,
) -> Result<Vec<Finding>> {
    let found = packages(dir)?.into_iter().filter(|path| {
        path.extension().is_some_and(|extension| extension == ending)
            && wanted(path)
            && !listed.contains(path)
    });
    let finding = |path: PathBuf| format!("`{}` is not in the index", path.display());
    Ok(found.map(|path| Finding::unlisted(finding(path))).collect())
}
