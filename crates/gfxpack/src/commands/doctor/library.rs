//! The libMIOpen that is installed: which one it is, and what it lacks.

use std::path::Path;

use gfxpack_miopen::{Library, LibraryError};

use super::Checks;
use crate::fail::in_full;

const ABOUT: &str = "libMIOpen";

/// Checks the one that programs would load. That there is none is no fault:
/// kernels are built and packaged without.
pub(super) fn check(rocm: Option<&Path>, checks: &mut Checks<'_>) {
    let library = match Library::installed(rocm) {
        Ok(library) => library,
        Err(LibraryError::NotInstalled { .. }) => return,
        Err(error) => return checks.warning(ABOUT, in_full(&error), error.hint()),
    };
    let version = library.version.as_deref().unwrap_or("of unknown version");
    let file = library.file.display();
    checks.ok(ABOUT, format!("`{file}`: MIOpen {version}, SHA-256 {}", library.sha256));
    let hint = "install the packages that they are in";
    match library.needs() {
        Ok(needs) if needs.missing.is_empty() => {}
        Ok(needs) => {
            let missing = Vec::from_iter(needs.missing).join(", ");
            checks.problem(
                ABOUT,
                format!("`{file}` needs libraries that are not here: {missing}"),
                hint,
            );
        }
        Err(error) => checks.warning(ABOUT, in_full(&error), hint),
    }
}
