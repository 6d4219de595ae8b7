//! Parses SQLite's pages without SQLite: which bytes of a page are a cell, and
//! in which pages its payload continues.
//!
//! Source: SQLite, "Database File Format", sections 1.2 and 1.5 to 1.6.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::header::{self, HEADER_BYTES, Header};
use crate::holes;
use crate::text_encoding::Encoding;

/// Bytes sampled to guess the page size if the header is damaged.
const SAMPLE_BYTES: u64 = 256 << 20;
/// Size of the largest page, and of each read.
pub(crate) const CHUNK: usize = 1 << 16;
const PAGE_SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// A page of a b-tree that holds payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PageKind {
    TableLeaf,
    IndexLeaf,
    IndexInterior,
}

/// Position of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellPlace {
    pub(crate) page: u32,
    pub(crate) at: u32,
    pub(crate) kind: PageKind,
}

/// How a file is cut into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) page_size: u32,
    /// Bytes of a page available to SQLite.
    pub(crate) usable: usize,
    /// Number of whole pages in the file.
    pub(crate) pages: u32,
    /// Whether these values are from the file's header.
    pub(crate) stated: bool,
    /// Pages that the header counts but the file does not have.
    pub(crate) missing: u32,
    /// Text encoding from the header; UTF-8 if that is damaged.
    pub(crate) encoding: Encoding,
    /// Whether some pages are pointer maps, as in an auto-vacuumed file.
    mapped: bool,
}

/// A cell within the bounds of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) rowid: i64,
    /// Size of the whole payload.
    pub(crate) size: u64,
    /// The part of the payload in this page.
    pub(crate) local: Range<usize>,
    /// The first overflow page.
    overflow: Option<u32>,
}

/// SQLite's variable-length integer.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for count in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if count == 8 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Some(value)
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_be_bytes(field.try_into().expect("two bytes"))))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().expect("four bytes")))
}

impl Geometry {
    /// Takes the page size from the header, or else the size with which most
    /// pages have well-formed cells.
    pub(crate) fn detect(file: &File, bytes: u64) -> io::Result<Option<Self>> {
        let new = |page_size: u32, reserved: u8, stated| {
            let pages = u32::try_from(bytes / u64::from(page_size)).unwrap_or(u32::MAX - 1);
            let usable = page_size as usize - usize::from(reserved);
            let encoding = Encoding::Utf8;
            Self { page_size, usable, pages, stated, missing: 0, encoding, mapped: false }
        };
        let mut first = [0; HEADER_BYTES];
        file.read_exact_at(&mut first, 0)?;
        // SQLite itself reserves at most 32 bytes of the smallest page.
        if let Some(header) = Header::parse(&first)
            && PAGE_SIZES.contains(&header.page_size)
            && first[20] <= 32
        {
            let found = new(header.page_size, first[20], true);
            let missing = header::page_count(&first).unwrap_or(0).saturating_sub(found.pages);
            // The largest root page; not 0 if the file is auto-vacuumed.
            let mapped = be32(&first, 52) != Some(0);
            return Ok(Some(Self {
                missing,
                encoding: Encoding::from_header(&first),
                mapped,
                ..found
            }));
        }
        let mut votes = [0_u64; PAGE_SIZES.len()];
        let mut chunk = vec![0; CHUNK];
        let (mut at, mut sampled) = (0, 0);
        while sampled < SAMPLE_BYTES
            && let Some(data) = holes::next_data(file, at, bytes)?
        {
            // Aligned to the largest page size, so that pages of every size are
            // whole.
            at = data.start - data.start % CHUNK as u64;
            let length = (bytes - at).min(CHUNK as u64) as usize;
            file.read_exact_at(&mut chunk[..length], at)?;
            for (vote, size) in votes.iter_mut().zip(PAGE_SIZES) {
                let geometry = new(size, 0, false);
                let pages = chunk[..length].chunks_exact(size as usize);
                *vote += pages.filter(|page| geometry.is_well_formed(page)).count() as u64;
            }
            at += CHUNK as u64;
            sampled += CHUNK as u64;
        }
        // At equal votes the smallest: a larger size sees fewer of the same
        // pages.
        let best = (0..votes.len()).rev().max_by_key(|index| votes[*index]);
        Ok(best.filter(|best| votes[*best] > 0).map(|best| new(PAGE_SIZES[best], 0, false)))
    }

