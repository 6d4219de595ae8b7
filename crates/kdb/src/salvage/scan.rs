//! Goes through the pages of a file, and looks at what may be a row.

use std::cell::RefCell;
use std::os::unix::fs::FileExt as _;

use gfxpack_plan::KernelKey;

use super::page::{CHUNK, Cell, Geometry, Kind, PageSet};
use super::record::{self, Shape};
use super::staging::{Found, Staging};
use super::{Place, Walk, stored};
use crate::codec;
use crate::error::{CopyError, RowError};
use crate::pipeline;
use crate::write::{Progress, check_key};

/// A cell on its way to being looked at.
struct Candidate {
    place: Place,
    rowid: i64,
    doubt: bool,
    shape: Shape,
    payload: Vec<u8>,
    /// The pages that the payload goes on in.
    chain: Vec<u32>,
}

/// What a cell turned out to be.
enum Verdict {
    Row(Found, bool, i64),
    Object(String, Place),
    Key(KernelKey, String, bool),
    Named(KernelKey, Option<String>),
    Nothing,
}

/// Where cells are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Where the pages say that they are.
    Stated,
    /// Byte by byte, in pages that nothing whole was found in.
    Searched,
}

impl Walk<'_> {
    /// Looks at every page, and notes what is whole.
    pub(super) fn scan(&self, staging: &Staging) -> Result<(), CopyError> {
        // Free pages are left alone.
        let done = self.geometry.free_pages(&self.file).map_err(|error| self.io(error))?;
        let done = RefCell::new(done);
        self.pass(Pass::Stated, staging, &done)?;
        self.pass(Pass::Searched, staging, &done)
    }

    /// Goes through the pages once. Those that hold what is whole are `done`
    /// then.
    fn pass(
        &self,
        pass: Pass,
        staging: &Staging,
        done: &RefCell<PageSet>,
    ) -> Result<(), CopyError> {
        let mut pages = Pages::new(self);
        let mut found: Vec<(Place, Cell, Shape)> = Vec::new();
        // A good file's cells take no more than the file in all. A bad one can
        // name the same pages again and again.
        let mut left = 8 * self.bytes + (64 << 20);
        pipeline::in_order(
            self.options.window_bytes,
            |_| pipeline::SMALL_BATCH,
            || -> Result<_, CopyError> {
                loop {
                    if let Some((place, cell, shape)) = found.pop() {
                        let Some(rest) = left.checked_sub(cell.size) else { continue };
                        left = rest;
                        let candidate = self.candidate(pages.current(), place, &cell, shape, pass);
                        if let Some(candidate) = candidate.map_err(|error| self.io(error))? {
                            return Ok(Some(candidate));
                        }
                        continue;
                    }
                    let Some(number) = pages.advance().map_err(|error| self.io(error))? else {
                        return Ok(None);
                    };
                    if let Some(progress) = self.options.progress {
                        let total = u64::from(self.geometry.pages);
                        progress(Progress { rows: number.into(), total, pages: true });
                    }
                    if !done.borrow().contains(number)
                        && self.cells(pass, number, pages.current(), &mut found)
                    {
                        done.borrow_mut().insert(number);
                    }
                }
            },
            |candidates| candidates.map(|candidate| self.judge(candidate)).collect(),
            |(verdict, chain)| {
                let whole =
                    matches!(verdict, Verdict::Row(..) | Verdict::Object(..) | Verdict::Key(..));
                let noted = match verdict {
                    Verdict::Row(found, doubt, number) => staging.row(&found, doubt, number),
                    Verdict::Object(hash, place) => staging.object(&hash, place),
                    Verdict::Key(key, hash, doubt) => staging.key(&key, &hash, doubt),
                    Verdict::Named(key, reason) => staging.named(&key, reason.as_deref()),
                    Verdict::Nothing => Ok(()),
                };
                noted.map_err(|source| self.sqlite(source))?;
                if whole {
                    chain.into_iter().for_each(|page| {
                        done.borrow_mut().insert(page);
                    });
                }
                Ok(())
            },
        )
    }

    /// The cells of a page that have a kdb's shape; whether that is all that
    /// can be in the page.
    fn cells(
        &self,
        pass: Pass,
        number: u32,
        page: &[u8],
        found: &mut Vec<(Place, Cell, Shape)>,
    ) -> bool {
        let geometry = &self.geometry;
        let mut add = |kind, at: usize| {
            let cell = geometry.cell(page, kind, at)?;
            let shape = record::shape(kind, &page[cell.local.clone()], cell.size)?;
            found.push((Place { page: number, at: at as u32, kind }, cell, shape));
            Some(())
        };
        if pass == Pass::Searched {
            for at in 0..geometry.usable {
                // An index cell is a table cell's without its row number, and
                // an interior one has four bytes before it.
                add(Kind::TableLeaf, at);
                add(Kind::IndexLeaf, at);
            }
            return true;
        }
        let header = Geometry::header_at(number);
        let Some((kind, offsets)) = geometry.cells(page, header) else {
            return geometry.is_table_interior(page, header);
        };
        for at in offsets {
            add(kind, at);
        }
        true
    }

    /// A cell with its payload, and what it weighs.
    fn candidate(
        &self,
        page: &[u8],
        place: Place,
        cell: &Cell,
        shape: Shape,
        pass: Pass,
    ) -> std::io::Result<Option<(Candidate, u64)>> {
        // A row is larger than its code object by its key.
        let limit = self.options.max_object_bytes.saturating_add(4 << 20);
        if cell.size > limit {
            return Ok(None);
        }
        let found = self.geometry.payload(&self.file, page, cell)?;
        // The key may stand in what there is of it.
        let (payload, chain) =
            found.unwrap_or_else(|| (page[cell.local.clone()].to_vec(), Vec::new()));
        let object = stored(&shape, &payload).map_or(0, |(_, size)| size.max(0).unsigned_abs());
        let cost = 2 * payload.len() as u64 + object.min(limit);
        let doubt = pass == Pass::Searched;
        Ok(Some((Candidate { place, rowid: cell.rowid, doubt, shape, payload, chain }, cost)))
    }

    /// What a cell is, by its hash.
    fn judge(&self, candidate: Candidate) -> (Verdict, Vec<u32>) {
        let Candidate { place, rowid, doubt, shape, payload, chain } = candidate;
        (self.verdict(place, rowid, doubt, &shape, &payload), chain)
    }

    fn verdict(
        &self,
        place: Place,
        rowid: i64,
        doubt: bool,
        shape: &Shape,
        payload: &[u8],
    ) -> Verdict {
        let text = |place: &std::ops::Range<usize>| {
            let bytes = payload.get(place.clone())?;
            Some(std::str::from_utf8(bytes).ok()?.to_owned())
        };
        let key = |name, args| {
            let key = KernelKey { kernel_name: text(name)?, kernel_args: text(args)? };
            check_key(&key).is_ok().then_some(key)
        };
        let limit = self.options.max_object_bytes;
        match shape {
            Shape::Row { name, args, hash, .. } => {
                let Some(key) = key(name, args) else { return Verdict::Nothing };
                // What was searched for may be no row at all.
                let named = |reason| {
                    if doubt { Verdict::Nothing } else { Verdict::Named(key.clone(), reason) }
                };
                let (Some(hash), Some(stored)) = (text(hash), stored(shape, payload)) else {
                    return named(None);
                };
                let checked = codec::unpack(stored.0, stored.1, limit).and_then(|object| {
                    codec::check_hash(&object, &hash)?;
                    if object.is_empty() { Err(RowError::Size { size: 0, limit }) } else { Ok(()) }
                });
                match checked {
                    Ok(()) => Verdict::Row(Found { key, hash, place }, doubt, rowid),
                    Err(error) => named(Some(error.to_string())),
                }
            }
            Shape::Object { .. } => stored(shape, payload)
                .and_then(|(blob, size)| codec::unpack(blob, size, limit).ok())
                .filter(|object| !object.is_empty())
                .map_or(Verdict::Nothing, |object| Verdict::Object(codec::md5_hex(&object), place)),
            Shape::Key { name, args, hash, check } => {
                let key = key(name, args)
                    .filter(|key| payload.get(check.clone()) == Some(&codec::key_check(key)[..]));
                match (key, payload.get(hash.clone())) {
                    (Some(key), Some(hash)) => Verdict::Key(key, codec::hex(hash), doubt),
                    _ => Verdict::Nothing,
                }
            }
            Shape::Entry { name, args } => match key(name, args) {
                Some(key) if !doubt => Verdict::Named(key, None),
                _ => Verdict::Nothing,
            },
        }
    }
}

