//! Reads an .rpm: the digests of its header and its payload, and every file in it.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use ::rpm::IndexTag as Tag;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gfxpack_model::Digest;
use rustix::fs::{FileType, RawMode};

use super::archive;
use super::outcome::{Outcome, PackageDescription, SignedHeader, Stop, damaged};
use super::rpm_header::{Header, exactly};
use crate::output::Hashing;

/// Size of the lead, of which only the mark is used.
const LEAD: usize = 96;
const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];

/// Linux has no longer paths.
pub(crate) const PATH_MAX: u64 = 4096;

/// Tags of scripts, and of the programs that run them: of the package, of its
/// transaction, and triggers.
const SCRIPTS: [u32; 21] = [
    1023, 1024, 1025, 1026, 1065, 1079, 1085, 1086, 1087, 1088, 1091, 1151, 1152, 1153, 1154, 5066,
    5076, 5104, 5105, 5106, 5107,
];

/// The file's type in a mode.
pub(crate) fn file_type(mode: u64) -> FileType {
    FileType::from_raw_mode(mode as RawMode)
}

/// A file in the header's list, or an entry of the payload.
#[derive(Debug, Clone)]
struct Entry {
    path: String,
    mode: u64,
    size: u64,
    /// Whether the contents are at another name of the same file.
    is_elsewhere: bool,
}

/// Source: rpm 4.18, docs/manual/format_v4.md; cpio(5), "New ASCII Format".
pub(super) fn check(mut file: impl BufRead, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let headers = headers(&mut file).map_err(|error| damaged("the header", error))?;
    let Some((signatures, main)) = headers else {
        return Err(Stop::Damaged("it is no .rpm".to_owned()));
    };
    if signatures.text(Tag::RPMTAG_SHA256HEADER) != Digest::of(&main.bytes).to_string() {
        outcome.finding("its header is not what its digest says");
    }
    outcome.report.about = Some(PackageDescription {
        name: main.text(Tag::RPMTAG_NAME),
        summary: main.text(Tag::RPMTAG_SUMMARY),
        depends: main.texts(Tag::RPMTAG_REQUIRENAME),
    });
    if SCRIPTS.iter().any(|tag| main.has(*tag)) {
        outcome.script("scriptlet");
    }
    if main.texts(Tag::RPMTAG_FILECAPS).iter().any(|capabilities| !capabilities.is_empty()) {
        outcome.finding("a file in it runs with more rights than its user's");
    }
    let listed = listed(&main);
    // rpm gives files the modes and types that are in the header, not in the payload.
    for Entry { path, mode, .. } in &listed {
        if path.split('/').any(|part| part == "..") || !path.starts_with('/') {
            outcome.finding(format!("`{path}` leads out of the payload"));
        }
        let kind = file_type(*mode);
        if kind != FileType::Directory {
            outcome.report.paths.insert(path.clone());
        }
        match kind {
            FileType::Symlink => {}
            FileType::RegularFile | FileType::Directory => {
                outcome.mode(path, *mode, kind == FileType::Directory);
            }
            _ => outcome.finding(format!("`{path}` is no file")),
        }
    }
    let mut payload = Hashing::new(&mut file);
    let read = {
        let packed = io::BufReader::with_capacity(256 << 10, &mut payload);
        let stream = archive::unpacked(&main.text(Tag::RPMTAG_PAYLOADCOMPRESSOR), packed, u64::MAX);
        let stream = stream.map_err(|error| damaged("the payload", error))?;
        entries(stream, &listed, outcome)
    };
    io::copy(&mut payload, &mut io::sink()).map_err(|error| damaged("the payload", error))?;
    if main.text(Tag::RPMTAG_PAYLOADSHA256) != payload.finish().1 {
        outcome.finding("its payload is not what the header says");
    }
    let binary = [Tag::RPMTAG_DSAHEADER, Tag::RPMTAG_RSAHEADER]
        .map(|tag| signatures.binary(tag).map(<[u8]>::to_vec));
    let texts = signatures.texts(Tag::RPMTAG_OPENPGP);
    let texts = texts.iter().filter_map(|text| BASE64_STANDARD.decode(text).ok());
    outcome.report.signed = Some(SignedHeader {
        signatures: binary.into_iter().flatten().chain(texts).collect(),
        header: main.bytes,
    });
    read
}

