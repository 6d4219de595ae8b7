//! `--missing-from`: keys that kdbs have already, so that only the others are
//! built.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{ReadError, ReadOptions, Reader};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, KernelKey, Target, TargetId};

use crate::error::Result;

/// What the kdbs have. Digests of keys: a large kdb's own text would take
/// hundreds of megabytes.
#[derive(Debug, Default)]
pub(crate) struct Present {
    files: Vec<(Option<String>, HashSet<Digest>)>,
}

/// What is left to build for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The target.
    pub target: Target,
    /// Keys that the kdbs have.
    pub present: usize,
    /// Keys that they lack, those that can't be compiled among them.
    pub missing: usize,
}

impl Present {
    /// Reads the keys of kdbs, and of users' kdbs that nobody has open.
    pub(crate) fn read(files: &[PathBuf], max_object_bytes: u64) -> Result<Self> {
        let read = |path: &PathBuf| -> Result<_> {
            let mut options = ReadOptions::default();
            options.wal = true;
            options.max_object_bytes = max_object_bytes;
            let mut keys = HashSet::new();
            Reader::open_with(path, options)?.for_each_row(|entry| {
                keys.insert(digest(&entry.key));
                Ok::<(), ReadError>(())
            })?;
            Ok((db_id(path), keys))
        };
        Ok(Self { files: files.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Whether a kdb that devices of the target may read has the key. A key
    /// does not say whether XNACK is on; a kdb's name does.
    pub(crate) fn has(&self, id: &TargetId, key: &KernelKey) -> bool {
        if self.files.is_empty() {
            return false;
        }
        let digest = digest(key);
        self.files.iter().any(|(db_id, keys)| {
            db_id.as_ref().is_none_or(|db_id| *db_id == id.db_id()) && keys.contains(&digest)
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The DbId that a kdb's name spells, whatever its compute units.
fn db_id(path: &Path) -> Option<String> {
    let target: Target = path.file_stem()?.to_str()?.parse().ok()?;
    Some(target.id().db_id())
}

fn digest(key: &KernelKey) -> Digest {
    let hasher = Hasher::new("gfxpack key 1").field(key.kernel_name.as_bytes());
    hasher.field(key.kernel_args.as_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kdb_counts_for_the_devices_that_read_it() {
        let key = |args: &str| KernelKey {
            kernel_name: "a.cl.o".to_owned(),
            kernel_args: args.to_owned(),
        };
        let file =
            |name: &str, args: &str| (db_id(Path::new(name)), HashSet::from([digest(&key(args))]));
        let present = Present {
            files: vec![
                file("d/gfx90a68.kdb", " -DA -mcpu=gfx90a"),
                file("gfx90a_xnack.kdb", " -DB -mcpu=gfx90a"),
                file("all.kdb", " -DC -mcpu=gfx90a"),
            ],
        };
        let has = |target: &str, args: &str| {
            present.has(target.parse::<Target>().unwrap().id(), &key(args))
        };
        assert!(has("gfx90a@110", " -DA -mcpu=gfx90a") && has("gfx90a", " -DC -mcpu=gfx90a"));
        assert!(!has("gfx90a", " -DB -mcpu=gfx90a") && !has("gfx90a", " -DA  -mcpu=gfx90a"));
        assert!(has("gfx90a:xnack+", " -DB -mcpu=gfx90a"));
        assert!(!has("gfx90a:xnack+", " -DA -mcpu=gfx90a"));
    }
}
