//! Finds errors in the databases that packages hold.

use std::path::Path;

use gfxpack_model::KernelFileFormat;
use gfxpack_package::read::PackageDescription;
use gfxpack_package::verify::{Inspected, Inspector};
use gfxpack_tuning::{DatabaseName, ModelName, Severity};

use crate::error::Result;
use crate::kernel_files;

/// How many findings of a tuning database are reported one by one.
const TUNING_FINDINGS: usize = 20;

/// Checks the kernel, performance and find databases and the heuristic models in
/// packages.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseInspector;

impl Inspector for DatabaseInspector {
    fn is_wanted(&self, path: &str) -> bool {
        let path = Path::new(path);
        KernelFileFormat::of_file_name(path).is_some()
            || DatabaseName::from_path(path).is_some()
            || ModelName::from_path(path).is_some()
    }

    fn inspect(&mut self, copy: &Path) -> Inspected {
        let inspected = if let Some(format) = KernelFileFormat::of_file_name(copy) {
            kernels(format, copy)
        } else if ModelName::from_path(copy).is_some() {
            let findings = gfxpack_tuning::check_model(copy).err().into_iter().collect();
            Ok(Inspected { findings, entries: 0 })
        } else {
            tuning(copy)
        };
        let failed = |error: crate::error::Error| Inspected {
            findings: vec![error.to_string()],
            entries: 0,
        };
        inspected.unwrap_or_else(failed)
    }

    fn missing(&self, about: &PackageDescription, files: &[String]) -> Option<String> {
        let has_kernels = |path: &String| KernelFileFormat::of_file_name(Path::new(path)).is_some();
        (is_of_kernels(about) && !files.iter().any(has_kernels))
            .then(|| "it is a package of kernels and has no file with kernels".to_owned())
    }
}

/// Whether a package should hold a kdb: its name is like those of AMD's packages
/// of kernels, or its description like those of gfxpack's. Families and
/// metapackages are exceptions: they depend on packages that hold one.
fn is_of_kernels(about: &PackageDescription) -> bool {
    let named = |name: &str| name.find("gfx").is_some_and(|at| name[at..].contains("kdb"));
    let summary = about.summary.to_ascii_lowercase();
    let described = summary.starts_with("precompiled ")
        && summary.contains("kernels")
        && summary.contains(" for gfx");
    let on_others = about.depends.iter().any(|name| name.contains("gfx"));
    (named(&about.name) || described) && !on_others
}

/// The findings of a file of kernels, and how many kernels it has.
fn kernels(format: KernelFileFormat, path: &Path) -> Result<Inspected> {
    let target = format.target_of(path).map_err(|_| kernel_files::unnamed(path, &[format]))?;
    let files = kernel_files::of_format(format);
    let verified = files.verify(path, target.as_ref())?;
    let findings = with_rest(verified.findings, verified.total_findings);
    Ok(Inspected { findings, entries: verified.rows })
}

/// The findings of a performance or find database.
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

/// The findings, and a last one that counts those that are not listed.
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
    fn packages_of_kernels_must_have_a_kdb() {
        let inspector = DatabaseInspector;
        let check = |name: &str, summary: &str, depends: &[&str], expected: bool| {
            let depends = depends.iter().map(|name| (*name).to_owned()).collect();
            let about =
                PackageDescription { name: name.to_owned(), summary: summary.to_owned(), depends };
            let other = ["/usr/share/miopen/db/gfx906_60.db.txt".to_owned()];
            assert_eq!(inspector.missing(&about, &other).is_some(), expected, "{name}: {summary}");
            let kdb = ["/usr/share/miopen/db/gfx906_60.kdb".to_owned()];
            assert_eq!(inspector.missing(&about, &kdb), None, "{name}");
        };
        check("miopen-hip-gfx906-60kdb6.4.1", "", &[], true);
        check("miopen-hip-gfx906kdb-1.0-1.tar.gz", "", &[], true);
        check("miopen-hip-gfx906kdb", "", &["rpmlib(PayloadIsZstd)"], true);
        check("ours-gfx1030", "Precompiled kernels of ours for gfx1030", &[], true);
        let meta = "precompiled MIOpen kernels for gfx9 GPUs (metapackage)";
        check("miopen-hip-gfx9kdb", meta, &["miopen-hip-gfx906kdb"], false);
        check("rocblas-gfx90a", "BLAS for gfx90a", &[], false);
        check("foreign", "stands in for somebody else's package", &[], false);
        check("kdb-tools", "", &[], false);
    }

    #[test]
    fn databases_are_recognised_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut inspector = DatabaseInspector;
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
