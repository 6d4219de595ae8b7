//! The union of several kdbs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::{Path, PathBuf};

use gfxpack_model::KernelKey;

use crate::copy::cursor::Cursor;
use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, RowInTransit, transfer};
use crate::error::ReadError;
use crate::object_origin::Note;
use crate::read::StoredBlob;
use crate::write::sink::{Sink, Written};

/// What to do if files have different code objects for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Conflict {
    /// Nothing is merged. The result does not depend on the order of the files.
    #[default]
    Error,
    /// The file that is given first wins.
    First,
    /// The newest row wins. Its time is the one that an earlier merge noted, or
    /// else the time at which its file was last changed. At equal times, the
    /// row with the lower hash wins. The times are noted in side tables of the
    /// result. So the result depends neither on the order of the files nor on
    /// which were merged before.
    Newest,
}

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Merged {
    /// What was written.
    pub written: Written,
    /// Rows left out because their code object equals the one that was taken
    /// for their key.
    pub repeated: u64,
    /// Keys with different code objects.
    pub conflicts: u64,
}

/// A row that may be taken for a key.
struct Candidate {
    file: usize,
    stored: StoredBlob,
    note: Note,
}

/// Writes the union of the kdbs into a new one, in MIOpen's layout unless the
/// options name one. The files are read side by side, one row of each at a
/// time.
///
/// If files have the same code object for a key, the row with the smaller blob
/// is taken ([`Conflict::First`] takes the first, [`Conflict::Newest`] the
/// newest). This order depends on the rows and not on the files, so merging in
/// any order and grouping gives the same bytes.
///
/// # Errors
/// [`CopyError`]; the destination is then unchanged.
pub fn merge(
    inputs: &[PathBuf],
    out: &Path,
    conflict: Conflict,
    options: &CopyOptions<'_>,
) -> Result<Merged, CopyError> {
    let mut union = Union {
        inputs,
        cursors: Vec::new(),
        heads: BinaryHeap::new(),
        conflict,
        merged: Merged::default(),
    };
    let mut total = 0;
    for (file, input) in inputs.iter().enumerate() {
        let cursor = Cursor::open(input, options.max_object_bytes)?;
        total += cursor.count(options)?;
        union.cursors.push(cursor);
        union.step(file)?;
    }
    let mut sink = Sink::create(out, options.layout.unwrap_or_default())?;
    let finish = |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?);
    transfer(options, total, || union.next(), finish)?;
    union.merged.written = sink.finish()?;
    Ok(union.merged)
}

struct Union<'a> {
    inputs: &'a [PathBuf],
    cursors: Vec<Cursor>,
    /// The next key of every file with rows left, the lowest first.
    heads: BinaryHeap<Reverse<(KernelKey, usize, Note)>>,
    conflict: Conflict,
    merged: Merged,
}

impl Union<'_> {
    /// Moves one file on to its next row.
    fn step(&mut self, file: usize) -> Result<(), ReadError> {
        if let Some((entry, note)) = self.cursors[file].next()? {
            self.heads.push(Reverse((entry.key, file, note)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RowInTransit>, CopyError> {
        let Some(Reverse((key, file, note))) = self.heads.pop() else { return Ok(None) };
        let mut chosen = self.take(&key, file, note)?;
        let (mut differ, mut rows) = (false, 1);
        // Hashes of the rows not taken. Few keys have any.
        let mut others: Vec<String> = Vec::new();
        while let Some((file, note)) = self.pop(&key) {
            let other = self.take(&key, file, note)?;
            rows += 1;
            if other.stored.hash != chosen.stored.hash {
                differ = true;
                if self.conflict == Conflict::Error {
                    return Err(CopyError::Conflict {
                        key: Box::new(key),
                        first: self.inputs[chosen.file].clone(),
                        second: self.inputs[other.file].clone(),
                    });
                }
            }
            let left = if self.conflict.prefers(&other, &chosen) {
                std::mem::replace(&mut chosen, other)
            } else {
                other
            };
            others.push(left.stored.hash);
        }
        let repeated = others.iter().filter(|hash| **hash == chosen.stored.hash).count();
        self.merged.repeated += repeated as u64;
        self.merged.conflicts += u64::from(differ);
        let Candidate { file, stored, note } = chosen;
        Ok(Some(RowInTransit { path: self.inputs[file].clone(), key, stored, note, rows }))
    }

    /// The next file whose next key is `key`.
    fn pop(&mut self, key: &KernelKey) -> Option<(usize, Note)> {
        let head = self.heads.peek_mut().filter(|head| head.0.0 == *key)?;
        let Reverse((_, file, note)) = PeekMut::pop(head);
        Some((file, note))
    }

    fn take(&mut self, key: &KernelKey, file: usize, note: Note) -> Result<Candidate, ReadError> {
        let cursor = &self.cursors[file];
        let stored = cursor.stored(key)?;
        let date = match self.conflict {
            Conflict::Newest => note.date.or(cursor.modified()),
            // No date is needed, and without one equal rows give equal bytes.
            Conflict::Error | Conflict::First => None,
        };
        self.step(file)?;
        Ok(Candidate { file, stored, note: Note { date, ..note } })
    }
}

impl Conflict {
    /// Whether `row` is taken rather than `other`. Each policy is a total order
    /// of rows, which makes merging associative.
    fn prefers(self, row: &Candidate, other: &Candidate) -> bool {
        let Candidate { stored: a, note: of_a, .. } = row;
        let Candidate { stored: b, note: of_b, .. } = other;
        let by_content = (&a.hash, a.blob.len(), &a.blob, a.claimed_size, &of_a.origin).cmp(&(
            &b.hash,
            b.blob.len(),
            &b.blob,
            b.claimed_size,
            &of_b.origin,
        ));
        match self {
            Self::First => row.file < other.file,
            Self::Error => by_content.is_lt(),
            Self::Newest => of_a.date.cmp(&of_b.date).then(by_content.reverse()).is_gt(),
        }
    }
}
