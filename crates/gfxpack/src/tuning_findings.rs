//! Reports findings about performance and find databases.

use std::path::Path;

use gfxpack_tuning::{Finding, Severity};

use crate::output::{Output, display, message};

/// Prints a finding as data; notes only with --verbose.
pub(crate) fn list(file: &Path, finding: &Finding, output: &Output) {
    message(file, finding, output);
    if finding.severity > Severity::Note || output.verbose {
        let (place, severity) = place(file, finding);
        output.text(&format!("{place}: {severity}: {}", finding.message));
    }
}

/// Reports a finding on stderr, during other work.
pub(crate) fn report(file: &Path, finding: &Finding, output: &Output) {
    message(file, finding, output);
    if !output.json && finding.severity > Severity::Note {
        let (place, severity) = place(file, finding);
        output.stderr(&format!("{severity}: {place}: {}", finding.message));
    }
}

fn place(file: &Path, finding: &Finding) -> (String, &'static str) {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    (format!("{}{line}", file.display()), finding.severity.name())
}

fn message(file: &Path, finding: &Finding, output: &Output) {
    message!(output, "perfdb-finding", {
        "file": display(file), "line": finding.line, "severity": finding.severity.name(),
        "detail": finding.message,
    });
}
