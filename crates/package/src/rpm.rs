//! Writes a package spec as a noarch .rpm.
//!
//! The rpm library makes the header. It would keep the whole payload in memory,
//! so the payload is streamed here, and the header's entries about it are added
//! afterwards.

mod header;
mod payload;

pub(crate) use header::digested;

use std::collections::BTreeSet;
use std::io;

use gfxpack_model::package::PackageSpec;

use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::{Output, Packed};
use crate::signing::Sign;

/// Names of directories that belong to the system or to ROCm, not to a package of
/// kernels. So does everything above them.
const SHARED_DIRECTORIES: [&str; 10] =
    ["bin", "doc", "etc", "lib", "lib64", "licenses", "opt", "share", "usr", "var"];

/// Writes `spec` as an .rpm. If there is a `signer`, it signs the header, which
/// has the payload's digests.
///
/// The file at `license` is listed as the licence. The package owns the
/// directories of its files up to the first shared one, such as `share`.
/// `Replaces`, [`PackageSpec::deb_fields`] and [`PackageSpec::section`] have no
/// counterpart. The signature header has reserved room, so that a signature can
/// be added in place. While writing, `dir` has two copies of the compressed
/// payload.
///
/// Source: rpm 4.18, docs/manual/format_v4.md.
pub(crate) fn write(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    output: &mut Output,
    license: &str,
    compression: Compression,
    threads: usize,
    signer: Option<&dyn Sign>,
) -> io::Result<()> {
    let path = &output.path();
    let entries = contents.with_directories(own_directories(contents));
    let (mut payload, digests) =
        Packed::new(output, Some(compression), threads, |out| payload::write(spec, &entries, out))?;
    let header = header::Layout { spec, entries: &entries, license, compression, path };
    header.metadata(&payload, &digests, signer)?.write(output).map_err(|e| header.failed(e))?;
    io::copy(&mut payload.file, output)?;
    Ok(())
}

/// The directories that the package owns: those above its files, up to the first
/// shared name or the root.
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
