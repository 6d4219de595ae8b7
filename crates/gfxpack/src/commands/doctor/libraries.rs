//! Installed libraries: their versions, what they lack, whether they have code for the GPUs, and
//! the kernels that rocFFT finds.

use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_fatbin::Checker;
use gfxpack_kdb::MiopenVersion;
use gfxpack_miopen::{Library, MIOPEN, installed_file};

use gfxpack_model::{Target, TargetId};
use gfxpack_pipeline::environment::ENVIRONMENT;
use gfxpack_rocfft::ROCFFT;

use super::Findings;
use crate::commands::rocfft_lookup::{FftFile, FftLibrary};
use crate::commands::verify::add_tree;
use crate::environment::Environment;
use crate::fail::{Error, in_full};
use crate::output::{counted, if_any, joined};

const MIOPEN_ABOUT: &str = "libMIOpen";
const CODE_ABOUT: &str = "device code";
const ABOUT: &str = "rocFFT";

/// Checks each libMIOpen that programs would load, a file with the top of its tree, and returns
/// their versions. None at all is not a fault: gfxpack builds and packages without one.
pub(super) fn check_miopen(
    libraries: &[(PathBuf, PathBuf)],
    findings: &Findings<'_>,
) -> Vec<MiopenVersion> {
    let mut versions = Vec::new();
    for (file, root) in libraries {
        match Library::at(&MIOPEN, file, Some(root)) {
            Ok(library) => {
                let version = library.version.as_deref().map(MiopenVersion::of_text);
                versions.extend(version.filter(|version| version.is_known()));
                check_library(&library, findings);
            }
            Err(error) => {
                findings.warning(MIOPEN_ABOUT, in_full(&error), error.hint().unwrap_or_default())
            }
        }
    }
    versions
}

fn check_library(library: &Library, findings: &Findings<'_>) {
    let version = library.version.as_deref().unwrap_or("of unknown version");
    let (file, sum) = (library.file.display(), library.sha256);
    let layout = library.layout();
    let place = layout.map(|layout| format!(", looks in {}", layout.kdb_dir())).unwrap_or_default();
    findings.ok(MIOPEN_ABOUT, format!("`{file}`: MIOpen {version}, SHA-256 {sum}{place}"));
    let hint = "install the packages that they are in";
    match library.needs() {
        Ok(needs) if needs.missing.is_empty() => {}
        Ok(needs) => {
            let missing = joined(needs.missing);
            let what = format!("`{file}` needs libraries that are not here: {missing}");
            findings.problem(MIOPEN_ABOUT, what, hint);
        }
        Err(error) => findings.warning(MIOPEN_ABOUT, in_full(&error), hint),
    }
}

/// Where ROCm and distributions have libraries, below the root or a prefix.
const PLACES: [&str; 3] = ["/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"];
/// Beginnings of the names of libraries, and of directories beside them, that have device code.
const NAMES: [&str; 9] = [
    "hipblaslt",
    "hipsparselt",
    "libggml-hip",
    "libhip",
    "libmagma",
    "librccl",
    "libroc",
    "librpp",
    "rocblas",
];

/// Checks the device code in the libraries of ROCm at `rocm`, or else in the usual places, in one
/// line for each directory. None at all is not a fault.
pub(super) fn check_device_code(rocm: Option<&Path>, targets: &[Target], findings: &Findings<'_>) {
    let devices: Vec<TargetId> = targets.iter().map(|target| target.id().clone()).collect();
    let places = match rocm {
        Some(rocm) => vec![rocm.join("lib")],
        None => PLACES.iter().map(PathBuf::from).collect(),
    };
    for place in places.iter().filter(|_| !devices.is_empty()) {
        let Ok(entries) = place.read_dir() else { continue };
        let mut checker = Checker::new(&devices);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link || !NAMES.iter().any(|begin| name.starts_with(begin)) {
                continue;
            }
            if let Err(error) = add_tree(&entry.path(), &mut checker) {
                findings.warning(CODE_ABOUT, in_full(&error), "make it readable");
            }
        }
        let (files, gaps) = (checker.with_code, checker.finish());
        let place = place.display();
        let Some(gap) = gaps.first() else {
            if files > 0 {
                findings.ok(CODE_ABOUT, format!("`{place}`: {} with code", counted(files, "file")));
            }
            continue;
        };
        let target = gap.target.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
        let more = if_any(gaps.len() - 1, |more| format!(", and {more} more"));
        findings.warning(
            CODE_ABOUT,
            format!("`{}`: {target}{}{more}", gap.path.display(), gap.detail),
            format!("`gfxpack verify {place}` lists all, with the packages that they are in"),
        );
    }
}

