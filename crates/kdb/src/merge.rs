//! The union of several kdbs.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, KernelKey, Result};

use crate::codec;
use crate::cursor::Cursor;
use crate::encode::{Blob, Encoded, encode_hashed};
use crate::error::{Fault, ReadError, RowError};
use crate::parallel;
use crate::read::StoredBlob;
use crate::schema::check_key;
use crate::write::{Sink, Written};

/// Bytes of code objects in memory at a time.
const WINDOW_BYTES: u64 = 64 << 20;

/// What to do if files have different code objects for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// Nothing is merged. The result does not depend on the order of the files.
    #[default]
    Error,
    /// The file that is given first wins.
    First,
}

/// How rows are copied.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct CopyOptions<'a> {
    /// How code objects are stored; `None`: as in the input.
    pub blob: Option<Blob>,
    /// Called on the calling thread after every row, with the number of input
    /// rows so far and in all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Called for every row to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
}

/// Writes the union of the kdbs into a new one. The files are read side by
/// side, one row of each at a time. Every row is decoded and checked against its
/// hash.
///
/// If files have the same code object for a key, the row with the smaller blob
/// is taken ([`Conflict::First`] takes the first). This order depends on the
/// rows and not on the files, so merging in any order and grouping gives the
/// same bytes.
///
/// # Errors
/// If a file can't be read or written, or for [`Conflict::Error`]; the destination is then
/// unchanged.
pub fn merge(
    inputs: &[PathBuf],
    out: &Path,
    conflict: Conflict,
    options: &CopyOptions<'_>,
) -> Result<Merged> {
    let CopyOptions { blob: form, progress, cancelled } = *options;
    let mut union = Union {
        inputs,
        cursors: Vec::new(),
        heads: BinaryHeap::new(),
        conflict,
        merged: Merged::default(),
    };
    let mut total = 0;
    for (file, input) in inputs.iter().enumerate() {
        let cursor = Cursor::open(input)?;
        // Counting takes as long as reading the keys.
        total += progress.map_or(Ok(0), |_| cursor.count())?;
        union.cursors.push(cursor);
        union.step(file)?;
    }
    // Of several versions none is that of all kernels.
    let mut versions = union.cursors.iter().map(Cursor::miopen_version);
    let first = versions.next().unwrap_or_default();
    let version = if versions.all(|other| other == first) { first } else { Default::default() };
    let mut sink = Sink::create(out, version)?;
    let mut done = 0;
    parallel::in_order(
        WINDOW_BYTES,
        || {
            let Some(taken) = union.next()? else { return Ok(None) };
            let Candidate { file, stored: StoredBlob { blob, claimed_size, .. } } = &taken.1;
            if cancelled.is_some_and(|cancelled| cancelled()) {
                return Err(Error::from(Fault::Interrupted.of(&inputs[*file])));
            }
            // The stored blob, the decoded object, and the new blob.
            let cost = 2 * blob.len() as u64 + 2 * claimed_size.bytes();
            Ok(Some((taken, cost)))
        },
        |(key, Candidate { file, stored }, rows)| {
            let path = &inputs[file];
            // MIOpen binds keys when it stores rows, but splices them into the SQL when
            // it looks them up.
            check_key(&key).map_err(|source| {
                let message = format!("failed to take over a kernel of kdb `{}`", path.display());
                let hint = "build the file again: MIOpen could never find this kernel";
                Error::usage(message, hint).caused_by(source)
            })?;
            match recode(stored, form) {
                Ok(encoded) => Ok((key, encoded, rows)),
                Err(source) => Err(Fault::Row(Box::new(key), source).of(path).into()),
            }
        },
        |recoded: Result<_>| {
            let (key, encoded, rows) = recoded?;
            sink.add(&key, &encoded)?;
            done += rows;
            if let Some(progress) = progress {
                progress(done, total);
            }
            Ok(())
        },
    )?;
    union.merged.written = sink.finish()?;
    Ok(union.merged)
}

/// Checks a row's code object, and encodes it in the requested form.
fn recode(stored: StoredBlob, form: Option<Blob>) -> Result<Encoded, RowError> {
    let StoredBlob { blob, hash, claimed_size } = stored;
    let object = codec::unpack(&blob, claimed_size)?;
    codec::check_hash(&object, &hash)?;
    if object.is_empty() {
        return Err(RowError::Empty);
    }
    let Some(form) = form else {
        let uncompressed_size = claimed_size.bytes();
        drop(object);
        return Ok(Encoded { blob, hash, uncompressed_size });
    };
    let unpacked = match object {
        Cow::Owned(object) => Some(object),
        Cow::Borrowed(_) => None,
    };
    Ok(encode_hashed(unpacked.unwrap_or(blob), hash, form))
}

struct Union<'a> {
    inputs: &'a [PathBuf],
    cursors: Vec<Cursor>,
    /// The next key of every file with rows left, the lowest first.
    heads: BinaryHeap<Reverse<(KernelKey, usize)>>,
    conflict: Conflict,
    merged: Merged,
}

impl Union<'_> {
    /// Moves one file on to its next row.
    fn step(&mut self, file: usize) -> Result<(), ReadError> {
        if let Some(entry) = self.cursors[file].next()? {
            self.heads.push(Reverse((entry.key, file)));
        }
        Ok(())
    }

    /// The next key, the row that is taken for it, and how many input rows that stands for.
    fn next(&mut self) -> Result<Option<(KernelKey, Candidate, u64)>> {
        let Some(Reverse((key, file))) = self.heads.pop() else { return Ok(None) };
        let mut chosen = self.take(&key, file)?;
        let (mut differ, mut rows) = (false, 1);
        // Hashes of the rows not taken. Few keys have any.
        let mut others: Vec<String> = Vec::new();
        while let Some(file) = self.pop(&key) {
            let other = self.take(&key, file)?;
            rows += 1;
            if other.stored.hash != chosen.stored.hash {
                differ = true;
                if self.conflict == Conflict::Error {
                    let [first, second] =
                        [&chosen, &other].map(|row| self.inputs[row.file].display());
                    return Err(Error::usage(
                        format!(
                            "failed to merge kernel `{key}`: `{first}` and `{second}` differ in it"
                        ),
                        "--on-conflict first takes that of the file named first; `gfxpack kdb diff` \
                         lists all",
                    ));
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
        Ok(Some((key, chosen, rows)))
    }

    /// The next file whose next key is `key`.
    fn pop(&mut self, key: &KernelKey) -> Option<usize> {
        let head = self.heads.peek_mut().filter(|head| head.0.0 == *key)?;
        let Reverse((_, file)) = PeekMut::pop(head);
        Some(file)
    }

    fn take(&mut self, key: &KernelKey, file: usize) -> Result<Candidate, ReadError> {
        let stored = self.cursors[file].stored(key)?;
        self.step(file)?;
        Ok(Candidate { file, stored })
    }
}

impl Conflict {
    /// Whether `row` is taken rather than `other`. Each policy is a total order
    /// of rows, which makes merging associative.
    fn prefers(self, row: &Candidate, other: &Candidate) -> bool {
        let (a, b) = (&row.stored, &other.stored);
        match self {
            Self::First => row.file < other.file,
            Self::Error => {
                (&a.hash, a.blob.len(), &a.blob, a.claimed_size)
                    < (&b.hash, b.blob.len(), &b.blob, b.claimed_size)
            }
        }
    }
}
