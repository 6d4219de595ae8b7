//! The index that dnf and zypper read: `repodata`, by createrepo_c.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_package::read;
use rustix::io::FdFlags;

use super::check::INDEX_MAX;
use super::{put, remove};
use crate::fail;
use crate::signing::Signer;
use crate::tools::{self, Tool};

const CREATEREPO: Tool =
    Tool { program: "createrepo_c", from: "createrepo-c (on Fedora and openSUSE: createrepo_c)" };

/// Whether there is one already.
pub(super) fn is_there(dir: &Path) -> bool {
    dir.join("repodata/repomd.xml").exists()
}

/// Where createrepo_c writes until all is done; while that is there, another
/// one refuses to start.
const UNDERWAY: &str = ".repodata";

/// Brings the index up to date; gives the packages in it, by their names below
/// `dir`. Packages whose size and time are as before are not read again. What
/// a killed run left is removed by who holds the `lock` of the directory.
pub(super) fn index(
    dir: &Path,
    signer: Option<&Signer>,
    epoch: u64,
    lock: Option<&File>,
) -> anyhow::Result<BTreeSet<PathBuf>> {
    let revision = epoch.to_string();
    let words = ["--quiet", "--update", "--no-database", "--set-timestamp-to-revision"];
    let words = [&words[..], &["--revision", &revision, "."]].concat();
    let underway = dir.join(UNDERWAY);
    match lock {
        Some(lock) => {
            match std::fs::remove_dir_all(&underway) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(fail::io("remove", &underway)(error));
                }
                _ => {}
            }
            // It goes on after a kill of gfxpack alone, and holds the lock too.
            rustix::io::fcntl_setfd(lock, FdFlags::empty()).ok();
            let done = tools::output(CREATEREPO, &words, dir, &[]);
            rustix::io::fcntl_setfd(lock, FdFlags::CLOEXEC).ok();
            done?;
        }
        None if underway.exists() => {
            return Err(fail::usage(
                format!("failed to index `{}`: `{UNDERWAY}` lies there", dir.display()),
                "let the createrepo_c that runs there end; if none does, remove that directory",
            ));
        }
        None => {
            tools::output(CREATEREPO, &words, dir, &[])?;
        }
    }
    let index = dir.join("repodata/repomd.xml");
    let (signature, key) =
        (dir.join("repodata/repomd.xml.asc"), dir.join("repodata/repomd.xml.key"));
    match signer {
        Some(signer) => {
            let bytes = std::fs::read(&index).map_err(fail::io("read", &index))?;
            put(&signature, &signer.armoured(&bytes)?)?;
            // zypper asks for the key beside the signature.
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
///
/// Source: createrepo_c, "Repository metadata"; `repomd.xml` and `primary.xml`.
fn listed(dir: &Path, index: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let text = std::fs::read_to_string(index).map_err(fail::io("read", index))?;
    let locations = |text: &str, element: &str, kind: &str| -> anyhow::Result<Vec<PathBuf>> {
        let document = roxmltree::Document::parse(text)?;
        let of_kind = document.root_element().children().filter(|node| {
            node.tag_name().name() == element && node.attribute("type") == Some(kind)
        });
        let location = of_kind.filter_map(|node| {
            let place = node.children().find(|child| child.tag_name().name() == "location")?;
            place.attribute("href").map(PathBuf::from)
        });
        Ok(location.collect())
    };
    let mut packages = BTreeSet::new();
    for primary in locations(&text, "data", "primary")? {
        let path = dir.join(primary);
        let packed = std::fs::read(&path).map_err(fail::io("read", &path))?;
        let text =
            read::unpacked_text(&path, &packed, INDEX_MAX).map_err(fail::io("unpack", &path))?;
        packages.extend(locations(&text, "package", "rpm")?);
    }
    Ok(packages)
}
