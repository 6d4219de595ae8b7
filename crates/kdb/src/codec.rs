//! Decodes a row: unpacks its blob (bzip2 or raw) within bounds, and checks its
//! MD5.

use std::borrow::Cow;
use std::io::Read as _;

use bzip2::bufread::BzDecoder;
use gfxpack_model::code_object;
use md5::{Digest as _, Md5};

use crate::encode::one_block;
use crate::error::RowError;
use crate::open::{MAX_RATIO, WorkBudget};
use crate::schema::MAX_OBJECT_BYTES;

/// `uncompressed_size` of a row that passed [`claimed_size`]; 0 = stored raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimedSize(u64);

impl ClaimedSize {
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// Whether the size is implausible: hardly any code object compresses so
    /// well.
    pub(crate) fn is_unlikely(self, blob: &[u8]) -> bool {
        self.0 > UNLIKELY_BYTES && self.0 / MAX_RATIO > blob.len() as u64
    }
}

/// Smaller code objects are never called implausible.
const UNLIKELY_BYTES: u64 = 1 << 20;

/// Index of the block size in a bzip2 stream, after `BZh`.
const BLOCK_DIGIT: usize = 3;

/// Checks the sizes of a row before it is decoded, and counts them against
/// `work`. If the size is implausible, the object must begin as a code object
/// does; to see this, one block of bzip2 is decoded.
pub(crate) fn claimed_size(
    blob: &[u8],
    uncompressed_size: i64,
    work: &WorkBudget,
) -> Result<ClaimedSize, RowError> {
    let declared = u64::try_from(uncompressed_size).ok().filter(|size| *size <= MAX_OBJECT_BYTES);
    let claimed_size = ClaimedSize(declared.ok_or(RowError::Size(uncompressed_size))?);
    if blob.len() as u64 > MAX_OBJECT_BYTES {
        return Err(RowError::Size(blob.len() as i64));
    }
    if claimed_size.is_unlikely(blob) {
        let mut first = Vec::new();
        let head = BzDecoder::new(blob).take(code_object::BUNDLE_MAGIC.len() as u64);
        { head }.read_to_end(&mut first).map_err(RowError::Bzip2)?;
        if !code_object::begins(&first) {
            return Err(RowError::Filler { stored: blob.len(), declared: claimed_size.0 });
        }
    }
    if !work.take(claimed_size.0) {
        return Err(RowError::Work { size: claimed_size.0, limit: work.limit() });
    }
    Ok(claimed_size)
}

/// Unpacks a stored blob. The hash is not checked yet. Memory is bounded by the
/// claim and by the bytes that come out, whatever the blob.
pub(crate) fn unpack(blob: &[u8], claimed_size: ClaimedSize) -> Result<Cow<'_, [u8]>, RowError> {
    let ClaimedSize(declared) = claimed_size;
    if declared == 0 {
        return Ok(Cow::Borrowed(blob));
    }
    match decode(blob, declared, block_digit(blob, declared)) {
        // Decodes again, unchanged, so that the error describes the blob as
        // stored.
        Err(_) => decode(blob, declared, None).map(Cow::Owned),
        Ok(object) => Ok(Cow::Owned(object)),
    }
}

/// The smallest block size, as a digit, that a stream of `declared` bytes can
/// need; `None` if the stream's own is not larger.
///
/// The decoder zeroes four bytes for each byte of the block size in the
/// stream's head. That is 900 kB for nearly all streams, and takes longer than
/// decoding 10 kB.
fn block_digit(blob: &[u8], declared: u64) -> Option<u8> {
    let own = *blob.get(BLOCK_DIGIT)?;
    let needed = b'0' + one_block(usize::try_from(declared).ok()?) as u8;
    (own.is_ascii_digit() && needed < own).then_some(needed)
}

/// Decodes a blob, with `digit` in place of the block size in its head.
fn decode(blob: &[u8], declared: u64, digit: Option<u8>) -> Result<Vec<u8>, RowError> {
    // A small blob that declares a large size gets memory only as bytes come
    // out.
    let likely = declared.min(blob.len() as u64 * 64) as usize;
    let mut out = Vec::with_capacity(likely + 1);
    let (head, body) = blob.split_at(blob.len().min(BLOCK_DIGIT + 1));
    let mut head: Vec<u8> = head.to_vec();
    if let (Some(digit), Some(of_head)) = (digit, head.get_mut(BLOCK_DIGIT)) {
        *of_head = digit;
    }
    let mut bounded = BzDecoder::new(head.as_slice().chain(body)).take(declared + 1);
    bounded.read_to_end(&mut out).map_err(RowError::Bzip2)?;
    let actual = out.len() as u64;
    if actual != declared {
        let relation = if actual > declared { "at least" } else { "only" };
        return Err(RowError::Length { declared, relation, actual });
    }
    let (head, body) = bounded.into_inner().into_inner().into_inner();
    match head.len() + body.len() {
        0 => Ok(out),
        rest => Err(RowError::Trailing(rest)),
    }
}

/// Checks a code object against its stored hash.
///
/// MIOpen compares text, so upper-case digits are a mismatch to it.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernDb::FindRecordUnsafe`.
pub(crate) fn check_hash(object: &[u8], stored: &str) -> Result<(), RowError> {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if stored.len() != 32 || !stored.bytes().all(digit) {
        return Err(RowError::HashForm(stored.chars().take(64).collect()));
    }
    let computed = md5_hex(object);
    if computed == stored {
        Ok(())
    } else {
        Err(RowError::HashMismatch { stored: stored.to_owned(), computed })
    }
}

/// MD5 in the form that a row stores.
pub(crate) fn md5_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    Md5::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Blob, compress, encode};

    fn read(blob: &[u8], size: i64) -> Result<Vec<u8>, RowError> {
        let claimed_size = claimed_size(blob, size, &WorkBudget::new(0))?;
        Ok(unpack(blob, claimed_size)?.into_owned())
    }

    #[test]
    fn a_smaller_block_size_decodes_the_same() {
        // The longest input for 100 kB and for 200 kB, and each plus one byte.
        // Runs of four bytes grow the most in bzip2's first step.
        for len in [1, 4, 9_990, 79_984, 79_985, 159_984, 159_985, 800_000] {
            let runs: Vec<u8> = (0..len).map(|at| (at / 4) as u8).collect();
            let noise: Vec<u8> =
                (0..len as u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
            for object in [runs, noise, vec![0; len]] {
                let blob = compress(&object, 2 * len + 1000).unwrap();
                assert_eq!(blob[BLOCK_DIGIT], b'9');
                let digit = block_digit(&blob, len as u64);
                assert_eq!(digit.is_some(), len < 700_000, "{len}");
                assert!(decode(&blob, len as u64, digit).unwrap() == object, "{len}");
            }
        }
        // A head with a block size smaller than its block needs is still
        // damage.
        let mut small =
            encode((0..300_000_u32).map(|at| (at / 4) as u8).collect(), Blob::Smaller).blob;
        small[BLOCK_DIGIT] = b'1';
        assert_eq!(block_digit(&small, 300_000), None);
        assert!(matches!(read(&small, 300_000), Err(RowError::Bzip2(_))));
    }
}
