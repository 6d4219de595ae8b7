//! Writes the index for dnf and zypper with createrepo_c: `repodata`.

use gfxpack_model::{Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_process::SystemTool;
use rustix::io::FdFlags;

use super::{no_link, put, remove};
use crate::read::{self, INDEX_MAX};
use crate::repomd;
use crate::signing::Signer;

const CREATEREPO: SystemTool = SystemTool {
    program: "createrepo_c",
    provided_by: "createrepo-c (on Fedora and openSUSE: createrepo_c)",
};

/// Whether the index exists already.
pub(super) fn is_there(dir: &Path) -> bool {
    dir.join("repodata/repomd.xml").exists()
}

/// The path at which zypper looks for the public key.
const KEY_FILE: &str = "repodata/repomd.xml.key";

/// Updates the index; returns the packages in it, by their paths relative to
/// `dir`. Packages whose size and time are unchanged are not read again. With a
/// `lock` on the directory, leftovers of a killed run are removed.
pub(super) fn index(
    dir: &Path,
    signer: Option<&Signer>,
    epoch: u64,
    lock: Option<&File>,
) -> Result<BTreeSet<PathBuf>> {
    let revision = epoch.to_string();
    let arguments = ["--quiet", "--update", "--no-database", "--set-timestamp-to-revision"];
    let arguments = [&arguments[..], &["--revision", &revision, "."]].concat();
    no_link(dir, Path::new("repodata"))?;
    if let Some(lock) = lock {
        // createrepo_c writes there until it is done. Another one refuses to start meanwhile.
        let underway = dir.join(".repodata");
        match std::fs::remove_dir_all(&underway) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &underway)(error));
            }
            _ => {}
        }
        // If only gfxpack is killed, createrepo_c continues, so it must hold the lock too.
        rustix::io::fcntl_setfd(lock, FdFlags::empty()).ok();
    }
    let done = CREATEREPO.output(&arguments, dir, &[]);
    if let Some(lock) = lock {
        rustix::io::fcntl_setfd(lock, FdFlags::CLOEXEC).ok();
    }
    done?;
    let index = dir.join("repodata/repomd.xml");
    let (signature, key) = (dir.join("repodata/repomd.xml.asc"), dir.join(KEY_FILE));
    match signer {
        Some(signer) => {
            let bytes = std::fs::read(&index).map_err(Error::io("read", &index))?;
            put(&signature, &signer.armoured(&bytes)?)?;
            // zypper looks for the key beside the signature.
            put(&key, &signer.public_key()?)?;
        }
        None => {
            remove(&signature)?;
            remove(&key)?;
        }
    }
    listed(dir, &index)
}

/// The packages that an index lists.
fn listed(dir: &Path, index: &Path) -> Result<BTreeSet<PathBuf>> {
    let text = std::fs::read_to_string(index).map_err(Error::io("read", index))?;
    let mut packages = BTreeSet::new();
    for primary in locations(index, &text, "data", "primary")? {
        let path = dir.join(primary);
        let packed = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let text = read::unpacked_text(&path, &packed, INDEX_MAX);
        let text = text.map_err(Error::io("unpack", &path))?;
        packages.extend(locations(&path, &text, "package", "rpm")?);
    }
    Ok(packages)
}

/// The paths of elements of a type in `text`, which is that of the file `path`.
fn locations(path: &Path, text: &str, element: &str, kind: &str) -> Result<Vec<PathBuf>> {
    let entries = repomd::entries(text, element).map_err(|source| {
        let message = format!("failed to read `{}`", path.display());
        let hint = "remove `repodata` in the directory, and index it again";
        Error::internal(message, hint).caused_by(source)
    })?;
    let of_kind = entries.into_iter().filter(|it| it.kind == kind && !it.location.is_empty());
    Ok(of_kind.map(|entry| entry.location.into()).collect())
}
