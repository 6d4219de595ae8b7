//! Checks a database before it is shipped: for lines that MIOpen can't read,
//! records that it never finds, and names that it never looks for.

use std::collections::HashSet;
use std::path::Path;

use gfxpack_model::{Digest, Result, Target};

use crate::heuristic_model::{ModelName, check_model};
use crate::name::{DatabaseKind, DatabaseName, DatabaseOwner, Storage};
use crate::read::{RecordReader, check_file, unreadable};
use crate::record::{
    DbRecord, RecordFault, algorithm_found, direction, is_algorithm, is_algorithm_of,
};

/// Keys of convolutions have more fields than this.
const CONVOLUTION_FIELDS: usize = 10;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information only.
    Note,
    /// Suspicious, but MIOpen can read it.
    Warning,
    /// Something is lost, or the file is never read.
    Error,
}

impl Severity {
    /// One word for display and for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// The line's number, from 1, if it concerns one line.
    pub line: Option<u64>,
    /// The description, with the subject in backticks.
    pub message: String,
}

/// Counts of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Linted {
    /// Number of records that MIOpen would use.
    pub records: u64,
    /// Number of findings that are errors.
    pub errors: u64,
    /// Number of findings that are warnings.
    pub warnings: u64,
}

/// Passes findings on and counts them.
struct FindingCounter<'a> {
    report: &'a mut dyn FnMut(Finding),
    linted: Linted,
}

impl FindingCounter<'_> {
    fn add(&mut self, severity: Severity, line: Option<u64>, message: impl Into<String>) {
        match severity {
            Severity::Error => self.linted.errors += 1,
            Severity::Warning => self.linted.warnings += 1,
            Severity::Note => {}
        }
        (self.report)(Finding { severity, line, message: message.into() });
    }
}

/// Reads a file as a stream and reports all its problems. With `target`, the
/// file must be for such a device.
///
/// # Errors
/// If there is no such file, or it can't be read. Anything else that keeps
/// MIOpen from reading it is a finding.
pub fn lint(
    path: &Path,
    target: Option<&Target>,
    mut report: impl FnMut(Finding),
) -> Result<Linted> {
    let mut counter = FindingCounter { report: &mut report, linted: Linted::default() };
    if let Some(name) = ModelName::from_path(path) {
        lint_model(path, &name, target, &mut counter)?;
        return Ok(counter.linted);
    }
    let Some(name) = DatabaseName::from_path(path) else {
        let message = "the name is none that MIOpen looks for, as gfx906_60.db.txt and \
                       gfx90a68.HIP.fdb.txt are";
        counter.add(Severity::Error, None, message);
        return Ok(counter.linted);
    };
    lint_name(&name, target, &mut counter);
    match name.storage {
        Storage::Text => lint_text(path, &name, &mut counter)?,
        Storage::Sqlite => {
            std::fs::metadata(path).map_err(unreadable(path))?;
            // Source: ROCm/MIOpen 2d1fd997a, MIOPEN_USE_SQLITE_PERFDB in CMakeLists.txt.
            let message = "MIOpen reads SQLite only if it was built for that, which no package of \
                           it is: take the .db.txt";
            counter.add(Severity::Error, None, message);
        }
    }
    Ok(counter.linted)
}

fn lint_model(
    path: &Path,
    name: &ModelName,
    target: Option<&Target>,
    counter: &mut FindingCounter<'_>,
) -> Result {
    check_file(path)?;
    if let Some(target) =
        target.filter(|target| target.id().processor() != name.target.id().processor())
    {
        let message = format!("the name is for {}, not for {target}", name.target);
        counter.add(Severity::Error, None, message);
    }
    match check_model(path) {
        Ok(()) => counter.linted.records = 1,
        Err(message) => counter.add(Severity::Error, None, message),
    }
    for other in name.with.iter().filter(|other| !path.with_file_name(other).exists()) {
        let message = format!("MIOpen can't use it without `{other}` in the same directory");
        counter.add(Severity::Warning, None, message);
    }
    Ok(())
}

fn lint_name(name: &DatabaseName, target: Option<&Target>, counter: &mut FindingCounter<'_>) {
    if name.target.compute_units().is_none() {
        // Source: ROCm/MIOpen 2d1fd997a: `extension()` of a path gives `.txt`
        // for `x.db.txt`, so the search for the nearest count finds SQLite only.
        counter.add(
            Severity::Error,
            None,
            format!(
                "the name has no compute units, and MIOpen asks for `{}` with those of the device only",
                name.target.db_basename()
            ),
        );
    }
    if let Some(target) = target.filter(|target| !serves(&name.target, target)) {
        counter.add(
            Severity::Error,
            None,
            format!("the name is for {}, not for {target}", name.target),
        );
    }
    if name.kind == DatabaseKind::Find && name.suffix.split('.').next() == Some("OpenCL") {
        let message = "MIOpen's OpenCL backend reads it, which ROCm's packages are built without";
        counter.add(Severity::Note, None, message);
    }
}

