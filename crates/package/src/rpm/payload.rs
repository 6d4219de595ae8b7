//! Writes the payload of an .rpm, a cpio archive. It has two variants: entries with names, and, for
//! packages over 4 GiB, entries that only have an index into the header.

use std::io::{self, Write};

use gfxpack_model::package::PackageSpec;

use crate::contents::{Entries, Item};
use crate::output::Hashing;

/// Maximum total size for entries with names.
const NAMED_MAX: u64 = u32::MAX as u64;

/// File type and permission bits, as `st_mode` has them.
pub(super) fn mode(item: Option<&Item<'_>>) -> u32 {
    const DIRECTORY: u32 = 0o040_000;
    const REGULAR: u32 = 0o100_000;
    item.map_or(DIRECTORY | 0o755, |item| REGULAR | item.mode)
}

/// Whether the archive's entries have names; otherwise they are too large for that.
pub(super) fn is_named(contents_size: u64) -> bool {
    contents_size <= NAMED_MAX
}

pub(super) fn total_size(entries: &Entries<'_>) -> u64 {
    entries.values().flatten().map(|item| item.size).sum()
}

/// Writes the archive, and returns the SHA-256 of every entry's contents; `None` for a directory.
///
/// Source: cpio(5), "New ASCII Format"; rpm 4.18 `lib/cpio.c`, `rpmcpioStrippedHeaderWrite`.
pub(super) fn write(
    spec: &PackageSpec,
    entries: &Entries<'_>,
    mut out: &mut dyn Write,
) -> io::Result<Vec<Option<String>>> {
    let named = is_named(total_size(entries));
    let mut digests = Vec::with_capacity(entries.len());
    for (index, (path, item)) in entries.iter().enumerate() {
        if named {
            let (inode, mode) = (index as u64 + 1, u64::from(mode(*item)));
            let size = item.map_or(0, |item| item.size);
            let values = [inode, mode, 1, spec.source_date_epoch, size];
            new_ascii(&mut out, &format!(".{path}"), values)?;
        } else {
            // The index in the file list: 14 bytes, padded to 16.
            write!(out, "07070X{index:08x}\0\0")?;
        }
        digests.push(item.map(|item| body(&mut out, item)).transpose()?);
    }
    new_ascii(&mut out, "TRAILER!!!", [0, 0, 1, 0, 0])?;
    Ok(digests)
}

/// Writes an entry's bytes, pads them to a multiple of four, and returns their
/// SHA-256 in hexadecimal.
fn body(out: &mut impl Write, item: &Item<'_>) -> io::Result<String> {
    let mut hashing = Hashing::new(out);
    item.copy_to(&mut hashing)?;
    let (out, digest, _) = hashing.finish();
    out.write_all(padding(item.size))?;
    Ok(digest)
}

fn new_ascii(out: &mut impl Write, name: &str, values: [u64; 5]) -> io::Result<()> {
    let [inode, mode, links, mtime, size] = values;
    let name_size = name.len() as u64 + 1;
    let (owner, device, check) = (0, 0, 0);
    write!(out, "070701")?;
    for value in [
        inode, mode, owner, owner, links, mtime, size, device, device, device, device, name_size,
        check,
    ] {
        // Eight hexadecimal digits: the caller ensures that sizes and times have
        // at most 32 bits.
        let value = u32::try_from(value).map_err(io::Error::other)?;
        write!(out, "{value:08x}")?;
    }
    out.write_all(name.as_bytes())?;
    out.write_all(b"\0")?;
    out.write_all(padding(110 + name_size))
}

fn padding(size: u64) -> &'static [u8] {
    &[0; 3][..(size.next_multiple_of(4) - size) as usize]
}
