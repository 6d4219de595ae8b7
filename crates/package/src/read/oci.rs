//! Reads an OCI image layout in a tar archive: every blob, which is compared with
//! its digest, and the files of all layers.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::archive;
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use crate::output::Hashing;

/// Source: OCI image specification 1.1, image-layout.md.
pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    outcome.report.about = Some(PackageDescription::of_file(path));
    archive::files("the archive", file, outcome, |path, bytes, outcome| {
        match (path.strip_prefix("blobs/sha256/"), bytes) {
            (Some(digest), Some(bytes)) => blob(digest, bytes, outcome),
            _ => Ok(()),
        }
    })
}

/// Reads a blob, which is JSON or a layer.
fn blob(digest: &str, bytes: &mut dyn Read, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged(digest, error);
    let mut hashed = Hashing::new(bytes);
    let mut buffered = BufReader::new(&mut hashed);
    let codec = match *buffered.fill_buf().map_err(failed)? {
        [b'{', ..] => None,
        [0x1f, 0x8b, ..] => Some("gz"),
        [0x28, 0xb5, ..] => Some("zst"),
        _ => Some("tar"),
    };
    if let Some(codec) = codec {
        let stream = archive::unpacked(codec, &mut buffered, u64::MAX).map_err(failed)?;
        archive::files("a layer", stream, outcome, archive::show)?;
    }
    io::copy(&mut buffered, &mut io::sink()).map_err(failed)?;
    if hashed.finish().1 != digest {
        outcome.finding(format!("the blob `{digest}` has another digest"));
    }
    Ok(())
}