/// Whether a database for `one` is read on a device of `package`, which may
/// have any count of compute units.
fn serves(one: &Target, package: &Target) -> bool {
    let counts = (one.compute_units(), package.compute_units());
    one.id().db_id() == package.id().db_id() && (counts.1.is_none() || counts.0 == counts.1)
}

fn lint_text(path: &Path, name: &DatabaseName, counter: &mut FindingCounter<'_>) -> Result {
    check_file(path)?;
    let mut reader = match RecordReader::open(path, name.kind) {
        Ok(reader) => reader,
        Err(error) if error.io_kind().is_some() => return Err(error),
        Err(error) => {
            counter.add(Severity::Error, None, error.to_string());
            return Ok(());
        }
    };
    let mut text = TextDatabase { ended: true, ..TextDatabase::default() };
    while let Some(line) = reader.next_line().map_err(unreadable(path))? {
        text.ended = line.ended;
        for fault in &line.faults {
            let severity = match fault {
                // Usually the whole file is like this, so there is one finding
                // for all lines.
                RecordFault::Legacy(_) => {
                    text.legacy += 1;
                    continue;
                }
                RecordFault::CarriageReturn => {
                    text.returns += 1;
                    continue;
                }
                fault if fault.loses() => Severity::Error,
                _ => Severity::Warning,
            };
            counter.add(severity, Some(line.number), fault.to_string());
        }
        if let Some(record) = line.record {
            text.lint_record(&record, line.number, name, counter);
        }
    }
    text.lint_whole(name.owner, counter);
    Ok(())
}

/// State of checking a text database.
#[derive(Default)]
struct TextDatabase {
    /// The keys themselves may be most of the file.
    seen: HashSet<Digest>,
    last: String,
    /// The first line whose key is out of order.
    unsorted: Option<u64>,
    /// Number of items in the first layout of find databases.
    legacy: u64,
    /// Number of lines that end with a carriage return.
    returns: u64,
    /// Whether the last line has a newline.
    ended: bool,
}

impl TextDatabase {
    fn lint_record(
        &mut self,
        record: &DbRecord,
        line: u64,
        name: &DatabaseName,
        counter: &mut FindingCounter<'_>,
    ) {
        let key = record.key.as_str();
        let number = Some(line);
        let direction = name.is_of_convolutions().then(|| direction(key));
        // Others have few fields, or begin with a word.
        let like_convolution = key.starts_with(|c: char| c.is_ascii_digit())
            && key.split(['-', 'x']).nth(CONVOLUTION_FIELDS).is_some();
        if direction == Some(None) && like_convolution {
            counter.add(Severity::Error, number, RecordFault::Torn(key.to_owned()).to_string());
        }
        if !self.seen.insert(Digest::of(key.as_bytes())) {
            let message = format!("`{key}` has a record before, and the first counts");
            counter.add(Severity::Error, number, message);
            return;
        }
        counter.linted.records += 1;
        if self.unsorted.is_none() && key < self.last.as_str() {
            self.unsorted = number;
        }
        if line == 1 && key.starts_with('\u{feff}') {
            let message = "the file begins with a byte order mark, which becomes part of the key: \
                           write it as UTF-8 without one";
            counter.add(Severity::Error, number, message);
        }
        key.clone_into(&mut self.last);
        let Some(direction) = direction.filter(|_| name.kind == DatabaseKind::Find) else { return };
        for (solver, values) in &record.solvers {
            let Some(algorithm) = algorithm_found(values) else { continue };
            let known = match direction {
                Some(direction) => is_algorithm_of(direction, algorithm),
                None => is_algorithm(algorithm),
            };
            if !known {
                let message = format!(
                    "`{algorithm}` of `{solver}` is no algorithm of this direction: MIOpen fails \
                     where it needs the record"
                );
                counter.add(Severity::Error, number, message);
            }
        }
    }