/// The pages of a file in order, read many at a time.
struct Pages<'a> {
    walk: &'a Walk<'a>,
    chunk: Vec<u8>,
    /// Number of the chunk's first page.
    first: u32,
    /// Number of the page at hand; 0 before the first.
    number: u32,
}

impl<'a> Pages<'a> {
    fn new(walk: &'a Walk<'a>) -> Self {
        Self { walk, chunk: Vec::new(), first: 1, number: 0 }
    }

    /// Goes to the next page, and says which that is.
    fn advance(&mut self) -> std::io::Result<Option<u32>> {
        let Geometry { page_size, pages, .. } = self.walk.geometry;
        if self.number == pages {
            return Ok(None);
        }
        self.number += 1;
        let size = page_size as usize;
        if (self.number - self.first) as usize * size >= self.chunk.len() {
            self.first = self.number;
            let count = (CHUNK / size).min((pages - self.first + 1) as usize);
            self.chunk.resize(count * size, 0);
            let at = u64::from(self.first - 1) * u64::from(page_size);
            self.walk.file.read_exact_at(&mut self.chunk, at)?;
        }
        Ok(Some(self.number))
    }

    fn current(&self) -> &[u8] {
        let size = self.walk.geometry.page_size as usize;
        let at = (self.number - self.first) as usize * size;
        &self.chunk[at..at + size]
    }
}
