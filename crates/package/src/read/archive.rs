//! Reads compressed streams, and tar archives in them.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::path::Path;

use ::tar::EntryType;
use liblzma::stream::{CONCATENATED, Stream};

use super::outcome::{Outcome, PackageDescription, Stop, damaged};

/// Memory limit for xz. The largest dictionary of its own levels takes 65 MiB.
const XZ_MEMORY_MAX: u64 = 1 << 30;

/// Maximum size of a long name, or of attributes, before a file.
const EXTENSION_MAX: u64 = 1 << 20;

/// The uncompressed stream, by name of the codec, or `tar` for none. Reading fails
/// after `max` bytes.
pub fn unpacked<'a>(
    codec: &str,
    packed: impl BufRead + 'a,
    max: u64,
) -> io::Result<Box<dyn Read + 'a>> {
    let stream: Box<dyn Read + 'a> = match codec {
        "tar" => Box::new(packed),
        "gz" | "tgz" | "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        "xz" => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_MAX, CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream))
        }
        "zst" | "zstd" => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        other => return Err(io::Error::other(format!("its compression `{other}` is not known"))),
    };
    Ok(Box::new(Limited::new(stream, max)))
}

/// Reads a tarball, which has no checksums except that of its compression.
pub(super) fn tarball(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    outcome.report.about = Some(PackageDescription::of_file(path));
    files("the archive", by_extension(file, path)?, outcome, show)
}

/// The uncompressed archive in a file, whose name has the codec.
pub(super) fn by_extension<'a>(
    file: impl BufRead + 'a,
    path: &Path,
) -> Result<Box<dyn Read + 'a>, Stop> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    unpacked(codec, file, u64::MAX).map_err(|error| damaged("the archive", error))
}

/// Passes a regular file to the visitor; hard links are skipped.
pub(super) fn show(
    path: &str,
    bytes: Option<&mut dyn Read>,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    bytes.map_or(Ok(()), |bytes| outcome.file(&format!("/{path}"), bytes))
}

/// Visits an archive's files and hard links. `see` gets the path without a
/// leading `./`, and the bytes if it is no link.
pub(super) fn files(
    what: &str,
    stream: impl Read,
    outcome: &mut Outcome<'_, '_>,
    mut see: impl FnMut(&str, Option<&mut dyn Read>, &mut Outcome<'_, '_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged(what, error);
    let left = Cell::new(u64::MAX);
    let mut archive = ::tar::Archive::new(Metered::new(stream, &left));
    let mut entries = archive.entries().map_err(failed)?;
    loop {
        // The library reads names and attributes before an entry into memory, so
        // they are limited.
        left.set(EXTENSION_MAX);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(failed)?;
        left.set(u64::MAX);
        let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let parts = raw.split('/').filter(|part| !part.is_empty() && *part != ".");
        let path = parts.collect::<Vec<_>>().join("/");
        if raw.starts_with('/') || path.split('/').any(|part| part == "..") {
            outcome.finding(format!("`{raw}` leads out of {what}"));
        }
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::Regular | EntryType::Directory) {
            // A mode that can't be read may be any.
            let mode = entry.header().mode().map_or(u64::MAX, u64::from);
            outcome.mode(&format!("/{path}"), mode, kind == EntryType::Directory);
        }
        match kind {
            EntryType::Regular => {
                see(&path, Some(&mut entry), outcome)?;
                io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
            }
            EntryType::Directory | EntryType::XGlobalHeader => {}
            EntryType::Symlink => outcome.link(&format!("/{path}")),
            EntryType::Link => {
                see(&path, None, outcome)?;
                outcome.link(&format!("/{path}"));
            }
            other => outcome.finding(format!("`/{path}` is no file: {other:?}")),
        }
    }
    left.set(u64::MAX);
    // The stream's own checksum is at its end.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    Ok(())
}

/// A reader that fails if there are more bytes than its limit.
pub(super) struct Limited<R> {
    inner: R,
    max: u64,
    left: u64,
}

impl<R> Limited<R> {
    pub(super) fn new(inner: R, max: u64) -> Self {
        Self { inner, max, left: max }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(format!("there are more than {} bytes", self.max))),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.inner.read(&mut buffer[..most])?;
        self.left -= filled as u64;
        Ok(filled)
    }
}

/// A reader with an adjustable limit.
pub struct Metered<'a, R> {
    inner: R,
    left: &'a Cell<u64>,
}

impl<'a, R> Metered<'a, R> {
    /// A reader that fails after the bytes that are `left`, which it counts.
    pub fn new(inner: R, left: &'a Cell<u64>) -> Self {
        Self { inner, left }
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("it, or a name in it, is longer than it may be"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - filled as u64);
        Ok(filled)
    }
}