    /// Reports problems of the whole file.
    fn lint_whole(self, owner: DatabaseOwner, counter: &mut FindingCounter<'_>) {
        if self.returns > 0 {
            let message = format!(
                "{} lines end with a carriage return, which becomes part of a value: \
                 write it with line feeds alone",
                self.returns
            );
            counter.add(Severity::Error, None, message);
        }
        if !self.ended {
            let message = "the last line has no end: what MIOpen appends becomes part of it";
            counter.add(Severity::Warning, None, message);
        }
        if self.unsorted.is_some() {
            // MIOpen appends to a user's database.
            let severity =
                if owner == DatabaseOwner::User { Severity::Note } else { Severity::Warning };
            let message = "records are not in the order of their keys from here on";
            counter.add(severity, self.unsorted, message);
        }
        if self.legacy > 0 {
            let message =
                format!("{} items are in the first layout of find databases", self.legacy);
            counter.add(Severity::Note, None, message);
        }
        if counter.linted.records == 0 {
            counter.add(Severity::Error, None, "there is no record that MIOpen could read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings for a file with this name and text, and the counts.
    fn linted(name: &str, text: &[u8], target: Option<&str>) -> (Vec<String>, Linted) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        let mut findings = Vec::new();
        let target = target.map(|target| target.parse().expect("a target"));
        let linted = lint(&path, target.as_ref(), |finding| {
            let line = finding.line.map(|line| format!("{line}: ")).unwrap_or_default();
            let message = finding.message.replace(&format!("{}/", dir.path().display()), "");
            findings.push(format!("{:?} {line}{message}", finding.severity));
        });
        (findings, linted.expect("the file can be read"))
    }

    #[test]
    fn a_sound_database_has_no_findings() {
        let text = b"a=ConvAsm1x1U:1,2\nb=ConvAsm1x1U:1;ConvAsm3x3U:2\n";
        let (findings, counted) = linted("gfx906_60.db.txt", text, Some("gfx906_60"));
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(counted, Linted { records: 2, errors: 0, warnings: 0 });
        let (findings, _) = linted("gfx90a68.db.txt", text, Some("gfx90a"));
        assert!(findings.is_empty(), "{findings:?}");
    }

    #[test]
    fn each_fault_is_reported() {
        let check = |name: &str, text: &[u8], part: &str| {
            let (findings, counted) = linted(name, text, Some("gfx906_60"));
            assert!(findings.iter().any(|finding| finding.contains(part)), "{part}: {findings:?}");
            let errors = findings.iter().filter(|finding| finding.starts_with("Error")).count();
            assert_eq!(counted.errors, errors as u64);
        };
        let perf = "gfx906_60.db.txt";
        check(perf, b"", "Error failed to read `gfx906_60.db.txt`: it is empty");
        check(perf, b"version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS");
        check(perf, b"BZh91AY", "compressed with bzip2");
        check(perf, b"SQLite format 3\0", "SQLite, not text");
        check("gfx906_60.db", b"SQLite format 3\0", "only if it was built for that");
        check(perf, b"a=A:1\r\nb=A:1\r\n", "Error 2 lines end with a carriage return");
        check(perf, b"a=A:1\na=A:2\n", "Error 2: `a` has a record before");
        check(perf, b"b=A:1\na=A:2\n", "Warning 2: records are not in the order");
        check("gfx906_60.HIP.3_3_0_.udb.txt", b"b=A:1\na=A:2\n", "Note 2: records are not");
        check(perf, b"a=A:1", "Warning the last line has no end");
        check(perf, b"nothing\n", "Error 1: it has no key");
        check(perf, b"\xef\xbb\xbfa=A:1\n", "Error 1: the file begins with a byte order mark");
        check(perf, b"nothing\n", "Error there is no record");
        check("gfx906_60.HIP.fdb.txt", b"a=A:1\n", "is not time, workspace, algorithm");
        let find = "gfx906_60.HIP.fdb.txt";
        check(find, b"a=A:1,2,7\n", "Error 1: `7` of `A` is no algorithm");
        let key = "128-16-16-3x3-64-16-16-2-1x1-1x1-1x1-0-NCHW-FP32-F";
        let backward = format!("{key}=A:1,2,miopenConvolutionBwdDataAlgoGEMM\n");
        check(
            find,
            backward.as_bytes(),
            "Error 1: `miopenConvolutionBwdDataAlgoGEMM` of `A` is no",
        );
        let good = format!("{key}=A:1,2,miopenConvolutionFwdAlgoGEMM\n");
        let torn = [&good[..70], &good].concat();
        check(find, torn.as_bytes(), "Error 1: `A:1,2,miopenConvolu128-16");
        let torn = [&good[..30], &good].concat();
        check(find, torn.as_bytes(), "Error 1: `128-16-16-3x3-64-16-16-2-1x1-1128-16");
        check("gfx906.db.txt", b"a=A:1\n", "the name has no compute units");
        check("gfx906_64.db.txt", b"a=A:1\n", "the name is for gfx906");
        check("other.db.txt", b"a=A:1\n", "the name is none");
        let model = "gfx906.tn.model";
        check(model, b"version https://git-lfs.github.com/spec/v1\n", "Error it is no JSON");
        check(model, b"{}", "Warning MIOpen can't use it without `gfx906_metadata.tn.model`");
        check("gfx908.tn.model", b"{}", "the name is for gfx908, not for gfx906");
        check("gfx906_60.OpenCL.fdb.txt", b"a=A:1,2,miopen\n", "OpenCL backend");
    }
}
