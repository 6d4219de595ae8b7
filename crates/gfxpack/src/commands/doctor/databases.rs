//! Performance and find databases, and models: which MIOpen reads and what is wrong with them.

use gfxpack_runtime::{
    DatabaseDirectory, DatabaseKind, Environment, KdbDirectories, Target, database_directories,
};
use gfxpack_tuning::{DatabaseName, Severity};

use super::Findings;
use crate::fail::in_full;
use crate::output::counted;

const ABOUT: &str = "tuning";

pub(super) fn check(
    environment: &Environment,
    directories: &KdbDirectories,
    targets: &[Target],
    findings: &Findings<'_>,
) {
    if directories.system_disabled {
        // If MIOpen does not look for kernels, the place of its databases is unknown.
        return;
    }
    for target in targets {
        let all = database_directories(environment, directories, Some(target), None);
        for kind in [DatabaseKind::Perf, DatabaseKind::Find, DatabaseKind::Models] {
            let of_kind: Vec<&DatabaseDirectory> =
                all.iter().filter(|directory| directory.kind == kind).collect();
            if !of_kind.is_empty() {
                of_target(kind, &of_kind, target, findings);
            }
        }
    }
}

fn of_target(
    kind: DatabaseKind,
    directories: &[&DatabaseDirectory],
    target: &Target,
    findings: &Findings<'_>,
) {
    let mut any = false;
    for (directory, file) in
        directories.iter().flat_map(|dir| dir.existing().into_iter().map(move |file| (dir, file)))
    {
        any = true;
        let what = match kind {
            DatabaseKind::Models => "model".to_owned(),
            kind => format!("{} database", kind.name()),
        };
        let mut shown = format!("{} {what} `{}`", directory.layer.name(), file.display());
        let name = DatabaseName::from_path(&file).filter(|name| name.target != *target);
        if let Some(name) = name {
            shown += &format!(", the nearest to {target}: it is for {}", name.target);
        }
        // The nearest count of compute units serves where MIOpen says so.
        let any_count = Target::new(target.id().clone(), None);
        let mut first = None;
        let linted = gfxpack_tuning::lint(&file, Some(&any_count), |finding| {
            if finding.severity == Severity::Error && first.is_none() {
                let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                first = Some(format!("{line}{}", finding.message));
            }
        });
        match (linted, first) {
            (Err(error), _) => {
                findings.warning(ABOUT, in_full(&error), error.hint().unwrap_or_default());
            }
            (Ok(_), Some(first)) => {
                let hint = format!("`gfxpack perfdb lint {}` lists all of it", file.display());
                findings.warning(ABOUT, format!("{shown}: {first}"), hint);
            }
            (Ok(_), None) if kind == DatabaseKind::Models => findings.ok(ABOUT, shown),
            (Ok(linted), None) => {
                findings.ok(ABOUT, format!("{shown}, {}", counted(linted.records, "record")));
            }
        }
    }
    // MIOpen has models for few devices.
    if !any && kind != DatabaseKind::Models {
        let mut names: Vec<&str> = Vec::new();
        for name in directories.iter().flat_map(|directory| &directory.names) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let effect = match kind {
            DatabaseKind::Perf => "solvers run with default parameters",
            _ => "MIOpen measures solvers when it first needs one",
        };
        let (name, names) = (kind.name(), names.join(", "));
        findings.note(ABOUT, format!("no {name} database for {target}: {effect} ({names})"));
    }
}
