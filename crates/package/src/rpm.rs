//! Writes a package spec as a noarch .rpm.
//!
//! The rpm library lays out the header; it would hold the whole payload in
//! memory, so the payload is streamed here, and what the header says about it
//! is put in afterwards.

mod cpio;
mod header;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use gfxpack_model::package::PackageSpec;
use sha2::Sha256;

use crate::check::{self, Format};
use crate::compress::Compression;
use crate::contents::Contents;
use crate::digests::Digests;
use crate::output::{Hashing, Output, scratch};
use crate::signature::Sign;
use crate::{Error, Written};

/// How an .rpm is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmOptions {
    /// Compression of the payload; zstd level 3 by default.
    pub compression: Compression,
    /// Threads that may compress; no effect on the bytes. By default as many
    /// as the machine has.
    pub threads: usize,
}

impl Default for RpmOptions {
    fn default() -> Self {
        Self { compression: Compression::Zst { level: 3 }, threads: crate::default_threads() }
    }
}

/// Directories of this name belong to the system or to ROCm, not to a package
/// of kernels, and so does everything above them.
const SHARED_DIRECTORIES: [&str; 10] =
    ["bin", "doc", "etc", "lib", "lib64", "licenses", "opt", "share", "usr", "var"];

/// The name that [`write()`] gives the file:
/// `<name>-<version>-<revision>.noarch.rpm`.
#[must_use]
pub fn file_name(spec: &PackageSpec) -> String {
    let PackageSpec { name, version, revision, .. } = spec;
    format!("{name}-{version}-{revision}.noarch.rpm")
}

/// Whether [`write()`] would take the spec and the options, without writing.
///
/// # Errors
/// The first rule of the format that is broken, as its own kind of error.
pub fn check(spec: &PackageSpec, options: &RpmOptions) -> Result<(), Error> {
    check::spec(spec, Format::Rpm)?;
    options.compression.check()
}

/// Writes `spec` as an unsigned .rpm into the existing directory `dir`.
///
/// The copyright is added as the licence file. The package owns the
/// directories of its files up to the first that others share, such as `share`.
/// `Replaces`, [`PackageSpec::deb_fields`] and [`PackageSpec::section`] have
/// no counterpart. The signature header has room
/// reserved, so that a signature can be added in place. While it works, the
/// compressed payload is on the disk of `dir` twice.
///
/// # Errors
/// Every kind of [`Error`] but those of .deb and checksums.
///
/// Source: rpm 4.18, docs/manual/format_v4.md.
pub fn write(spec: &PackageSpec, dir: &Path, options: &RpmOptions) -> Result<Written, Error> {
    write_signed(spec, dir, options, None)
}

/// Writes `spec` as [`write()`] does, with a signature of the header, which
/// holds the payload's digests, where there is a `signer`.
///
/// # Errors
/// Those of [`write()`], and those of the signer.
pub fn write_signed(
    spec: &PackageSpec,
    dir: &Path,
    options: &RpmOptions,
    signer: Option<&dyn Sign>,
) -> Result<Written, Error> {
    check(spec, options)?;
    let mut output = Output::create(dir, &file_name(spec))?;
    let path = output.path();

    let licence = format!("/usr/share/licenses/{}/copyright", spec.name);
    let mut contents = Contents::of(spec)?;
    contents.add(&licence, spec.copyright.as_bytes())?;
    let directories = own_directories(&contents);
    let entries = entries(&contents, &directories);

    let mut payload = scratch(dir, &path)?;
    let digests = write_payload(spec, &entries, &mut payload, &path, options)?;
    let compression = options.compression;
    let header =
        header::Layout { spec, entries: &entries, licence: &licence, compression, path: &path };
    header.metadata(&digests, signer)?.write(&mut output).map_err(|e| header.failed(e))?;
    output.append(&mut payload)?;
    output.commit()
}

/// What the header says about a payload that is written.
struct PayloadDigests {
    /// SHA-256 of every entry's content, none for a directory.
    files: Vec<Option<String>>,
    /// SHA-256 of the archive before compression.
    archive: String,
    /// SHA-256 of the archive after compression.
    compressed: String,
    /// Bytes after compression.
    compressed_size: u64,
}

/// Files and own directories, in the order of their paths' bytes: the one in
/// which the library lists them.
fn entries<'a>(contents: &'a Contents<'_>, own: &BTreeSet<&'a str>) -> Vec<cpio::Entry<'a>> {
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

/// The directories from a file upwards to where others begin to put things: a
/// name that many share, or the file system's top.
fn own_directories<'a>(contents: &'a Contents<'_>) -> BTreeSet<&'a str> {
    let mut own = BTreeSet::new();
    for (path, _) in contents.iter() {
        let mut below = path;
        while let Some((parent, _)) = below.rsplit_once('/') {
            match parent.rsplit_once('/') {
                Some((above, name)) if !above.is_empty() && !SHARED_DIRECTORIES.contains(&name) => {
                    own.insert(parent);
                }
                _ => break,
            }
            below = parent;
        }
    }
    own
}

/// Whether the archive's entries bear their names, or are too large for that.
fn is_named(contents_size: u64) -> bool {
    contents_size <= cpio::NAMED_MAX
}

fn total_size(entries: &[cpio::Entry<'_>]) -> u64 {
    entries.iter().filter_map(|entry| entry.item).map(|item| item.size).sum()
}

fn write_payload(
    spec: &PackageSpec,
    entries: &[cpio::Entry<'_>],
    payload: &mut File,
    path: &Path,
    options: &RpmOptions,
) -> Result<PayloadDigests, Error> {
    let failed = |e| Error::write(path, e);
    let encoder = options.compression.encoder(Hashing::new(payload), options.threads);
    let mut archive = Hashing::new(encoder.map_err(failed)?);
    let named = is_named(total_size(entries));
    let digests = Digests::start::<Sha256>().map_err(failed)?;
    for (index, entry) in entries.iter().enumerate() {
        cpio::header(&mut archive, entry, index, spec.source_date_epoch, named).map_err(failed)?;
        if let Some(item) = entry.item {
            cpio::body(&mut archive, item, path, &digests)?;
        }
    }
    let mut digests = digests.finish().into_iter();
    let files = entries.iter().map(|entry| entry.item.and_then(|_| digests.next())).collect();
    cpio::trailer(&mut archive).map_err(failed)?;
    let (encoder, archive, _) = archive.finish();
    let (_, compressed, compressed_size) = encoder.finish().map_err(failed)?.finish();
    Ok(PayloadDigests { files, archive, compressed, compressed_size })
}
