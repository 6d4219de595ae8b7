//! Readers that wrap others: one with a limit, and one that hashes and counts
//! bytes.

use std::io::{self, Read};

use sha2::Digest;

use crate::output::hex;

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

/// A reader that hashes and counts bytes.
pub(super) struct Hashed<R, D> {
    inner: R,
    pub(super) digest: D,
    size: u64,
}

impl<R: Read, D: Digest> Hashed<R, D> {
    pub(super) fn new(inner: R, digest: D) -> Self {
        Self { inner, digest, size: 0 }
    }

    /// The digest in hexadecimal, and the number of bytes.
    pub(super) fn finish(self) -> (String, u64) {
        (hex(&self.digest.finalize()), self.size)
    }
}

impl<R: Read, D: Digest> Read for Hashed<R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.digest.update(&buffer[..filled]);
        self.size += filled as u64;
        Ok(filled)
    }
}
