//! A text database in memory: records by key, one laid over another, and
//! written so that equal contents are equal bytes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{ReadError, WriteError};
use crate::file;
use crate::name::Kind;
use crate::read::RecordReader;
use crate::record::{Fault, Record};

/// Records of one kind, by key. Takes about twice the memory of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    kind: Kind,
    records: BTreeMap<String, Record>,
}

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
        Self { kind, records: BTreeMap::new() }
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
                database.records.entry(record.key().to_owned()).or_insert(record);
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
    pub fn get(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    /// Records in the order of their keys' bytes.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// Lays a record over what is there, as MIOpen lays a user's over the
    /// system's: of a find database it replaces the one of the same key; of a
    /// performance database its solvers win, and the others stay.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord` in db.hpp with
    /// `merge_records`: set in mlo_dir_conv.cpp for performance databases, not
    /// set in find_db.hpp.
    pub fn lay_over(&mut self, mut record: Record) -> Overlaid {
        let mut done = Overlaid::default();
        match self.records.entry(record.key().to_owned()) {
            Entry::Vacant(place) => {
                place.insert(record);
                done.added = 1;
            }
            Entry::Occupied(mut below) => {
                if self.kind == Kind::Perf {
                    record.merge(below.get().clone());
                }
                if *below.get() == record {
                    done.same = 1;
                } else {
                    below.insert(record);
                    done.changed = 1;
                }
            }
        }
        done
    }

    /// Lays all records of another database over these.
    pub fn lay_all_over(&mut self, over: Self) -> Overlaid {
        let mut done = Overlaid::default();
        for record in over.records.into_values() {
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
