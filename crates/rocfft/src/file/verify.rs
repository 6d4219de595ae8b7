//! Goes through everything that a file can have wrong, and does not stop at
//! the first.

use std::error::Error;
use std::fmt;
use std::path::Path;

use crate::file::error::ReadError;
use crate::file::layout::Layout;
use crate::file::read::Reader;
use crate::file::row::{RowError, check_row};
use crate::key::CacheKey;
use crate::places::arch_of_file_name;

/// Findings that a [`Report`] lists; those beyond are only counted.
pub const MAX_FINDINGS: usize = 1000;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingClass {
    /// No SQLite file, another journal mode, or half written.
    NotSqlite,
    /// The schema is another.
    Schema,
    /// SQLite's integrity check found damage, or its index leads elsewhere.
    Integrity,
    /// SQLite could not go on; what follows was not looked at.
    Unreadable,
    /// A column holds another type than declared, or text that is not UTF-8.
    Column,
    /// The bytes are no code object.
    CodeObject,
    /// The code object or the row is for another processor.
    Target,
    /// The code object does not define the kernel.
    Symbol,
}

impl FindingClass {
    /// The class in machine-readable output: `code-object`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotSqlite => "not-sqlite",
            Self::Schema => "schema",
            Self::Integrity => "integrity",
            Self::Unreadable => "unreadable",
            Self::Column => "column",
            Self::CodeObject => "code-object",
            Self::Target => "target",
            Self::Symbol => "symbol",
        }
    }

    fn of_row(error: &RowError) -> Self {
        match error {
            RowError::Column(_) => Self::Column,
            RowError::Order | RowError::OtherKey => Self::Integrity,
            RowError::TooLarge(_) | RowError::CodeObject(_) => Self::CodeObject,
            RowError::OtherTarget { .. } => Self::Target,
            RowError::NoSymbol(_) => Self::Symbol,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of thing.
    pub class: FindingClass,
    /// The row's key, if it is of a row whose key can be read.
    pub key: Option<CacheKey>,
    /// What it is, for people.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.name(), self.detail)?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, " (kernel `{key}`)"))
    }
}

/// All that a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Rows looked at.
    pub rows: u64,
    /// Bytes of their code objects.
    pub code_bytes: u64,
    /// What is wrong: the file first, then the rows in order; no more than
    /// [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many things are wrong.
    pub total_findings: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.total_findings == 0
    }

    fn add(&mut self, class: FindingClass, key: Option<&CacheKey>, detail: String) {
        self.total_findings += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { class, key: key.cloned(), detail });
        }
    }
}

/// Verifies a file: SQLite's integrity check, the schema, and every row by
/// [`check_row`]. Every row must be for `arch`; without one, for that of the
/// file's name if that says one.
///
/// # Errors
/// [`ReadError::Io`]: there is nothing to verify. All else that is wrong is in
/// the report.
pub fn verify(path: &Path, arch: Option<&str>) -> Result<Report, ReadError> {
    let mut report = Report::default();
    let arch = arch.or_else(|| arch_of_file_name(path));
    let done = Reader::open(path).and_then(|reader| {
        // Damage that ends this check may leave the rows readable.
        if let Err(error) = integrity(&reader, &mut report) {
            report.add(FindingClass::Integrity, None, with_sources(&error));
        }
        rows(&reader, arch, &mut report)
    });
    let class = match &done {
        Err(ReadError::Io { .. }) => return done.map(|()| report),
        Err(ReadError::Unusable { .. }) => FindingClass::NotSqlite,
        Err(ReadError::Schema { .. }) => FindingClass::Schema,
        Err(_) => FindingClass::Unreadable,
        Ok(()) => return Ok(report),
    };
    let detail = done.err().map(|error| with_sources(&error));
    report.add(class, None, detail.unwrap_or_default());
    Ok(report)
}

fn integrity(reader: &Reader, report: &mut Report) -> Result<(), rusqlite::Error> {
    let connection = &reader.opened.connection;
    let unused = "SELECT 'object ' || id || ' belongs to no key' FROM rocfft_objects \
        WHERE id NOT IN (SELECT object FROM rocfft_keys) LIMIT 100";
    let dense = (reader.layout() == Layout::Dense).then_some(unused);
    for sql in ["PRAGMA integrity_check(100)"].into_iter().chain(dense) {
        reader.opened.renew();
        let mut statement = connection.prepare(sql)?;
        let mut lines = statement.query(())?;
        while let Some(line) = lines.next()? {
            let line: String = line.get(0)?;
            if line != "ok" {
                report.add(FindingClass::Integrity, None, line);
            }
            reader.opened.renew();
        }
    }
    Ok(())
}

fn rows(reader: &Reader, arch: Option<&str>, report: &mut Report) -> Result<(), ReadError> {
    let mut previous: Option<CacheKey> = None;
    reader.walk(|number, key| {
        report.rows += 1;
        let key = match key {
            Ok(key) => key,
            Err(error) => {
                report.add(FindingClass::of_row(&error), None, format!("row {number}: {error}"));
                return Ok(());
            }
        };
        if previous.as_ref().is_some_and(|previous| *previous >= key) {
            report.add(FindingClass::Integrity, Some(&key), RowError::Order.to_string());
        }
        if let Some(arch) = arch.filter(|arch| *arch != key.arch) {
            let detail = format!("the row is for {}, the file for {arch}", key.arch);
            report.add(FindingClass::Target, Some(&key), detail);
        }
        let checked = match reader.get(&key) {
            Ok(Some(code)) => {
                reader.add_up(&mut report.code_bytes, code.len())?;
                check_row(&key, &code)
            }
            Ok(None) => Err(RowError::OtherKey),
            Err(ReadError::Row { source, .. }) => Err(source),
            Err(error) => {
                report.add(FindingClass::Unreadable, Some(&key), with_sources(&error));
                Ok(())
            }
        };
        if let Err(error) = checked {
            report.add(FindingClass::of_row(&error), Some(&key), error.to_string());
        }
        previous = Some(key);
        Ok(())
    })
}

fn with_sources(error: &dyn Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}
