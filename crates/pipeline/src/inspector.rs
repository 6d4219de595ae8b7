//! Finds errors in the databases that packages hold, and what does not belong into
//! packages of kernels.

use std::path::Path;

use gfxpack_model::{InstallLayout, KernelFileFormat};
use gfxpack_package::read::{PackageDescription, PackageKind, Report};
use gfxpack_package::verify::{Inspected, Inspector};
use gfxpack_tuning::{DatabaseName, ModelName, Severity};

use crate::error::Result;
use crate::kernel_files;

/// How many findings of a tuning database are reported one by one.
const TUNING_FINDINGS: usize = 20;

/// Checks the kernel, performance and find databases and the heuristic models in
/// packages, or looks at no file, only at the names of all.
#[derive(Debug, Clone, Copy)]
pub enum PackageInspector {
    /// Packages of any kind, whose databases are read.
    Databases,
    /// What a package manager is about to install as a package of kernels must be one.
    Places,
}

impl Inspector for PackageInspector {
    fn is_wanted(&self, path: &str) -> bool {
        matches!(self, Self::Databases) && is_database(path)
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

    fn flaws(&self, kind: PackageKind, report: &Report) -> Vec<String> {
        let is_judged = |about: &&_| matches!(self, Self::Places) || is_of_kernels(about);
        let Some(about) = report.about.as_ref().filter(is_judged) else { return Vec::new() };
        let mut flaws = misplaced(kind, about, report);
        if matches!(self, Self::Places) {
            return flaws;
        }
        let has_kernels = |path: &String| KernelFileFormat::of_file_name(Path::new(path)).is_some();
        // Families and metapackages depend on packages that hold kernels.
        let on_others = about.depends.iter().any(|name| name.contains("gfx"));
        if !on_others && !report.paths.iter().any(has_kernels) {
            flaws.push("it is a package of kernels and has no file with kernels".to_owned());
        }
        flaws
    }
}

/// Whether a path is that of a kernel, performance or find database or a heuristic
/// model.
fn is_database(path: &str) -> bool {
    let path = Path::new(path);
    KernelFileFormat::of_file_name(path).is_some()
        || DatabaseName::from_path(path).is_some()
        || ModelName::from_path(path).is_some()
}

/// What a package of kernels should not have: links, and files that are neither
/// databases in a directory of such nor about the package.
fn misplaced(kind: PackageKind, about: &PackageDescription, report: &Report) -> Vec<String> {
    let belongs = |path: &str| match kind {
        PackageKind::Wheel => belongs_to_module(&about.name, path),
        _ => belongs_to_package(&about.name, path),
    };
    let outside = report.paths.iter().filter(|path| !belongs(path));
    let outside = outside.map(|path| format!("`{path}` is not in a directory for kernels"));
    // Others are reported in any case.
    let links = report.links.iter().filter(|path| belongs(path) && !is_database(path));
    outside.chain(links.map(|path| format!("`{path}` is a link"))).collect()
}

fn belongs_to_package(name: &str, path: &str) -> bool {
    let (dir, file) = path.rsplit_once('/').unwrap_or_default();
    let about = ["/usr/share/doc/", "/usr/share/licenses/"];
    about.iter().any(|about| path.starts_with(about))
        || (dir == "/usr/share/metainfo" && file.ends_with(".metainfo.xml"))
        || (dir == "/usr/share/lintian/overrides" && file == name)
        || (is_database(path) && (InstallLayout::of_dir(dir).is_some() || dir.ends_with("/rocfft")))
}

/// Whether a path in a wheel is in its only module, is the module's start-up hook,
/// or describes the wheel without naming programs to install.
fn belongs_to_module(name: &str, path: &str) -> bool {
    let module = name.to_ascii_lowercase().replace(['-', '.'], "_");
    let path = path.trim_start_matches('/');
    let Some((top, rest)) = path.split_once('/') else { return path == format!("{module}.pth") };
    let info = top.strip_suffix(".dist-info").and_then(|top| top.strip_prefix(&*module));
    top == module || (info.is_some_and(|info| info.starts_with('-')) && rest != "entry_points.txt")
}

/// Whether a package is one of kernels: its name is like those of AMD's packages
/// of kernels, or its description like those of gfxpack's.
fn is_of_kernels(about: &PackageDescription) -> bool {
    let named = |name: &str| name.find("gfx").is_some_and(|at| name[at..].contains("kdb"));
    let summary = about.summary.to_ascii_lowercase();
    let described = summary.starts_with("precompiled ")
        && summary.contains("kernels")
        && summary.contains(" for gfx");
    named(&about.name) || described
}

/// The findings of a file of kernels, and how many kernels it has.
fn kernels(format: KernelFileFormat, path: &Path) -> Result<Inspected> {
    let target = format.target_of(path).map_err(|_| kernel_files::unnamed(path, &[format]))?;
    let verified = kernel_files::verify(format, path, target.as_ref())?;
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

    /// A package's flaws, if these are its paths and the first `links` of them are links.
    fn flaws(
        kind: PackageKind,
        (name, summary): (&str, &str),
        depends: &[&str],
        paths: &[&str],
        links: usize,
    ) -> Vec<String> {
        let mut report = Report::default();
        let depends = depends.iter().map(|name| (*name).to_owned()).collect();
        report.about = Some(PackageDescription {
            name: name.to_owned(),
            summary: summary.to_owned(),
            depends,
        });
        report.paths = paths.iter().map(|path| (*path).to_owned()).collect();
        report.links = paths[..links].iter().map(|path| (*path).to_owned()).collect();
        PackageInspector::Databases.flaws(kind, &report)
    }

    #[test]
    fn packages_of_kernels_have_nothing_else() {
        let kdb = "/opt/rocm-6.4.1/share/miopen/db/gfx906_60.kdb";
        let check = |kind, path: &str, expected: &str| {
            let name = ("miopen-hip-gfx906-60kdb", "");
            let own = if kind == PackageKind::Wheel {
                "/miopen_hip_gfx906_60kdb/db/gfx906_60.kdb"
            } else {
                kdb
            };
            // Also if it says that it is a family's.
            for depends in [&[][..], &["miopen-hip-gfx906kdb"]] {
                let found = flaws(kind, name, depends, &[path, own], 0);
                assert!(found.len() == usize::from(!expected.is_empty()), "{path}: {found:?}");
                assert!(found.iter().all(|found| found.contains(expected)), "{path}: {found:?}");
            }
        };
        for (path, expected) in [
            ("/usr/lib/x86_64-linux-gnu/rocfft/rocfft_kernel_cache_gfx90a.db", ""),
            ("/usr/share/doc/miopen-hip-gfx906-60kdb/copyright", ""),
            ("/usr/share/licenses/x/copyright", ""),
            ("/usr/share/lintian/overrides/miopen-hip-gfx906-60kdb", ""),
            ("/usr/share/metainfo/org.x.metainfo.xml", ""),
            ("/srv/share/miopen/db/gfx906_60.HIP.fdb.txt", ""),
            ("/etc/cron.d/x", "`/etc/cron.d/x` is not in a directory for kernels"),
            ("/etc/gfx906_60.kdb", "is not in"),
            ("/usr/share/miopen/db/x.so", "is not in"),
            ("/usr/share/lintian/overrides/other", "is not in"),
        ] {
            check(PackageKind::Deb, path, expected);
            check(PackageKind::Rpm, path, expected);
        }
        for (path, expected) in [
            ("/miopen_hip_gfx906_60kdb.pth", ""),
            ("/miopen_hip_gfx906_60kdb/_start.py", ""),
            ("/miopen_hip_gfx906_60kdb-1.0.dist-info/RECORD", ""),
            ("/miopen_hip_gfx906_60kdb-1.0.dist-info/entry_points.txt", "is not in"),
            ("/miopen_hip_gfx906_60kdb-1.0.data/scripts/sudo", "is not in"),
            ("/other.pth", "is not in"),
            ("/torch/__init__.py", "is not in"),
        ] {
            check(PackageKind::Wheel, path, expected);
        }
        let link = "/usr/share/doc/x/y";
        let found = flaws(PackageKind::Deb, ("gfx906kdb", ""), &[], &[link, kdb], 1);
        assert_eq!(found, ["`/usr/share/doc/x/y` is a link"]);
    }

    #[test]
    fn databases_are_recognised_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut inspector = PackageInspector::Databases;
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
