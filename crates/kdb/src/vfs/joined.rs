//! Joins writes: what was written last is kept in a window of memory, and
//! goes on to the file in long pieces, in the file's order.

use std::ffi::c_int;
use std::ops::Range;

use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;

/// What SQLite is told: an error is one of its result codes.
pub(super) type Status<T = ()> = Result<T, c_int>;

/// A file as SQLite's methods have it. Positions and sizes are in bytes.
pub(super) trait File {
    /// Fills `bytes`. What the file does not have is filled with zeros, and
    /// the error is then `SQLITE_IOERR_SHORT_READ`.
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Status;
    fn write(&mut self, at: u64, bytes: &[u8]) -> Status;
    fn truncate(&mut self, size: u64) -> Status;
    fn size(&mut self) -> Status<u64>;
}

/// A file behind a window of two pieces of equal size, each of which begins
/// at a multiple of that size: a new piece is begun when a write ends beyond
/// both, and the older of them written out. So writes may come in another
/// order than the file's, as long as they are near each other.
pub(super) struct Joined<F> {
    file: F,
    /// Bytes of a piece: no longer write is made.
    piece: u64,
    /// Where the older piece begins.
    start: u64,
    /// Byte `at` of the file is here at `at` modulo the length.
    bytes: Box<[u8]>,
    /// What the file does not have yet: ranges of the window, in order,
    /// between any two of which there are bytes that nobody wrote.
    runs: Vec<Range<u64>>,
    /// What the first write that failed was told, and now everything is.
    failed: Option<c_int>,
}

impl<F: File> Joined<F> {
    pub(super) fn new(file: F, piece: u32) -> Self {
        let bytes = vec![0; 2 * piece as usize].into();
        Self { file, piece: piece.into(), start: 0, bytes, runs: Vec::new(), failed: None }
    }

    /// The file below, which does not have all bytes.
    pub(super) fn file(&mut self) -> &mut F {
        &mut self.file
    }

    /// The file below, once it has all that was written.
    ///
    /// # Errors
    /// That of the first write that failed, now or earlier.
    pub(super) fn whole(&mut self) -> Status<&mut F> {
        self.write_out(u64::MAX)?;
        Ok(&mut self.file)
    }

    /// Has everything fail from now on, if it does not already.
    pub(super) fn fail(&mut self, code: c_int) -> c_int {
        *self.failed.get_or_insert(code)
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Status {
        self.check()?;
        let end = at + bytes.len() as u64;
        if self.runs.is_empty() {
            // With room for what comes a little late.
            self.start = (at / self.piece).saturating_sub(1) * self.piece;
        }
        if at < self.start || end - at > self.piece {
            if self.start < end {
                self.whole()?;
            }
            return self.hand_on(at, bytes);
        }
        if self.start + 2 * self.piece < end {
            let start = ((end - 1) / self.piece - 1) * self.piece;
            self.write_out(start)?;
            self.start = start;
        }
        let (place, around) = self.places(at, bytes.len());
        let (first, rest) = bytes.split_at(place.len());
        self.bytes[place].copy_from_slice(first);
        self.bytes[around].copy_from_slice(rest);
        self.remember(at..end);
        Ok(())
    }

    pub(super) fn read(&mut self, at: u64, bytes: &mut [u8]) -> Status {
        self.check()?;
        let end = at + bytes.len() as u64;
        if self.runs.iter().any(|run| run.start <= at && end <= run.end) {
            let (place, around) = self.places(at, bytes.len());
            let (first, rest) = bytes.split_at_mut(place.len());
            first.copy_from_slice(&self.bytes[place]);
            rest.copy_from_slice(&self.bytes[around]);
            return Ok(());
        }
        if self.runs.iter().any(|run| run.start < end && at < run.end) {
            self.whole()?;
        }
        match self.file.read(at, bytes) {
            // A gap is only short where nothing was written behind it.
            Err(SQLITE_IOERR_SHORT_READ) if !self.runs.is_empty() => self.whole()?.read(at, bytes),
            status => status,
        }
    }

    pub(super) fn truncate(&mut self, size: u64) -> Status {
        self.whole()?.truncate(size)
    }

    pub(super) fn size(&mut self) -> Status<u64> {
        self.check()?;
        let end = self.runs.last().map_or(0, |run| run.end);
        Ok(self.file.size()?.max(end))
    }

    fn check(&self) -> Status {
        self.failed.map_or(Ok(()), Err)
    }

    /// Where a range of the window is in `bytes`: its second part where it
    /// goes around.
    fn places(&self, at: u64, len: usize) -> (Range<usize>, Range<usize>) {
        let from = (at % self.bytes.len() as u64) as usize;
        let first = len.min(self.bytes.len() - from);
        (from..from + first, 0..len - first)
    }

    /// Takes a range up among those that the file does not have.
    fn remember(&mut self, mut new: Range<u64>) {
        let from = self.runs.partition_point(|run| run.end < new.start);
        let to = self.runs.partition_point(|run| run.start <= new.end);
        if let [first, ..] = &self.runs[from..to] {
            new.start = new.start.min(first.start);
            new.end = new.end.max(self.runs[to - 1].end);
        }
        self.runs.splice(from..to, [new]);
    }

    /// Writes out what of the window stands before `limit`.
    fn write_out(&mut self, limit: u64) -> Status {
        self.check()?;
        while let Some(run) = self.runs.first().filter(|run| run.start < limit).cloned() {
            // Nothing that goes around, and nothing longer than a piece.
            let end = run.end.min(limit).min((run.start / self.piece + 1) * self.piece);
            let (place, _) = self.places(run.start, (end - run.start) as usize);
            if let Err(code) = self.file.write(run.start, &self.bytes[place]) {
                return Err(self.fail(code));
            }
            if end == run.end {
                self.runs.remove(0);
            } else {
                self.runs[0].start = end;
            }
        }
        Ok(())
    }

    /// Writes straight to the file.
    fn hand_on(&mut self, mut at: u64, bytes: &[u8]) -> Status {
        for piece in bytes.chunks(self.piece as usize) {
            if let Err(code) = self.file.write(at, piece) {
                return Err(self.fail(code));
            }
            at += piece.len() as u64;
        }
        Ok(())
    }
}
