//! Finds keys whose signatures newer package managers refuse, though gpg makes and accepts them.
//!
//! Source: RFC 9580, 4.2, 5.2.3, 5.5.2, 5.5.4; apt 3.0, `default-sequoia.config`; RHEL 9, "Crypto
//! policies".

use std::collections::BTreeMap;

use sha1::{Digest as _, Sha1};

use crate::output::hex;

const SIGNATURE: u8 = 2;
const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;

/// Kinds of signatures: of a key about itself and its names, of a key about its subkey.
const SELF: [u8; 5] = [0x10, 0x11, 0x12, 0x13, 0x1f];
const BINDING: u8 = 0x18;

/// Subpackets of a signature: who made it, and the signature of a subkey about its key.
const ISSUER: u8 = 16;
const EMBEDDED: u8 = 32;

/// What is wrong with keys, by their fingerprints in capitals. `keys` are not armoured.
pub(super) fn flaws(keys: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let packets = packets(keys);
    let begins = |(tag, _): &(u8, &[u8])| *tag == PUBLIC_KEY;
    for key in packets.chunk_by(|_, next| !begins(next)).filter(|key| begins(&key[0])) {
        let Some(primary) = Part::of(key) else { continue };
        let own = primary.flaw(&SELF, &primary.id, "its name");
        let parts = key.chunk_by(|_, next| next.0 != PUBLIC_SUBKEY).skip(1);
        for part in parts.filter_map(Part::of) {
            let inherited = own.as_ref().map(|flaw| format!("belongs to a key that {flaw}"));
            let flaw = inherited.or_else(|| part.flaw(&[BINDING], &primary.id, "its key"));
            found.extend(flaw.map(|flaw| (part.fingerprint.clone(), flaw)));
        }
        found.extend(own.map(|flaw| (primary.fingerprint, flaw)));
    }
    found
}

/// A key or a subkey, with the packets up to the next.
struct Part<'a> {
    fingerprint: String,
    id: Vec<u8>,
    key: &'a [u8],
    rest: &'a [(u8, &'a [u8])],
}

impl<'a> Part<'a> {
    /// `None` for other versions than 4: version 6 knows no weak ones, and nothing reads version 3.
    fn of(packets: &'a [(u8, &'a [u8])]) -> Option<Self> {
        let ((_, key), rest) = packets.split_first()?;
        let length = u16::try_from(key.len()).ok().filter(|_| key.first() == Some(&4))?;
        let hashed = Sha1::new().chain_update([0x99]).chain_update(length.to_be_bytes());
        let fingerprint = hashed.chain_update(key).finalize();
        let id = fingerprint[12..].to_vec();
        Some(Self { fingerprint: hex(&fingerprint).to_uppercase(), id, key, rest })
    }

    /// What is wrong, as the end of a sentence that begins with the key. Signatures of these
    /// `kinds` by the key with this ID say that the part belongs to `what`.
    fn flaw(&self, kinds: &[u8], id: &[u8], what: &str) -> Option<String> {
        const RSA_BITS: u16 = 2048;
        let number =
            |at: usize| Some(u16::from_be_bytes([*self.key.get(at)?, *self.key.get(at + 1)?]));
        match (self.key.get(5)?, number(6)?) {
            (1..=3, bits @ ..RSA_BITS) => return Some(format!("is an RSA key of {bits} bits")),
            (17, _) => return Some("is a DSA key".to_owned()),
            _ => {}
        }
        let signatures = self.rest.iter().filter(|(tag, _)| *tag == SIGNATURE);
        let own = signatures.filter(|(_, body)| {
            body.first() == Some(&4)
                && body.get(1).is_some_and(|kind| kinds.contains(kind))
                && subpacket(body, ISSUER).is_none_or(|issuer| issuer == id)
        });
        // The newest counts, which is not weaker than those before it.
        let strong =
            own.map(|(_, body)| is_strong(body) && subpacket(body, EMBEDDED).is_none_or(is_strong));
        (strong.max() == Some(false)).then(|| format!("is bound to {what} with SHA-1 or MD5 alone"))
    }
}

/// Whether a signature is of a better digest than MD5, SHA-1 and RIPEMD.
fn is_strong(signature: &[u8]) -> bool {
    signature.get(3).is_some_and(|digest| !matches!(digest, 1..=3))
}

/// The packets with their tags, as far as they are whole.
pub(crate) fn packets(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let Some((first, rest)) = bytes.split_first().filter(|(first, _)| **first >= 0x80) {
        let (tag, split) = if *first >= 0xc0 {
            (first & 0x3f, new_length(rest))
        } else {
            // The fourth kind of length says none.
            let size = [1, 2, 4].get(usize::from(first & 3));
            let split = size.and_then(|size| rest.split_at_checked(*size));
            (first >> 2 & 0xf, split.map(|(size, rest)| (number(size), rest)))
        };
        let body = split.and_then(|(length, rest)| rest.split_at_checked(length));
        let Some((body, rest)) = body else { break };
        found.push((tag, body));
        bytes = rest;
    }
    found
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
}

/// A length of one, two or five bytes, and what follows it.
fn new_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [first @ ..192, rest @ ..] => Some((usize::from(*first), rest)),
        [first @ 192..224, second, rest @ ..] => {
            Some((number(&[first - 192, *second]) + 192, rest))
        }
        [255, rest @ ..] => rest.split_at_checked(4).map(|(size, rest)| (number(size), rest)),
        _ => None,
    }
}

/// The body of a signature's first subpacket of a kind.
fn subpacket(signature: &[u8], kind: u8) -> Option<&[u8]> {
    let (hashed, rest) = area(signature.get(4..)?)?;
    let (unhashed, _) = area(rest)?;
    [hashed, unhashed].into_iter().find_map(|mut area| {
        loop {
            let (length, rest) = new_length(area)?;
            let (body, rest) = rest.split_at_checked(length)?;
            match body.split_first() {
                Some((found, body)) if found & 0x7f == kind => return Some(body),
                _ => area = rest,
            }
        }
    })
}

fn area(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(number(size))
}
