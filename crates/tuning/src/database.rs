//! A text database in memory: records by key, one laid over another, and
//! written so that equal contents are equal bytes.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{ReadError, WriteError};
use crate::file;
use crate::name::Kind;
use crate::read::RecordReader;
use crate::record::{DbRecord, Fault};

/// Records of one kind, by key. Takes the memory of its text, and for each
/// record with one solver 200 to 300 bytes more.
#[derive(Debug, Clone)]
pub struct Database {
    kind: Kind,
    records: BTreeSet<ByKey>,
}

/// A record in the order of keys, which are held only once.
#[derive(Debug, Clone)]
struct ByKey(DbRecord);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByKey {}

impl PartialEq for Database {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.records().eq(other.records())
    }
}

impl Eq for Database {}

/// What laying one database over another did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlaid {
    /// Records whose key was not there.
    pub added: u64,
    /// Records whose key was there, with other contents afterwards.
    pub changed: u64,
    /// Records whose key was there and whose contents stay.
    pub same: u64,
}

impl Database {
    /// Without records.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, records: BTreeSet::new() }
    }

    /// What MIOpen would take from the file: of records with one key the
    /// first. Each fault is shown to `see` with its line's number.
    ///
    /// # Errors
    /// [`ReadError`] where it is no text file.
    pub fn read(
        path: &Path,
        kind: Kind,
        mut see: impl FnMut(u64, &Fault),
    ) -> Result<Self, ReadError> {
        let mut database = Self::new(kind);
        let mut reader = RecordReader::open(path, kind)?;
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        while let Some(line) = reader.next_line().map_err(io)? {
            line.faults.iter().for_each(|fault| see(line.number, fault));
            if let Some(record) = line.record {
                // One that is there stays.
                database.records.insert(ByKey(record));
            }
        }
        Ok(database)
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The record of a problem.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&DbRecord> {
        self.records.get(key).map(|ByKey(record)| record)
    }

    /// Records in the order of their keys' bytes.
    pub fn records(&self) -> impl Iterator<Item = &DbRecord> {
        self.records.iter().map(|ByKey(record)| record)
    }

    /// Lays a record over what is there, as MIOpen lays a user's over the
    /// system's: of a find database it replaces the one of the same key; of a
    /// performance database its solvers win, and the others stay.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord` in db.hpp with
    /// `merge_records`: set in mlo_dir_conv.cpp for performance databases, not
    /// set in find_db.hpp.
    pub fn lay_over(&mut self, mut record: DbRecord) -> Overlaid {
        let mut done = Overlaid::default();
        match self.get(record.key()) {
            None => done.added = 1,
            Some(below) => {
                if self.kind == Kind::Perf {
                    record.merge(below.clone());
                }
                if *below == record {
                    done.same = 1;
                    return done;
                }
                done.changed = 1;
            }
        }
        self.records.replace(ByKey(record));
        done
    }

    /// Lays all records of another database over these.
    pub fn lay_all_over(&mut self, over: Self) -> Overlaid {
        let mut done = Overlaid::default();
        for ByKey(record) in over.records {
            let one = self.lay_over(record);
            done.added += one.added;
            done.changed += one.changed;
            done.same += one.same;
        }
        done
    }

    /// Its text: records in the order of their keys, solvers in the order of
    /// their names, each line ended by a line feed.
    ///
    /// # Errors
    /// As the output has them.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        // MIOpen keeps no record without solvers.
        for record in self.records().filter(|record| !record.is_empty()) {
            out.write_all(record.line().as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), WriteError> {
        let io = |source| WriteError::Io { path: path.to_owned(), source };
        let mut file = file::beside(path)?;
        let mut out = BufWriter::with_capacity(1 << 16, file.as_file_mut());
        self.write_to(&mut out).and_then(|()| out.flush()).map_err(io)?;
        drop(out);
        file::persist(file, path)
    }
}
