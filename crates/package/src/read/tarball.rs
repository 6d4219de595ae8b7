//! Reads a tarball, which has no checksums except that of its compression.

use std::io::BufRead;
use std::path::Path;

use super::archive::{self, Root};
use super::outcome::{Outcome, PackageDescription, Stop, damaged};

pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    outcome.report.about =
        name.map(|name| PackageDescription { name, ..PackageDescription::default() });
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let stream = archive::unpacked(codec, file, u64::MAX);
    let stream = stream.map_err(|error| damaged("the archive", &error))?;
    archive::files("the archive", Root::Anywhere, stream, outcome, archive::show)
}
