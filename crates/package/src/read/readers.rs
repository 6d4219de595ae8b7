//! Readers that wrap others: one with a limit, one that counts bytes, and one
//! that hashes them.

use std::io::{self, Read};

/// A reader that fails if there are more bytes than its limit.
pub(super) struct Limited<R> {
    inner: R,
    max: u64,
    left: u64,
}

impl<R> Limited<R> {
    pub(super) fn new(inner: R, max: u64) -> Self {
        Self { inner, max, left: max }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(format!("there are more than {} bytes", self.max))),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.inner.read(&mut buffer[..most])?;
        self.left -= filled as u64;
        Ok(filled)
    }
}

/// A reader that counts bytes.
pub(super) struct Counted<'a> {
    pub(super) inner: &'a mut dyn Read,
    pub(super) size: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.size += filled as u64;
        Ok(filled)
    }
}

/// A reader that hashes bytes.
pub(super) struct Hashed<'a, R: ?Sized, D> {
    pub(super) inner: &'a mut R,
    pub(super) digest: D,
}

impl<R: Read + ?Sized, D: sha2::Digest> Read for Hashed<'_, R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.digest.update(&buffer[..filled]);
        Ok(filled)
    }
}
