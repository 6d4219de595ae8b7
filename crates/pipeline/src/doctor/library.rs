//! The libMIOpen that is installed: which one it is, and what it lacks.

use std::path::Path;

use gfxpack_miopen::{Library, LibraryError, MIOPEN};

use super::finding::Findings;
use crate::error::in_full;
use crate::text::joined;

const ABOUT: &str = "libMIOpen";

/// Checks the one that programs would load; `rocm` is where ROCm was said to
/// be. That there is none is no fault: kernels are built and packaged without.
pub fn check_library(rocm: Option<&Path>, findings: &mut Findings<'_>) {
    let library = match Library::installed(&MIOPEN, rocm) {
        Ok(library) => library,
        Err(LibraryError::NotInstalled { .. }) => return,
        Err(error) => return findings.warning(ABOUT, in_full(&error), error.hint()),
    };
    let version = library.version.as_deref().unwrap_or("of unknown version");
    let file = library.file.display();
    findings.ok(ABOUT, format!("`{file}`: MIOpen {version}, SHA-256 {}", library.sha256));
    let hint = "install the packages that they are in";
    match library.needs() {
        Ok(needs) if needs.missing.is_empty() => {}
        Ok(needs) => {
            let missing = joined(needs.missing);
            findings.problem(
                ABOUT,
                format!("`{file}` needs libraries that are not here: {missing}"),
                hint,
            );
        }
        Err(error) => findings.warning(ABOUT, in_full(&error), hint),
    }
}