/// The header with signatures and digests, and the main one; `None` if the file is no .rpm.
fn headers(file: &mut impl BufRead) -> io::Result<Option<(Header, Header)>> {
    let mut lead = Vec::new();
    exactly(file, LEAD, &mut lead)?;
    if lead[..4] != LEAD_MAGIC {
        return Ok(None);
    }
    let signatures = Header::read(file)?;
    let padding = signatures.bytes.len().next_multiple_of(8) - signatures.bytes.len();
    exactly(file, padding, &mut Vec::new())?;
    Ok(Some((signatures, Header::read(file)?)))
}

/// Checks that a library which trusts headers may parse those of an .rpm.
pub(crate) fn check_rpm_headers(file: &mut impl BufRead) -> io::Result<()> {
    let sound = headers(file)?.filter(|(signatures, main)| {
        let digest = Digest::of(&main.bytes).to_string();
        signatures.is_sound()
            && main.is_sound()
            && signatures.text(Tag::RPMTAG_SHA256HEADER) == digest
    });
    sound.map(drop).ok_or_else(|| io::Error::other("its header is not what its digest says"))
}

/// The files that a header lists, as far as it does.
fn listed(header: &Header) -> Vec<Entry> {
    let mut sizes = header.numbers(Tag::RPMTAG_LONGFILESIZES);
    if sizes.is_empty() {
        sizes = header.numbers(Tag::RPMTAG_FILESIZES);
    }
    let dirs = header.texts(Tag::RPMTAG_DIRNAMES);
    let (indexes, modes) =
        (header.numbers(Tag::RPMTAG_DIRINDEXES), header.numbers(Tag::RPMTAG_FILEMODES));
    let names = header.texts(Tag::RPMTAG_BASENAMES).into_iter().zip(indexes);
    let listed = names.zip(sizes).zip(modes).map(|(((name, dir), size), mode)| {
        let dir = usize::try_from(dir).ok().and_then(|dir| dirs.get(dir));
        let path = dir.map_or_else(String::new, |dir| format!("{dir}{name}"));
        // The size of a directory is that of its list.
        let size = if file_type(mode) == FileType::Directory { 0 } else { size };
        Entry { path, mode, size, is_elsewhere: false }
    });
    listed.collect()
}

fn entries(
    mut stream: impl Read,
    listed: &[Entry],
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged("the payload", error);
    let modes: HashMap<&str, u64> =
        listed.iter().map(|entry| (entry.path.as_str(), entry.mode)).collect();
    while let Some(entry) = next(&mut stream, listed).map_err(failed)? {
        let Entry { path, size, is_elsewhere, .. } = &entry;
        let mut body = Read::take(&mut stream, *size);
        match modes.get(path.as_str()).map(|mode| file_type(*mode)) {
            Some(FileType::Symlink) => outcome.link(path),
            Some(FileType::RegularFile) if *is_elsewhere => outcome.link(path),
            Some(FileType::RegularFile) => outcome.file(path, &mut body)?,
            Some(_) => {}
            None => outcome.finding(format!("`{path}` is not in the header")),
        }
        io::copy(&mut body, &mut io::sink()).map_err(failed)?;
        if body.limit() > 0 {
            return Err(Stop::Damaged(format!("`{path}` is cut short")));
        }
        pad(&mut stream, *size).map_err(failed)?;
    }
    Ok(())
}

/// The next entry; `None` at the trailer. Entries have names, or, if the payload
/// is too large for that, indices of files in the header.
fn next(stream: &mut impl Read, listed: &[Entry]) -> io::Result<Option<Entry>> {
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
            let entry = listed.get(index).cloned();
            entry.map(Some).ok_or_else(|| io::Error::other("an entry is not in the header"))
        }
        b"070701" | b"070702" => {
            let mut fields = [0; 13];
            for field in &mut fields {
                *field = number(stream)?;
            }
            let [_, mode, _, _, links, _, size, _, _, _, _, length, _] = fields;
            if length == 0 || length > PATH_MAX {
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
            let path = format!("/{}", name.trim_start_matches("./").trim_start_matches('/'));
            // The last one of several names has the contents.
            let is_elsewhere = links > 1 && size == 0;
            Ok(Some(Entry { path, mode, size, is_elsewhere }))
        }
        _ => Err(io::Error::other("an entry begins with no known mark")),
    }
}

/// Skips padding up to a multiple of four.
fn pad(stream: &mut impl Read, length: u64) -> io::Result<()> {
    let padding = (length.next_multiple_of(4) - length) as usize;
    stream.read_exact(&mut [0; 4][..padding])
}
