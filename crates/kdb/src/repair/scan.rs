//! Searches the pages of a file for cells that may be rows.

use std::cell::{Cell, RefCell};

use crate::codec;
use crate::copy::error::CopyError;
use crate::parallel;
use crate::progress::Progress;
use crate::repair::page::{self, CellPlace, Geometry, PageKind, PageSet};
use crate::repair::pages::Pages;
use crate::repair::payload_kind::{self, PayloadKind};
use crate::repair::source::{DamagedFile, stored};
use crate::repair::staging::{LostPart, Staging};
use crate::repair::verdict::{Candidate, CellKind};
use crate::work_budget::WorkBudget;

/// How cells are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanPass {
    /// At the offsets listed in each page.
    Stated,
    /// Byte by byte, in pages in which the first pass found nothing intact.
    Searched,
}

impl DamagedFile<'_> {
    /// Looks at every page, and records what is intact. Returns whether every
    /// page but the first was empty, and how many bytes were read.
    pub(super) fn scan(&self, staging: &Staging) -> Result<(bool, u64), CopyError> {
        // Free pages are skipped.
        let done = self.geometry.free_pages(&self.file).map_err(|error| self.io(error))?;
        let (done, blank) = (RefCell::new(done), Cell::new(true));
        let stated = self.pass(ScanPass::Stated, staging, &done, &blank)?;
        let searched = self.pass(ScanPass::Searched, staging, &done, &blank)?;
        Ok((blank.get(), stated + searched))
    }

    /// One pass over all pages. Adds the pages of intact rows to `done`.
    /// Returns how many bytes were read.
    fn pass(
        &self,
        pass: ScanPass,
        staging: &Staging,
        done: &RefCell<PageSet>,
        blank: &Cell<bool>,
    ) -> Result<u64, CopyError> {
        let mut search = CellSearch {
            source: self,
            pass,
            pages: Pages::new(self),
            work: self.work(),
            found: Vec::new(),
            left: 8 * self.data_bytes + (64 << 20),
            done,
            blank,
        };
        parallel::in_order(
            self.options.window_bytes,
            || search.next(),
            |candidate| self.judge(candidate),
            |(verdict, chain)| {
                let whole = matches!(
                    verdict,
                    CellKind::Row(..) | CellKind::Object { .. } | CellKind::Key { .. }
                );
                note(staging, verdict).map_err(|source| self.sqlite(source))?;
                if let Ok(chain) = chain
                    && whole
                {
                    chain.into_iter().for_each(|page| {
                        done.borrow_mut().insert(page);
                    });
                }
                Ok::<(), CopyError>(())
            },
        )?;
        Ok(search.pages.read_bytes)
    }

    fn is_blank(&self, number: u32, page: &[u8]) -> bool {
        number == 1 || self.geometry.is_blank(number, page)
    }

    /// Adds the cells of a page that have the shape of a kdb's row to `found`.
    /// Returns whether the page can't contain others.
    fn cells(
        &self,
        pass: ScanPass,
        number: u32,
        page: &[u8],
        found: &mut Vec<(CellPlace, page::Cell, PayloadKind)>,
    ) -> bool {
        let geometry = &self.geometry;
        let mut add = |kind, at: usize| {
            let cell = geometry.cell(page, kind, at)?;
            let shape = payload_kind::shape(kind, &page[cell.local.clone()], cell.size)?;
            found.push((CellPlace { page: number, at: at as u32, kind }, cell, shape));
            Some(())
        };
        if pass == ScanPass::Searched {
            for at in 0..geometry.usable {
                // A cell of an index is one of a table without its row number,
                // and of an interior page, one with four more bytes before it.
                add(PageKind::TableLeaf, at);
                add(PageKind::IndexLeaf, at);
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

    /// A cell with its payload, and its cost in bytes.
    fn candidate(
        &self,
        page: &[u8],
        place: CellPlace,
        cell: &page::Cell,
        shape: PayloadKind,
        pass: ScanPass,
        work: &WorkBudget,
    ) -> std::io::Result<(Candidate, u64)> {
        // A row is larger than its code object, by its key.
        let limit = self.options.max_object_bytes.saturating_add(4 << 20);
        // The part in this page may still contain the key.
        let less = |why| (page[cell.local.clone()].to_vec(), Err(why));
        let (payload, chain) = if cell.size > limit {
            less("it is larger than any code object may be")
        } else {
            match self.geometry.payload(&self.file, page, cell)? {
                Some((payload, chain)) => (payload, Ok(chain)),
                None => less("its further pages can't be reached"),
            }
        };
        let claimed_size = match stored(&shape, &payload) {
            Some((blob, size)) if chain.is_ok() => {
                codec::claimed_size(blob, size, work).map_err(|error| error.to_string())
            }
            _ => Err("its size is no number".to_owned()),
        };
        let object = claimed_size.as_ref().map_or(0, |claimed_size| claimed_size.bytes());
        let cost = 2 * payload.len() as u64 + object;
        let doubt = pass == ScanPass::Searched;
        Ok((
            Candidate { place, rowid: cell.rowid, doubt, shape, payload, chain, claimed_size },
            cost,
        ))
    }
}

/// Iterates over the cells of a file that may be rows.
struct CellSearch<'a> {
    source: &'a DamagedFile<'a>,
    pass: ScanPass,
    pages: Pages<'a>,
    work: WorkBudget,
    /// Remaining cells of the current page.
    found: Vec<(CellPlace, page::Cell, PayloadKind)>,
    /// Payload bytes that further cells may have. In an undamaged file all
    /// cells take no more than the file. In a damaged one they can name the
    /// same pages again and again.
    left: u64,
    /// Pages that need no further look: those of intact rows, and free ones.
    done: &'a RefCell<PageSet>,
    /// Whether every page but the first was empty so far.
    blank: &'a Cell<bool>,
}

impl CellSearch<'_> {
    /// The next cell with its payload, and its cost in bytes.
    fn next(&mut self) -> Result<Option<(Candidate, u64)>, CopyError> {
        let source = self.source;
        loop {
            if let Some((place, cell, shape)) = self.found.pop() {
                let Some(rest) = self.left.checked_sub(cell.size) else { continue };
                self.left = rest;
                let page = self.pages.current();
                let candidate = source.candidate(page, place, &cell, shape, self.pass, &self.work);
                return Ok(Some(candidate.map_err(|error| source.io(error))?));
            }
            let Some(number) = self.next_page()? else { return Ok(None) };
            if self.done.borrow().contains(number) {
                continue;
            }
            let page = self.pages.current();
            if !source.is_blank(number, page) {
                self.blank.set(false);
            }
            if source.cells(self.pass, number, page, &mut self.found) {
                self.done.borrow_mut().insert(number);
            }
        }
    }

    /// Moves to the next page that is not entirely a hole.
    fn next_page(&mut self) -> Result<Option<u32>, CopyError> {
        let source = self.source;
        let before = self.pages.number;
        let next = self.pages.advance().map_err(|error| source.io(error))?;
        let after = next.unwrap_or(source.geometry.pages + 1);
        // A hole in place of a used page means lost content.
        let is_lost = |page| !self.done.borrow().contains(page) && !source.is_blank(page, &[]);
        if (before + 1..after).any(is_lost) {
            self.blank.set(false);
        }
        let Some(number) = next else { return Ok(None) };
        if let Some(progress) = source.options.progress {
            let total = u64::from(source.geometry.pages);
            progress(Progress { rows: number.into(), total, pages: true });
        }
        source.options.go_on(source.path)?;
        Ok(Some(number))
    }
}

fn note(staging: &Staging, verdict: CellKind) -> Result<(), rusqlite::Error> {
    match verdict {
        CellKind::Row(found, doubt, number) => staging.row(&found, doubt, number),
        CellKind::Object { hash, place, row } => {
            if let Some(row) = row {
                staging.unnamed(LostPart::Object, row, place, Some(&hash), "no key leads to it")?;
            }
            staging.object(&hash, place)
        }
        CellKind::Key { key, hash, object, doubt } => {
            staging.leads(object, &hash)?;
            staging.key(&key, &hash, doubt)
        }
        CellKind::Named { key, reason, row } => staging.named(&key, reason.as_deref(), row),
        CellKind::Refused { key, reason, hash, object } => {
            staging.leads(object, &hash)?;
            staging.named(&key, Some(&reason), None)
        }
        CellKind::Unnamed(part, place, number, reason) => {
            staging.unnamed(part, number, place, None, &reason)
        }
        CellKind::Nothing => Ok(()),
    }
}
