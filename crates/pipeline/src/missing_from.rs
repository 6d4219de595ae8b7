//! `--missing-from`: existing kdbs, whose keys are not built again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::{Digest, KernelKey, Target};

use crate::error::Result;

/// The keys of existing kdbs, as digests: their text would take hundreds of
/// megabytes for a large kdb.
#[derive(Debug, Default)]
pub(crate) struct ExistingKeys {
    files: Vec<(Option<Target>, HashSet<Digest>)>,
}

/// How many of a target's keys existing kdbs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingCount {
    /// The target.
    pub target: Target,
    /// Keys in the kdbs.
    pub present: usize,
    /// Other keys, including those that can't be compiled.
    pub missing: usize,
}

impl ExistingKeys {
    /// Reads the keys of kdbs, and of users' kdbs that no program has open.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self> {
        let read = |path: &PathBuf| -> Result<_> {
            let mut keys = HashSet::new();
            Reader::open_at_rest(path)?.for_each_row(|entry| {
                keys.insert(entry.key.digest());
                Ok::<(), ReadError>(())
            })?;
            Ok((target_of(path), keys))
        };
        Ok(Self { files: files.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Whether a device of the target finds the key in one of the kdbs. It reads
    /// those whose name has the target's XNACK setting, which is not in a key,
    /// and the target's number of compute units or none. Kdbs without a target in
    /// their name count for all.
    pub(crate) fn has(&self, target: &Target, key: &KernelKey) -> bool {
        if self.files.is_empty() {
            return false;
        }
        let digest = key.digest();
        let is_read = |kdb: &Target| {
            kdb.id().db_id() == target.id().db_id()
                && (kdb.compute_units().is_none() || kdb.compute_units() == target.compute_units())
        };
        self.files
            .iter()
            .any(|(kdb, keys)| kdb.as_ref().is_none_or(is_read) && keys.contains(&digest))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The target in a kdb's name.
fn target_of(path: &Path) -> Option<Target> {
    path.file_stem()?.to_str()?.parse().ok()
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
        let file = |name: &str, args: &str| {
            (target_of(Path::new(name)), HashSet::from([key(args).digest()]))
        };
        let present = ExistingKeys {
            files: vec![
                file("d/gfx90a68.kdb", " -DA -mcpu=gfx90a"),
                file("gfx90a_xnack.kdb", " -DB -mcpu=gfx90a"),
                file("gfx90a.kdb", " -DD -mcpu=gfx90a"),
                file("all.kdb", " -DC -mcpu=gfx90a"),
            ],
        };
        let has =
            |target: &str, args: &str| present.has(&target.parse::<Target>().unwrap(), &key(args));
        assert!(has("gfx90a@104", " -DA -mcpu=gfx90a") && has("gfx90a", " -DC -mcpu=gfx90a"));
        assert!(!has("gfx90a@110", " -DA -mcpu=gfx90a") && !has("gfx90a", " -DA -mcpu=gfx90a"));
        assert!(has("gfx90a@110", " -DD -mcpu=gfx90a") && has("gfx90a", " -DD -mcpu=gfx90a"));
        assert!(!has("gfx90a", " -DB -mcpu=gfx90a") && !has("gfx90a", " -DA  -mcpu=gfx90a"));
        assert!(has("gfx90a:xnack+", " -DB -mcpu=gfx90a"));
        assert!(!has("gfx90a:xnack+", " -DA -mcpu=gfx90a"));
    }
}
