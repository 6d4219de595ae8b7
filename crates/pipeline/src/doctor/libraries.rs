//! The installed libMIOpen and librocfft: their versions, what they lack, and the
//! kernels that rocFFT finds.

use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_kdb::MiopenVersion;
use gfxpack_miopen::MIOPEN;
use gfxpack_model::Target;
use gfxpack_rocfft::ROCFFT;
use gfxpack_stock_library::{Library, installed_file};

use super::finding::Findings;
use crate::error::{Error, in_full};
use crate::fft_lookup::{FftFile, FftLibrary, FftVariables};
use crate::text::{counted, joined};

const ABOUT: &str = "rocFFT";
const MIOPEN_ABOUT: &str = "libMIOpen";

/// Checks each libMIOpen that programs would load, and returns their versions. None at all is not a
/// fault: gfxpack builds and packages without one.
pub fn check_libraries(
    libraries: &[(PathBuf, PathBuf)],
    findings: &mut Findings<'_>,
) -> Vec<MiopenVersion> {
    let mut versions = Vec::new();
    for (file, root) in libraries {
        match Library::at(&MIOPEN, file, Some(root)) {
            Ok(library) => {
                let version = library.version.as_deref().map(MiopenVersion::of_text);
                versions.extend(version.filter(|version| version.is_known()));
                check_library(&library, findings);
            }
            Err(error) => findings.warning(MIOPEN_ABOUT, in_full(&error), hint_of(&error)),
        }
    }
    versions
}

fn check_library(library: &Library, findings: &mut Findings<'_>) {
    let version = library.version.as_deref().unwrap_or("of unknown version");
    let file = library.file.display();
    let layout = library.layout();
    let place = layout.map(|layout| format!(", looks in {}", layout.kdb_dir())).unwrap_or_default();
    findings
        .ok(MIOPEN_ABOUT, format!("`{file}`: MIOpen {version}, SHA-256 {}{place}", library.sha256));
    let hint = "install the packages that they are in";
    match library.needs() {
        Ok(needs) if needs.missing.is_empty() => {}
        Ok(needs) => {
            let missing = joined(needs.missing);
            findings.problem(
                MIOPEN_ABOUT,
                format!("`{file}` needs libraries that are not here: {missing}"),
                hint,
            );
        }
        Err(error) => findings.warning(MIOPEN_ABOUT, in_full(&error), hint),
    }
}

/// Checks the librocfft that programs would load, for each of these GPUs. A
/// missing library is not a fault. With `deep` every code object is read.
pub fn check_rocfft(
    rocm: Option<&Path>,
    targets: &[Target],
    variables: &FftVariables,
    deep: bool,
    cancel: &Cancel,
    findings: &mut Findings<'_>,
) {
    let Some((file, root)) = installed_file(&ROCFFT, rocm) else { return };
    let library = match Library::at(&ROCFFT, &file, Some(&root)) {
        Ok(library) => library,
        Err(error) => return findings.warning(ABOUT, in_full(&error), hint_of(&error)),
    };
    if variables.reading_off {
        findings.warning(
            ABOUT,
            "ROCFFT_RTC_CACHE_READ_DISABLE keeps it from reading any kernel",
            "unset it",
        );
    }
    for target in targets {
        match FftLibrary::ask(library.clone(), target, cancel) {
            Ok(asked) => check(&asked, target, variables, deep, findings),
            Err(error) => findings.warning(ABOUT, in_full(&error), hint_of(&error)),
        }
    }
}

fn hint_of(error: &Error) -> String {
    error.hint().unwrap_or("`gfxpack lookup` with a kernel's name tells more").to_owned()
}

fn check(
    library: &FftLibrary,
    target: &Target,
    variables: &FftVariables,
    deep: bool,
    findings: &mut Findings<'_>,
) {
    let processor = target.id().processor();
    let files = library.look("", target, variables);
    let unreadable = files.iter().any(|file| file.state == "unreadable");
    let opened = |layer| files.iter().find(|file| file.layer == layer && file.state == "no-row");
    for file in files.iter().filter(|file| file.state == "unreadable") {
        let shown = file.file.display();
        findings.warning(
            ABOUT,
            format!("`{shown}` can't be read, so every kernel is compiled: {}", file.detail),
            "install its package again, or remove the file",
        );
    }
    let readable = ["user", "system"].into_iter().filter_map(opened);
    for file in readable.filter(|_| deep) {
        let shown = file.file.display();
        match library.faults(&file.file, target) {
            Ok(faults) => {
                if let Some(fault) = faults.first() {
                    let count = counted(faults.len(), "fault");
                    findings.problem(
                        ABOUT,
                        format!("`{shown}`: {count}, as {fault}; plans with such kernels fail"),
                        "install its package again, or remove the file",
                    );
                }
            }
            Err(error) => findings.warning(ABOUT, in_full(&error), hint_of(&error)),
        }
    }
    installed(library, processor, opened("system"), unreadable, findings);
}

/// Whether the installed files have kernels for a processor.
fn installed(
    library: &FftLibrary,
    processor: &str,
    system: Option<&FftFile>,
    unreadable: bool,
    findings: &mut Findings<'_>,
) {
    match system {
        Some(file) if file.kernels > 0 => findings.ok(
            ABOUT,
            format!(
                "{} has {} for {processor} and {}",
                file.file.display(),
                counted(file.kernels, "kernel"),
                library.in_words()
            ),
        ),
        Some(file) => findings.warning(
            ABOUT,
            format!(
                "{} has no kernel for {processor} and {}",
                file.file.display(),
                library.in_words()
            ),
            format!("install rocfft-kernels-{processor} of that version"),
        ),
        None if unreadable => {}
        None => findings.note(
            ABOUT,
            format!(
                "{} compiles every kernel for {processor} when a plan first needs it: no kernel \
                 cache is installed (rocfft-kernels-{processor})",
                library.in_words()
            ),
        ),
    }
}
