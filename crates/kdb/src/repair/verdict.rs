//! What a cell that has the shape of a kdb's row is: its hash decides.

use std::borrow::Cow;

use gfxpack_model::{KernelKey, KeyError};

use crate::codec::{self, Claim};
use crate::encoding::Encoding;
use crate::error::{RowError, WriteError};
use crate::key::{check_key, key_check};
use crate::repair::page::CellPlace;
use crate::repair::shape::{Int, Shape, Span};
use crate::repair::source::{DamagedFile, stored};
use crate::repair::staging::{LostPart, WholeRow};

/// A cell on its way to being looked at.
pub(super) struct Candidate {
    pub(super) place: CellPlace,
    pub(super) rowid: i64,
    pub(super) doubt: bool,
    pub(super) shape: Shape,
    pub(super) payload: Vec<u8>,
    /// The pages that the payload goes on in, or why there is less of it.
    pub(super) chain: Result<Vec<u32>, &'static str>,
    /// What a blob in it may be unpacked to, or why not.
    pub(super) claim: Result<Claim, String>,
}

impl Candidate {
    /// The code object in it, or why there is none.
    pub(super) fn unpack(&self) -> Result<Cow<'_, [u8]>, String> {
        self.chain.as_ref().map_err(|why| (*why).to_owned())?;
        let claim = self.claim.clone()?;
        let (blob, _) = stored(&self.shape, &self.payload).ok_or("its size is no number")?;
        let object = codec::unpack(blob, claim).map_err(|error| error.to_string())?;
        if object.is_empty() { Err(RowError::Empty.to_string()) } else { Ok(object) }
    }
}

/// What a cell turned out to be.
pub(super) enum Verdict {
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
    /// There was a row of this key: of that number, if an index says so.
    Named {
        key: KernelKey,
        reason: Option<String>,
        row: Option<i64>,
    },
    /// As `Key`, with a key that no kdb takes.
    Refused {
        key: KernelKey,
        reason: String,
        hash: String,
        object: i64,
    },
    /// What has lost its key.
    Unnamed(LostPart, CellPlace, i64, String),
    Nothing,
}

