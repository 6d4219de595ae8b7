//! The interface to a signer, and the part of OpenPGP that rpm's header needs to
//! know about a signature.

use crate::Error;

/// Signs bytes with a key.
pub trait Sign: Sync {
    /// The detached OpenPGP signature of `bytes`, in binary.
    ///
    /// # Errors
    /// [`Error::Sign`] with the cause.
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>, Error>;
}

/// The kinds of signature that rpm distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSA.
    Rsa,
    /// DSA, and all elliptic curves.
    Dsa,
}

/// The algorithm of a version 4 signature packet, if rpm reads it.
///
/// Source: RFC 9580, 5.2.3, 9.1.
pub(crate) fn algorithm(signature: &[u8]) -> Option<Algorithm> {
    let (start, _) = body(signature)?;
    let [version, _, algorithm] = signature.get(start..start + 3)? else { return None };
    match (version, algorithm) {
        (4, 1 | 3) => Some(Algorithm::Rsa),
        (4, 17 | 19 | 22 | 27) => Some(Algorithm::Dsa),
        _ => None,
    }
}

/// Whether the bytes begin with a complete signature packet of a known version.
///
/// Source: RFC 9580, 5.2; rpm 4.18, rpmio/rpmpgp_internal.c, `pgpPrtParams`.
pub(crate) fn is_packet(signature: &[u8]) -> bool {
    let Some((start, length)) = body(signature) else { return false };
    let body = signature.get(start..).and_then(|rest| rest.get(..length));
    body.and_then(|body| body.first()).is_some_and(|version| (3..=6).contains(version))
}

/// Where the body of a signature packet begins, and its length.
///
/// Source: RFC 9580, 4.2.
fn body(signature: &[u8]) -> Option<(usize, usize)> {
    const SIGNATURE: u8 = 2;
    let first = *signature.first()?;
    let number = |range: std::ops::Range<usize>| {
        let bytes = signature.get(range)?.iter();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (tag, start, length) = match first {
        0xc0.. => match *signature.get(1)? {
            short @ 0..=191 => (first & 0x3f, 2, usize::from(short)),
            long @ 192..=223 => {
                (first & 0x3f, 3, (usize::from(long - 192) << 8) + number(2..3)? + 192)
            }
            255 => (first & 0x3f, 6, number(2..6)?),
            _ => return None,
        },
        0x80.. => {
            let size = *[1, 2, 4].get(usize::from(first & 3))?;
            (first >> 2 & 0xf, 1 + size, number(1..1 + size)?)
        }
        _ => return None,
    };
    (tag == SIGNATURE).then_some((start, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_both_packet_formats_are_recognised() {
        let check = |bytes: &[u8], expected| assert_eq!(algorithm(bytes), expected, "{bytes:x?}");
        check(&[0x89, 0, 9, 4, 0, 1, 8], Some(Algorithm::Rsa));
        check(&[0x88, 9, 4, 0, 22, 8], Some(Algorithm::Dsa));
        check(&[0xc2, 9, 4, 0, 22, 8], Some(Algorithm::Dsa));
        check(&[0xc2, 0xc0, 9, 4, 0, 1, 8], Some(Algorithm::Rsa));
        check(&[0x89, 0, 9, 3, 0, 1, 8], None);
        check(&[0x99, 0, 9, 4, 0, 1, 8], None);
        check(b"-----BEGIN PGP SIGNATURE-----", None);
        check(&[0x89, 0], None);
        check(&[], None);
    }
}
