//! Goes through the pages of a file, and looks at what may be a row.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use gfxpack_model::{KernelKey, KeyError};

use crate::codec::{self, Claim};
use crate::copy::error::CopyError;
use crate::encoding::Encoding;
use crate::error::{RowError, WriteError};
use crate::holes;
use crate::key::{check_key, key_check};
use crate::parallel;
use crate::progress::Progress;
use crate::repair::page::{self, CHUNK, Geometry, Kind, PageSet};
use crate::repair::place::CellPlace;
use crate::repair::shape::{self, Shape};
use crate::repair::source::{DamagedFile, stored};
use crate::repair::staging::{LostPart, Staging, WholeRow};
use crate::work::WorkBudget;

/// A cell on its way to being looked at.
struct Candidate {
    place: CellPlace,
    rowid: i64,
    doubt: bool,
    shape: Shape,
    payload: Vec<u8>,
    /// The pages that the payload goes on in, or why there is less of it.
    chain: Result<Vec<u32>, &'static str>,
    /// What a blob in it may be unpacked to, or why not.
    claim: Result<Claim, String>,
}

impl Candidate {
    /// The code object in it, or why there is none.
    fn unpack(&self) -> Result<Cow<'_, [u8]>, String> {
        self.chain.as_ref().map_err(|why| (*why).to_owned())?;
        let claim = self.claim.clone()?;
        let (blob, _) = stored(&self.shape, &self.payload).ok_or("its size is no number")?;
        let object = codec::unpack(blob, claim).map_err(|error| error.to_string())?;
        if object.is_empty() { Err(RowError::Empty.to_string()) } else { Ok(object) }
    }
}

/// What a cell turned out to be.
enum Verdict {
    Row(WholeRow, bool, i64),
    Object {
        hash: String,
        place: CellPlace,
        row: Option<i64>,
    },
    Key {
        key: KernelKey,
        hash: String,
        object: i64,
        doubt: bool,
    },
    /// There was a row of this key: of that number, if an index says so.
    Named {
        key: KernelKey,
        reason: Option<String>,
        row: Option<i64>,
    },
    /// As `Key`, with a key that no kdb takes.
    Refused {
        key: KernelKey,
        reason: String,
        hash: String,
        object: i64,
    },
    /// What has lost its key.
    Unnamed(LostPart, CellPlace, i64, String),
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

impl DamagedFile<'_> {
    /// Looks at every page, and notes what is whole. Says whether there was
    /// nothing in any page but the first, and how many bytes were read.
    pub(super) fn scan(&self, staging: &Staging) -> Result<(bool, u64), CopyError> {
        // Free pages are left alone.
        let done = self.geometry.free_pages(&self.file).map_err(|error| self.io(error))?;
        let (done, blank) = (RefCell::new(done), Cell::new(true));
        let stated = self.pass(Pass::Stated, staging, &done, &blank)?;
        let searched = self.pass(Pass::Searched, staging, &done, &blank)?;
        Ok((blank.get(), stated + searched))
    }

