//! Encodes a row: a code object as bzip2 or raw, and its MD5.

use bzip2::{Action, Compress, Compression, Status};

use crate::codec::md5_hex;

/// How code objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blob {
    /// bzip2 if that is smaller, as MIOpen stores them.
    #[default]
    Smaller,
    /// Raw: the file is larger, and MIOpen reads it about 16 times faster.
    Raw,
}

/// bzip2's work factor.
///
/// Source: ROCm/MIOpen 2d1fd997a, `compress` in bz2.cpp.
const WORK_FACTOR: u32 = 30;

/// The block size that MIOpen asks for, in units of 100 kB.
///
/// Source: ROCm/MIOpen 2d1fd997a, `compress` in bz2.cpp.
pub(crate) const BLOCK_SIZE: u32 = 9;

/// The smallest block size with which any `len` bytes fit into one block; at
/// most [`BLOCK_SIZE`].
///
/// In the worst case the first step of bzip2 turns each run of four bytes into
/// five. A block ends 19 bytes below its size.
///
/// Source: bzip2 1.0.8, `add_pair_to_block` and `BZ2_bzCompressInit`.
pub(crate) fn one_block(len: usize) -> u32 {
    let fits = |size: &u32| len.saturating_add(len / 4 + 20) < *size as usize * 100_000;
    (1..BLOCK_SIZE).find(fits).unwrap_or(BLOCK_SIZE)
}

/// A code object in the form a row stores.
pub(crate) struct Encoded {
    /// `kernel_blob`.
    pub(crate) blob: Vec<u8>,
    /// `kernel_hash`.
    pub(crate) hash: String,
    /// `uncompressed_size`; 0 = stored raw.
    pub(crate) uncompressed_size: u64,
}

impl Encoded {
    /// Bytes of the uncompressed code object.
    #[cfg(feature = "tools")]
    pub(crate) fn object_bytes(&self) -> u64 {
        if self.uncompressed_size == 0 { self.blob.len() as u64 } else { self.uncompressed_size }
    }
}

/// Encodes a code object in the given form.
pub(crate) fn encode(object: Vec<u8>, form: Blob) -> Encoded {
    let hash = md5_hex(&object);
    encode_hashed(object, hash, form)
}

/// Encodes a code object whose MD5 is known.
pub(crate) fn encode_hashed(object: Vec<u8>, hash: String, form: Blob) -> Encoded {
    let object_bytes = object.len() as u64;
    let compressed = match form {
        Blob::Raw => None,
        Blob::Smaller => compress(&object, object.len().saturating_sub(1)),
    };
    match compressed {
        Some(blob) => Encoded { blob, hash, uncompressed_size: object_bytes },
        None => Encoded { blob: object, hash, uncompressed_size: 0 },
    }
}

/// Compresses the bytes into one bzip2 stream of [`BLOCK_SIZE`]; `None` if it
/// takes more than `limit` bytes.
///
/// Most code objects are far below 900 kB, and allocating zeroed work areas for
/// that much takes up to half as long as compressing 6 kB. So a smaller block
/// size is used if all bytes still fit into one block. The streams then differ
/// only in the digit for the block size.
pub(crate) fn compress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut stream = Compress::new(Compression::new(one_block(bytes.len())), WORK_FACTOR);
    let mut out = Vec::with_capacity(limit);
    loop {
        let taken = usize::try_from(stream.total_in()).expect("no more than was given");
        match stream.compress_vec(&bytes[taken..], &mut out, Action::Finish) {
            Ok(Status::StreamEnd) => break,
            Ok(_) if out.len() < out.capacity() => {}
            Ok(_) | Err(_) => return None,
        }
    }
    // The vector may have more capacity than requested.
    if out.len() > limit {
        return None;
    }
    out.shrink_to_fit();
    let block_size = out.get_mut(3).expect("a stream begins with `BZh` and a digit");
    *block_size = b'0' + BLOCK_SIZE as u8;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let step = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..len).map(step).collect()
    }

    #[test]
    fn a_smaller_block_size_gives_the_same_stream() {
        let whole_area = |bytes: &[u8]| {
            let mut stream = Compress::new(Compression::new(BLOCK_SIZE), WORK_FACTOR);
            let mut out = Vec::with_capacity(2 * bytes.len() + 1000);
            let status = stream.compress_vec(bytes, &mut out, Action::Finish).unwrap();
            assert_eq!(status, Status::StreamEnd);
            out
        };
        // The longest input for each size, and that plus one byte.
        let fits = |len: usize, size: usize| len + len / 4 + 20 < size * 100_000;
        let bounds = [1, 2, 4].map(|size| (0..).find(|len| !fits(len + 1, size)).unwrap());
        assert_eq!(bounds.map(one_block), [1, 2, 4]);
        assert_eq!(bounds.map(|len| one_block(len + 1)), [2, 3, 5]);
        let lens = [1, 4, 9_990, 30_000].into_iter().chain(bounds.iter().flat_map(|n| [*n, n + 1]));
        for len in lens {
            // Runs of four bytes grow the most in bzip2's first step.
            let runs = (0..len).map(|at| (at / 4) as u8).collect();
            let steps = (0..len).map(|at| (at / 700 % 5 * (at % 3)) as u8).collect();
            for bytes in [noise(len), runs, steps, vec![0; len]] {
                let stream = compress(&bytes, 2 * len + 1000).unwrap();
                assert!(stream == whole_area(&bytes), "{len} bytes");
            }
        }
    }
}