    /// Offset of a page's b-tree header.
    pub(crate) fn header_at(number: u32) -> usize {
        if number == 1 { HEADER_BYTES } else { 0 }
    }

    /// Whether the page is a leaf whose cells all lie within it.
    fn is_well_formed(&self, page: &[u8]) -> bool {
        match self.cells(page, 0) {
            Some((PageKind::TableLeaf | PageKind::IndexLeaf, offsets)) => !offsets.is_empty(),
            _ => false,
        }
    }

    /// The page's kind and the offsets of its cells; `None` if the page has no
    /// payload or is damaged.
    pub(crate) fn cells(&self, page: &[u8], header: usize) -> Option<(PageKind, Vec<usize>)> {
        let (kind, pointers) = match page.get(header)? {
            0x0d => (PageKind::TableLeaf, header + 8),
            0x0a => (PageKind::IndexLeaf, header + 8),
            0x02 => (PageKind::IndexInterior, header + 12),
            _ => return None,
        };
        let count = be16(page, header + 3)?;
        let end = pointers + 2 * count;
        let offsets = (0..count).map(|index| {
            let at = be16(page, pointers + 2 * index)?;
            self.cell(page, kind, at).filter(|_| at >= end).map(|_| at)
        });
        Some((kind, offsets.collect::<Option<_>>()?))
    }

    /// Whether the page is an interior page of a table, which has no payload.
    pub(crate) fn is_table_interior(&self, page: &[u8], header: usize) -> bool {
        let whole = || {
            let count = be16(page, header + 3)?;
            (0..count).try_for_each(|index| {
                let at = be16(page, header + 12 + 2 * index)?;
                let child = be32(page, at)?;
                (at < self.usable && (1..=self.pages).contains(&child)).then_some(())
            })
        };
        page.get(header) == Some(&0x05) && whole().is_some()
    }

    /// Whether the page can't contain a row: a leaf without cells, or a pointer
    /// map.
    ///
    /// Source: SQLite, "Database File Format", sections 1.6 and 1.8.
    pub(crate) fn is_blank(&self, number: u32, page: &[u8]) -> bool {
        let map_and_mapped = self.usable as u32 / 5 + 1;
        if self.mapped && number >= 2 && (number - 2).is_multiple_of(map_and_mapped) {
            return true;
        }
        let cells = self.cells(page, Self::header_at(number));
        cells.is_some_and(|(_, offsets)| offsets.is_empty())
    }

    /// Reads a cell; `None` if it does not lie within the page.
    pub(crate) fn cell(&self, page: &[u8], kind: PageKind, at: usize) -> Option<Cell> {
        let page = page.get(..self.usable)?;
        let mut at = at + if kind == PageKind::IndexInterior { 4 } else { 0 };
        let size = varint(page, &mut at)?;
        let rowid = if kind == PageKind::TableLeaf { varint(page, &mut at)? as i64 } else { 0 };
        let local = self.local(size, kind);
        let end = at.checked_add(local)?;
        let overflow = if (local as u64) < size {
            let next = be32(page, end)?;
            Some(next).filter(|next| (1..=self.pages).contains(next))?.into()
        } else {
            page.get(at..end)?;
            None
        };
        Some(Cell { rowid, size, local: at..end, overflow })
    }

