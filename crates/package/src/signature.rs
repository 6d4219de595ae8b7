//! The interface to a signer, and the part of OpenPGP that rpm's header needs to
//! know about a signature.

use gfxpack_model::Result;

/// Signs bytes with a key.
pub trait Sign: Sync {
    /// The detached OpenPGP signature of `bytes`, in binary.
    ///
    /// # Errors
    /// The kind and the hint of what failed.
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>>;
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
    let start = body(signature)?;
    let [version, _, algorithm] = signature.get(start..start + 3)? else { return None };
    match (version, algorithm) {
        (4, 1 | 3) => Some(Algorithm::Rsa),
        (4, 17 | 19 | 22 | 27) => Some(Algorithm::Dsa),
        _ => None,
    }
}

/// Where the body of a signature packet begins.
///
/// Source: RFC 9580, 4.2.
fn body(signature: &[u8]) -> Option<usize> {
    const SIGNATURE: u8 = 2;
    let first = *signature.first()?;
    let (tag, start) = match first {
        0xc0.. => {
            let start = match *signature.get(1)? {
                0..=191 => 2,
                192..=223 => 3,
                255 => 6,
                _ => return None,
            };
            (first & 0x3f, start)
        }
        0x80.. => (first >> 2 & 0xf, 1 + *[1, 2, 4].get(usize::from(first & 3))?),
        _ => return None,
    };
    (tag == SIGNATURE).then_some(start)
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
