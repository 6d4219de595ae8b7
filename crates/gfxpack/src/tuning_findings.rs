//! Flaws of performance and find databases, as people and machines get them.

use std::path::Path;

use gfxpack_tuning::{Finding, Severity};
use serde_json::json;

use crate::output::{Output, shown};

/// Lists a finding as data; notes only for those who want more.
pub(crate) fn list(file: &Path, finding: &Finding, output: &Output) {
    message(file, finding, output);
    if finding.severity > Severity::Note || output.verbose {
        output.text(&line(file, finding, Style::FileFirst));
    }
}

/// Reports a finding beside other work, on stderr.
pub(crate) fn report(file: &Path, finding: &Finding, output: &Output) {
    message(file, finding, output);
    if !output.json && finding.severity > Severity::Note {
        output.stderr(&line(file, finding, Style::SeverityFirst));
    }
}

enum Style {
    FileFirst,
    SeverityFirst,
}

fn line(file: &Path, finding: &Finding, style: Style) -> String {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    let (file, severity) = (file.display(), finding.severity.name());
    match style {
        Style::FileFirst => format!("{file}{line}: {severity}: {}", finding.message),
        Style::SeverityFirst => format!("{severity}: {file}{line}: {}", finding.message),
    }
}

fn message(file: &Path, finding: &Finding, output: &Output) {
    let body = json!({
        "file": shown(file), "line": finding.line, "severity": finding.severity.name(),
        "detail": finding.message,
    });
    output.message("perfdb-finding", &body);
}
