//! Writes the payload of an .rpm, and collects what the header says about it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use gfxpack_model::package::PackageSpec;

use super::cpio;
use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::Hashing;

/// What the header says about the payload.
pub(super) struct PayloadDigests {
    /// SHA-256 of every entry's contents; `None` for a directory.
    pub(super) files: Vec<Option<String>>,
    /// SHA-256 of the archive before compression.
    pub(super) archive: String,
    /// SHA-256 of the archive after compression.
    pub(super) compressed: String,
    /// Number of bytes after compression.
    pub(super) compressed_size: u64,
}

/// Files and own directories, sorted by the bytes of their paths, as the library
/// lists them.
pub(super) fn entries<'a>(
    contents: &'a Contents<'_>,
    own: &BTreeSet<&'a str>,
) -> Vec<cpio::Entry<'a>> {
    const DIRECTORY: u32 = 0o040_000;
    const REGULAR: u32 = 0o100_000;
    let files = contents.iter().map(|(path, item)| cpio::Entry {
        path,
        mode: REGULAR | item.mode,
        item: Some(item),
    });
    let directories =
        own.iter().map(|path| cpio::Entry { path, mode: DIRECTORY | 0o755, item: None });
    let mut entries: Vec<_> = files.chain(directories).collect();
    entries.sort_by_key(|entry| entry.path);
    entries
}

/// Whether the archive's entries have names; otherwise they are too large for that.
pub(super) fn is_named(contents_size: u64) -> bool {
    contents_size <= cpio::NAMED_MAX
}

pub(super) fn total_size(entries: &[cpio::Entry<'_>]) -> u64 {
    entries.iter().filter_map(|entry| entry.item).map(|item| item.size).sum()
}

pub(super) fn write_payload(
    spec: &PackageSpec,
    entries: &[cpio::Entry<'_>],
    payload: &mut File,
    compression: Compression,
    threads: usize,
) -> io::Result<PayloadDigests> {
    let encoder = compression.encoder(Hashing::new(payload), threads)?;
    let mut archive = Hashing::new(encoder);
    let named = is_named(total_size(entries));
    let mut files = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        cpio::header(&mut archive, entry, index, spec.source_date_epoch, named)?;
        files.push(entry.item.map(|item| cpio::body(&mut archive, item)).transpose()?);
    }
    cpio::trailer(&mut archive)?;
    let (encoder, archive, _) = archive.finish();
    let (_, compressed, compressed_size) = encoder.finish()?.finish();
    Ok(PayloadDigests { files, archive, compressed, compressed_size })
}
