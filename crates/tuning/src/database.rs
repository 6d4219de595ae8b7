//! A text database in memory: records by key. Databases can be merged, and
//! equal contents are written as equal bytes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use gfxpack_model::{Error, Result};
use gfxpack_sqlite::NewFile;

use crate::name::DatabaseKind;
use crate::read::{RecordReader, unreadable};
use crate::record::{DbRecord, RecordFault, Solvers, line};

/// Records of one kind, by key. Takes the memory of its text, plus 200 to 300
/// bytes for each record with one solver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    kind: DatabaseKind,
    records: BTreeMap<String, Solvers>,
}

/// Counts of a merge of one database into another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overlaid {
    /// Records with a new key.
    pub added: u64,
    /// Records with a known key and changed contents.
    pub changed: u64,
    /// Records with a known key and unchanged contents.
    pub same: u64,
}

impl Overlaid {
    /// Adds the counts of another merge.
    pub(crate) fn add(&mut self, one: Self) {
        self.added += one.added;
        self.changed += one.changed;
        self.same += one.same;
    }
}

impl Database {
    /// An empty database.
    pub fn new(kind: DatabaseKind) -> Self {
        Self { kind, records: BTreeMap::new() }
    }

    /// Reads what MIOpen would use of the file: the first of several records
    /// with one key. `see` is called with each fault and the number of its
    /// line.
    pub fn read(
        path: &Path,
        kind: DatabaseKind,
        mut see: impl FnMut(u64, &RecordFault),
    ) -> Result<Self> {
        let mut database = Self::new(kind);
        let mut reader = RecordReader::open(path, kind)?;
        while let Some(line) = reader.next_line().map_err(unreadable(path))? {
            line.faults.iter().for_each(|fault| see(line.number, fault));
            if let Some(record) = line.record {
                database.records.entry(record.key).or_insert(record.solvers);
            }
        }
        Ok(database)
    }

    /// Number of records.
    pub(crate) fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// Adds a record with precedence over those already in the database, as
    /// MIOpen merges a user's into the system's. In a find database it replaces
    /// the record with the same key. In a performance database its solvers
    /// replace those with the same name, and the others stay.
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
                if self.kind == DatabaseKind::Perf {
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

    /// Adds all records of another database, with precedence.
    pub fn lay_all_over(&mut self, over: Self) -> Overlaid {
        let mut done = Overlaid::default();
        for (key, solvers) in over.records {
            done.add(self.lay_over(DbRecord { key, solvers }));
        }
        done
    }

    /// Writes the text: records in the order of their keys, solvers in the
    /// order of their names, each line with a final newline.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.records.iter().try_for_each(|(key, solvers)| writeln!(out, "{}", line(key, solvers)))
    }

    /// Writes the file, completely or not at all.
    pub(crate) fn save(&self, path: &Path) -> Result {
        let write = || {
            let mut file = NewFile::beside(path)?;
            let mut out = BufWriter::with_capacity(1 << 16, file.as_file_mut());
            self.write_to(&mut out).and_then(|()| out.flush()).map_err(|error| ("write", error))?;
            drop(out);
            file.persist().map(drop)
        };
        write().map_err(|(_, source)| {
            let hint = "check that the directory is there, and that there is room on that disk";
            Error::internal(format!("failed to write `{}`", path.display()), hint).caused_by(source)
        })
    }
}
