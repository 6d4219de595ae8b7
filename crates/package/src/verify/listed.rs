//! The files that an index or a list names, and signatures beside files.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::io;
use std::path::{Component, Path, PathBuf};

use gfxpack_process::FileError;

use crate::error::Error;
use crate::finding::Finding;
use crate::read::{self, INDEX_MAX};
use crate::repository::packages;
use crate::signing::{Keyring, SigningError};
use crate::sums;

/// The bytes of an index or a signature, which is a file and no larger than
/// such are.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read::bytes(path, INDEX_MAX)
}

/// The same of one that need not be there.
pub(super) fn optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a listed file lies; nowhere if its name leads out of the directory.
pub(super) fn within(dir: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| dir.join(name))
}

/// The suites of a repository: the directories below `dists`, sorted.
pub(super) fn suites(dir: &Path) -> Result<Vec<PathBuf>, FileError> {
    let dists = dir.join("dists");
    let entries = match dists.is_dir() {
        true => std::fs::read_dir(&dists).map_err(FileError::io("read", &dists))?,
        false => return Ok(Vec::new()),
    };
    let suites = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut suites = suites.map_err(FileError::io("read", &dists))?;
    suites.retain(|suite| suite.is_dir());
    suites.sort();
    Ok(suites)
}

/// What is wrong with a file that `index` lists.
pub(super) fn check_file(
    path: &Path,
    name: &str,
    size: Option<u64>,
    sha256: &str,
    index: &str,
) -> Option<String> {
    let other = || Some(format!("`{name}` is not what {index} says"));
    // What is larger than listed need not be read to its end.
    if size.is_some_and(|size| path.metadata().is_ok_and(|there| there.len() != size)) {
        return other();
    }
    match sums::digest_file(path) {
        Ok(file) if file.sha256 == sha256 => None,
        Ok(_) => other(),
        Err(error) => Some(unreadable(name, &error)),
    }
}

/// Where the signature of a file lies that has no place for one.
pub(super) fn signature_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".asc");
    name.into()
}

/// What is wrong with that signature.
pub(super) fn check_signature(
    keyring: &Keyring,
    path: &Path,
) -> Result<Option<Finding>, SigningError> {
    match read(&signature_of(path)) {
        Ok(signature) => {
            let refused = keyring.check_file(&signature, path)?;
            Ok(refused.map(|why| why.in_part("its signature")))
        }
        Err(_) => Ok(Some(Finding::unsigned("it is not signed"))),
    }
}

/// What is said of a listed file that can't be read.
pub(super) fn unreadable(name: &str, error: &Error) -> String {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("`{name}`: {error}{cause}")
}

/// The packages below `dir` with this ending that no index lists.
pub(super) fn unlisted(
    dir: &Path,
    ending: &str,
    listed: &BTreeSet<PathBuf>,
) -> Result<Vec<Finding>, FileError> {
    let found = packages(dir)?.into_iter().filter(|path| {
        path.extension().is_some_and(|extension| extension == ending) && !listed.contains(path)
    });
    let finding = |path: PathBuf| format!("`{}` is not in the index", path.display());
    Ok(found.map(|path| Finding::unlisted(finding(path))).collect())
}
