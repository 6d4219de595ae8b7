//! Certificates: a primary key with a self-signature, and the subkeys that it has
//! signed.
//!
//! Source: RFC 9580, sections 10.1 and 5.2.4.

use super::key::{Key, hashed_key};
use super::packet::{self, Packet, Packets};
use super::signature::{Signature, SignatureKind};

/// The flag of keys that may sign data.
const SIGNS: u8 = 0x02;

/// A primary key with its signing subkeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    primary: Key,
    subkeys: Vec<Key>,
}

/// A packet followed by its signatures.
struct SignedPacket<'a> {
    packet: Packet<'a>,
    signatures: Vec<Signature<'a>>,
}

impl Certificate {
    /// All certificates that are understood, have a valid self-signature and are
    /// not revoked.
    pub(super) fn all(packets: Packets<'_>) -> Vec<Self> {
        let mut certificates = Vec::new();
        let mut current: Vec<SignedPacket<'_>> = Vec::new();
        for packet in packets {
            match packet.tag {
                packet::SIGNATURE => {
                    if let (Some(last), Some(signature)) =
                        (current.last_mut(), Signature::parse(packet.body))
                    {
                        last.signatures.push(signature);
                    }
                    continue;
                }
                packet::PUBLIC_KEY => {
                    certificates.extend(Self::from_parts(&current));
                    current.clear();
                }
                _ => {}
            }
            current.push(SignedPacket { packet, signatures: Vec::new() });
        }
        certificates.extend(Self::from_parts(&current));
        certificates
    }

    fn from_parts(parts: &[SignedPacket<'_>]) -> Option<Self> {
        let (first, parts) = parts.split_first()?;
        let mut primary = Key::parse(first.packet)?;
        let hashed = hashed_key(first.packet.body);
        let own = |signature: &&Signature<'_>, data: &[u8]| {
            signature.is_by(&primary) && signature.verify(&primary.material, data) == Some(true)
        };
        let direct = first.signatures.iter().filter(|signature| own(signature, &hashed));
        let (revoked, direct): (Vec<_>, Vec<_>) =
            direct.partition(|signature| signature.kind == SignatureKind::KeyRevocation);
        if !revoked.is_empty() {
            return None;
        }
        let mut vouching: Vec<&Signature<'_>> = direct
            .into_iter()
            .filter(|signature| signature.kind == SignatureKind::DirectKey)
            .collect();
        for part in parts {
            let mark = match part.packet.tag {
                packet::USER_ID => 0xb4,
                packet::USER_ATTRIBUTE => 0xd1,
                _ => continue,
            };
            let length = u32::try_from(part.packet.body.len()).ok()?.to_be_bytes();
            let data = [&hashed, &[mark][..], &length, part.packet.body].concat();
            let signatures =
                part.signatures.iter().filter(|s| s.kind == SignatureKind::Certification);
            vouching.extend(signatures.filter(|signature| own(signature, &data)));
        }
        // The newest self-signature counts.
        let last = vouching.into_iter().max_by_key(|signature| signature.created)?;
        let expires = last.key_expires_after.map(|after| primary.created + after);
        let signs = last.key_flags.is_none_or(|flags| flags & SIGNS != 0);
        let subkeys = parts.iter().filter(|part| part.packet.tag == packet::PUBLIC_SUBKEY);
        let subkeys = subkeys.filter_map(|part| subkey(&primary, &hashed, part)).collect();
        primary.expires = expires;
        primary.signs = signs;
        Some(Self { primary, subkeys })
    }

    /// The primary key, followed by the subkeys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.primary).chain(&self.subkeys)
    }

    /// Whether a signature by `key` is valid at `now`; if not, why.
    pub(super) fn may_sign(
        &self,
        key: &Key,
        signature: &Signature<'_>,
        now: u64,
    ) -> Result<(), &'static str> {
        if !key.signs {
            return Err("the key is not for signing");
        }
        if signature.created < key.created {
            return Err("it is older than the key");
        }
        for key in [&self.primary, key] {
            if key.expires.is_some_and(|expires| expires <= now.max(signature.created)) {
                return Err("the key has expired");
            }
        }
        match signature.expires_after {
            Some(after) if signature.created + after <= now => Err("it has expired"),
            _ => Ok(()),
        }
    }
}

/// A subkey that the primary key has signed, and that has signed the primary key.
/// Otherwise somebody could claim another person's key as their own.
fn subkey(primary: &Key, hashed_primary: &[u8], part: &SignedPacket<'_>) -> Option<Key> {
    let mut key = Key::parse(part.packet)?;
    let data = [hashed_primary, &hashed_key(part.packet.body)].concat();
    let good: Vec<_> = part
        .signatures
        .iter()
        .filter(|s| s.is_by(primary) && s.verify(&primary.material, &data) == Some(true))
        .collect();
    if good.iter().any(|signature| signature.kind == SignatureKind::SubkeyRevocation) {
        return None;
    }
    let bindings = good.iter().filter(|signature| signature.kind == SignatureKind::SubkeyBinding);
    let binding = bindings.max_by_key(|signature| signature.created)?;
    key.expires = binding.key_expires_after.map(|after| key.created + after);
    key.signs = binding.key_flags.is_some_and(|flags| flags & SIGNS != 0);
    if key.signs {
        let back = Signature::parse(binding.embedded?)?;
        let fits = back.kind == SignatureKind::PrimaryKeyBinding
            && back.verify(&key.material, &data) == Some(true);
        fits.then_some(key)
    } else {
        None
    }
}
