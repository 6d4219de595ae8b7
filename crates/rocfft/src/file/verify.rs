//! Checks everything in a file, and does not stop at the first error.

use std::fmt::Display;
use std::path::Path;

use gfxpack_model::{KernelFileFormat, Result, in_full};

use crate::file::read::Reader;
use crate::file::row::{RowError, check_row};
use crate::key::CacheKey;

/// The most findings that a [`Report`] lists; further ones are only counted.
const MAX_FINDINGS: usize = 1000;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The number of rows checked.
    pub rows: u64,
    /// The findings: first about the file, then about the rows in order; at most 1000. Each begins
    /// with its class: `not-sqlite`, `schema`, `integrity`, `unreadable`, `column`, `code-object`,
    /// `target` or `symbol`.
    pub findings: Vec<String>,
    /// The number of all findings.
    pub total_findings: u64,
}

impl Report {
    /// Whether there are no findings.
    pub fn is_sound(&self) -> bool {
        self.total_findings == 0
    }

    /// Adds a finding; `key` is its row's, if that can be read.
    fn add(&mut self, class: &str, key: Option<&CacheKey>, detail: impl Display) {
        self.total_findings += 1;
        if self.findings.len() < MAX_FINDINGS {
            let of = key.map_or(String::new(), |key| format!(" (kernel `{key}`)"));
            self.findings.push(format!("{class}: {detail}{of}"));
        }
    }
}

/// Verifies a file: SQLite's integrity check, the schema, and every row by [`check_row`]. Every row
/// must be for `arch`; without `arch`, for the processor in the file's name, if there is one.
///
/// # Errors
/// If the file can't be read at all. All other errors are in the report.
pub fn verify(path: &Path, arch: Option<&str>) -> Result<Report> {
    let mut report = Report::default();
    let arch = arch.or_else(|| KernelFileFormat::RocfftCache.target_part(path));
    let reader = match Reader::open_or_fault(path) {
        Err(("io", error)) => return Err(error),
        Err((class, error)) => {
            report.add(class, None, in_full(&error));
            return Ok(report);
        }
        Ok(reader) => reader,
    };
    // If damage ends this check, the rows may still be readable.
    if let Err(error) = integrity(&reader, &mut report) {
        report.add("integrity", None, error);
    }
    if let Err(error) = rows(&reader, arch, &mut report) {
        report.add("unreadable", None, in_full(&error));
    }
    Ok(report)
}

fn integrity(reader: &Reader, report: &mut Report) -> rusqlite::Result<()> {
    reader.budget.renew();
    let mut statement = reader.connection.prepare("PRAGMA integrity_check(100)")?;
    let mut lines = statement.query(())?;
    while let Some(line) = lines.next()? {
        let line: String = line.get(0)?;
        if line != "ok" {
            report.add("integrity", None, line);
        }
        reader.budget.renew();
    }
    Ok(())
}

fn rows(reader: &Reader, arch: Option<&str>, report: &mut Report) -> Result {
    let (mut previous, mut code_bytes): (Option<CacheKey>, _) = (None, 0);
    reader.walk(|number, key| {
        report.rows += 1;
        let key = match key {
            Ok(key) => key,
            Err(error) => {
                report.add(error.class, None, format!("row {number}: {error}"));
                return Ok(());
            }
        };
        if previous.as_ref().is_some_and(|previous| *previous >= key) {
            report.add("integrity", Some(&key), RowError::order());
        }
        if let Some(arch) = arch.filter(|arch| *arch != key.arch) {
            let detail = format!("the row is for {}, the file for {arch}", key.arch);
            report.add("target", Some(&key), detail);
        }
        let checked = match reader.get(&key) {
            Ok(Some(code)) => {
                reader.add_up(&mut code_bytes, code.len())?;
                check_row(&key, &code)
            }
            Ok(None) => Err(RowError::other_key()),
            Err(error) => match error.cause::<RowError>() {
                Some(source) => Err(source.clone()),
                None => {
                    report.add("unreadable", Some(&key), in_full(&error));
                    Ok(())
                }
            },
        };
        if let Err(error) = checked {
            report.add(error.class, Some(&key), &error);
        }
        previous = Some(key);
        Ok(())
    })
}