impl DamagedFile<'_> {
    /// What a cell is, by its hash.
    pub(super) fn judge(&self, candidate: Candidate) -> (Verdict, Result<Vec<u32>, &'static str>) {
        let verdict = match candidate.shape {
            Shape::Row { name, args, hash, .. } => self.row(&candidate, name, args, hash),
            Shape::Object { .. } => self.object(&candidate),
            Shape::Key { name, args, hash, object, check } => {
                self.key(&candidate, [name, args, hash, check], object)
            }
            Shape::RowInfo { name, args, row } => self.entry(&candidate.payload, name, args, row),
        };
        // What was searched for may be nothing at all.
        let verdict = match verdict {
            Verdict::Named { .. } | Verdict::Refused { .. } | Verdict::Unnamed(..)
                if candidate.doubt =>
            {
                Verdict::Nothing
            }
            verdict => verdict,
        };
        (verdict, candidate.chain)
    }

    fn row(&self, candidate: &Candidate, name: Span, args: Span, hash: Span) -> Verdict {
        let Candidate { place, rowid, doubt, payload, chain, .. } = candidate;
        let encoding = self.encoding(payload, hash);
        let key = match key_of(payload, encoding, name, args) {
            Ok(key) => key,
            Err(Refusal::Key(key, reason)) => {
                return Verdict::Named { key, reason: Some(reason), row: Some(*rowid) };
            }
            Err(Refusal::Text(reason)) => {
                let reason = chain.as_ref().err().map_or(reason, |why| (*why).to_owned());
                return Verdict::Unnamed(LostPart::Row, *place, *rowid, reason);
            }
        };
        let checked = candidate.unpack().and_then(|object| {
            let hash = text(payload, encoding, hash).ok_or("its hash is no text")?;
            codec::check_hash(&object, &hash).map_err(|error| error.to_string())?;
            Ok(hash)
        });
        match checked {
            Ok(hash) => Verdict::Row(WholeRow { key, hash, place: *place }, *doubt, *rowid),
            Err(reason) => Verdict::Named { key, reason: Some(reason), row: Some(*rowid) },
        }
    }

    fn object(&self, candidate: &Candidate) -> Verdict {
        let Candidate { place, rowid, doubt, .. } = candidate;
        match candidate.unpack() {
            Ok(object) => Verdict::Object {
                hash: codec::md5_hex(&object),
                place: *place,
                row: (!doubt).then_some(*rowid),
            },
            Err(reason) => Verdict::Unnamed(LostPart::Object, *place, *rowid, reason),
        }
    }

    fn key(&self, candidate: &Candidate, texts: [Span; 4], object: Int) -> Verdict {
        let Candidate { place, doubt, payload, chain, .. } = candidate;
        let [name, args, hash, check] = texts;
        let unnamed = |reason: &str| {
            let number = i64::from(place.page) << 16 | i64::from(place.at);
            Verdict::Unnamed(LostPart::Key, *place, number, reason.to_owned())
        };
        if let Err(why) = chain {
            return unnamed(why);
        }
        let (Some(hash), Some(object)) = (hash.of(payload), object.read(payload)) else {
            return unnamed("it does not end where it should");
        };
        let hash = codec::hex(hash);
        let holds = |key: &KernelKey| check.of(payload) == Some(&key_check(key));
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) if holds(&key) => Verdict::Key { key, hash, object, doubt: *doubt },
            Err(Refusal::Key(key, reason)) if holds(&key) => {
                Verdict::Refused { key, reason, hash, object }
            }
            Ok(_) | Err(Refusal::Key(..)) => unnamed("the key does not match its checksum"),
            Err(Refusal::Text(reason)) => unnamed(&reason),
        }
    }

    fn entry(&self, payload: &[u8], name: Span, args: Span, row: Int) -> Verdict {
        // An index says nothing that its table does not say better, but for
        // what that has lost.
        match key_of(payload, self.geometry.encoding, name, args) {
            Ok(key) => Verdict::Named { key, reason: None, row: row.read(payload) },
            Err(Refusal::Key(key, reason)) => {
                Verdict::Named { key, reason: Some(reason), row: row.read(payload) }
            }
            Err(Refusal::Text(_)) => Verdict::Nothing,
        }
    }

    /// How the text of a row is stored: its hash has 32 digits, each of one
    /// byte or of two, the header may be gone.
    fn encoding(&self, payload: &[u8], hash: Span) -> Encoding {
        match hash.of(payload) {
            Some(hash) if hash.len() == 32 => Encoding::Utf8,
            Some([_, 0, ..]) if hash.len() == 64 => Encoding::Utf16Le,
            Some([0, ..]) if hash.len() == 64 => Encoding::Utf16Be,
            _ => self.geometry.encoding,
        }
    }
}

/// Why a key is not taken.
enum Refusal {
    /// It can be told all the same.
    Key(KernelKey, String),
    /// It is no text, or none to show.
    Text(String),
}

fn text(payload: &[u8], encoding: Encoding, at: Span) -> Option<String> {
    encoding.text(at.of(payload)?)
}

fn key_of(
    payload: &[u8],
    encoding: Encoding,
    name: Span,
    args: Span,
) -> Result<KernelKey, Refusal> {
    if payload.len() < args.end.max(name.end) {
        return Err(Refusal::Text("its key can't be reached".to_owned()));
    }
    let (Some(kernel_name), Some(kernel_args)) =
        (text(payload, encoding, name), text(payload, encoding, args))
    else {
        return Err(Refusal::Text(format!("its key is not {}", encoding.name())));
    };
    let key = KernelKey { kernel_name, kernel_args };
    match check_key(&key) {
        Ok(()) => Ok(key),
        Err(WriteError::Key(KeyError::Quote(_))) => {
            Err(Refusal::Key(key, "its key holds a `'`, so MIOpen can never find it".to_owned()))
        }
        Err(WriteError::KeyTooLong { size, .. }) => {
            Err(Refusal::Text(format!("its key has {size} bytes")))
        }
        Err(_) => Err(Refusal::Text("its key holds a NUL byte".to_owned())),
    }
}
