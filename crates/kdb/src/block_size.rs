//! The blocks of a bzip2 stream.

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
