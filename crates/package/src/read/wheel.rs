//! Reads a wheel: checks every file against `RECORD`, and the zip archive's
//! consistency.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::archive::below;
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use super::readers::{Hashed, Limited};

/// Maximum size of `METADATA` and `RECORD`, which are read into memory.
const TEXT_MAX: u64 = 16 << 20;
/// The signature of the record at the end of an archive.
///
/// Source: PKWARE's APPNOTE.TXT 6.3.10, 4.3.16.
const END: [u8; 4] = *b"PK\x05\x06";
const END_SIZE: u64 = 22;
/// The bits of a mode with the file's type, and the types of directories and
/// regular files.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// By name of a file: its digest and size in `RECORD`.
type Record = BTreeMap<String, (String, String)>;

/// Source: PyPA, "Binary distribution format" and "Recording installed
/// projects".
pub(super) fn check(
    file: BufReader<File>,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let failed = |error: zip::result::ZipError| damaged("the archive", &error);
    let last = last_record(&file).map_err(|error| damaged("the archive", &error))?;
    let mut archive = ZipArchive::new(file).map_err(failed)?;
    // Without overlaps, the size of the file limits how much can be unpacked.
    if archive.has_overlapping_files().map_err(failed)? {
        return Err(Stop::Damaged("files in the archive overlap".to_owned()));
    }
    archive.validate_header_consistency().map_err(failed)?;
    if archive.offset() != 0 || last != END {
        outcome.finding("there is more in the file than the archive");
    }
    let info = info_directory(path, &archive)?;
    let metadata = text(&mut archive, &format!("{info}/METADATA"))?;
    outcome.report.about = Some(about(&metadata));
    if !text(&mut archive, &format!("{info}/WHEEL"))?.starts_with("Wheel-Version: 1.") {
        outcome.finding("its format is not version 1 of wheels");
    }
    let list = format!("{info}/RECORD");
    let mut record = parse(&text(&mut archive, &list)?, outcome);
    record.remove(&list);
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(failed)?;
        let name = String::from_utf8_lossy(member.name_raw()).into_owned();
        let mode = member.unix_mode().unwrap_or(REGULAR);
        if below(&name).is_none_or(|path| path != name.trim_end_matches('/')) {
            outcome.finding(format!("`{name}` leads out of the archive"));
        }
        // Installers of wheels ignore the other bits of a mode.
        match mode & TYPE {
            DIRECTORY => continue,
            0 | REGULAR => {}
            _ => outcome.finding(format!("`/{name}` is no file")),
        }
        let size = member.size();
        let mut hashed = Hashed::new(&mut member, Sha256::new());
        outcome.file(&format!("/{}", name.trim_start_matches('/')), &mut hashed)?;
        let digest = BASE64_URL_SAFE_NO_PAD.encode(hashed.digest.finalize());
        match record.remove(&name) {
            Some(listed) if listed == (format!("sha256={digest}"), size.to_string()) => {}
            Some(_) => outcome.finding(format!("`/{name}` is not what RECORD says")),
            // `RECORD` can't contain its own signatures.
            None if name == list
                || [".jws", ".p7s"].iter().any(|end| name == list.clone() + end) => {}
            None => outcome.finding(format!("`/{name}` is not in RECORD")),
        }
    }
    for name in record.keys() {
        outcome.finding(format!("`/{name}` is in RECORD and not in the package"));
    }
    Ok(())
}

/// The first bytes of the last record, which must be at the very end, since
/// wheels have no archive comment.
fn last_record(file: &BufReader<File>) -> io::Result<[u8; END.len()]> {
    let mut begin = [0; END.len()];
    let at = file.get_ref().metadata()?.len().saturating_sub(END_SIZE);
    file.get_ref().read_exact_at(&mut begin, at)?;
    Ok(begin)
}

/// The directory of the package's metadata, according to the file's name.
fn info_directory(path: &Path, archive: &ZipArchive<BufReader<File>>) -> Result<String, Stop> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    let parts: Vec<&str> = stem.split('-').collect();
    let info = match *parts.as_slice() {
        [name, version, _, _, _] | [name, version, _, _, _, _] => {
            format!("{name}-{version}.dist-info")
        }
        _ => return Err(Stop::Damaged("its name is not that of a wheel".to_owned())),
    };
    match archive.index_for_name(&format!("{info}/RECORD")) {
        Some(_) => Ok(info),
        None => Err(Stop::Damaged(format!("there is no `{info}/RECORD` in it"))),
    }
}

fn text(archive: &mut ZipArchive<BufReader<File>>, name: &str) -> Result<String, Stop> {
    let member = archive.by_name(name).map_err(|error| damaged(name, &error))?;
    let mut text = String::new();
    let read: io::Result<usize> = Limited::new(member, TEXT_MAX).read_to_string(&mut text);
    read.map_err(|error| damaged(name, &error))?;
    Ok(text)
}

fn about(metadata: &str) -> PackageDescription {
    let fields = || metadata.lines().take_while(|line| !line.is_empty());
    let all = |field: &str| -> Vec<String> {
        let begin = format!("{field}: ");
        fields().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect()
    };
    let first = |field: &str| all(field).into_iter().next().unwrap_or_default();
    PackageDescription {
        name: first("Name"),
        summary: first("Summary"),
        depends: all("Requires-Dist"),
    }
}

fn parse(text: &str, outcome: &mut Outcome<'_, '_>) -> Record {
    let mut record = Record::new();
    for line in text.lines() {
        let fields = line.rsplitn(3, ',').collect::<Vec<_>>();
        let [size, digest, name] = *fields.as_slice() else {
            outcome.finding(format!("`{line}` is no line of RECORD"));
            continue;
        };
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(inner) => inner.replace("\"\"", "\""),
            None => name.to_owned(),
        };
        if record.insert(name.clone(), (digest.to_owned(), size.to_owned())).is_some() {
            outcome.finding(format!("`/{name}` is in RECORD twice"));
        }
    }
    record
}
