//! Reads a package for pacman: `.PKGINFO`, and every file, which is compared with
//! `.MTREE` if that exists.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::archive::{self, ArchiveFile, Root};
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use super::readers::{Hashed, Limited};

/// Maximum size of uncompressed text that is read into memory.
const TEXT_MAX: u64 = 64 << 20;

/// Files that describe the package and are not installed.
const OTHERS: [&str; 3] = [".BUILDINFO", ".CHANGELOG", ".INSTALL"];

/// What `.MTREE` says about a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct ListedFile {
    size: Option<String>,
    sha256: Option<String>,
}

/// By path: the files in `.MTREE`, without directories and links.
type List = BTreeMap<String, ListedFile>;

/// Source: pacman 6.0.2, lib/libalpm/be_package.c, `_alpm_pkg_load_internal`.
pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let stream = archive::unpacked(codec, file, u64::MAX);
    let stream = stream.map_err(|error| damaged("the archive", &error))?;
    let mut about = None;
    let mut list: Option<List> = None;
    archive::files("the archive", Root::System, stream, outcome, |path, found, outcome| {
        let ArchiveFile::File(bytes) = found else {
            // A hard link to a file that was already checked.
            list.as_mut().and_then(|list| list.remove(path));
            return Ok(());
        };
        if path == ".MTREE" {
            let plain = archive::unpacked("gz", io::BufReader::new(bytes), TEXT_MAX);
            list = Some(parse(&text(path, plain.map_err(|error| damaged(path, &error))?)?));
            return Ok(());
        }
        let mut hashed = Hashed::new(bytes, Sha256::new());
        match path {
            ".PKGINFO" => {
                about = Some(parse_info(&text(path, Limited::new(&mut hashed, TEXT_MAX))?))
            }
            path if OTHERS.contains(&path) => {
                io::copy(&mut hashed, &mut io::sink()).map_err(|error| damaged(path, &error))?;
            }
            path => outcome.file(&format!("/{path}"), &mut hashed)?,
        }
        let (sha256, size) = hashed.finish();
        let there = ListedFile { sha256: Some(sha256), size: Some(size.to_string()) };
        match list.as_mut().map(|list| list.remove(path)) {
            Some(Some(listed)) if !listed.allows(&there) => {
                outcome.finding(format!("`/{path}` is not what .MTREE says"));
            }
            Some(None) => outcome.finding(format!("`/{path}` is not in .MTREE")),
            Some(Some(_)) | None => {}
        }
        Ok(())
    })?;
    for path in list.iter().flat_map(List::keys) {
        outcome.finding(format!("`/{path}` is in .MTREE and not in the package"));
    }
    match &about {
        Some(about) if !about.name.is_empty() => {}
        _ => outcome.finding("there is no `.PKGINFO` with a name in it"),
    }
    outcome.report.about = about;
    Ok(())
}

fn text(path: &str, mut bytes: impl Read) -> Result<String, Stop> {
    let mut text = String::new();
    bytes.read_to_string(&mut text).map_err(|error| damaged(path, &error))?;
    Ok(text)
}

impl ListedFile {
    /// Whether a file matches the list. What the list does not say may be anything.
    fn allows(&self, there: &Self) -> bool {
        (self.size.is_none() || self.size == there.size)
            && (self.sha256.is_none() || self.sha256 == there.sha256)
    }
}

fn parse_info(text: &str) -> PackageDescription {
    let all = |field: &str| -> Vec<String> {
        let values = text.lines().filter_map(|line| line.split_once('='));
        let values = values.filter(|(name, _)| name.trim() == field);
        values.map(|(_, value)| value.trim().to_owned()).collect()
    };
    let first = |field: &str| all(field).into_iter().next().unwrap_or_default();
    let bare =
        |bounded: String| bounded.split(['<', '>', '=']).next().unwrap_or_default().to_owned();
    PackageDescription {
        name: first("pkgname"),
        summary: first("pkgdesc"),
        depends: all("depend").into_iter().map(bare).collect(),
    }
}

/// Parses `.MTREE`.
///
/// Source: mtree(5) of libarchive.
fn parse(text: &str) -> List {
    let mut list = List::new();
    let mut default = "file";
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(path) = fields.next() else { continue };
        let (mut listed, mut kind) = (ListedFile::default(), default);
        for (name, value) in fields.filter_map(|word| word.split_once('=')) {
            match name {
                "type" => kind = value,
                "size" => listed.size = Some(value.to_owned()),
                "sha256digest" | "sha256" => listed.sha256 = Some(value.to_owned()),
                _ => {}
            }
        }
        if path == "/set" {
            default = kind;
        } else if kind == "file" && !path.starts_with(['#', '/']) {
            list.insert(plain(path), listed);
        }
    }
    list
}

/// A path without `./` and escapes.
fn plain(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path).as_bytes();
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        let digits = path.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                at += 4;
            }
            None => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_libarchive_writes_them() {
        let text = "#mtree\n/set type=file uid=0 gid=0 mode=644\n\
                    ./.PKGINFO time=1.0 size=3 sha256digest=ab\n\
                    /set mode=755 type=dir\n./usr time=1.0\n\
                    ./usr/a\\040b\\134 time=1.0 mode=644 size=1 md5digest=x sha256digest=cd type=file\n\
                    ./usr/l time=1.0 type=link link=x\n";
        let listed = |size: &str, sha256: &str| ListedFile {
            size: Some(size.to_owned()),
            sha256: Some(sha256.to_owned()),
        };
        let expected = [(".PKGINFO", listed("3", "ab")), ("usr/a b\\", listed("1", "cd"))];
        let expected: List = expected.map(|(path, listed)| (path.to_owned(), listed)).into();
        assert_eq!(parse(text), expected);
    }
}