    /// Goes through the pages once. Those that hold what is whole are `done`
    /// then. Says how many bytes were read.
    fn pass(
        &self,
        pass: Pass,
        staging: &Staging,
        done: &RefCell<PageSet>,
        blank: &Cell<bool>,
    ) -> Result<u64, CopyError> {
        let mut pages = Pages::new(self);
        let work = self.work();
        let mut found: Vec<(CellPlace, page::Cell, Shape)> = Vec::new();
        // A good file's cells take no more than the file in all. A bad one can
        // name the same pages again and again.
        let mut left = 8 * self.data_bytes + (64 << 20);
        parallel::in_order(
            self.options.window_bytes,
            || -> Result<_, CopyError> {
                loop {
                    if let Some((place, cell, shape)) = found.pop() {
                        let Some(rest) = left.checked_sub(cell.size) else { continue };
                        left = rest;
                        let page = pages.current();
                        let candidate = self.candidate(page, place, &cell, shape, pass, &work);
                        return Ok(Some(candidate.map_err(|error| self.io(error))?));
                    }
                    let before = pages.number;
                    let next = pages.advance().map_err(|error| self.io(error))?;
                    let after = next.unwrap_or(self.geometry.pages + 1);
                    // Where there should be something, a hole is none.
                    if (before + 1..after)
                        .any(|page| !done.borrow().contains(page) && !self.is_blank(page, &[]))
                    {
                        blank.set(false);
                    }
                    let Some(number) = next else { return Ok(None) };
                    if let Some(progress) = self.options.progress {
                        let total = u64::from(self.geometry.pages);
                        progress(Progress { rows: number.into(), total, pages: true });
                    }
                    self.options.go_on(self.path)?;
                    if done.borrow().contains(number) {
                        continue;
                    }
                    if !self.is_blank(number, pages.current()) {
                        blank.set(false);
                    }
                    if self.cells(pass, number, pages.current(), &mut found) {
                        done.borrow_mut().insert(number);
                    }
                }
            },
            |candidate| self.judge(candidate),
            |(verdict, chain)| {
                let whole = matches!(
                    verdict,
                    Verdict::Row(..) | Verdict::Object { .. } | Verdict::Key { .. }
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
        Ok(pages.read_bytes)
    }

    fn is_blank(&self, number: u32, page: &[u8]) -> bool {
        number == 1 || self.geometry.is_blank(number, page)
    }

    /// The cells of a page that have a kdb's shape; whether that is all that
    /// can be in the page.
    fn cells(
        &self,
        pass: Pass,
        number: u32,
        page: &[u8],
        found: &mut Vec<(CellPlace, page::Cell, Shape)>,
    ) -> bool {
        let geometry = &self.geometry;
        let mut add = |kind, at: usize| {
            let cell = geometry.cell(page, kind, at)?;
            let shape = shape::shape(kind, &page[cell.local.clone()], cell.size)?;
            found.push((CellPlace { page: number, at: at as u32, kind }, cell, shape));
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
        place: CellPlace,
        cell: &page::Cell,
        shape: Shape,
        pass: Pass,
        work: &WorkBudget,
    ) -> std::io::Result<(Candidate, u64)> {
        // A row is larger than its code object by its key.
        let limit = self.options.max_object_bytes.saturating_add(4 << 20);
        // The key may stand in what there is of it.
        let less = |why| (page[cell.local.clone()].to_vec(), Err(why));
        let (payload, chain) = if cell.size > limit {
            less("it is larger than any code object may be")
        } else {
            match self.geometry.payload(&self.file, page, cell)? {
                Some((payload, chain)) => (payload, Ok(chain)),
                None => less("the pages that it goes on in can't be reached"),
            }
        };
        let claim = match stored(&shape, &payload) {
            Some((blob, size)) if chain.is_ok() => {
                codec::claim(blob, size, work).map_err(|error| error.to_string())
            }
            _ => Err("its size is no number".to_owned()),
        };
        let object = claim.as_ref().map_or(0, |claim| claim.bytes());
        let cost = 2 * payload.len() as u64 + object;
        let doubt = pass == Pass::Searched;
        Ok((Candidate { place, rowid: cell.rowid, doubt, shape, payload, chain, claim }, cost))
    }

    /// What a cell is, by its hash.
    fn judge(&self, candidate: Candidate) -> (Verdict, Result<Vec<u32>, &'static str>) {
        let verdict = match &candidate.shape {
            Shape::Row { .. } => self.row(&candidate),
            Shape::Object { .. } => self.object(&candidate),
            Shape::Key { .. } => self.key(&candidate),
            Shape::RowInfo { .. } => self.entry(&candidate),
        };
        // What was searched for may be nothing at all.
        let verdict = match verdict {
            Verdict::Named { .. } | Verdict::Refused { .. } | Verdict::Unnamed(..)
                if candidate.doubt =>
            {
                Verdict::Nothing
            }
            verdict => verdict,
        };
        (verdict, candidate.chain)
    }

    fn row(&self, candidate: &Candidate) -> Verdict {
        let Candidate { place, rowid, doubt, shape, payload, chain, .. } = candidate;
        let Shape::Row { name, args, hash, .. } = shape else { return Verdict::Nothing };
        let encoding = self.encoding(payload, hash);
        let key = match key_of(payload, encoding, name, args) {
            Ok(key) => key,
            Err(Refusal::Key(key, reason)) => {
                return Verdict::Named { key, reason: Some(reason), row: Some(*rowid) };
            }
            Err(Refusal::Text(reason)) => {
                let reason = chain.as_ref().err().map_or(reason, |why| (*why).to_owned());
                return Verdict::Unnamed(LostPart::Row, *place, *rowid, reason);
            }
        };
        let checked = candidate.unpack().and_then(|object| {
            let hash = text(payload, encoding, hash).ok_or("its hash is no text")?;
            codec::check_hash(&object, &hash).map_err(|error| error.to_string())?;
            Ok(hash)
        });
        match checked {
            Ok(hash) => Verdict::Row(WholeRow { key, hash, place: *place }, *doubt, *rowid),
            Err(reason) => Verdict::Named { key, reason: Some(reason), row: Some(*rowid) },
        }
    }

    fn object(&self, candidate: &Candidate) -> Verdict {
        let Candidate { place, rowid, doubt, .. } = candidate;
        match candidate.unpack() {
            Ok(object) => Verdict::Object {
                hash: codec::md5_hex(&object),
                place: *place,
                row: (!doubt).then_some(*rowid),
            },
            Err(reason) => Verdict::Unnamed(LostPart::Object, *place, *rowid, reason),
        }
    }

    fn key(&self, candidate: &Candidate) -> Verdict {
        let Candidate { place, doubt, shape, payload, chain, .. } = candidate;
        let Shape::Key { name, args, hash, object, check } = shape else {
            return Verdict::Nothing;
        };
        let unnamed = |reason: &str| {
            let number = i64::from(place.page) << 16 | i64::from(place.at);
            Verdict::Unnamed(LostPart::Key, *place, number, reason.to_owned())
        };
        if let Err(why) = chain {
            return unnamed(why);
        }
        let (Some(hash), Some(object)) = (payload.get(hash.clone()), object.read(payload)) else {
            return unnamed("it does not end where it should");
        };
        let hash = codec::hex(hash);
        let holds = |key: &KernelKey| payload.get(check.clone()) == Some(&key_check(key));
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) if holds(&key) => Verdict::Key { key, hash, object, doubt: *doubt },
            Err(Refusal::Key(key, reason)) if holds(&key) => {
                Verdict::Refused { key, reason, hash, object }
            }
            Ok(_) | Err(Refusal::Key(..)) => unnamed("the key does not match the check beside it"),
            Err(Refusal::Text(reason)) => unnamed(&reason),
        }
    }

    fn entry(&self, candidate: &Candidate) -> Verdict {
        let Candidate { shape, payload, .. } = candidate;
        let Shape::RowInfo { name, args, row } = shape else { return Verdict::Nothing };
        // An index says nothing that its table does not say better, but for
        // what that has lost.
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) => Verdict::Named { key, reason: None, row: row.read(payload) },
            Err(Refusal::Key(key, reason)) => {
                Verdict::Named { key, reason: Some(reason), row: row.read(payload) }
            }
            Err(Refusal::Text(_)) => Verdict::Nothing,
        }
    }

