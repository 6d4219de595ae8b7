//! Checks files, directories and packages for code that GPUs lack.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use gfxpack_fatbin::{Checker, Error as CodeError, Gap};
use gfxpack_model::TargetId;
use gfxpack_package::read::{self, PackageKind};

use super::{entries, failed, open};
use crate::error::{Error, ErrorKind, Result, unsound};

/// Bytes that tell what a file is.
const HEAD: u64 = 64;

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// Files with device code.
    pub with_code: u64,
    /// What is missing or wrong.
    pub gaps: Vec<Gap>,
}

/// Checks a file, all files below a directory, or the files in a package.
///
/// # Errors
/// If one can't be read.
pub fn check(path: &Path, devices: &[TargetId]) -> Result<Checked> {
    let mut checker = Checker::new(devices);
    match PackageKind::from_name(path).filter(|_| path.is_file()) {
        Some(kind) => package(path, kind, &mut checker)?,
        None => add_tree(path, &mut checker)?,
    }
    Ok(Checked { with_code: checker.with_code, gaps: checker.finish() })
}

/// Has all files below a directory checked, or a file.
pub(crate) fn add_tree(root: &Path, checker: &mut Checker<'_>) -> Result {
    for entry in entries(root) {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type().is_file() || entry.depth() == 0 && path.is_file() {
            checker.file(path, &open(path)?).map_err(failed(path))?;
        } else if entry.file_type().is_symlink() {
            checker.name(path);
        }
    }
    Ok(())
}

fn package(path: &Path, kind: PackageKind, checker: &mut Checker<'_>) -> Result {
    let report = read::check(path, kind, &mut |inside, bytes| {
        look(Path::new(inside), bytes, checker)
            .map_err(|error| Error::without_hint(ErrorKind::Internal, error))
    })?;
    for link in &report.links {
        checker.name(Path::new(link));
    }
    match report.findings.into_iter().next() {
        Some(damage) => Err(unsound(format!("`{}`: {damage}", path.display()))),
        None => Ok(()),
    }
}

/// Looks at a file in a package, of which a copy is made if it has code.
fn look(path: &Path, bytes: &mut dyn Read, checker: &mut Checker<'_>) -> Result<(), CodeError> {
    let mut head = Vec::new();
    bytes.take(HEAD).read_to_end(&mut head)?;
    if !Checker::is_wanted(path, &head) {
        checker.name(path);
        return Ok(());
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut head.as_slice().chain(bytes), &mut copy)?;
    copy.seek(SeekFrom::Start(0))?;
    checker.file(path, &copy)
}
