//! Finds the keys nearest to a key that no file has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::KernelKey;

use crate::edit_distance;

/// How many names of other kernels to return.
const MAX_NAMES: usize = 3;

/// The keys of some files that are nearest to a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearestKeys {
    /// Number of kernels with the key's name in all files.
    pub of_that_name: u64,
    /// The kernels with the key's name and the nearest arguments, the nearest
    /// first; each list of arguments once.
    pub keys: Vec<NearestKey>,
    /// The nearest names of other kernels, the nearest first; at most three.
    pub names: Vec<String>,
}

/// A kernel with the requested name and other arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearestKey {
    /// Number of words to change, insert or remove.
    pub differing_words: usize,
    /// Its arguments.
    pub kernel_args: String,
    /// The first file with this kernel.
    pub file: PathBuf,
    /// The requested arguments, with the differing words in braces:
    /// ` -DA=1 {-DB=2}`.
    pub asked: String,
    /// Its own arguments, marked the same way.
    pub stored: String,
}

impl NearestKeys {
    /// Searches kdbs for up to `wanted` keys. Files that can't be read are
    /// skipped. Code objects are not read.
    pub fn search<'a>(
        key: &KernelKey,
        files: impl IntoIterator<Item = &'a Path>,
        wanted: usize,
    ) -> Self {
        let mut of_that_name = 0;
        // By distance: arguments and the file, and names of other kernels.
        let mut keys: BTreeSet<(usize, String, PathBuf)> = BTreeSet::new();
        let mut names: BTreeSet<(usize, String)> = BTreeSet::new();
        for file in files {
            let Ok(reader) = Reader::open(file) else { continue };
            // Rows with one name follow one another.
            let mut last_name = String::new();
            // Rows before an error count; the lookup itself reports the error.
            let _ = reader.for_each_key(|KernelKey { kernel_name, kernel_args }| {
                if kernel_name == key.kernel_name {
                    of_that_name += 1;
                    let distance = edit_distance::distance(&key.kernel_args, &kernel_args);
                    if let Some(distance) = distance
                        && !keys.iter().any(|(_, args, _)| *args == kernel_args)
                    {
                        keys.insert((distance, kernel_args, file.to_owned()));
                        keep_smallest(&mut keys, wanted);
                    }
                } else if kernel_name != last_name {
                    if let Some(distance) = edit_distance::letters(&key.kernel_name, &kernel_name) {
                        names.insert((distance, kernel_name.clone()));
                        keep_smallest(&mut names, MAX_NAMES);
                    }
                    last_name = kernel_name;
                }
                Ok::<(), ReadError>(())
            });
        }
        let nearest = |(differing_words, kernel_args, file): (usize, String, PathBuf)| {
            let (asked, stored) = edit_distance::marked(&key.kernel_args, &kernel_args);
            NearestKey { differing_words, kernel_args, file, asked, stored }
        };
        Self {
            of_that_name,
            keys: keys.into_iter().map(nearest).collect(),
            names: names.into_iter().map(|(_, name)| name).collect(),
        }
    }
}

fn keep_smallest<T: Ord>(set: &mut BTreeSet<T>, wanted: usize) {
    while set.len() > wanted {
        set.pop_last();
    }
}
