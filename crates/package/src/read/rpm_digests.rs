//! The rules for the signature header and the digests of an .rpm, checked before
//! their values are used.

use std::io::{self, Read};

use md5::Md5;
use sha2::{Digest, Sha256};

use super::outcome::Outcome;
use super::rpm_index::{Index, IndexEntry};
use super::rpm_types::{self as types};
use crate::output::hex;
use crate::signature;

/// `RPMSIGTAG_MD5`, the digest of header and payload.
const MD5: u32 = 1004;
/// `RPMTAG_PAYLOADDIGEST` and `RPMTAG_PAYLOADDIGESTALT`
const PAYLOAD_DIGESTS: [u32; 2] = [5092, 5097];

/// A tag of the signature header, and how rpm copies it into the main header.
struct SignatureTag {
    tag: u32,
    /// Its number in the main header.
    main: u32,
    kind: u32,
    /// The number of values, if fixed.
    count: Option<usize>,
    /// Whether it may be in the main header instead.
    either: bool,
}

const fn signed(tag: u32, main: u32, kind: u32, count: Option<usize>) -> SignatureTag {
    SignatureTag { tag, main, kind, count, either: false }
}

/// Source: rpm 4.18, lib/package.c, `xlateTags`; lib/rpmvs.c, `rpmvfytags`.
const SIGNED: [SignatureTag; 15] = [
    signed(1000, 257, types::INT32, Some(1)),
    signed(1002, 259, types::BIN, None),
    signed(MD5, 261, types::BIN, Some(16)),
    signed(1005, 262, types::BIN, None),
    SignatureTag { either: true, ..signed(1007, 1046, types::INT32, Some(1)) },
    SignatureTag { either: true, ..signed(274, 5090, types::STRING_ARRAY, None) },
    SignatureTag { either: true, ..signed(275, 5091, types::INT32, Some(1)) },
    signed(276, 276, types::STRING_ARRAY, None),
    signed(277, 277, types::INT32, Some(1)),
    signed(269, 269, types::STRING, Some(1)),
    signed(273, 273, types::STRING, Some(1)),
    signed(267, 267, types::BIN, None),
    signed(268, 268, types::BIN, None),
    signed(270, 270, types::INT64, Some(1)),
    signed(271, 271, types::INT64, Some(1)),
];

/// `RPMSIGTAG_PGP`, `RPMSIGTAG_GPG`, `RPMSIGTAG_DSA`, `RPMSIGTAG_RSA`
const SIGNATURES: [u32; 4] = [1002, 1005, 267, 268];

/// Reports what rpm would reject about signatures and digests.
///
/// Source: rpm 4.18, lib/package.c, `headerMergeLegacySigs`; lib/rpmvs.c,
/// `rpmsinfoInit`.
pub(super) fn check(signatures: &Index<'_>, main: &Index<'_>, outcome: &mut Outcome<'_, '_>) {
    for SignatureTag { tag, main: in_main, kind, count, either } in &SIGNED {
        let fits =
            |entry: &IndexEntry| entry.kind == *kind && count.is_none_or(|n| n == entry.count);
        if signatures.values(*tag).any(|(entry, _)| !fits(&entry)) {
            outcome
                .finding(format!("its signature tag {tag} has a wrong type or number of values"));
        }
        if main.has(*in_main) && (!either || signatures.has(*tag)) {
            outcome.finding(format!("its header has the signature tag {in_main}"));
        }
    }
    for tag in SIGNATURES {
        let mut found = signatures.values(tag).filter(|(entry, _)| entry.kind == types::BIN);
        if found.any(|(_, bytes)| !signature::is_packet(bytes)) {
            outcome.finding(format!("its signature tag {tag} is no OpenPGP signature"));
        }
    }
    for tag in PAYLOAD_DIGESTS {
        let fits = |entry: &IndexEntry| entry.kind == types::STRING_ARRAY && entry.count == 1;
        if main.values(tag).any(|(entry, _)| !fits(&entry)) {
            outcome.finding(format!("its header's tag {tag} is not one digest of the payload"));
        }
    }
}

/// A reader that hashes the payload.
pub(super) struct Payload<'a, R> {
    inner: &'a mut R,
    sha256: Sha256,
    /// The MD5 of header and payload, if the package has one.
    md5: Option<Md5>,
}

impl<'a, R: Read> Payload<'a, R> {
    pub(super) fn new(inner: &'a mut R, signatures: &Index<'_>, header: &[u8]) -> Self {
        let md5 = signatures.has(MD5).then(|| Md5::new_with_prefix(header));
        Self { inner, sha256: Sha256::new(), md5 }
    }

    /// Reads the rest of the payload, and returns its SHA-256 in hexadecimal.
    /// Reports a wrong MD5.
    pub(super) fn finish(
        mut self,
        signatures: &Index<'_>,
        outcome: &mut Outcome<'_, '_>,
    ) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        if let Some(md5) = self.md5 {
            let sum = md5.finalize();
            if signatures.values(MD5).any(|(_, promised)| promised != sum.as_slice()) {
                outcome.finding("its MD5 digest is not that of header and payload");
            }
        }
        Ok(hex(&self.sha256.finalize()))
    }
}

impl<R: Read> Read for Payload<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.sha256.update(&buffer[..filled]);
        if let Some(md5) = &mut self.md5 {
            md5.update(&buffer[..filled]);
        }
        Ok(filled)
    }
}
