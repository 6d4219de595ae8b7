//! The index that dnf and zypper read: `repodata`, by createrepo_c.

use std::path::Path;

use super::{put, remove};
use crate::fail;
use crate::signing::Signer;
use crate::tools::{self, Tool};

const CREATEREPO: Tool =
    Tool { program: "createrepo_c", from: "createrepo-c (on Fedora and openSUSE: createrepo_c)" };

/// Brings the index up to date; packages whose size and time are as before
/// are not read again.
pub(super) fn index(dir: &Path, signer: Option<&Signer>, epoch: u64) -> anyhow::Result<()> {
    let revision = epoch.to_string();
    let words = ["--quiet", "--update", "--no-database", "--set-timestamp-to-revision"];
    let words = [&words[..], &["--revision", &revision, "."]].concat();
    tools::output(CREATEREPO, &words, dir, &[])?;
    let index = dir.join("repodata/repomd.xml");
    let (signature, key) =
        (dir.join("repodata/repomd.xml.asc"), dir.join("repodata/repomd.xml.key"));
    match signer {
        Some(signer) => {
            let bytes = std::fs::read(&index).map_err(fail::io("read", &index))?;
            put(&signature, &signer.armoured(&bytes)?)?;
            // zypper asks for the key beside the signature.
            put(&key, &signer.public_key()?)
        }
        None => {
            remove(&signature)?;
            remove(&key)
        }
    }
}
