//! Verifies a clear-signed text against a keyring.
//!
//! It supports only what archives use: version 4 keys and signatures, RSA and
//! Ed25519, SHA-2. The `ring` crate does the cryptography; this module parses the
//! formats and decides whether a key may sign. Anything that it does not
//! understand does not count as a signature.
//!
//! Source: RFC 9580, and RFC 4880 where both say the same.

mod armor;
mod certificate;
mod clearsign;
mod key;
mod packet;
mod signature;

use certificate::Certificate;
use packet::Packets;
use signature::{Signature, SignatureKind};

/// Why a text is not verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The text is not clear-signed, or not in the standard form.
    #[error("it is not signed as it should be: {0}")]
    Format(&'static str),
    /// There are signatures, but none is by a key of the keyring.
    #[error("none of its signatures is by a known key ({})", .0.join(", "))]
    UnknownKeys(Vec<String>),
    /// The text or the signature was changed.
    #[error("its signature by `{0}` does not fit the text")]
    Bad(String),
    /// The key is in the keyring, but is not or no longer valid.
    #[error("its signature by `{0}` does not count: {1}")]
    Key(String, &'static str),
    /// The keyring has no key that is understood.
    #[error("the keyring holds no key")]
    NoKeys,
}

/// Keys that may sign.
#[derive(Debug, Clone)]
pub struct Keyring(Vec<Certificate>);

impl Keyring {
    /// Reads the keys of a file that `gpg --export` wrote, armored or not. Keys
    /// that are not understood are left out.
    ///
    /// # Errors
    /// [`SignatureError::NoKeys`] if none is left.
    pub fn read(bytes: &[u8]) -> Result<Self, SignatureError> {
        let armored = bytes.trim_ascii_start().starts_with(b"-----BEGIN");
        let bytes = if armored {
            armor::decode(std::str::from_utf8(bytes).unwrap_or_default(), "PUBLIC KEY BLOCK")
        } else {
            Some(bytes.to_vec())
        };
        let certificates = Certificate::all(Packets::in_bytes(&bytes.unwrap_or_default()));
        if certificates.is_empty() { Err(SignatureError::NoKeys) } else { Ok(Self(certificates)) }
    }

    /// The signed text, if at least one signature is good at `now`, in seconds
    /// since 1970, and no signature by a key of the keyring is bad. Blanks at the
    /// ends of lines are not signed, and are not returned.
    ///
    /// # Errors
    /// [`SignatureError`] with the reason.
    pub fn verify(&self, message: &[u8], now: u64) -> Result<String, SignatureError> {
        let message =
            std::str::from_utf8(message).map_err(|_| SignatureError::Format("no UTF-8"))?;
        let message = clearsign::parse(message).map_err(SignatureError::Format)?;
        let signed = message.signed();
        let mut good = false;
        let (mut unknown, mut refused) = (Vec::new(), None);
        for packet in Packets::in_bytes(&message.signatures) {
            if packet.tag != packet::SIGNATURE {
                return Err(SignatureError::Format("what follows it is no signature"));
            }
            let Some(signature) = Signature::parse(packet.body) else { continue };
            if signature.kind != SignatureKind::Text {
                continue;
            }
            let issuer = signature.issuer_text();
            let Some((certificate, key)) = self.signer(&signature) else {
                unknown.push(issuer);
                continue;
            };
            match signature.verify(&key.material, &signed) {
                // A signature that is not understood is not bad: there may be a
                // newer kind beside an older one.
                None => unknown.push(issuer),
                Some(false) => return Err(SignatureError::Bad(issuer)),
                Some(true) => match certificate.may_sign(key, &signature, now) {
                    Ok(()) => good = true,
                    Err(why) => refused = Some(SignatureError::Key(issuer, why)),
                },
            }
        }
        match (good, refused) {
            (true, _) => Ok(message.text),
            (false, Some(refused)) => Err(refused),
            (false, None) => Err(SignatureError::UnknownKeys(unknown)),
        }
    }

    fn signer(&self, signature: &Signature<'_>) -> Option<(&Certificate, &key::Key)> {
        self.0.iter().find_map(|certificate| {
            let key = certificate.keys().find(|key| signature.is_by(key))?;
            Some((certificate, key))
        })
    }
}