    /// How the text of a row is stored: its hash has 32 digits, each of one
    /// byte or of two, the header may be gone.
    fn encoding(&self, payload: &[u8], hash: &std::ops::Range<usize>) -> Encoding {
        match payload.get(hash.clone()) {
            Some(hash) if hash.len() == 32 => Encoding::Utf8,
            Some([_, 0, ..]) if hash.len() == 64 => Encoding::Utf16Le,
            Some([0, ..]) if hash.len() == 64 => Encoding::Utf16Be,
            _ => self.geometry.encoding,
        }
    }
}

/// Why a key is not taken.
enum Refusal {
    /// It can be told all the same.
    Key(KernelKey, String),
    /// It is no text, or none to show.
    Text(String),
}

fn text(payload: &[u8], encoding: Encoding, at: &std::ops::Range<usize>) -> Option<String> {
    encoding.text(payload.get(at.clone())?)
}

fn key_of(
    payload: &[u8],
    encoding: Encoding,
    name: &std::ops::Range<usize>,
    args: &std::ops::Range<usize>,
) -> Result<KernelKey, Refusal> {
    if payload.len() < args.end.max(name.end) {
        return Err(Refusal::Text("its key can't be reached".to_owned()));
    }
    let (Some(kernel_name), Some(kernel_args)) =
        (text(payload, encoding, name), text(payload, encoding, args))
    else {
        return Err(Refusal::Text(format!("its key is not {}", encoding.name())));
    };
    let key = KernelKey { kernel_name, kernel_args };
    match check_key(&key) {
        Ok(()) => Ok(key),
        Err(WriteError::Key(KeyError::Quote(_))) => {
            Err(Refusal::Key(key, "its key holds a `'`, so MIOpen can never find it".to_owned()))
        }
        Err(WriteError::KeyTooLong { size, .. }) => {
            Err(Refusal::Text(format!("its key has {size} bytes")))
        }
        Err(_) => Err(Refusal::Text("its key holds a NUL byte".to_owned())),
    }
}

