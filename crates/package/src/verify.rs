//! Verifies packages, repositories and directories of packages: digests,
//! signatures, and, by means of an [`Inspector`], files in packages.

mod apt;
mod listed;
mod package;
mod rpm;

use gfxpack_model::{Error, Result};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use listed::{Wanted, check_signature, read, unlisted, unreadable, within};

use crate::finding::Finding;
use crate::read::{PackageKind, Report};
use crate::repository;
use crate::signing::Keyring;
use crate::sums::{FILE_NAME, digest_file};

/// A package, an index or a list of digests that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub subject: Subject,
    /// What is wrong with it; empty if it is sound.
    pub findings: Vec<Finding>,
}

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A package.
    Package {
        /// Number of files in it.
        files: u64,
        /// The sum of [`Inspected::entries`] of its files.
        entries: u64,
    },
    /// A list of digests, and the files that it lists.
    Checksums,
    /// An index of a repository, and the packages that it lists.
    Index,
}

/// Checks files in packages whose format this crate does not know.
pub trait Inspector {
    /// Whether the file with this path in a package is to be inspected.
    fn is_wanted(&self, path: &str) -> bool;

    /// Inspects an unpacked copy of a file. The copy has the file's name.
    fn inspect(&mut self, copy: &Path) -> Inspected;

    /// What a package that is read as `kind` lacks, and what it should not have, one phrase each.
    /// `report` has its description and its paths.
    fn flaws(&self, _kind: PackageKind, _report: &Report) -> Vec<String> {
        Vec::new()
    }
}

/// The result of inspecting a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspected {
    /// What is wrong with it, one phrase each.
    pub findings: Vec<String>,
    /// Number of entries in it.
    pub entries: u64,
}

/// How packages are verified.
pub struct Verifier<'a> {
    /// The trusted keys; if `None`, signatures are not checked.
    pub keyring: Option<&'a Keyring>,
    /// Checks files in packages.
    pub inspector: &'a mut dyn Inspector,
    /// Called for each package, index and list, and for each that could not be
    /// verified; the others are verified nevertheless.
    pub report: &'a mut dyn FnMut(Result<Verified>),
}

impl Verifier<'_> {
    /// Verifies a package, or everything in a directory and below it.
    pub fn path(&mut self, path: &Path) {
        if let Err(error) = self.file_or_directory(path) {
            (self.report)(Err(error));
        }
    }

    fn file_or_directory(&mut self, path: &Path) -> Result {
        let metadata = std::fs::metadata(path).map_err(Error::io("find", path))?;
        if metadata.is_dir() {
            self.directory(path)
        } else if metadata.is_file() {
            self.package(path, false);
            Ok(())
        } else {
            Err(Error::usage(
                format!("failed to verify `{}`: it is neither file nor directory", path.display()),
                "write what comes through a pipe or from a device to a file first",
            ))
        }
    }

    fn package(&mut self, path: &Path, listed: bool) {
        (self.report)(package::check(path, listed, self.keyring, self.inspector));
    }

    fn directory(&mut self, dir: &Path) -> Result {
        let is_package = |path: &Path| PackageKind::from_name(path).is_some() && path.is_file();
        let there = repository::files(dir, is_package)?.into_iter().collect();
        // A dangling link counts: somebody meant it to be a list.
        let lists = repository::files(dir, |path| path.ends_with(FILE_NAME))?;
        let mut dirs: BTreeSet<&Path> = lists.iter().filter_map(|list| list.parent()).collect();
        dirs.insert(dir);
        let mut listed = BTreeSet::new();
        for dir in dirs {
            listed.append(&mut self.lists(dir, &there, &|_| true)?);
        }
        // Listed files may be behind links to directories.
        let reached = listed.iter().filter(|path| is_package(path)).cloned();
        let packages: BTreeSet<PathBuf> = there.into_iter().chain(reached).collect();
        let has_index = ["dists", "repodata"].iter().any(|index| dir.join(index).is_dir());
        if packages.is_empty() && lists.is_empty() && !has_index {
            return Err(Error::usage(
                format!("failed to find a package below `{}`", dir.display()),
                "give a repository, or a directory that `gfxpack dist` wrote packages into",
            ));
        }
        for package in &packages {
            self.package(package, listed.contains(package));
        }
        Ok(())
    }

    /// Verifies these packages below a directory, and all that lists and indexes there say about
    /// them.
    pub fn packages_below(&mut self, dir: &Path, packages: &BTreeSet<PathBuf>) -> Result {
        let above = packages.iter().flat_map(|package| package.ancestors().skip(1));
        let dirs: BTreeSet<&Path> = above.filter(|above| above.starts_with(dir)).collect();
        let mut listed = BTreeSet::new();
        for dir in dirs {
            listed.append(&mut self.lists(dir, packages, &|path| packages.contains(path))?);
        }
        for package in packages {
            self.package(package, listed.contains(package));
        }
        Ok(())
    }

    /// Verifies the list and the indexes of a directory, as far as they are about `wanted` files.
    /// Returns what they list. `there` are the packages in the directory and below it.
    fn lists(
        &mut self,
        dir: &Path,
        there: &BTreeSet<PathBuf>,
        wanted: Wanted<'_>,
    ) -> Result<BTreeSet<PathBuf>> {
        let (indexes, mut listed) = indexes(dir, self.keyring, wanted)?;
        let list = dir.join(FILE_NAME);
        if list.symlink_metadata().is_ok() {
            let mut findings = checksums(dir, &list, self.keyring, wanted, &mut listed)?;
            // Files that an index lists are not findings here.
            let beside = there.iter().filter(|path| path.parent() == Some(dir));
            let unlisted = beside.filter(|path| !listed.contains(*path));
            let finding = |path: &PathBuf| format!("`{}` is not listed", path.display());
            findings.extend(unlisted.map(|path| Finding::unlisted(finding(path))));
            (self.report)(Ok(Verified { path: list, subject: Subject::Checksums, findings }));
        }
        for (path, findings) in indexes {
            (self.report)(Ok(Verified { path, subject: Subject::Index, findings }));
        }
        Ok(listed)
    }
}

