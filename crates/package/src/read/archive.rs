//! Compressed streams, and the tar archives in them.

use std::io::{self, BufRead, Read};

use super::{Outcome, Stop, damaged};

/// The stream that a compressed one unpacks to, by the name of its codec.
pub(super) fn unpacked<'a>(
    codec: &str,
    packed: impl BufRead + 'a,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match codec {
        "gz" | "tgz" | "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        "xz" => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(packed)),
        "zst" | "zstd" => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        other => return Err(io::Error::other(format!("its compression `{other}` is not known"))),
    })
}

/// Goes through an archive's files. `see` gets the path as it stands there
/// without a leading `.` or `/`.
pub(super) fn files(
    what: &str,
    stream: impl Read,
    outcome: &mut Outcome<'_, '_>,
    mut see: impl FnMut(&str, &mut dyn Read, &mut Outcome<'_, '_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged(what, &error);
    let mut archive = ::tar::Archive::new(stream);
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.strip_prefix('.').unwrap_or(&path).trim_start_matches('/').to_owned();
        match entry.header().entry_type() {
            ::tar::EntryType::Regular => see(&path, &mut entry, outcome)?,
            ::tar::EntryType::Directory => {}
            other => outcome.finding(format!("`/{path}` is no file: {other:?}")),
        }
    }
    // What follows the archive's end belongs to the stream's checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    Ok(())
}
