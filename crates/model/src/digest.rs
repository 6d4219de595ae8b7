//! SHA-256 over labelled fields, the identity of everything that is cached.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; displayed as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Collects fields into a digest. Every field is preceded by its length, so
/// different lists of fields never give the same bytes.
#[derive(Debug, Clone)]
pub struct Hasher(Sha256);

impl Digest {
    /// The digest of only these bytes, as `sha256sum` prints it.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl Hasher {
    /// A hasher for one kind of value: equal fields of different kinds get
    /// different digests.
    pub fn new(kind: &str) -> Self {
        Self(Sha256::new()).field(kind.as_bytes())
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a list: its length, then each item as a field.
    #[must_use]
    pub fn list<T: AsRef<[u8]>>(mut self, items: impl ExactSizeIterator<Item = T>) -> Self {
        self.0.update((items.len() as u64).to_le_bytes());
        items.fold(self, |hasher, item| hasher.field(item.as_ref()))
    }

    /// The digest of all fields so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text is not 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read digest `{0}`")]
pub struct DigestError(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError(text.to_owned());
        let plain = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 64 || !text.bytes().all(plain) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| error())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_parses_back() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("BA".parse::<Digest>().is_err());
    }

    #[test]
    fn fields_do_not_run_together() {
        let of = |fields: &[&str]| {
            fields.iter().fold(Hasher::new("t"), |h, f| h.field(f.as_bytes())).finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(Hasher::new("a").finish(), Hasher::new("b").finish());
        let list = |items: &[&str]| Hasher::new("t").list(items.iter()).field(b"x").finish();
        assert_ne!(list(&["a", "b"]), list(&["a"]));
    }
}