/// Each index with its findings, and the packages that the indexes list.
type Indexes = (Vec<(PathBuf, Vec<Finding>)>, BTreeSet<PathBuf>);

/// Checks every index in `dir`, as far as it is about `wanted` packages.
fn indexes(dir: &Path, keyring: Option<&Keyring>, wanted: Wanted<'_>) -> Result<Indexes> {
    let (mut indexes, mut listed) = Indexes::default();
    let dists = dir.join("dists");
    if dists.is_dir() {
        let entries = std::fs::read_dir(&dists).map_err(Error::io("read", &dists))?;
        let suites: io::Result<BTreeSet<PathBuf>> = entries.map(|it| Ok(it?.path())).collect();
        let suites = suites.map_err(Error::io("read", &dists))?;
        for suite in suites.iter().filter(|suite| suite.is_dir()) {
            indexes.push(apt::check(dir, suite, keyring, wanted, &mut listed)?);
        }
        match indexes.first_mut() {
            // All suites share the packages.
            Some((_, findings)) => findings.extend(unlisted(dir, "deb", wanted, &listed)?),
            None => indexes.push((dists, vec!["there is no suite in it".to_owned().into()])),
        }
    }
    if dir.join("repodata").is_dir() {
        let repomd = dir.join("repodata/repomd.xml");
        let findings = rpm::check(dir, &repomd, keyring, wanted, &mut listed)?;
        indexes.push((repomd, findings));
    }
    for (_, findings) in &mut indexes {
        findings.dedup();
    }
    Ok((indexes, listed))
}

/// Checks the list at `path` and the `wanted` files of `dir` in it. All are added to
/// `listed`.
fn checksums(
    dir: &Path,
    path: &Path,
    keyring: Option<&Keyring>,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Finding>> {
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(vec![error.to_string().into()]),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(keyring) = keyring {
        findings.extend(check_signature(keyring, path)?);
    }
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ") else {
            findings.push(format!("`{line}` is no line of checksums").into());
            continue;
        };
        let Some(path) = within(dir, name) else {
            findings.push(format!("`{name}` leads out of the directory").into());
            continue;
        };
        match wanted(&path).then(|| digest_file(&path)).transpose() {
            Ok(file) if file.as_ref().is_none_or(|file| file.sha256 == sum) => {}
            Ok(_) => findings.push(format!("`{name}` is not what it says").into()),
            Err(error) => findings.push(unreadable(name, &error).into()),
        }
        listed.insert(path);
    }
    Ok(findings)
}
