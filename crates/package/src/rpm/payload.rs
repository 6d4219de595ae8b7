//! Writes the payload of an .rpm, a cpio archive. It has two variants: entries with names, and, for
//! packages over 4 GiB, entries that only have an index into the header.

use std::collections::BTreeSet;
use std::io::{self, Write};

use gfxpack_model::package::PackageSpec;

use crate::contents::{Contents, Item};
use crate::output::Hashing;

/// Maximum total size for entries with names.
const NAMED_MAX: u64 = u32::MAX as u64;

/// One entry of the payload, in the order of the rpm header's file list.
pub(super) struct Entry<'a> {
    /// Absolute path.
    pub(super) path: &'a str,
    /// File type and permission bits, as `st_mode` has them.
    pub(super) mode: u32,
    /// The file; `None` for a directory.
    pub(super) item: Option<&'a Item<'a>>,
}

/// Files and own directories, sorted by the bytes of their paths, as the library
/// lists them.
pub(super) fn entries<'a>(contents: &'a Contents<'_>, own: &BTreeSet<&'a str>) -> Vec<Entry<'a>> {
    const DIRECTORY: u32 = 0o040_000;
    const REGULAR: u32 = 0o100_000;
    let files = contents.iter().map(|(path, item)| Entry {
        path,
        mode: REGULAR | item.mode,
        item: Some(item),
    });
    let directories = own.iter().map(|path| Entry { path, mode: DIRECTORY | 0o755, item: None });
    let mut entries: Vec<_> = files.chain(directories).collect();
    entries.sort_by_key(|entry| entry.path);
    entries
}

/// Whether the archive's entries have names; otherwise they are too large for that.
pub(super) fn is_named(contents_size: u64) -> bool {
    contents_size <= NAMED_MAX
}

pub(super) fn total_size(entries: &[Entry<'_>]) -> u64 {
    entries.iter().filter_map(|entry| entry.item).map(|item| item.size).sum()
}

/// Writes the archive, and returns the SHA-256 of every entry's contents; `None` for a directory.
pub(super) fn write(
    spec: &PackageSpec,
    entries: &[Entry<'_>],
    mut out: &mut dyn Write,
) -> io::Result<Vec<Option<String>>> {
    let named = is_named(total_size(entries));
    let mut digests = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        header(&mut out, entry, index, spec.source_date_epoch, named)?;
        digests.push(entry.item.map(|item| body(&mut out, item)).transpose()?);
    }
    new_ascii(&mut out, "TRAILER!!!", [0, 0, 1, 0, 0])?;
    Ok(digests)
}

/// Writes the header of the entry with this index in the file list.
///
/// Source: cpio(5), "New ASCII Format"; rpm 4.18 `lib/cpio.c`, `rpmcpioStrippedHeaderWrite`.
fn header(
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
