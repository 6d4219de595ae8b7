//! Reads a text database as a stream, line by line. Other files are recognised by
//! their first bytes.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;

use gfxpack_model::{Error, Result};

use crate::name::{DatabaseKind, Storage};
use crate::record::{DbRecord, MAX_LINE_BYTES, RecordFault};

/// A line that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub fn open(path: &Path, kind: DatabaseKind) -> Result<Self> {
        Ok(Self::new(open(path, Storage::Text)?, kind))
    }
}

impl<R: BufRead> RecordReader<R> {
    /// Reads any source of bytes.
    pub fn new(input: R, kind: DatabaseKind) -> Self {
        Self { input, kind, number: 0, line: Vec::new() }
    }

    /// The next line; `None` at the end.
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

/// The first bytes of files that are not MIOpen's text databases.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"BZh", "bzip2"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
];

/// Opens the file, positioned at its beginning, if it has this kind of storage.
pub(crate) fn open(path: &Path, storage: Storage) -> Result<BufReader<File>> {
    let io = unreadable(path);
    check_file(path)?;
    let mut file = File::open(path).map_err(io)?;
    let mut first = Vec::new();
    (&mut file).take(64).read_to_end(&mut first).map_err(io)?;
    file.rewind().map_err(io)?;
    if first.is_empty() {
        return Err(unfit(path, "it is empty", "fetch it again, or leave it out"));
    }
    if first.starts_with(LFS) {
        let hint = "fetch the file itself with `git lfs pull`";
        return Err(unfit(path, "it is a pointer of Git LFS, not the file", hint));
    }
    if let Some((_, with)) = COMPRESSED.iter().find(|(magic, _)| first.starts_with(magic)) {
        let hint = format!("decompress it first with `{with} -d`: MIOpen reads it so only");
        return Err(unfit(path, format_args!("it is compressed with {with}"), hint));
    }
    match (first.starts_with(gfxpack_sqlite::MAGIC), storage) {
        (true, Storage::Text) => Err(unfit(
            path,
            "it is SQLite, not text",
            "SQLite databases are named .db or .udb, text .db.txt, .udb.txt, .fdb.txt or .ufdb.txt",
        )),
        (false, Storage::Sqlite) => Err(unfit(
            path,
            "it is no SQLite file",
            "text is named .db.txt, .udb.txt, .fdb.txt or .ufdb.txt",
        )),
        _ => Ok(BufReader::with_capacity(1 << 16, file)),
    }
}

/// Checks that a path is a regular file, before opening it: opening a pipe
/// without a writer would block.
pub(crate) fn check_file(path: &Path) -> Result {
    if std::fs::metadata(path).map_err(unreadable(path))?.is_file() {
        return Ok(());
    }
    Err(unfit(path, "it is no file", "name the database's file"))
}

/// The error of a file that the operating system does not let be read.
pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |source| {
        let hint = "check the path, and that this user may read it";
        Error::usage(format!("failed to read `{}`", path.display()), hint).caused_by(source)
    }
}

/// The error of a file that holds something else.
pub(crate) fn unfit(path: &Path, what: impl Display, hint: impl ToString) -> Error {
    Error::usage(format!("failed to read `{}`: {what}", path.display()), hint)
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
