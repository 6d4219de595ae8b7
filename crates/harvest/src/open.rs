//! Opens and unpacks a file. Its first bytes show how it is compressed.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};

use gfxpack_model::{Error, Result};

use crate::input::{Input, unreadable};
use crate::log::{Joined, Lines, Seen};

/// Number of bytes that identify every kind of file.
const MAGIC_BYTES: usize = 40;
/// Bytes read at a time.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// Sources: SQLite, "Database File Format", 1.3; RFC 1952; RFC 8878, 3.1.1;
/// "The .xz File Format", 2.1.1.1; Git LFS, docs/spec.md.
const SQLITE: &[u8] = b"SQLite format 3\0";
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const XZ: &[u8] = b"\xfd7zXZ\0";
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The largest window that is unpacked, as a power of two: that of
/// `zstd --long`.
const ZSTD_WINDOW_LOG: u32 = 27;
/// Memory for unpacking a .xz file: slightly more than `xz -9` needs.
const XZ_MEMORY_BYTES: u64 = 80 << 20;

/// Options of a harvest.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Called from any thread with the number of bytes read.
    pub read: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Called often to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Options<'_> {
    /// Fails if the caller asks to stop.
    pub(crate) fn check(&self) -> Result {
        match self.cancelled {
            Some(cancelled) if cancelled() => Err(Error::interrupted()),
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self, bytes: u64) {
        if let Some(read) = self.read {
            read(bytes);
        }
    }
}

/// The kind of an input.
pub(crate) enum Opened<'a> {
    /// An SQLite file.
    Database,
    /// Any other file, unpacked.
    Text {
        stream: Box<dyn Read + 'a>,
        /// Makes the error of a failed read.
        failed: Box<dyn Fn(io::Error) -> Error>,
    },
}

/// Opens an input.
pub(crate) fn open<'a>(input: &Input, options: &'a Options<'a>) -> Result<Opened<'a>> {
    let name = input.name();
    let failed = |source| unreadable(&name, source);
    let raw: Box<dyn Read + 'a> = match input {
        Input::Stdin => Box::new(io::stdin().lock()),
        Input::File { path, .. } => Box::new(File::open(path).map_err(failed)?),
    };
    let (begin, raw) = peek(Counted { raw, options }, MAGIC_BYTES).map_err(failed)?;
    if begin.starts_with(SQLITE) {
        return match input {
            Input::File { path, .. } if path.is_file() => Ok(Opened::Database),
            _ => Err(packed_kdb(&name)),
        };
    }
    let packed = BufReader::with_capacity(PIECE_BYTES, raw);
    let (stream, codec): (Box<dyn Read + 'a>, Option<&'static str>) = if begin.starts_with(GZIP) {
        (Box::new(flate2::bufread::MultiGzDecoder::new(packed)), Some("gzip"))
    } else if begin.starts_with(ZSTD) {
        let mut decoder = zstd::Decoder::with_buffer(packed).map_err(failed)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(failed)?;
        (Box::new(decoder), Some("zstd"))
    } else if begin.starts_with(XZ) {
        let concatenated = liblzma::stream::CONCATENATED;
        let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, concatenated);
        let stream = stream.map_err(|error| failed(error.into()))?;
        (Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream)), Some("xz"))
    } else {
        (Box::new(packed), None)
    };
    let failed = move |source| match codec {
        Some(codec) => {
            let what = format!("it is damaged, or ends early ({codec})");
            let hint = "get the file again; --keep-going takes what can be read of it";
            Error::usage(format!("failed to unpack `{name}`: {what}"), hint).caused_by(source)
        }
        None => unreadable(&name, source),
    };
    let (begin, stream) = peek(stream, MAGIC_BYTES).map_err(&failed)?;
    if begin.starts_with(SQLITE) {
        return Err(packed_kdb(&input.name()));
    }
    if begin.starts_with(LFS_POINTER) && !matches!(input, Input::File { named: false, .. }) {
        let what = "it is a pointer of Git LFS, not the file";
        let hint = "fetch the file itself with `git lfs pull`";
        return Err(Error::usage(format!("failed to read `{}`: {what}", input.name()), hint));
    }
    Ok(Opened::Text { stream: Box::new(stream), failed: Box::new(failed) })
}

/// The error for a kdb in a stream; SQLite needs a file.
pub fn packed_kdb(name: &str) -> Error {
    let message = format!("failed to read a kdb from `{name}`: it is packed, or no file");
    Error::usage(message, "unpack it, and name the file")
}

/// The first bytes of a stream, and the whole stream.
pub(crate) fn peek<R: Read>(mut stream: R, bytes: usize) -> io::Result<(Vec<u8>, impl Read)> {
    let mut begin = Vec::new();
    stream.by_ref().take(bytes as u64).read_to_end(&mut begin)?;
    Ok((begin.clone(), Cursor::new(begin).chain(stream)))
}

/// Reports how many bytes were read.
struct Counted<'a, R> {
    raw: R,
    options: &'a Options<'a>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.options.count(read as u64);
        Ok(read)
    }
}

/// Passes the lines of an input, unpacked, to `each`; those of a command, which may begin in a line
/// for which `begins` is true, are joined as a shell joins them. Returns how many lines there are,
/// and what the text has; nothing if it is an SQLite file, which is not read.
///
/// # Errors
/// If it can't be read or unpacked, or the caller asked to stop.
pub fn read_lines(
    input: &Input,
    options: &Options<'_>,
    begins: impl Fn(&[u8]) -> bool,
    mut each: impl FnMut(u64, &[u8], bool),
) -> Result<Option<(u64, Seen)>> {
    let Opened::Text { stream, failed } = open(input, options)? else { return Ok(None) };
    let (mut lines, mut joined) = (Lines::all(), Joined::default());
    let mut join = |number, line: &[u8], cut| {
        joined.push((number, line, cut), &begins, &mut each);
    };
    pieces(stream, failed, |piece| {
        lines.push(piece, &mut join);
        options.check()
    })?;
    let seen = lines.seen();
    let count = lines.finish(&mut join);
    joined.finish(&mut each);
    Ok(Some((count, seen)))
}

/// Passes a stream to `each` in pieces.
pub fn pieces(
    mut stream: impl Read,
    failed: impl Fn(io::Error) -> Error,
    mut each: impl FnMut(&[u8]) -> Result,
) -> Result {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => each(&piece[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
