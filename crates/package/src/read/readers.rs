//! Readers that wrap others: one with a limit, and one that hashes.

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

/// A reader that hashes what is read.
pub(super) struct Hashed<R, D> {
    inner: R,
    digest: D,
}

impl<R: Read, D: Digest> Hashed<R, D> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, digest: D::new() }
    }

    /// The digest.
    pub(super) fn digest(self) -> Vec<u8> {
        self.digest.finalize().to_vec()
    }

    /// The digest in hexadecimal.
    pub(super) fn finish(self) -> String {
        hex(&self.digest())
    }
}

impl<R: Read, D: Digest> Read for Hashed<R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.digest.update(&buffer[..filled]);
        Ok(filled)
    }
}
