//! Classifies a cell that has the shape of a kdb's row: its hash decides.

use std::borrow::Cow;

use gfxpack_model::{KernelKey, KeyError};

use crate::codec::{self, ClaimedSize};
use crate::error::{RowError, WriteError};
use crate::key::{check_key, key_check};
use crate::repair::page::CellPlace;
use crate::repair::payload_kind::{IntColumn, PayloadKind, Span};
use crate::repair::source::{DamagedFile, stored};
use crate::repair::staging::{LostPart, WholeRow};
use crate::text_encoding::Encoding;

/// A cell that is still to be checked.
pub(super) struct Candidate {
    pub(super) place: CellPlace,
    pub(super) rowid: i64,
    pub(super) doubt: bool,
    pub(super) shape: PayloadKind,
    pub(super) payload: Vec<u8>,
    /// The overflow pages of the payload, or why the payload is incomplete.
    pub(super) chain: Result<Vec<u32>, &'static str>,
    /// The checked size of its blob, or why the blob can't be unpacked.
    pub(super) claimed_size: Result<ClaimedSize, String>,
}

impl Candidate {
    /// Unpacks the code object in the cell, or says why it has none.
    pub(super) fn unpack(&self) -> Result<Cow<'_, [u8]>, String> {
        self.chain.as_ref().map_err(|why| (*why).to_owned())?;
        let claimed_size = self.claimed_size.clone()?;
        let (blob, _) = stored(&self.shape, &self.payload).ok_or("its size is no number")?;
        let object = codec::unpack(blob, claimed_size).map_err(|error| error.to_string())?;
        if object.is_empty() { Err(RowError::Empty.to_string()) } else { Ok(object) }
    }
}

/// The kind of a cell after its check.
pub(super) enum CellKind {
    Row(WholeRow, bool, i64),
    Object {
        hash: String,
        place: CellPlace,
        row: Option<i64>,
    },
    Key {
        key: KernelKey,
        hash: String,
        object: i64,
        doubt: bool,
    },
    /// A row with this key existed, under this number if an index has it.
    Named {
        key: KernelKey,
        reason: Option<String>,
        row: Option<i64>,
    },
    /// As `Key`, with a key that no kdb accepts.
    Refused {
        key: KernelKey,
        reason: String,
        hash: String,
        object: i64,
    },
    /// A part of a row whose key is lost.
    Unnamed(LostPart, CellPlace, i64, String),
    Nothing,
}

