//! One row's bytes: bzip2 or raw, the MD5 beside it, and what can be wrong.

use std::borrow::Cow;
use std::io::Read as _;

use bzip2::bufread::BzDecoder;
use bzip2::{Action, Compress, Compression, Status};
use gfxpack_model::{KernelKey, code_object};
use md5::{Digest as _, Md5};

use crate::error::RowError;
use crate::work::{MAX_RATIO, Work};
use crate::write::Blob;

/// bzip2's block size in units of 100 kB, and its work factor.
///
/// Source: ROCm/MIOpen 2d1fd997a, `compress` in bz2.cpp.
const BLOCK_SIZE: u32 = 9;
const WORK_FACTOR: u32 = 30;

/// A code object in the form a row stores.
pub(crate) struct Encoded {
    /// `kernel_blob`.
    pub(crate) blob: Vec<u8>,
    /// `kernel_hash`.
    pub(crate) hash: String,
    /// `uncompressed_size`; 0 = stored raw.
    pub(crate) uncompressed_size: u64,
    /// Bytes of the code object, however stored.
    pub(crate) object_bytes: u64,
}

/// Encodes a code object as `form` asks.
pub(crate) fn encode(object: Vec<u8>, form: Blob) -> Encoded {
    let hash = md5_hex(&object);
    encode_hashed(object, hash, form)
}

/// Encodes a code object whose MD5 is known.
pub(crate) fn encode_hashed(object: Vec<u8>, hash: String, form: Blob) -> Encoded {
    let object_bytes = object.len() as u64;
    let compressed = match form {
        Blob::Raw => None,
        Blob::Auto => compress(&object, object.len().saturating_sub(1)),
        // bzip2's own bound on what incompressible data grows to.
        Blob::Bz2 => compress(&object, object.len() + object.len() / 100 + 600),
    };
    match compressed {
        Some(blob) => Encoded { blob, hash, uncompressed_size: object_bytes, object_bytes },
        None => Encoded { blob: object, hash, uncompressed_size: 0, object_bytes },
    }
}

/// The bytes as one bzip2 stream of [`BLOCK_SIZE`], unless it takes more than
/// `limit` bytes.
///
/// Most code objects are far below 900 kB, and getting zeroed work areas for
/// that much takes up to half as long as compressing 6 kB. So a smaller size is
/// asked for where all is one block with it too: the streams differ in the
/// digit that says it, and in nothing else.
fn compress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
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
    // The vector may have been given more room than asked for.
    if out.len() > limit {
        return None;
    }
    out.shrink_to_fit();
    let said = out.get_mut(3).expect("a stream begins with `BZh` and a digit");
    *said = b'0' + BLOCK_SIZE as u8;
    Some(out)
}

/// The least block size under which so many bytes are one block, whatever they
/// are; at most [`BLOCK_SIZE`].
///
/// A run of four bytes becomes five, which is the worst that happens to them
/// before they are in a block, and a block ends 19 bytes below its size.
///
/// Source: bzip2 1.0.8, `add_pair_to_block` and `BZ2_bzCompressInit`.
fn one_block(len: usize) -> u32 {
    let fits = |size: &u32| len + len / 4 + 20 < *size as usize * 100_000;
    (1..BLOCK_SIZE).find(fits).unwrap_or(BLOCK_SIZE)
}

/// `uncompressed_size` of a row that may be decoded; 0 = stored raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim(u64);

impl Claim {
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    pub(crate) fn is_raw(self) -> bool {
        self.0 == 0
    }

    /// Whether hardly any code object comes out of bzip2 so large.
    pub(crate) fn is_unlikely(self, blob: &[u8]) -> bool {
        self.0 > UNLIKELY_BYTES && self.0 / MAX_RATIO > blob.len() as u64
    }
}

/// Code objects below this are decoded, whatever they are.
const UNLIKELY_BYTES: u64 = 1 << 20;

