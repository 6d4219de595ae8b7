//! A text database in memory: records by key, one laid over another, and
//! written so that equal contents are equal bytes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use gfxpack_sqlite::NewFile;

use crate::error::{ReadError, WriteError};
use crate::name::Kind;
use crate::read::RecordReader;
use crate::record::{DbRecord, Fault, Solvers, line};

/// Records of one kind, by key. Takes the memory of its text, and for each
/// record with one solver 200 to 300 bytes more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    kind: Kind,
    records: BTreeMap<String, Solvers>,
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

impl Overlaid {
    /// Adds what laying one more over it did.
    pub(crate) fn add(&mut self, one: Self) {
        self.added += one.added;
        self.changed += one.changed;
        self.same += one.same;
    }
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
                database.records.entry(record.key).or_insert(record.solvers);
            }
        }
        Ok(database)
    }

    /// How many records.
    pub(crate) fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// Lays a record over what is there, as MIOpen lays a user's over the
    /// system's: of a find database it replaces the one of the same key; of a
    /// performance database its solvers win, and the others stay.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord` in db.hpp with
    /// `merge_records`: set in mlo_dir_conv.cpp for performance databases, not
    /// set in find_db.hpp.
    pub fn lay_over(&mut self, record: DbRecord) -> Overlaid {
        let DbRecord { key, mut solvers } = record;
        let mut done = Overlaid::default();
        match self.records.entry(key) {
            Entry::Vacant(place) => {
                place.insert(solvers);
                done.added = 1;
            }
            Entry::Occupied(mut below) => {
                if self.kind == Kind::Perf {
                    let mut all: BTreeMap<_, _> = below.get().iter().cloned().collect();
                    all.extend(solvers);
                    solvers = all.into_iter().collect();
                }
                if *below.get() == solvers {
                    done.same = 1;
                } else {
                    below.insert(solvers);
                    done.changed = 1;
                }
            }
        }
        done
    }

    /// Lays all records of another database over these.
    pub fn lay_all_over(&mut self, over: Self) -> Overlaid {
        let mut done = Overlaid::default();
        for (key, solvers) in over.records {
            done.add(self.lay_over(DbRecord { key, solvers }));
        }
        done
    }

    /// Its text: records in the order of their keys, solvers in the order of
    /// their names, each line ended by a line feed.
    ///
    /// # Errors
    /// As the output has them.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.records.iter().try_for_each(|(key, solvers)| writeln!(out, "{}", line(key, solvers)))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), WriteError> {
        let io = |source| WriteError::Io { path: path.to_owned(), source };
        let mut file = NewFile::beside(path)?;
        let mut out = BufWriter::with_capacity(1 << 16, file.as_file_mut());
        self.write_to(&mut out).and_then(|()| out.flush()).map_err(io)?;
        drop(out);
        file.persist()?;
        Ok(())
    }
}
