//! A tarball, whose only promise is its compression's checksum.

use std::io::BufRead;
use std::path::Path;

use super::{Outcome, Stop, archive, damaged};

pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let stream = archive::unpacked(codec, file).map_err(|error| damaged("the archive", &error))?;
    archive::files("the archive", stream, outcome, |path, bytes, outcome| {
        outcome.file(&format!("/{path}"), bytes)
    })
}
