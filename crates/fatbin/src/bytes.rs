//! The bytes of a file at an offset, within its size.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::error::{Error, layout};

/// Most bytes that are read into memory at once. The largest table read so, of relocations, has
/// a few megabytes.
const MAX: u64 = 64 << 20;

/// A file and its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) file: &'a File,
    pub(crate) size: u64,
}

impl<'a> Bytes<'a> {
    pub(crate) fn of(file: &'a File) -> io::Result<Self> {
        Ok(Self { file, size: file.metadata()?.len() })
    }

    /// The bytes from `at` on.
    pub(crate) fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, Error> {
        if at.checked_add(length).is_none_or(|end| end > self.size) {
            return layout("it is cut short");
        }
        if length > MAX {
            return layout(format!("a table in it has {length} bytes"));
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Reads from `at` up to, and without, `end`.
    pub(crate) fn span(&self, at: u64, end: u64) -> Span<'a> {
        Span { file: self.file, at, end: end.min(self.size) }
    }

    /// Copies bytes to another file.
    pub(crate) fn copy(&self, at: u64, length: u64, out: &File, to: u64) -> Result<(), Error> {
        let (mut from, mut out) = (self.file, out);
        from.seek(SeekFrom::Start(at))?;
        out.seek(SeekFrom::Start(to))?;
        if io::copy(&mut Read::take(from, length), &mut out)? == length {
            Ok(())
        } else {
            layout("it is cut short")
        }
    }
}

/// A part of a file, to be read once.
#[derive(Debug)]
pub(crate) struct Span<'a> {
    file: &'a File,
    pub(crate) at: u64,
    end: u64,
}

impl Read for Span<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