/// Makes sure of what a row claims before it is decoded, and counts it. What is
/// unlikely must begin as a code object does, which takes a block of bzip2's.
///
/// # Errors
/// [`RowError::Size`], [`RowError::Filler`] or [`RowError::Work`].
pub(crate) fn claim(blob: &[u8], uncompressed_size: i64, work: &Work) -> Result<Claim, RowError> {
    let limit = work.max_object_bytes;
    let too_large = |size| RowError::Size { size, limit };
    let declared = u64::try_from(uncompressed_size).ok().filter(|size| *size <= limit);
    let claim = Claim(declared.ok_or(too_large(uncompressed_size))?);
    if blob.len() as u64 > limit {
        return Err(too_large(blob.len() as i64));
    }
    if claim.is_unlikely(blob) {
        let mut first = Vec::new();
        let head = BzDecoder::new(blob).take(code_object::BUNDLE_MAGIC.len() as u64);
        { head }.read_to_end(&mut first).map_err(RowError::Bzip2)?;
        if !code_object::begins(&first) {
            return Err(RowError::Filler { stored: blob.len(), declared: claim.0 });
        }
    }
    if !work.take(claim.0) {
        return Err(RowError::Work { size: claim.0, limit: work.limit() });
    }
    Ok(claim)
}

/// The code object of a stored blob, not yet checked against its hash. Memory
/// is bounded by what comes out and by the claim, whatever the blob.
///
/// # Errors
/// [`RowError`] of the bzip2 kinds.
pub(crate) fn unpack(blob: &[u8], claim: Claim) -> Result<Cow<'_, [u8]>, RowError> {
    let Claim(declared) = claim;
    if claim.is_raw() {
        return Ok(Cow::Borrowed(blob));
    }
    // A small blob that declares much gets memory only as bytes come out.
    let likely = declared.min(blob.len() as u64 * 64) as usize;
    let mut out = Vec::with_capacity(likely + 1);
    let mut bounded = BzDecoder::new(blob).take(declared + 1);
    bounded.read_to_end(&mut out).map_err(RowError::Bzip2)?;
    let actual = out.len() as u64;
    if actual != declared {
        let relation = if actual > declared { "at least" } else { "only" };
        return Err(RowError::Length { declared, relation, actual });
    }
    match bounded.into_inner().into_inner() {
        [] => Ok(Cow::Owned(out)),
        rest => Err(RowError::Trailing(rest.len())),
    }
}

/// Holds a code object against its stored hash.
///
/// MIOpen compares text, so upper-case digits are a mismatch to it.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernDb::FindRecordUnsafe`.
///
/// # Errors
/// [`RowError::HashForm`] or [`RowError::HashMismatch`].
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

/// What the dense layout stores beside a key: the first eight bytes of the MD5
/// of name, NUL and arguments.
pub(crate) fn key_check(key: &KernelKey) -> [u8; 8] {
    let mut digest = Md5::new();
    digest.update(&key.kernel_name);
    digest.update([0]);
    digest.update(&key.kernel_args);
    digest.finalize()[..8].try_into().expect("16 bytes")
}

