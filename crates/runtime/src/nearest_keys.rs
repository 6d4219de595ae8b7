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
    #[must_use]
    pub fn search<'a>(
        key: &KernelKey,
        files: impl IntoIterator<Item = &'a Path>,
        wanted: usize,
    ) -> Self {
        let mut search = Search {
            key,
            wanted,
            keys: BTreeSet::new(),
            of_that_name: 0,
            names: BTreeSet::new(),
            last_name: String::new(),
        };
        for file in files {
            search.file(file);
        }
        search.finish()
    }
}

struct Search<'a> {
    key: &'a KernelKey,
    wanted: usize,
    /// Distance, arguments and file; the nearest first.
    keys: BTreeSet<(usize, String, PathBuf)>,
    of_that_name: u64,
    /// Distance and name of other kernels.
    names: BTreeSet<(usize, String)>,
    /// The name of the last row: rows with one name follow one another.
    last_name: String,
}

impl Search<'_> {
    fn file(&mut self, file: &Path) {
        let Ok(reader) = Reader::open(file) else { return };
        self.last_name.clear();
        // Rows before an error count; the lookup itself reports the error.
        reader
            .for_each_key(|key| {
                self.row(key, file);
                Ok::<(), ReadError>(())
            })
            .ok();
    }

    fn row(&mut self, key: KernelKey, file: &Path) {
        let KernelKey { kernel_name, kernel_args } = key;
        if kernel_name == self.key.kernel_name {
            self.of_that_name += 1;
            let Some(distance) = edit_distance::distance(&self.key.kernel_args, &kernel_args)
            else {
                return;
            };
            if !self.keys.iter().any(|(_, args, _)| *args == kernel_args) {
                self.keys.insert((distance, kernel_args, file.to_owned()));
                keep_smallest(&mut self.keys, self.wanted);
            }
        } else if kernel_name != self.last_name {
            if let Some(distance) = edit_distance::letters(&self.key.kernel_name, &kernel_name) {
                self.names.insert((distance, kernel_name.clone()));
                keep_smallest(&mut self.names, MAX_NAMES);
            }
            self.last_name = kernel_name;
        }
    }

    fn finish(self) -> NearestKeys {
        let nearest = |(differing_words, kernel_args, file): (usize, String, PathBuf)| {
            let (asked, stored) = edit_distance::marked(&self.key.kernel_args, &kernel_args);
            NearestKey { differing_words, kernel_args, file, asked, stored }
        };
        NearestKeys {
            of_that_name: self.of_that_name,
            keys: self.keys.into_iter().map(nearest).collect(),
            names: self.names.into_iter().map(|(_, name)| name).collect(),
        }
    }
}

fn keep_smallest<T: Ord>(set: &mut BTreeSet<T>, wanted: usize) {
    while set.len() > wanted {
        set.pop_last();
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_kdb::{Row, WriteOptions, write};

    use super::*;

    fn kdb(dir: &Path, file: &str, keys: &[(&str, &str)]) -> PathBuf {
        let key = |(name, args): &(&str, &str)| KernelKey {
            kernel_name: (*name).to_owned(),
            kernel_args: (*args).to_owned(),
        };
        let keys: Vec<KernelKey> = keys.iter().map(key).collect();
        let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 1 }).collect();
        let path = dir.join(file);
        write(&path, &rows, &WriteOptions::default(), |_| Ok::<_, ReadError>(vec![1])).unwrap();
        path
    }

    #[test]
    fn the_nearest_keys_come_first_without_duplicates() {
        let dir = tempfile::tempdir().unwrap();
        let rows = [("conv.cl.o", " -DA=1"), ("conv.cl.o", " -DA=1 -DB=3"), ("gemm.s.o", " -DA=1")];
        let first = kdb(dir.path(), "gfx906_60.kdb", &rows);
        let second = kdb(dir.path(), "gfx906.kdb", &rows[1..]);
        let none = dir.path().join("none.kdb");
        let files = [none.as_path(), &first, &second];
        let key = |name: &str| KernelKey {
            kernel_name: name.to_owned(),
            kernel_args: " -DA=1 -DB=2 -DC".to_owned(),
        };

        let found = NearestKeys::search(&key("conv.cl.o"), files, 5);
        assert_eq!(found.of_that_name, 3);
        let keys: Vec<(usize, &str, &Path)> = found
            .keys
            .iter()
            .map(|key| (key.differing_words, key.stored.as_str(), key.file.as_path()))
            .collect();
        assert_eq!(keys, [(2, " -DA=1", &*first), (2, " -DA=1 {-DB=3}", &*first)]);
        assert_eq!(found.keys[1].asked, " -DA=1 {-DB=2} {-DC}");
        assert_eq!(found.names, ["gemm.s.o"]);

        let found = NearestKeys::search(&key("conv.s.o"), files, 1);
        assert_eq!((found.of_that_name, found.keys.len()), (0, 0));
        assert_eq!(found.names, ["conv.cl.o", "gemm.s.o"]);
    }
}