/// Checks the librocfft that programs would load, for each of these GPUs. A missing library is not
/// a fault. With `deep` every code object is read.
pub(super) fn check_rocfft(
    machine: &Environment,
    targets: &[Target],
    deep: bool,
    cancel: &Cancel,
    findings: &Findings<'_>,
) {
    let installed = installed_file(&ROCFFT, ENVIRONMENT.rocm_path.as_deref());
    let Some((file, root)) = installed else { return };
    let library = match Library::at(&ROCFFT, &file, Some(&root)) {
        Ok(library) => library,
        Err(error) => {
            let hint = error.hint().unwrap_or_default();
            return findings.warning(ABOUT, in_full(&error), hint);
        }
    };
    if machine.rocfft_reading_off {
        let what = "ROCFFT_RTC_CACHE_READ_DISABLE keeps it from reading any kernel";
        findings.warning(ABOUT, what, "unset it");
    }
    for target in targets {
        match FftLibrary::ask(library.clone(), target, cancel) {
            Ok(asked) => check_kernels(&asked, target, machine, deep, findings),
            Err(error) => warn(&error, findings),
        }
    }
}

fn warn(error: &Error, findings: &Findings<'_>) {
    let hint = error.hint().unwrap_or("`gfxpack lookup` with a kernel's name tells more");
    findings.warning(ABOUT, in_full(error), hint);
}

/// Checks the files in which rocFFT looks for kernels for a GPU.
fn check_kernels(
    library: &FftLibrary,
    target: &Target,
    machine: &Environment,
    deep: bool,
    findings: &Findings<'_>,
) {
    let again = "install its package again, or remove the file";
    let files = library.look("", target, machine);
    let unreadable = || files.iter().filter(|file| file.state == "unreadable");
    for FftFile { file, detail, .. } in unreadable() {
        let file = file.display();
        let what = format!("`{file}` can't be read, so every kernel is compiled: {detail}");
        findings.warning(ABOUT, what, again);
    }
    let opened = |layer| files.iter().find(|file| file.layer == layer && file.state == "no-row");
    for file in ["user", "system"].into_iter().filter_map(opened).filter(|_| deep) {
        match gfxpack_rocfft::verify(&file.file, Some(target.id().processor())) {
            Ok(report) => {
                if let Some(fault) = report.findings.first() {
                    let (file, faults) = (file.file.display(), report.findings.len());
                    let faults = counted(faults, "fault");
                    let what =
                        format!("`{file}`: {faults}, as {fault}; plans with such kernels fail");
                    findings.problem(ABOUT, what, again);
                }
            }
            Err(error) => warn(&error, findings),
        }
    }
    let (processor, version) = (target.id().processor(), library.in_words());
    match opened("system") {
        Some(FftFile { file, kernels: 0, .. }) => findings.warning(
            ABOUT,
            format!("{} has no kernel for {processor} and {version}", file.display()),
            format!("install rocfft-kernels-{processor} of that version"),
        ),
        Some(FftFile { file, kernels, .. }) => {
            let kernels = counted(*kernels, "kernel");
            findings.ok(
                ABOUT,
                format!("{} has {kernels} for {processor} and {version}", file.display()),
            );
        }
        None if unreadable().next().is_some() => {}
        None => findings.note(
            ABOUT,
            format!(
                "{version} compiles every kernel for {processor} when a plan first needs it: no \
                 kernel cache is installed (rocfft-kernels-{processor})"
            ),
        ),
    }
}
