//! Reads a text database as a stream, line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use crate::error::ReadError;
use crate::file;
use crate::name::{DatabaseKind, Storage};
use crate::record::{DbRecord, MAX_LINE_BYTES, RecordFault};

/// A line that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The line's number, from 1.
    pub number: u64,
    /// The record that MIOpen would read from it.
    pub record: Option<DbRecord>,
    /// The faults of the line.
    pub faults: Vec<RecordFault>,
    /// Whether the line ends in a newline. The last line may have none.
    pub ended: bool,
}

/// Iterates over the lines of a text database. Only one line is in memory.
#[derive(Debug)]
pub struct RecordReader<R> {
    input: R,
    kind: DatabaseKind,
    number: u64,
    line: Vec<u8>,
}

impl RecordReader<BufReader<File>> {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`] if it is not a text file.
    pub fn open(path: &Path, kind: DatabaseKind) -> Result<Self, ReadError> {
        Ok(Self::new(file::open(path, Storage::Text)?, kind))
    }
}

impl<R: BufRead> RecordReader<R> {
    /// Reads any source of bytes.
    pub fn new(input: R, kind: DatabaseKind) -> Self {
        Self { input, kind, number: 0, line: Vec::new() }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// The errors of the input.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let Some((too_long, ended)) = self.fill()? else { return Ok(None) };
            self.number += 1;
            let number = self.number;
            if too_long {
                let faults = vec![RecordFault::TooLong];
                return Ok(Some(Line { number, record: None, faults, ended }));
            }
            // MIOpen silently skips empty lines.
            if !self.line.is_empty() {
                let (record, faults) = DbRecord::parse(&self.line, self.kind);
                return Ok(Some(Line { number, record, faults, ended }));
            }
        }
    }

    /// Reads a line without its newline. Returns whether it is too long, which
    /// leaves only a part of it, and whether it has a newline; `None` at the
    /// end of the input.
    fn fill(&mut self) -> io::Result<Option<(bool, bool)>> {
        let mut too_long = false;
        loop {
            self.line.clear();
            let mut part = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
            let read = part.read_until(b'\n', &mut self.line)?;
            if read == 0 && !too_long {
                return Ok(None);
            }
            let ended = self.line.pop_if(|last| *last == b'\n').is_some();
            if ended || read <= MAX_LINE_BYTES {
                return Ok(Some((too_long, ended)));
            }
            too_long = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], piece: usize) -> Vec<Line> {
        let input = BufReader::with_capacity(piece, text);
        let mut reader = RecordReader::new(input, DatabaseKind::Perf);
        std::iter::from_fn(|| reader.next_line().expect("memory can be read")).collect()
    }

    #[test]
    fn lines_are_counted_whatever_the_pieces() {
        let text = b"a=A:1\n\nno key\nb=B:2";
        let all = lines(text, 64);
        let numbers: Vec<_> = all.iter().map(|line| (line.number, line.ended)).collect();
        assert_eq!(numbers, [(1, true), (3, true), (4, false)]);
        assert_eq!(all[1].faults, [RecordFault::NoKey]);
        for piece in 1..8 {
            assert_eq!(lines(text, piece), all, "pieces of {piece}");
        }
        assert_eq!(lines(b"", 1), []);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut text = vec![b'x'; 3 * MAX_LINE_BYTES];
        text.extend_from_slice(b"\na=A:1\n");
        let mut reader = RecordReader::new(BufReader::new(text.as_slice()), DatabaseKind::Perf);
        let first = reader.next_line().expect("read").expect("a line");
        assert_eq!((first.faults, first.record), (vec![RecordFault::TooLong], None));
        assert!(reader.line.capacity() <= 2 * MAX_LINE_BYTES, "{}", reader.line.capacity());
        let second = reader.next_line().expect("read").expect("a line");
        assert_eq!(second.record.expect("a record").line(), "a=A:1");
    }
}
