//! What is wrong with the databases that packages hold.

use std::path::Path;

use gfxpack_kdb::VerifyOptions;
use gfxpack_package::verify::{Inspected, Inspector};
use gfxpack_tuning::{DatabaseName, Severity};

use crate::error::Result;
use crate::packages;

/// Findings of a tuning database that are told one by one.
const TUNING_FINDINGS: usize = 20;

/// Looks into the kernel, performance and find databases of packages.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseInspector {
    /// Largest code object that is accepted, in bytes.
    pub max_object_bytes: u64,
}

impl Inspector for DatabaseInspector {
    fn is_wanted(&self, path: &str) -> bool {
        path.ends_with(".kdb") || DatabaseName::of(Path::new(path)).is_some()
    }

    fn inspect(&mut self, copy: &Path) -> Inspected {
        let inspected = if copy.as_os_str().as_encoded_bytes().ends_with(b".kdb") {
            self.kdb(copy)
        } else {
            tuning(copy)
        };
        let failed = |error: crate::error::Error| Inspected {
            findings: vec![error.to_string()],
            entries: 0,
        };
        inspected.unwrap_or_else(failed)
    }
}

impl DatabaseInspector {
    /// What is wrong with a kdb, and how many kernels it has.
    fn kdb(self, path: &Path) -> Result<Inspected> {
        let target = packages::target_of(path)?;
        let options = VerifyOptions::with_max_object_bytes(self.max_object_bytes);
        let report = gfxpack_kdb::verify(path, Some(&target), &options)?;
        let findings = report.findings.iter().map(ToString::to_string).collect();
        let findings = with_rest(findings, report.total_findings());
        Ok(Inspected { findings, entries: report.rows })
    }
}

/// What is wrong with a performance or find database.
fn tuning(path: &Path) -> Result<Inspected> {
    let mut findings = Vec::new();
    let linted = gfxpack_tuning::lint(path, None, |finding| {
        if finding.severity == Severity::Error && findings.len() < TUNING_FINDINGS {
            let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            findings.push(format!("{line}{}", finding.message));
        }
    })?;
    Ok(Inspected { findings: with_rest(findings, linted.errors), entries: 0 })
}

/// Findings, with a last one that counts those that are not listed.
fn with_rest(mut findings: Vec<String>, total: u64) -> Vec<String> {
    let more = total - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_looked_into_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut inspector = DatabaseInspector { max_object_bytes: 1 << 20 };
        for (name, wanted) in
            [("gfx906_60.kdb", true), ("gfx906_60.db.txt", true), ("copyright", false)]
        {
            assert_eq!(inspector.is_wanted(name), wanted, "{name}");
        }
        let tuning = dir.path().join("gfx906_60.db.txt");
        std::fs::write(&tuning, "no record\n".repeat(TUNING_FINDINGS + 2)).unwrap();
        let found = inspector.inspect(&tuning).findings;
        assert_eq!(found.len(), TUNING_FINDINGS + 1);
        assert!(found[0].starts_with("line 1: "), "{found:?}");
        assert!(found[TUNING_FINDINGS].ends_with(" more findings"), "{found:?}");
        let unnamed = dir.path().join("kernels.kdb");
        std::fs::write(&unnamed, "").unwrap();
        let found = inspector.inspect(&unnamed).findings;
        assert!(found[0].starts_with("failed to tell the target of"), "{found:?}");
    }
}
