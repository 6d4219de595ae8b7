//! Which rows of an installed kdb have been checked against their hashes, for
//! one version of the file.

use std::sync::Mutex;

use crate::file_system::FileIdentity;
use crate::mutex::lock;

/// Rows remembered, by their ids: a bit each, so half a MiB at most. MIOpen
/// numbers rows from 1; kdbs have some ten thousand.
const MAX_ROWS: usize = 1 << 22;

/// The rows of one version of a file.
#[derive(Default)]
pub(crate) struct VerifiedRows {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<FileIdentity>,
    /// A bit for each row, as far as the last one noted.
    words: Vec<u64>,
}

impl VerifiedRows {
    /// Whether the row was noted for that very version of the file.
    pub(crate) fn has(&self, file: FileIdentity, row: i64) -> bool {
        let Some((word, bit)) = place(row) else { return false };
        let state = lock(&self.state);
        state.file == Some(file) && state.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Notes a row, and forgets those of all other versions. One with an id
    /// above the bound is not remembered.
    pub(crate) fn note(&self, file: FileIdentity, row: i64) {
        let Some((word, bit)) = place(row) else { return };
        let mut state = lock(&self.state);
        if state.file != Some(file) {
            *state = State { file: Some(file), words: Vec::new() };
        }
        if state.words.len() <= word {
            state.words.resize(word + 1, 0);
        }
        state.words[word] |= bit;
    }
}

fn place(row: i64) -> Option<(usize, u64)> {
    let row = usize::try_from(row).ok().filter(|row| *row < MAX_ROWS)?;
    Some((row / 64, 1 << (row % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_of_one_version_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let version = |content: &str| {
            let path = directory.path().join("file");
            std::fs::write(&path, content).unwrap();
            FileIdentity::with_content(&path).unwrap()
        };
        let (first, second) = (version("1"), version("22"));
        let rows = VerifiedRows::default();
        let bound = MAX_ROWS as i64;
        let noted = [0, 1, 63, 64, 9999, bound - 1];
        noted.iter().for_each(|row| rows.note(first, *row));
        assert!(noted.iter().all(|row| rows.has(first, *row)));
        assert!([2, 62, 65, 10_000, bound].iter().all(|row| !rows.has(first, *row)));
        assert!(noted.iter().all(|row| !rows.has(second, *row)));
        assert_eq!(lock(&rows.state).words.len() * 8, 512 << 10, "bytes");
        for row in [bound, i64::MAX, -1, i64::MIN] {
            rows.note(second, row);
            assert!(!rows.has(second, row), "{row}");
        }
        rows.note(second, 2);
        assert!(rows.has(second, 2) && !rows.has(second, 1) && !rows.has(first, 1));
    }
}