fn note(staging: &Staging, verdict: Verdict) -> Result<(), rusqlite::Error> {
    match verdict {
        Verdict::Row(found, doubt, number) => staging.row(&found, doubt, number),
        Verdict::Object { hash, place, row } => {
            if let Some(row) = row {
                staging.unnamed(LostPart::Object, row, place, Some(&hash), "no key leads to it")?;
            }
            staging.object(&hash, place)
        }
        Verdict::Key { key, hash, object, doubt } => {
            staging.leads(object, &hash)?;
            staging.key(&key, &hash, doubt)
        }
        Verdict::Named { key, reason, row } => staging.named(&key, reason.as_deref(), row),
        Verdict::Refused { key, reason, hash, object } => {
            staging.leads(object, &hash)?;
            staging.named(&key, Some(&reason), None)
        }
        Verdict::Unnamed(part, place, number, reason) => {
            staging.unnamed(part, number, place, None, &reason)
        }
        Verdict::Nothing => Ok(()),
    }
}

/// The pages of a file in order, read many at a time, but for its holes.
struct Pages<'a> {
    walk: &'a DamagedFile<'a>,
    chunk: Vec<u8>,
    /// Number of the chunk's first page.
    first: u32,
    /// Number of the page at hand; 0 before the first.
    number: u32,
    /// What is known to be no hole, around the page at hand or before it.
    data: Range<u64>,
    read_bytes: u64,
}

impl<'a> Pages<'a> {
    fn new(walk: &'a DamagedFile<'a>) -> Self {
        Self { walk, chunk: Vec::new(), first: 1, number: 0, data: 0..0, read_bytes: 0 }
    }

    /// Goes to the next page that is not all hole, and says which that is.
    fn advance(&mut self) -> std::io::Result<Option<u32>> {
        let DamagedFile { file, bytes, geometry: Geometry { page_size, pages, .. }, .. } =
            self.walk;
        let (size, pages) = (u64::from(*page_size), *pages);
        let mut at = u64::from(self.number) * size;
        if at >= self.data.end {
            let Some(data) = holes::next_data(file, at, *bytes)? else { return Ok(None) };
            at = at.max(data.start - data.start % size);
            self.data = data;
        }
        // What is left behind the last page is none.
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

    fn current(&self) -> &[u8] {
        let size = self.walk.geometry.page_size as usize;
        let at = (self.number - self.first) as usize * size;
        &self.chunk[at..at + size]
    }
}
