//! Reads a wheel: every file, which is compared with `RECORD`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use zip::ZipArchive;

use super::archive::Limited;
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use crate::output::Hashing;

/// Maximum size of `METADATA` and `RECORD`, which are read into memory.
const TEXT_MAX: u64 = 16 << 20;

/// The bits of a mode with the file's type.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// By name of a file: its digest and its size in `RECORD`.
type Record = BTreeMap<String, (String, String)>;

/// Source: PyPA, "Binary distribution format" and "Recording installed
/// projects".
pub(super) fn check(file: BufReader<File>, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let failed = |error: zip::result::ZipError| damaged("the archive", error);
    let mut archive = ZipArchive::new(file).map_err(failed)?;
    // Without overlaps, the size of the file limits how much can be unpacked.
    if archive.has_overlapping_files().map_err(failed)? {
        return Err(Stop::Damaged("files in the archive overlap".to_owned()));
    }
    let mut names = archive.file_names().filter_map(Result::ok);
    let list = names.find(|name| name.ends_with(".dist-info/RECORD"));
    let Some(list) = list.map(std::borrow::Cow::into_owned) else {
        return Err(Stop::Damaged("there is no `RECORD` in it".to_owned()));
    };
    drop(names);
    let mut text =
        |name: &str| wheel_text(&mut archive, name).map_err(|error| damaged(name, error));
    let metadata = text(&list.replace("/RECORD", "/METADATA"))?;
    outcome.report.about = Some(about(&metadata));
    let mut record = wheel_record(&text(&list)?);
    record.remove(&list);
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(failed)?;
        let name = String::from_utf8_lossy(member.name_raw()).into_owned();
        if name.starts_with('/') || name.split(['/', '\\']).any(|part| part == "..") {
            outcome.finding(format!("`{name}` leads out of the archive"));
        }
        if member.is_dir() {
            continue;
        }
        if member.unix_mode().is_some_and(|mode| !matches!(mode & TYPE, 0 | REGULAR)) {
            outcome.finding(format!("`/{name}` is no file"));
        }
        let mut hashed = Hashing::new(&mut member);
        outcome.file(&format!("/{}", name.trim_start_matches('/')), &mut hashed)?;
        let digest = format!("sha256={}", BASE64_URL_SAFE_NO_PAD.encode(hashed.finish_raw().1));
        match record.remove(&name) {
            Some((listed, _)) if listed == digest => {}
            Some(_) => outcome.finding(format!("`/{name}` is not what RECORD says")),
            // `RECORD` can't contain its own signatures.
            None if name.starts_with(&list) => {}
            None => outcome.finding(format!("`/{name}` is not in RECORD")),
        }
    }
    for name in record.keys() {
        outcome.finding(format!("`/{name}` is in RECORD and not in the package"));
    }
    Ok(())
}

/// The text of a member.
pub(crate) fn wheel_text(
    archive: &mut ZipArchive<BufReader<File>>,
    name: &str,
) -> io::Result<String> {
    let mut text = String::new();
    Limited::new(archive.by_name(name)?, TEXT_MAX).read_to_string(&mut text)?;
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

/// The lines `NAME,DIGEST,SIZE`.
pub(crate) fn wheel_record(text: &str) -> Record {
    let fields = text.lines().map(|line| line.rsplitn(3, ',').collect::<Vec<_>>());
    let record = fields.filter_map(|fields| {
        let [size, digest, name] = *fields.as_slice() else { return None };
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let name = quoted.map_or_else(|| name.to_owned(), |inner| inner.replace("\"\"", "\""));
        Some((name, (digest.to_owned(), size.to_owned())))
    });
    record.collect()
}
