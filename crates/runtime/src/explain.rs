//! Explains a miss: by the key alone, and by files that have the kernel but are
//! not searched. For the nearest keys in the searched files see
//! [`NearestKeys`](crate::NearestKeys).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::Reader;
pub use gfxpack_model::target_of_kdb;
use gfxpack_model::{KernelKey, Target};

use crate::lookup::Layer;

/// Describes, as a clause, what is unusual about a key for a device; `None` if
/// it looks like the keys of MIOpen's kernels.
pub fn advice(key: &KernelKey, target: &Target) -> Option<String> {
    let processor = target.id().processor();
    match key.split_device() {
        None if !key.kernel_name.contains(".mlir") => Some(format!(
            "the arguments do not end in ` -mcpu=<device>`, as those of all of MIOpen's kernels \
             do: ` -mcpu={processor}` here"
        )),
        Some((_, device)) if device != processor => {
            Some(format!("the arguments are for {device}, and the device is a {processor}"))
        }
        _ if key.source_name().is_none() => {
            Some("the name does not end in `.o`, as those of all of MIOpen's kernels do".to_owned())
        }
        _ => None,
    }
}

/// Kdbs beside the searched ones that have exactly this key, with code that runs on the device: for
/// other compute units, or of another version; each with the target in its name. Sorted by path;
/// files that can't be read are skipped.
pub fn unasked_kdbs(
    key: &KernelKey,
    target: &Target,
    asked: &[(Layer, PathBuf)],
) -> Vec<(PathBuf, Target)> {
    let has_key = |file: &Path| {
        let found = Reader::open(file).and_then(|reader| reader.get(key));
        matches!(found, Ok(Some(_)))
    };
    neighbours(asked)
        .into_iter()
        .filter(|file| !asked.iter().any(|(_, known)| known == file))
        .filter_map(|file| target_of_kdb(&file).map(|other| (file, other)))
        .filter(|(file, other)| other.id().serves(target.id()) && has_key(file))
        .collect()
}

/// The files in the directories of the searched ones and, for the user's, in
/// those of other versions.
fn neighbours(asked: &[(Layer, PathBuf)]) -> BTreeSet<PathBuf> {
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    for (layer, file) in asked {
        let Some(directory) = file.parent() else { continue };
        directories.insert(directory.to_owned());
        if *layer == Layer::User
            && let Some(versions) = directory.parent()
        {
            directories.extend(entries(versions).filter(|path| path.is_dir()));
        }
    }
    directories
        .iter()
        .flat_map(|directory| entries(directory))
        .filter(|path| path.is_file())
        .collect()
}

/// The entries of a directory; none if it can't be read.
pub fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}
