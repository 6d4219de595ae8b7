//! Writes the cpio archive in an rpm. It has two variants: entries with names,
//! and, for packages over 4 GiB, entries that only have an index into the header.

use std::io::{self, Write};

use crate::contents::Item;
use crate::output::Hashing;

/// Maximum total size for entries with names.
pub(crate) const NAMED_MAX: u64 = u32::MAX as u64;

/// One entry of the payload, in the order of the rpm header's file list.
pub(crate) struct Entry<'a> {
    /// Absolute path.
    pub(crate) path: &'a str,
    /// File type and permission bits, as `st_mode` has them.
    pub(crate) mode: u32,
    /// The file; `None` for a directory.
    pub(crate) item: Option<&'a Item<'a>>,
}

/// Writes the header of the entry with this index in the file list.
///
/// # Errors
/// Errors of `out`.
///
/// Source: cpio(5), "New ASCII Format"; rpm 4.18 `lib/cpio.c`, `rpmcpioStrippedHeaderWrite`.
pub(crate) fn header(
    out: &mut impl Write,
    entry: &Entry<'_>,
    index: usize,
    mtime: u64,
    named: bool,
) -> io::Result<()> {
    if !named {
        // 14 bytes, padded to 16.
        return write!(out, "07070X{index:08x}\0\0");
    }
    let size = entry.item.map_or(0, |item| item.size);
    let name = format!(".{}", entry.path);
    new_ascii(out, &name, [index as u64 + 1, u64::from(entry.mode), 1, mtime, size])
}

/// Ends the archive.
///
/// # Errors
/// Errors of `out`.
pub(crate) fn trailer(out: &mut impl Write) -> io::Result<()> {
    new_ascii(out, "TRAILER!!!", [0, 0, 1, 0, 0])
}

/// Writes an entry's bytes, pads them to a multiple of four, and returns their
/// SHA-256 in hexadecimal.
///
/// # Errors
/// Errors of [`Item::copy_to`].
pub(crate) fn body(out: &mut impl Write, item: &Item<'_>) -> io::Result<String> {
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
