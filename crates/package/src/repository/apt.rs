//! Writes the index for apt: `dists/<suite>/<component>/binary-<arch>/Packages`,
//! and the signed `Release` above it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gfxpack_model::{Digest, Error, Result};
use gfxpack_process::SystemTool;

use super::{no_link, put, remove};
use crate::compress::{Compression, compressed};
use crate::read::{self, INDEX_MAX};
use crate::signing::Signer;
use crate::text::{rfc2822, seconds_of};

const FTPARCHIVE: SystemTool =
    SystemTool { program: "apt-ftparchive", provided_by: "apt-utils (on Fedora: apt)" };

/// Architectures that ROCm supports. The kernels are the same for all of them,
/// but not every apt asks for packages of `all` separately.
const ARCHITECTURES: [&str; 3] = ["all", "amd64", "arm64"];

/// The names of an apt repository.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its origin: who makes it.
    pub origin: String,
    /// Its directory below `dists`: `stable`.
    pub suite: String,
    /// Its part of the suite: `main`.
    pub component: String,
}

/// Whether the suite exists already.
pub(super) fn is_there(dir: &Path, suite: &Suite) -> bool {
    dir.join("dists").join(&suite.suite).join("Release").exists()
}

/// Updates the index; returns the packages in it, by their paths relative to `dir`, and whether the
/// index before has a later date. All packages are read: apt-ftparchive's own cache of digests takes
/// a file of the same name for the same file.
///
/// Source: Debian wiki, `DebianRepository/Format`.
pub(super) fn index(
    dir: &Path,
    suite: &Suite,
    signer: Option<&Signer>,
    epoch: u64,
) -> Result<(BTreeSet<PathBuf>, bool)> {
    for architecture in ARCHITECTURES {
        let Suite { suite, component, .. } = suite;
        let below = format!("dists/{suite}/{component}/binary-{architecture}/by-hash/SHA256");
        no_link(dir, Path::new(&below))?;
    }
    let packages = sorted(&FTPARCHIVE.output(&["packages", "."], dir, &[])?);
    let top = dir.join("dists").join(&suite.suite);
    let old = read::bytes(&top.join("Release"), INDEX_MAX).unwrap_or_default();
    let old = String::from_utf8_lossy(&old).into_owned();

    let failed = |error: std::io::Error| Error::io("compress", &top)(error);
    let gz = compressed(&packages, Compression::Gz { level: 9 }).map_err(failed)?;
    let xz = compressed(&packages, Compression::Xz { level: 6 }).map_err(failed)?;
    let variants = [("Packages", &packages), ("Packages.gz", &gz), ("Packages.xz", &xz)];
    let mut files = Vec::new();
    for architecture in ARCHITECTURES {
        let below = format!("{}/binary-{architecture}", suite.component);
        for (name, bytes) in variants {
            let digest = Digest::of(bytes).to_string();
            // A client with the old Release asks for the files that it lists.
            put(&top.join(&below).join("by-hash/SHA256").join(&digest), bytes)?;
            put(&top.join(&below).join(name), bytes)?;
            files.push((format!("{below}/{name}"), bytes.len(), digest));
        }
    }
    let release = release(suite, &files, epoch);
    let (detached, inline) = (top.join("Release.gpg"), top.join("InRelease"));
    match signer {
        Some(signer) => {
            put(&detached, &signer.armoured(release.as_bytes())?)?;
            put(&top.join("Release"), release.as_bytes())?;
            put(&inline, &signer.clear(release.as_bytes())?)?;
        }
        None => {
            remove(&detached)?;
            remove(&inline)?;
            put(&top.join("Release"), release.as_bytes())?;
        }
    }
    for architecture in ARCHITECTURES {
        let below = top.join(&suite.component).join(format!("binary-{architecture}"));
        prune(&below.join("by-hash/SHA256"), &[&old, &release])?;
    }
    let text = String::from_utf8_lossy(&packages);
    let names = text.lines().filter_map(|line| line.strip_prefix("Filename: "));
    let date = old.lines().find_map(|line| seconds_of(line.strip_prefix("Date: ")?));
    Ok((names.map(PathBuf::from).collect(), date > Some(epoch)))
}

/// The stanzas sorted by text, which begins with the package's name. The order of
/// directory listings is arbitrary.
fn sorted(packages: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(packages);
    let mut stanzas: Vec<String> = text
        .split("\n\n")
        .map(|stanza| stanza.trim_matches('\n').replace("\nFilename: ./", "\nFilename: "))
        .filter(|stanza| !stanza.is_empty())
        .collect();
    stanzas.sort();
    stanzas.iter().map(|stanza| format!("{stanza}\n\n")).collect::<String>().into_bytes()
}

fn release(suite: &Suite, files: &[(String, usize, String)], epoch: u64) -> String {
    let Suite { origin, suite, component } = suite;
    let mut text = format!(
        "Origin: {origin}\nLabel: {origin}\nSuite: {suite}\nCodename: {suite}\nDate: {}\n\
         Architectures: {}\nComponents: {component}\nAcquire-By-Hash: yes\nSHA256:\n",
        rfc2822(epoch).replace("+0000", "UTC"),
        ARCHITECTURES.join(" ")
    );
    for (name, size, digest) in files {
        let _ = writeln!(text, " {digest} {size:>10} {name}");
    }
    text
}

/// Removes files that none of the releases lists.
fn prune(dir: &Path, releases: &[&str]) -> Result {
    let listed: BTreeSet<&str> =
        releases.iter().flat_map(|release| release.split_whitespace()).collect();
    for entry in std::fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let entry = entry.map_err(Error::io("read", dir))?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| listed.contains(name)) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_come_in_one_order_and_with_plain_names() {
        let given = b"Package: b\nFilename: ./x/b.deb\n\nPackage: a\nFilename: ./a.deb\n\n\n";
        let expected = "Package: a\nFilename: a.deb\n\nPackage: b\nFilename: x/b.deb\n\n";
        assert_eq!(String::from_utf8(sorted(given)).unwrap(), expected);
        assert_eq!(sorted(b""), b"");
    }
}