/// MD5 as a row stores it.
pub(crate) fn md5_hex(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
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

    fn read(blob: &[u8], size: i64) -> Result<Vec<u8>, RowError> {
        let claim = claim(blob, size, &Work::new(0, 1 << 20))?;
        Ok(unpack(blob, claim)?.into_owned())
    }

    #[track_caller]
    fn round_trip(object: &[u8], form: Blob, raw: bool) {
        let row = encode(object.to_vec(), form);
        assert_eq!(row.uncompressed_size == 0, raw, "{form:?} of {} bytes", object.len());
        let back = read(&row.blob, row.uncompressed_size as i64).unwrap();
        assert_eq!(back, object);
        check_hash(&back, &row.hash).unwrap();
    }

    #[test]
    fn each_form_stores_what_it_says_and_reads_back() {
        let text = vec![7; 5000];
        round_trip(&text, Blob::Auto, false);
        round_trip(&text, Blob::Raw, true);
        round_trip(&noise(5000), Blob::Auto, true);
        for len in [1, 10, 1000, 100_000] {
            round_trip(&noise(len), Blob::Bz2, false);
        }
        round_trip(b"x", Blob::Auto, true);
    }

    #[test]
    fn a_smaller_work_area_gives_the_same_stream() {
        let whole_area = |bytes: &[u8]| {
            let mut stream = Compress::new(Compression::new(BLOCK_SIZE), WORK_FACTOR);
            let mut out = Vec::with_capacity(2 * bytes.len() + 1000);
            let status = stream.compress_vec(bytes, &mut out, Action::Finish).unwrap();
            assert_eq!(status, Status::StreamEnd);
            out
        };
        // The longest of each size, and one more.
        let fits = |len: usize, size: usize| len + len / 4 + 20 < size * 100_000;
        let bounds = [1, 2, 8].map(|size| (0..).find(|len| !fits(len + 1, size)).unwrap());
        assert_eq!(bounds.map(one_block), [1, 2, 8]);
        assert_eq!(bounds.map(|len| one_block(len + 1)), [2, 3, 9]);
        let lens = [1, 4, 9_990, 30_000].into_iter().chain(bounds.iter().flat_map(|n| [*n, n + 1]));
        for len in lens {
            // Runs of four grow the most before they are in a block.
            let runs = (0..len).map(|at| (at / 4) as u8).collect();
            let steps = (0..len).map(|at| (at / 700 % 5 * (at % 3)) as u8).collect();
            for bytes in [noise(len), runs, steps, vec![0; len]] {
                let stream = compress(&bytes, 2 * len + 1000).unwrap();
                assert!(stream == whole_area(&bytes), "{len} bytes");
            }
        }
    }

    #[test]
    fn the_hash_is_md5_in_lower_case() {
        // Source: RFC 1321, A.5.
        assert_eq!(md5_hex(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert!(matches!(
            check_hash(b"abc", "900150983CD24FB0D6963F7D28E17F72"),
            Err(RowError::HashForm(_))
        ));
        assert!(matches!(
            check_hash(b"abd", "900150983cd24fb0d6963f7d28e17f72"),
            Err(RowError::HashMismatch { .. })
        ));
        assert!(matches!(check_hash(b"abc", ""), Err(RowError::HashForm(_))));
    }

    #[test]
    fn a_blob_that_is_not_what_the_row_says_is_refused() {
        let object = vec![7; 5000];
        let row = encode(object, Blob::Bz2);
        let unpack = |blob: &[u8], size| read(blob, size).unwrap_err();
        assert!(matches!(unpack(&row.blob, 4999), RowError::Length { relation: "at least", .. }));
        assert!(matches!(
            unpack(&row.blob, 5001),
            RowError::Length { relation: "only", actual: 5000, .. }
        ));
        assert!(matches!(unpack(&row.blob, -1), RowError::Size { .. }));
        assert!(matches!(unpack(&row.blob, 1 << 30), RowError::Size { .. }));
        assert!(matches!(unpack(b"no bzip2", 5000), RowError::Bzip2(_)));
        assert!(matches!(unpack(b"", 5000), RowError::Bzip2(_)));
        for cut in 0..row.blob.len() {
            assert!(matches!(unpack(&row.blob[..cut], 5000), RowError::Bzip2(_)), "cut at {cut}");
        }
        let longer = [&row.blob[..], b"more"].concat();
        assert!(matches!(unpack(&longer, 5000), RowError::Trailing(4)));
    }

    #[test]
    fn a_bomb_gives_no_more_than_it_declares() {
        let bomb = encode(vec![0; 64 << 20], Blob::Bz2);
        assert!(bomb.blob.len() < 1000, "small on disk");
        let error = read(&bomb.blob, 1000).unwrap_err();
        assert!(matches!(error, RowError::Length { actual: 1001, .. }), "{error}");
    }
}
