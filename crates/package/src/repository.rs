//! Makes repositories from directories of packages: writes and updates the
//! indexes for apt, dnf and zypper, and the files for users of them.

mod apt;
mod package_info;
mod rpm;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, Result};
use gfxpack_process::write_output;

pub use apt::Suite;
pub use package_info::{PackageInfo, with_dependencies};

use crate::read::PackageKind;
use crate::signing::Signer;
use crate::text::url_encoded;

/// The file with the public key.
pub const KEY_FILE: &str = "archive-key.asc";

/// The packages that were indexed.
#[derive(Debug)]
pub struct Indexed {
    /// Number of .deb packages.
    pub debs: usize,
    /// Number of .rpm packages.
    pub rpms: usize,
    /// Files with a package's name that can't be read as packages.
    pub left_out: Vec<PathBuf>,
    /// Whether apt's index had a later date before: who has that one does not take the new one.
    pub is_older: bool,
    /// The file for users of apt, by its name: for `/etc/apt/sources.list.d`.
    pub sources: Option<String>,
    /// That for users of dnf and zypper: for `/etc/yum.repos.d`, `/etc/zypp/repos.d`.
    pub repo: Option<String>,
}

/// Indexes all packages below `dir`, and signs the indexes if there is a `signer`. Concurrent
/// runs wait for each other. The indexes have the time `epoch`, in seconds since 1970. `url`
/// is where the repository is used from, if not in this directory.
///
/// # Errors
/// If one can't be made. The previous indexes are then still complete.
pub fn index(
    dir: &Path,
    suite: &Suite,
    url: Option<&str>,
    signer: Option<&Signer>,
    epoch: u64,
) -> Result<Indexed> {
    let lock = std::fs::File::open(dir).map_err(Error::io("open", dir))?;
    // On file systems without locks, only one run at a time is supported.
    let lock = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map(|()| lock);
    let found = packages(dir)?;
    let there = |ending: &str| {
        found.iter().any(|path| path.extension().is_some_and(|extension| extension == ending))
    };
    // If the last package was removed, its index is updated to an empty one.
    let (apts, rpms) = (apt::is_there(dir, suite), rpm::is_there(dir));
    if found.is_empty() && !apts && !rpms {
        return Err(Error::usage(
            format!("failed to find a .deb or .rpm below `{}`", dir.display()),
            "give the directory that `gfxpack dist` wrote packages into",
        ));
    }
    let (mut debs, mut rpm_files, mut is_older) = (BTreeSet::new(), BTreeSet::new(), false);
    if apts || there("deb") {
        (debs, is_older) = apt::index(dir, suite, signer, epoch)?;
    }
    if rpms || there("rpm") {
        rpm_files = rpm::index(dir, signer, epoch, lock.ok().as_ref())?;
    }
    let key = signer.map(Signer::public_key).transpose()?;
    if let Some(key) = &key {
        put(&dir.join(KEY_FILE), key)?;
    }
    let here = || format!("file://{}", url_encoded(&dir.to_string_lossy()));
    let url = url.map_or_else(here, |url| url.trim_end_matches('/').to_owned());
    let name = file_stem(&suite.origin);
    let put_as = |ending: &str, text: String| {
        let name = format!("{name}.{ending}");
        put(&dir.join(&name), text.as_bytes()).map(|()| name)
    };
    let sources =
        (!debs.is_empty()).then(|| put_as("sources", sources(&url, suite, key.as_deref())));
    let repo =
        (!rpm_files.is_empty()).then(|| put_as("repo", repo(&url, suite, &name, key.is_some())));
    let left_out = found.into_iter().filter(|path| {
        let name = path.strip_prefix(dir).unwrap_or(path);
        !debs.contains(name) && !rpm_files.contains(name)
    });
    Ok(Indexed {
        debs: debs.len(),
        rpms: rpm_files.len(),
        left_out: left_out.collect(),
        is_older,
        sources: sources.transpose()?,
        repo: repo.transpose()?,
    })
}

/// A name for files and sections: `amd-kernels` for `AMD kernels`.
fn file_stem(origin: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let parts: String = origin.chars().map(plain).collect();
    let parts: Vec<&str> = parts.split('-').filter(|word| !word.is_empty()).collect();
    if parts.is_empty() { "kernels".to_owned() } else { parts.join("-") }
}

/// The file contains the key, so that users download only one file.
///
/// Source: sources.list(5), "DEB822-STYLE FORMAT".
fn sources(url: &str, suite: &Suite, key: Option<&[u8]>) -> String {
    let Suite { suite, component, .. } = suite;
    let mut text = format!("Types: deb\nURIs: {url}\nSuites: {suite}\nComponents: {component}\n");
    let Some(key) = key else { return text + "Trusted: yes\n" };
    text.push_str("Signed-By:\n");
    for line in String::from_utf8_lossy(key).lines() {
        let line = if line.trim().is_empty() { "." } else { line };
        let _ = writeln!(text, " {line}");
    }
    text
}

/// The signed index has the packages' digests, so packages are checked whether or
/// not they are signed themselves.
///
/// Source: dnf.conf(5), "REPO OPTIONS".
fn repo(url: &str, suite: &Suite, name: &str, is_signed: bool) -> String {
    let mut text = format!("[{name}]\nname={}\nbaseurl={url}\nenabled=1\n", suite.origin);
    if is_signed {
        let _ = writeln!(text, "repo_gpgcheck=1\ngpgcheck=0\ngpgkey={url}/{KEY_FILE}");
    } else {
        text.push_str("repo_gpgcheck=0\ngpgcheck=0\n");
    }
    text
}

/// Every .deb and .rpm below `dir`, sorted by path.
pub fn packages(dir: &Path) -> Result<Vec<PathBuf>> {
    files(dir, |path| {
        matches!(PackageKind::from_name(path), Some(PackageKind::Deb | PackageKind::Rpm))
            && path.is_file()
    })
}

/// Everything but directories below `dir` whose path is wanted, sorted. Links to
/// directories are not followed, since they may form loops.
pub(crate) fn files(dir: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).map_err(Error::io("read", &dir))? {
            let entry = entry.map_err(Error::io("read", &dir))?;
            let kind = entry.file_type().map_err(Error::io("read", &dir))?;
            let path = entry.path();
            if kind.is_dir() {
                pending.push(path);
            } else if is_wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file atomically, in place of a link if there is one, and creates its
/// directory. A file with the same bytes is left alone, so that clients do not
/// download it again.
fn put(path: &Path, bytes: &[u8]) -> Result {
    let is_file = path.symlink_metadata().is_ok_and(|there| there.is_file());
    if is_file && std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    write_output(path, |out| out.write_all(bytes)).map_err(Error::io("write", path))
}

/// Rejects a path below `dir` with a link in it: what is written there would be
/// written elsewhere.
fn no_link(dir: &Path, below: &Path) -> Result {
    let mut path = dir.to_owned();
    for part in below {
        path.push(part);
        if path.is_symlink() {
            return Err(Error::usage(
                format!("failed to write to `{}`: it is a link", path.display()),
                "remove the link, which may lead to files that are not yours",
            ));
        }
    }
    Ok(())
}

/// Removes a file, if it exists.
fn remove(path: &Path) -> Result {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_words() {
        for (origin, expected) in [
            ("gfxpack", "gfxpack"),
            ("AMD kernels, nightly", "amd-kernels-nightly"),
            ("…", "kernels"),
        ] {
            assert_eq!(file_stem(origin), expected);
        }
    }
}