impl DamagedFile<'_> {
    /// Classifies a cell by its hash.
    pub(super) fn judge(&self, candidate: Candidate) -> (CellKind, Result<Vec<u32>, &'static str>) {
        let verdict = match candidate.shape {
            PayloadKind::Row { name, args, hash, .. } => self.row(&candidate, name, args, hash),
            PayloadKind::Object { .. } => self.object(&candidate),
            PayloadKind::Key { name, args, hash, object, check } => {
                self.key(&candidate, [name, args, hash, check], object)
            }
            PayloadKind::RowInfo { name, args, row } => {
                self.entry(&candidate.payload, name, args, row)
            }
        };
        // A cell found byte by byte may be nothing at all.
        let verdict = match verdict {
            CellKind::Named { .. } | CellKind::Refused { .. } | CellKind::Unnamed(..)
                if candidate.doubt =>
            {
                CellKind::Nothing
            }
            verdict => verdict,
        };
        (verdict, candidate.chain)
    }

    fn row(&self, candidate: &Candidate, name: Span, args: Span, hash: Span) -> CellKind {
        let Candidate { place, rowid, doubt, payload, chain, .. } = candidate;
        let encoding = self.encoding(payload, hash);
        let key = match key_of(payload, encoding, name, args) {
            Ok(key) => key,
            Err(RejectedKey::Key(key, reason)) => {
                return CellKind::Named { key, reason: Some(reason), row: Some(*rowid) };
            }
            Err(RejectedKey::Text(reason)) => {
                let reason = chain.as_ref().err().map_or(reason, |why| (*why).to_owned());
                return CellKind::Unnamed(LostPart::Row, *place, *rowid, reason);
            }
        };
        let checked = candidate.unpack().and_then(|object| {
            let hash = text(payload, encoding, hash).ok_or("its hash is no text")?;
            codec::check_hash(&object, &hash).map_err(|error| error.to_string())?;
            Ok(hash)
        });
        match checked {
            Ok(hash) => CellKind::Row(WholeRow { key, hash, place: *place }, *doubt, *rowid),
            Err(reason) => CellKind::Named { key, reason: Some(reason), row: Some(*rowid) },
        }
    }

    fn object(&self, candidate: &Candidate) -> CellKind {
        let Candidate { place, rowid, doubt, .. } = candidate;
        match candidate.unpack() {
            Ok(object) => CellKind::Object {
                hash: codec::md5_hex(&object),
                place: *place,
                row: (!doubt).then_some(*rowid),
            },
            Err(reason) => CellKind::Unnamed(LostPart::Object, *place, *rowid, reason),
        }
    }

    fn key(&self, candidate: &Candidate, texts: [Span; 4], object: IntColumn) -> CellKind {
        let Candidate { place, doubt, payload, chain, .. } = candidate;
        let [name, args, hash, check] = texts;
        let unnamed = |reason: &str| {
            let number = i64::from(place.page) << 16 | i64::from(place.at);
            CellKind::Unnamed(LostPart::Key, *place, number, reason.to_owned())
        };
        if let Err(why) = chain {
            return unnamed(why);
        }
        let (Some(hash), Some(object)) = (hash.slice(payload), object.read(payload)) else {
            return unnamed("it does not end where it should");
        };
        let hash = codec::hex(hash);
        let holds = |key: &KernelKey| check.slice(payload) == Some(&key_check(key));
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) if holds(&key) => CellKind::Key { key, hash, object, doubt: *doubt },
            Err(RejectedKey::Key(key, reason)) if holds(&key) => {
                CellKind::Refused { key, reason, hash, object }
            }
            Ok(_) | Err(RejectedKey::Key(..)) => unnamed("the key does not match its checksum"),
            Err(RejectedKey::Text(reason)) => unnamed(&reason),
        }
    }

    fn entry(&self, payload: &[u8], name: Span, args: Span, row: IntColumn) -> CellKind {
        // An index entry adds nothing to its table, except for rows that the
        // table has lost.
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) => CellKind::Named { key, reason: None, row: row.read(payload) },
            Err(RejectedKey::Key(key, reason)) => {
                CellKind::Named { key, reason: Some(reason), row: row.read(payload) }
            }
            Err(RejectedKey::Text(_)) => CellKind::Nothing,
        }
    }

    /// The text encoding of a row, from its hash, since the header may be
    /// damaged: the hash has 32 digits, each of one byte or of two.
    fn encoding(&self, payload: &[u8], hash: Span) -> Encoding {
        match hash.slice(payload) {
            Some(hash) if hash.len() == 32 => Encoding::Utf8,
            Some([_, 0, ..]) if hash.len() == 64 => Encoding::Utf16Le,
            Some([0, ..]) if hash.len() == 64 => Encoding::Utf16Be,
            _ => self.geometry.encoding,
        }
    }
}

/// Why a key is not accepted.
enum RejectedKey {
    /// The key can still be displayed.
    Key(KernelKey, String),
    /// The key is not text, or can't be displayed.
    Text(String),
}

fn text(payload: &[u8], encoding: Encoding, at: Span) -> Option<String> {
    encoding.text(at.slice(payload)?)
}

fn key_of(
    payload: &[u8],
    encoding: Encoding,
    name: Span,
    args: Span,
) -> Result<KernelKey, RejectedKey> {
    if payload.len() < args.end.max(name.end) {
        return Err(RejectedKey::Text("its key can't be reached".to_owned()));
    }
    let (Some(kernel_name), Some(kernel_args)) =
        (text(payload, encoding, name), text(payload, encoding, args))
    else {
        return Err(RejectedKey::Text(format!("its key is not {}", encoding.name())));
    };
    let key = KernelKey { kernel_name, kernel_args };
    match check_key(&key) {
        Ok(()) => Ok(key),
        Err(WriteError::Key(KeyError::Quote(_))) => Err(RejectedKey::Key(
            key,
            "its key holds a `'`, so MIOpen can never find it".to_owned(),
        )),
        Err(WriteError::KeyTooLong { size, .. }) => {
            Err(RejectedKey::Text(format!("its key has {size} bytes")))
        }
        Err(_) => Err(RejectedKey::Text("its key holds a NUL byte".to_owned())),
    }
}
