//! Writes a package spec as a noarch .rpm.
//!
//! The rpm library lays out the header; it would hold the whole payload in
//! memory, so the payload is streamed here, and what the header says about it
//! is put in afterwards.

mod cpio;
mod header;
mod payload;

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_model::package::PackageSpec;

use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::{Output, scratch};
use crate::signature::Sign;
use crate::{Error, Written};

/// Directories of this name belong to the system or to ROCm, not to a package
/// of kernels, and so does everything above them.
const SHARED_DIRECTORIES: [&str; 10] =
    ["bin", "doc", "etc", "lib", "lib64", "licenses", "opt", "share", "usr", "var"];

/// The name that [`write()`] gives the file:
/// `<name>-<version>-<revision>.noarch.rpm`.
fn file_name(spec: &PackageSpec) -> String {
    let PackageSpec { name, version, revision, .. } = spec;
    format!("{name}-{version}-{revision}.noarch.rpm")
}

/// Writes `spec` as an .rpm into the existing directory `dir`, with a signature
/// of the header, which holds the payload's digests, where there is a `signer`.
///
/// The copyright is added as the licence file. The package owns the
/// directories of its files up to the first that others share, such as `share`.
/// `Replaces`, [`PackageSpec::deb_fields`] and [`PackageSpec::section`] have
/// no counterpart. The signature header has room
/// reserved, so that a signature can be added in place. While it works, the
/// compressed payload is on the disk of `dir` twice.
///
/// # Errors
/// Every kind of [`Error`] but those of .deb and checksums, and those of the
/// signer.
///
/// Source: rpm 4.18, docs/manual/format_v4.md.
pub(crate) fn write(
    spec: &PackageSpec,
    dir: &Path,
    compression: Compression,
    threads: usize,
    signer: Option<&dyn Sign>,
) -> Result<Written, Error> {
    let mut output = Output::create(dir, &file_name(spec))?;
    let path = output.path();

    let licence = format!("/usr/share/licenses/{}/copyright", spec.name);
    let mut contents = Contents::from_spec(spec)?;
    contents.add(&licence, spec.copyright.as_bytes())?;
    let directories = own_directories(&contents);
    let entries = payload::entries(&contents, &directories);

    let mut payload = scratch(dir, &path)?;
    let digests =
        payload::write_payload(spec, &entries, &mut payload, &path, compression, threads)?;
    let header =
        header::Layout { spec, entries: &entries, licence: &licence, compression, path: &path };
    header.metadata(&digests, signer)?.write(&mut output).map_err(|e| header.failed(e))?;
    output.append(&mut payload)?;
    output.commit()
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
