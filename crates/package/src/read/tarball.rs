//! A tarball, whose only promise is its compression's checksum.

use std::io::BufRead;
use std::path::Path;

use super::archive::{self, Found, Root};
use super::outcome::{Outcome, Stop, damaged};

pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let stream = archive::unpacked(codec, file, u64::MAX);
    let stream = stream.map_err(|error| damaged("the archive", &error))?;
    archive::files("the archive", Root::Anywhere, stream, outcome, |path, found, outcome| {
        match found {
            Found::File(bytes) => outcome.file(&format!("/{path}"), bytes),
            Found::Again(_) => Ok(()),
        }
    })
}
