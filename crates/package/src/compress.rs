//! The compressors for packages. Each gives the same bytes on every machine.

use std::io::{self, BufWriter, IntoInnerError, Write};

use zstd::zstd_safe::CParameter;

use crate::gzip::{self, Gzip};
use gfxpack_model::{Error, Result};

/// How an archive's payload is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// xz, which every dpkg and rpm in use reads.
    Xz {
        /// 0 to 9.
        level: u32,
    },
    /// gzip, which everything reads.
    Gz {
        /// 1 to 9.
        level: u32,
    },
    /// zstd, by far the fastest; needs dpkg 1.21.18 (Debian 12, Ubuntu 22.04)
    /// or rpm 4.14.
    Zst {
        /// 1 to 22.
        level: u32,
    },
}

/// Memory that all workers of one xz encoder may use, in bytes.
///
/// Threads beyond this limit are not started. The bytes do not depend on the
/// number of threads, so the limit has no effect on them.
const XZ_MEMORY: u64 = 96 << 20;

/// Number of input bytes in an xz block, by level: three times the level's
/// dictionary.
///
/// Each thread compresses blocks. Where blocks end determines the bytes, so their
/// size is fixed here, independently of the library's version.
const XZ_BLOCK: [u64; 10] = {
    const MIB: u64 = 1 << 20;
    [MIB, 3 * MIB, 6 * MIB, 12 * MIB, 12 * MIB, 24 * MIB, 24 * MIB, 48 * MIB, 96 * MIB, 192 * MIB]
};

impl Compression {
    /// The extension of file names: `xz`, `gz` or `zst`.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Xz { .. } => "xz",
            Self::Gz { .. } => "gz",
            Self::Zst { .. } => "zst",
        }
    }

    /// The program's name: `xz`, `gzip` or `zstd`, as in rpm's headers.
    pub fn program(self) -> &'static str {
        match self {
            Self::Xz { .. } => "xz",
            Self::Gz { .. } => "gzip",
            Self::Zst { .. } => "zstd",
        }
    }

    /// The level, as the program takes it.
    pub fn level(self) -> u32 {
        match self {
            Self::Xz { level } | Self::Gz { level } | Self::Zst { level } => level,
        }
    }

    /// An upper estimate of the memory for compressing with this number of
    /// threads, in bytes.
    pub fn memory(self, threads: usize) -> u64 {
        match self {
            Self::Xz { level } => builder_memory(level.min(9), xz_threads(level.min(9), threads)),
            Self::Gz { .. } => gzip::memory(threads),
            Self::Zst { level } => {
                zstd_memory(level) * (u64::from(zstd_workers(level, threads)) + 1)
            }
        }
    }

    pub(crate) fn check(self) -> Result {
        let levels = match self {
            Self::Xz { .. } => 0..=9,
            Self::Gz { .. } => 1..=9,
            Self::Zst { .. } => 1..=22,
        };
        let (codec, level) = (self.program(), self.level());
        if levels.contains(&level) {
            return Ok(());
        }
        Err(Error::usage(
            format!("failed to compress with {codec} level `{level}`"),
            format!("{codec} has the levels {} to {}", levels.start(), levels.end()),
        ))
    }

    /// Starts compressing into `out` with up to `threads` threads.
    pub(crate) fn encoder<W: Write>(self, out: W, threads: usize) -> io::Result<Encoder<W>> {
        let codec = match self {
            Self::Xz { level } => {
                let stream = xz_builder(level, threads).encoder()?;
                Codec::Xz(liblzma::write::XzEncoder::new_stream(out, stream))
            }
            Self::Gz { level } => Codec::Gz(Gzip::new(out, level, threads)?),
            Self::Zst { level } => {
                let signed = i32::try_from(level).map_err(io::Error::other)?;
                let mut encoder = zstd::stream::write::Encoder::new(out, signed)?;
                encoder.include_checksum(true)?;
                // Also with one worker: without any, the bytes differ.
                encoder.multithread(zstd_workers(level, threads))?;
                encoder.set_parameter(CParameter::JobSize(zstd_job(level)))?;
                Codec::Zst(encoder)
            }
        };
        Ok(BufWriter::with_capacity(PIECE, codec))
    }
}

/// Compresses bytes in memory as `gzip -n` does at this level. At 0, the size of the result depends
/// only on the size of the input.
pub(crate) fn gzipped(bytes: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut gzip = Gzip::new(Vec::new(), level, 1)?;
    gzip.write_all(bytes)?;
    gzip.finish()
}

/// Compresses bytes in memory.
///
/// # Errors
/// If the compressor does not have the level.
pub fn compressed(bytes: &[u8], compression: Compression) -> io::Result<Vec<u8>> {
    compression.check().map_err(io::Error::other)?;
    let mut encoder = compression.encoder(Vec::new(), 1)?;
    encoder.write_all(bytes)?;
    finish(encoder)
}

/// The multi-threaded encoder, even for one thread: the other one gives different
/// bytes.
fn xz_builder(level: u32, threads: usize) -> liblzma::stream::MtStreamBuilder {
    let mut builder = liblzma::stream::MtStreamBuilder::new();
    builder.preset(level).check(liblzma::stream::Check::Crc64);
    builder.block_size(XZ_BLOCK[level as usize]).timeout_ms(0);
    builder.threads(xz_threads(level, threads));
    builder
}

fn xz_threads(level: u32, threads: usize) -> u32 {
    fitting(threads, |count| builder_memory(level, count) <= XZ_MEMORY)
}

