//! Parses a signature, and verifies it.
//!
//! Source: RFC 9580, sections 5.2 and 9.

use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::key::{Key, KeyMaterial};
use super::packet::{Bytes, two_bytes};

/// What a signature is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureKind {
    /// A text, with lines that end with CR and LF.
    Text,
    /// A user's name for a key.
    Certification,
    /// A subkey, signed by its primary key.
    SubkeyBinding,
    /// A primary key, signed by its subkey.
    PrimaryKeyBinding,
    /// A key, signed by itself.
    DirectKey,
    /// The revocation of a key.
    KeyRevocation,
    /// The revocation of a subkey.
    SubkeyRevocation,
    /// Anything else, which is ignored.
    Other,
}

impl SignatureKind {
    fn from_number(number: u8) -> Self {
        match number {
            0x01 => Self::Text,
            0x10..=0x13 => Self::Certification,
            0x18 => Self::SubkeyBinding,
            0x19 => Self::PrimaryKeyBinding,
            0x1f => Self::DirectKey,
            0x20 => Self::KeyRevocation,
            0x28 => Self::SubkeyRevocation,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// A version 4 signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature<'a> {
    pub(super) kind: SignatureKind,
    algorithm: u8,
    /// `None` for SHA-1 and MD5, which do not count.
    hash: Option<Hash>,
    /// What is signed in addition to the text: from the version to the subpackets.
    hashed: &'a [u8],
    numbers: &'a [u8],
    /// Seconds since 1970.
    pub(super) created: u64,
    /// Seconds after `created`.
    pub(super) expires_after: Option<u64>,
    /// Seconds after the key was created.
    pub(super) key_expires_after: Option<u64>,
    /// The permitted uses of the key.
    pub(super) key_flags: Option<u8>,
    issuer: Option<&'a [u8]>,
    /// A signature embedded in this one.
    pub(super) embedded: Option<&'a [u8]>,
}

/// Subpackets that may be marked as critical: they are understood, or do not
/// matter for whether a signature is valid.
const UNDERSTOOD: &[u8] =
    &[2, 3, 4, 7, 9, 11, 16, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 33, 34, 39];

impl<'a> Signature<'a> {
    /// Parses a packet's body. `None` if it is not version 4, or a critical
    /// subpacket is not understood.
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(body);
        if bytes.u8()? != 4 {
            return None;
        }
        let kind = SignatureKind::from_number(bytes.u8()?);
        let algorithm = bytes.u8()?;
        let hash = match bytes.u8()? {
            8 => Some(Hash::Sha256),
            9 => Some(Hash::Sha384),
            10 => Some(Hash::Sha512),
            _ => None,
        };
        let length = bytes.u16()?;
        let subpackets = bytes.take(usize::from(length))?;
        let hashed = &body[..body.len() - bytes.0.len()];
        let length = bytes.u16()?;
        let unhashed = bytes.take(usize::from(length))?;
        let _left_bits = bytes.u16()?;
        let mut signature = Self {
            kind,
            algorithm,
            hash,
            hashed,
            numbers: bytes.0,
            created: 0,
            expires_after: None,
            key_expires_after: None,
            key_flags: None,
            issuer: None,
            embedded: None,
        };
        let mut created = None;
        let mut rest = Bytes(subpackets);
        while !rest.0.is_empty() {
            let (critical, kind, mut value) = subpacket(&mut rest)?;
            match kind {
                2 => created = Some(u64::from(value.u32()?)),
                3 => signature.expires_after = lasting(value.u32()?),
                9 => signature.key_expires_after = lasting(value.u32()?),
                27 => signature.key_flags = Some(value.u8().unwrap_or(0)),
                kind if critical && !UNDERSTOOD.contains(&kind) => return None,
                _ => signature.hint(kind, value.0),
            }
        }
        // These subpackets are not signed: they only help to find the key.
        let mut rest = Bytes(unhashed);
        while !rest.0.is_empty() {
            let Some((_, kind, value)) = subpacket(&mut rest) else { break };
            signature.hint(kind, value.0);
        }
        signature.created = created?;
        Some(signature)
    }

    /// Takes values that are verified in other ways.
    fn hint(&mut self, kind: u8, value: &'a [u8]) {
        match (kind, value) {
            // A fingerprint is more precise than a key ID, which is its last bytes.
            (33, [4, fingerprint @ ..]) if fingerprint.len() == 20 => {
                self.issuer = Some(fingerprint)
            }
            (16, number) if number.len() == 8 && self.issuer.is_none() => {
                self.issuer = Some(number)
            }
            (32, embedded) if self.embedded.is_none() => self.embedded = Some(embedded),
            _ => {}
        }
    }

    /// Whether the signature claims to be by this key.
    pub(super) fn is_by(&self, key: &Key) -> bool {
        self.issuer.is_some_and(|issuer| key.fingerprint.ends_with(issuer))
    }

    /// Fingerprint or ID of the key, for display.
    pub(super) fn issuer_text(&self) -> String {
        let issuer = self.issuer.unwrap_or_default();
        issuer.iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// Whether the signature over `data` was made with the key; `None` if its
    /// algorithms are not supported.
    pub(super) fn verify(&self, key: &KeyMaterial, data: &[u8]) -> Option<bool> {
        let length = u32::try_from(self.hashed.len()).ok()?.to_be_bytes();
        let message = [data, self.hashed, &[4, 0xff], &length].concat();
        let hash = self.hash?;
        let mut numbers = Bytes(self.numbers);
        match (self.algorithm, key) {
            (1 | 3, KeyMaterial::Rsa { modulus, exponent }) => {
                let signature = padded(numbers.mpi()?, modulus.len())?;
                let parameters: &RsaParameters = match hash {
                    Hash::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                    Hash::Sha384 => &RSA_PKCS1_2048_8192_SHA384,
                    Hash::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                Some(key.verify(parameters, &message, &signature).is_ok())
            }
            (22 | 27, KeyMaterial::Ed25519(key)) => {
                let signature = match self.algorithm {
                    22 => [padded(numbers.mpi()?, 32)?, padded(numbers.mpi()?, 32)?].concat(),
                    _ => numbers.take(64)?.to_vec(),
                };
                let digest = match hash {
                    Hash::Sha256 => Sha256::digest(&message).to_vec(),
                    Hash::Sha384 => Sha384::digest(&message).to_vec(),
                    Hash::Sha512 => Sha512::digest(&message).to_vec(),
                };
                let key = UnparsedPublicKey::new(&ED25519, key);
                Some(key.verify(&digest, &signature).is_ok())
            }
            _ => None,
        }
    }
}

/// A duration; `None` if it is unlimited.
fn lasting(seconds: u32) -> Option<u64> {
    (seconds != 0).then_some(u64::from(seconds))
}

/// A number padded with leading zeros.
fn padded(number: &[u8], length: usize) -> Option<Vec<u8>> {
    let zeros = length.checked_sub(number.len())?;
    Some([&vec![0; zeros], number].concat())
}

/// Whether a subpacket is critical, its kind and its value.
fn subpacket<'a>(bytes: &mut Bytes<'a>) -> Option<(bool, u8, Bytes<'a>)> {
    let length = match bytes.u8()? {
        short @ 0..192 => usize::from(short),
        255 => usize::try_from(bytes.u32()?).ok()?,
        high => two_bytes(high, bytes.u8()?),
    };
    let mut body = Bytes(bytes.take(length)?);
    let kind = body.u8()?;
    Some((kind & 0x80 != 0, kind & 0x7f, body))
}
