//! Remembers which rows of an installed kdb match their hashes, for one version
//! of the file.

use std::collections::HashSet;
use std::sync::Mutex;

use gfxpack_kdb::RowMark;

use crate::file_system::FileIdentity;
use crate::mutex::lock;

/// Largest number of rows to remember, some 20 MiB. kdbs have some ten thousand
/// rows.
const MAX_ROWS: usize = 1 << 18;

/// The verified rows of one version of a file.
#[derive(Default)]
pub(crate) struct VerifiedRows {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<FileIdentity>,
    rows: HashSet<RowMark>,
}

impl VerifiedRows {
    /// Whether the row was recorded for this version of the file.
    pub(crate) fn has(&self, file: FileIdentity, row: RowMark) -> bool {
        let state = lock(&self.state);
        state.file == Some(file) && state.rows.contains(&row)
    }

    /// Records a row, and drops those of other versions. Rows above the limit
    /// are not recorded.
    pub(crate) fn note(&self, file: FileIdentity, row: RowMark) {
        let mut state = lock(&self.state);
        if state.file != Some(file) {
            *state = State { file: Some(file), rows: HashSet::new() };
        }
        if state.rows.len() < MAX_ROWS {
            state.rows.insert(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_kdb::{Blob, Reader, Row, WriteOptions, write};
    use gfxpack_model::KernelKey;

    use super::*;

    /// Marks of two keys.
    fn marks() -> [RowMark; 2] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gfx906_60.kdb");
        let keys: Vec<KernelKey> =
            ["a", "b"].map(|name| KernelKey::for_source(name, "", "gfx906")).into();
        let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 4 }).collect();
        let mut options = WriteOptions::default();
        options.blob = Blob::Raw;
        let object = |_| Ok::<_, std::io::Error>(vec![1; 4]);
        write(&path, &rows, &options, object).unwrap();
        let reader = Reader::open(&path).unwrap();
        let mark = |key| reader.get_unhashed(key, |_| false).unwrap().unwrap().hashed_row.unwrap();
        [mark(&keys[0]), mark(&keys[1])]
    }

    #[test]
    fn rows_are_remembered_for_one_version_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let version = |content: &str| {
            let path = directory.path().join("file");
            std::fs::write(&path, content).unwrap();
            FileIdentity::with_content(&path).unwrap()
        };
        let (first, second) = (version("1"), version("22"));
        let marks = marks();
        let rows = VerifiedRows::default();
        rows.note(first, marks[0]);
        assert!(rows.has(first, marks[0]) && !rows.has(first, marks[1]));
        assert!(!rows.has(second, marks[0]));
        rows.note(second, marks[1]);
        assert!(rows.has(second, marks[1]) && !rows.has(first, marks[0]));
    }
}
