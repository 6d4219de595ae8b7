//! Iterates over the pages of a damaged file.

use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::holes;
use crate::repair::page::{CHUNK, Geometry};
use crate::repair::source::DamagedFile;

/// Iterates over the pages of a file in order, many per read, and skips holes.
pub(super) struct Pages<'a> {
    source: &'a DamagedFile<'a>,
    chunk: Vec<u8>,
    /// Number of the chunk's first page.
    first: u32,
    /// Number of the current page; 0 before the first.
    pub(super) number: u32,
    /// A range without holes, around the current page or before it.
    data: Range<u64>,
    pub(super) read_bytes: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(source: &'a DamagedFile<'a>) -> Self {
        Self { source, chunk: Vec::new(), first: 1, number: 0, data: 0..0, read_bytes: 0 }
    }

    /// Moves to the next page that is not entirely a hole, and returns its
    /// number.
    pub(super) fn advance(&mut self) -> std::io::Result<Option<u32>> {
        let DamagedFile { file, bytes, geometry: Geometry { page_size, pages, .. }, .. } =
            self.source;
        let (size, pages) = (u64::from(*page_size), *pages);
        let mut at = u64::from(self.number) * size;
        if at >= self.data.end {
            let Some(data) = holes::next_data(file, at, *bytes)? else { return Ok(None) };
            at = at.max(data.start - data.start % size);
            self.data = data;
        }
        // Bytes behind the last whole page are ignored.
        let Some(number) = u32::try_from(at / size).ok().filter(|before| *before < pages) else {
            return Ok(None);
        };
        self.number = number + 1;
        let held = self.first..self.first + (self.chunk.len() as u64 / size) as u32;
        if !held.contains(&self.number) {
            self.first = self.number;
            let of_data = (self.data.end - at).div_ceil(size);
            let count = (CHUNK as u64 / size).min(of_data).min(u64::from(pages - number));
            self.chunk.resize((count * size) as usize, 0);
            file.read_exact_at(&mut self.chunk, at)?;
            self.read_bytes += count * size;
        }
        Ok(Some(self.number))
    }

    pub(super) fn current(&self) -> &[u8] {
        let size = self.source.geometry.page_size as usize;
        let at = (self.number - self.first) as usize * size;
        &self.chunk[at..at + size]
    }
}