/// The number of threads: at most `threads`, limited by memory, but at least one.
fn fitting(threads: usize, fits: impl Fn(u32) -> bool) -> u32 {
    (1..=threads.min(64) as u32).rev().find(|count| fits(*count)).unwrap_or(1)
}

/// Memory that all workers of one zstd encoder may use, in bytes.
const ZSTD_MEMORY: u64 = 128 << 20;

/// Number of input bytes in a zstd job: four times the level's window. It
/// determines the bytes, so it is fixed here.
///
/// Source: zstd 1.5, `lib/compress/clevels.h`.
fn zstd_job(level: u32) -> u32 {
    match level {
        ..=8 => 8 << 20,
        9..=16 => 16 << 20,
        17..=19 => 32 << 20,
        _ => 512 << 20,
    }
}

/// Memory that one zstd worker uses: for its input, its output and its tables.
fn zstd_memory(level: u32) -> u64 {
    u64::from(zstd_job(level)) * 3
}

fn zstd_workers(level: u32, threads: usize) -> u32 {
    fitting(threads, |count| zstd_memory(level) * u64::from(count + 1) <= ZSTD_MEMORY)
}

fn builder_memory(level: u32, threads: u32) -> u64 {
    let mut builder = liblzma::stream::MtStreamBuilder::new();
    builder.preset(level).block_size(XZ_BLOCK[level as usize]).threads(threads).memusage()
}

/// Small writes are collected up to this number of bytes, so that the codec is
/// called less often. It makes blocks of its own.
const PIECE: usize = 128 << 10;

/// A running compressor, which [`finish`] ends.
pub(crate) type Encoder<W> = BufWriter<Codec<W>>;

pub(crate) enum Codec<W: Write> {
    Xz(liblzma::write::XzEncoder<W>),
    Gz(Gzip<W>),
    Zst(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Write for Codec<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Xz(encoder) => encoder.write(bytes),
            Self::Gz(encoder) => encoder.write_all(bytes).map(|()| bytes.len()),
            Self::Zst(encoder) => encoder.write(bytes),
        }
    }

    /// Does nothing, since a flush would change the bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends the stream, and returns the underlying writer.
pub(crate) fn finish<W: Write>(encoder: Encoder<W>) -> io::Result<W> {
    match encoder.into_inner().map_err(IntoInnerError::into_error)? {
        Codec::Xz(encoder) => encoder.finish(),
        Codec::Gz(encoder) => encoder.finish(),
        Codec::Zst(encoder) => encoder.finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half noise, half repetition, long enough for several blocks of each codec.
    fn sample(size: usize) -> Vec<u8> {
        let mut state = 7_u64;
        let mut bytes = Vec::new();
        while bytes.len() < size {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend_from_slice(&state.to_le_bytes());
            bytes.extend_from_slice(b"the same again, ");
        }
        bytes
    }

    fn packed(compression: Compression, threads: usize, piece: usize) -> Vec<u8> {
        let size = if matches!(compression, Compression::Zst { .. }) { 20 << 20 } else { 4 << 20 };
        let mut encoder = compression.encoder(Vec::new(), threads).expect("the encoder starts");
        for chunk in sample(size).chunks(piece) {
            encoder.write_all(chunk).expect("memory takes it");
        }
        finish(encoder).expect("the stream ends")
    }

    #[test]
    fn bytes_depend_on_neither_threads_nor_the_size_of_writes() {
        for compression in [
            Compression::Xz { level: 0 },
            Compression::Xz { level: 1 },
            Compression::Gz { level: 6 },
            Compression::Gz { level: 1 },
            Compression::Zst { level: 3 },
        ] {
            let expected = packed(compression, 1, 1 << 16);
            assert!(expected == packed(compression, 2, 1 << 16), "{compression:?}: 2 threads");
            assert!(expected == packed(compression, 9, 1 << 16), "{compression:?}: 9 threads");
            assert!(expected == packed(compression, 2, 10_007), "{compression:?}: odd writes");
        }
    }

    #[test]
    fn xz_threads_stay_within_the_bound_on_memory() {
        for level in 0..=4 {
            for wanted in [1, 2, 16, 200] {
                let memory = xz_builder(level, wanted).memusage();
                assert!(memory <= XZ_MEMORY, "level {level}, {wanted} threads: {memory} bytes");
            }
        }
        assert!(builder_memory(1, 2) <= XZ_MEMORY, "two threads at the default level must fit");
    }

    #[test]
    fn gzip_headers_hold_no_time_and_no_name() {
        let bytes = gzipped(b"text", 9).expect("memory takes it");
        assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]);
    }

    #[test]
    fn the_size_of_stored_data_depends_only_on_their_length() {
        for size in [0, 1, 10_240, 1 << 20] {
            let stored = |bytes: Vec<u8>| gzipped(&bytes, 0).expect("memory takes it").len();
            assert_eq!(stored(vec![0; size]), stored(sample(size)[..size].to_vec()), "{size}");
        }
    }

    #[test]
    fn levels_out_of_range_are_refused() {
        for wrong in [
            Compression::Xz { level: 10 },
            Compression::Gz { level: 0 },
            Compression::Gz { level: 10 },
            Compression::Zst { level: 0 },
            Compression::Zst { level: 23 },
        ] {
            let error = wrong.check().expect_err("no such level");
            assert!(error.hint().is_some_and(|it| it.contains(wrong.program())), "{error:?}");
        }
        assert!(Compression::Xz { level: 0 }.check().is_ok());
    }
}
