//! Public keys: primary keys and subkeys.
//!
//! Source: RFC 9580, section 5.5.

use sha1::{Digest, Sha1};

use super::packet::{self, Bytes, Packet};

/// The OID of Ed25519.
const ED25519_OID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];

/// The algorithm with its public numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyMaterial {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Ed25519(Vec<u8>),
}

/// A primary key or a subkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) fingerprint: [u8; 20],
    pub(super) material: KeyMaterial,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// Seconds since 1970.
    pub(super) expires: Option<u64>,
    pub(super) signs: bool,
}

impl Key {
    pub(super) fn parse(packet: Packet<'_>) -> Option<Self> {
        if !matches!(packet.tag, packet::PUBLIC_KEY | packet::PUBLIC_SUBKEY) {
            return None;
        }
        let mut bytes = Bytes(packet.body);
        if bytes.u8()? != 4 {
            return None;
        }
        let created = u64::from(bytes.u32()?);
        let material = match bytes.u8()? {
            1 | 3 => {
                let (modulus, exponent) = (bytes.mpi()?.to_vec(), bytes.mpi()?.to_vec());
                KeyMaterial::Rsa { modulus, exponent }
            }
            22 => {
                let length = bytes.u8()?;
                if bytes.take(usize::from(length))? != ED25519_OID {
                    return None;
                }
                let [0x40, point @ ..] = bytes.mpi()? else { return None };
                KeyMaterial::Ed25519(point.to_vec())
            }
            27 => KeyMaterial::Ed25519(bytes.take(32)?.to_vec()),
            _ => return None,
        };
        let fingerprint = Sha1::digest(hashed_key(packet.body)).into();
        Some(Self { fingerprint, material, created, expires: None, signs: false })
    }
}

/// The encoding of a key in data that are signed about it.
pub(super) fn hashed_key(body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[0x99][..], &length, body].concat()
}
