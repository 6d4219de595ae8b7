//! An .rpm: the digests of its header and its payload, and every file in it.

use std::io::{self, BufRead, Read};

use ::rpm::{IndexTag, PackageMetadata};
use sha2::{Digest, Sha256};

use super::{Hashed, Outcome, Stop, archive, damaged};
use crate::output::hex;

/// What signatures of an .rpm are over: its header, which holds the digests
/// of all the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The header's bytes.
    pub header: Vec<u8>,
    /// Detached OpenPGP signatures; none where the package is not signed.
    pub signatures: Vec<Vec<u8>>,
}

/// One file as the header lists it.
struct Listed {
    path: String,
    size: u64,
    /// SHA-256 in hexadecimal; empty for what is no file.
    sha256: String,
}

/// Source: rpm 4.18, docs/manual/format_v4.md; cpio(5), "New ASCII Format".
pub(super) fn check(mut file: impl BufRead, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let failed = |error: ::rpm::Error| damaged("the header", &error);
    let metadata = PackageMetadata::parse(&mut file).map_err(failed)?;
    let digests = metadata.check_digests().map_err(failed)?;
    if let Err(error) = digests.result() {
        outcome.finding(format!("its header is damaged: {error}"));
    }
    outcome.report.signed = Some(Signed {
        header: metadata.header_bytes().map_err(failed)?,
        signatures: metadata
            .raw_signatures()
            .map_err(failed)?
            .into_iter()
            .map(std::borrow::Cow::into_owned)
            .collect(),
    });
    let codec = metadata.header.get_entry_data_as_string(IndexTag::RPMTAG_PAYLOADCOMPRESSOR);
    let codec = codec.map_err(failed)?.to_owned();
    let promised = metadata.header.get_entry_data_as_string_array(IndexTag::RPMTAG_PAYLOADSHA256);
    let promised = promised.ok().and_then(|all| all.first().map(|text| (*text).to_owned()));
    let listed: Vec<Listed> = metadata
        .get_file_entries()
        .map_err(failed)?
        .iter()
        .map(|entry| Listed {
            path: entry.path().display().to_string(),
            size: entry.size() as u64,
            sha256: entry.digest().map(|digest| digest.as_hex().to_owned()).unwrap_or_default(),
        })
        .collect();

    let mut payload = Hashed { inner: &mut file, digest: Sha256::new() };
    let read = {
        let packed = io::BufReader::with_capacity(256 << 10, &mut payload);
        let stream = archive::unpacked(&codec, packed).map_err(|e| damaged("the payload", &e))?;
        entries(stream, &listed, outcome)
    };
    io::copy(&mut payload, &mut io::sink()).map_err(|error| damaged("the payload", &error))?;
    let sum = hex(&payload.digest.finalize());
    if promised.is_none_or(|promised| promised != sum) {
        outcome.finding("its payload is not what the header says");
    }
    read
}

fn entries(
    mut stream: impl Read,
    listed: &[Listed],
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged("the payload", &error);
    let mut seen = vec![false; listed.len()];
    while let Some(entry) = next(&mut stream, listed).map_err(failed)? {
        let Some(index) = entry.index else {
            return Err(Stop::Damaged(format!("`{}` is not in the header", entry.name)));
        };
        let Listed { path, sha256, .. } = &listed[index];
        seen[index] = true;
        if sha256.is_empty() {
            if entry.size > 0 {
                outcome.finding(format!("`{path}` has contents and no digest"));
            }
            continue;
        }
        let mut body = Read::take(&mut stream, entry.size);
        let mut hashed = Hashed { inner: &mut body, digest: Sha256::new() };
        outcome.file(path, &mut hashed)?;
        if hex(&hashed.digest.finalize()) != *sha256 {
            outcome.finding(format!("`{path}` is not what the header says"));
        }
        if body.limit() > 0 {
            return Err(Stop::Damaged(format!("`{path}` is cut short")));
        }
        pad(&mut stream, entry.size).map_err(failed)?;
    }
    for (listed, _) in
        listed.iter().zip(seen).filter(|(listed, seen)| !seen && !listed.sha256.is_empty())
    {
        outcome.finding(format!("`{}` is in the header and not in the payload", listed.path));
    }
    Ok(())
}

struct Entry {
    name: String,
    index: Option<usize>,
    size: u64,
}

/// The next entry, none at the trailer. Entries have names, or where the
/// whole is too large for that, numbers of files in the header.
fn next(stream: &mut impl Read, listed: &[Listed]) -> io::Result<Option<Entry>> {
    let mut magic = [0; 6];
    stream.read_exact(&mut magic)?;
    let number = |stream: &mut dyn Read| -> io::Result<u64> {
        let mut digits = [0; 8];
        stream.read_exact(&mut digits)?;
        let text = std::str::from_utf8(&digits).map_err(io::Error::other)?;
        u64::from_str_radix(text, 16).map_err(io::Error::other)
    };
    match &magic {
        b"07070X" => {
            let index = number(stream)? as usize;
            pad(stream, 14)?;
            let size = listed.get(index).map_or(0, |listed| listed.size);
            let index = (index < listed.len()).then_some(index);
            Ok(Some(Entry { name: String::new(), index, size }))
        }
        b"070701" | b"070702" => {
            let mut fields = [0; 13];
            for field in &mut fields {
                *field = number(stream)?;
            }
            let (size, length) = (fields[6], fields[11]);
            if length == 0 || length > 4096 {
                return Err(io::Error::other("an entry's name is too long"));
            }
            let mut name = vec![0; length as usize];
            stream.read_exact(&mut name)?;
            name.pop();
            pad(stream, 110 + length)?;
            let name = String::from_utf8_lossy(&name).into_owned();
            if name == "TRAILER!!!" {
                return Ok(None);
            }
            let path = name.strip_prefix('.').unwrap_or(&name);
            let index = listed.iter().position(|listed| listed.path == path);
            Ok(Some(Entry { name, index, size }))
        }
        _ => Err(io::Error::other("an entry begins with no known mark")),
    }
}

/// Passes over what fills `length` bytes up to a multiple of four.
fn pad(stream: &mut impl Read, length: u64) -> io::Result<()> {
    let padding = (length.next_multiple_of(4) - length) as usize;
    stream.read_exact(&mut [0; 4][..padding])
}
