//! Knows what signs a package, and as much of OpenPGP as rpm must be told
//! about a signature.

use crate::Error;

/// Whoever holds the key.
pub trait Sign: Sync {
    /// The detached OpenPGP signature of `bytes`, in binary.
    ///
    /// # Errors
    /// [`Error::Sign`] with the cause.
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>, Error>;
}

/// The kinds of signature that rpm keeps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSA.
    Rsa,
    /// DSA, and everything on elliptic curves.
    Dsa,
}

/// The algorithm of a signature packet of version 4, if rpm reads such.
///
/// Source: RFC 9580, 4.2, 5.2.3, 9.1.
pub(crate) fn algorithm(signature: &[u8]) -> Option<Algorithm> {
    const SIGNATURE: u8 = 2;
    let first = *signature.first()?;
    let (tag, header) = match first {
        0xc0.. => {
            let length = match signature.get(1)? {
                0..=191 => 1,
                192..=223 => 2,
                255 => 5,
                _ => return None,
            };
            (first & 0x3f, 1 + length)
        }
        0x80.. => (first >> 2 & 0xf, 1 + *[1, 2, 4].get(usize::from(first & 3))?),
        _ => return None,
    };
    let [version, _, algorithm] = signature.get(header..header + 3)? else { return None };
    match (tag, version, algorithm) {
        (SIGNATURE, 4, 1 | 3) => Some(Algorithm::Rsa),
        (SIGNATURE, 4, 17 | 19 | 22 | 27) => Some(Algorithm::Dsa),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_both_packet_formats_are_told_apart() {
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