    /// Bytes of a payload that are stored in the cell's own page.
    fn local(&self, size: u64, kind: PageKind) -> usize {
        let usable = self.usable;
        let most = match kind {
            PageKind::TableLeaf => usable - 35,
            PageKind::IndexLeaf | PageKind::IndexInterior => (usable - 12) * 64 / 255 - 23,
        };
        if size <= most as u64 {
            return size as usize;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let filled = least + ((size - least as u64) % (usable as u64 - 4)) as usize;
        if filled <= most { filled } else { least }
    }

    /// Reads a page.
    pub(crate) fn read(&self, file: &File, number: u32) -> io::Result<Vec<u8>> {
        let mut page = vec![0; self.page_size as usize];
        let at = u64::from(number - 1) * u64::from(self.page_size);
        file.read_exact_at(&mut page, at)?;
        Ok(page)
    }

    /// The whole payload of a cell, and its overflow pages; `None` if their
    /// chain ends too early.
    pub(crate) fn payload(
        &self,
        file: &File,
        page: &[u8],
        cell: &Cell,
    ) -> io::Result<Option<(Vec<u8>, Vec<u32>)>> {
        // No chain is longer than the file.
        if cell.size > u64::from(self.pages) * self.usable as u64 {
            return Ok(None);
        }
        let mut payload = Vec::with_capacity(cell.size as usize);
        payload.extend_from_slice(&page[cell.local.clone()]);
        let mut next = cell.overflow.unwrap_or(0);
        let mut chain = Vec::new();
        while (payload.len() as u64) < cell.size {
            if !(1..=self.pages).contains(&next) {
                return Ok(None);
            }
            chain.push(next);
            let page = self.read(file, next)?;
            let left = (cell.size - payload.len() as u64) as usize;
            payload.extend_from_slice(&page[4..self.usable.min(4 + left)]);
            next = be32(&page, 0).unwrap_or(0);
        }
        Ok(Some((payload, chain)))
    }

    /// The file's free pages; empty if the free list is inconsistent.
    pub(crate) fn free_pages(&self, file: &File) -> io::Result<PageSet> {
        let mut free = PageSet::new(self.pages);
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        let (mut trunk, stated) = (be32(&header, 32).unwrap_or(0), be32(&header, 36).unwrap_or(0));
        let mut count = 0;
        while self.stated && trunk != 0 && count <= stated {
            if trunk > self.pages || !free.insert(trunk) {
                return Ok(PageSet::new(self.pages));
            }
            count += 1;
            let page = self.read(file, trunk)?;
            let leaves = be32(&page, 4).unwrap_or(0);
            for leaf in 0..leaves.min(self.usable as u32 / 4 - 2) {
                let number = be32(&page, 8 + 4 * leaf as usize).unwrap_or(0);
                if !(1..=self.pages).contains(&number) || !free.insert(number) {
                    return Ok(PageSet::new(self.pages));
                }
                count += 1;
            }
            trunk = be32(&page, 0).unwrap_or(0);
        }
        Ok(if count == stated && trunk == 0 { free } else { PageSet::new(self.pages) })
    }
}

/// A set of page numbers.
pub(crate) struct PageSet(Vec<u64>);

impl PageSet {
    fn new(pages: u32) -> Self {
        Self(vec![0; pages as usize / 64 + 1])
    }

    /// Adds a page; returns whether it was new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = &mut self.0[number as usize / 64];
        let before = *word;
        *word |= 1 << (number % 64);
        before != *word
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0[number as usize / 64] & 1 << (number % 64) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_as_sqlite_writes_them() {
        let check = |bytes: &[u8], expected: Option<u64>| {
            let mut at = 0;
            assert_eq!(varint(bytes, &mut at), expected, "{bytes:x?}");
            assert!(expected.is_none() || at == bytes.len());
        };
        check(&[0x7f], Some(127));
        check(&[0x81, 0x00], Some(128));
        check(&[0xff; 9], Some(u64::MAX));
        check(&[0x81], None);
        check(&[], None);
    }

    #[test]
    fn a_page_set_contains_the_inserted_pages() {
        let mut set = PageSet::new(200);
        assert!(set.insert(64) && !set.insert(64) && set.insert(200));
        let found: Vec<u32> = (1..=200).filter(|page| set.contains(*page)).collect();
        assert_eq!(found, [64, 200]);
    }
}
