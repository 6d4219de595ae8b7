//! Reads an .rpm: checks the digests of its header and its payload, and every
//! file in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead, Read};

use ::rpm::{Header, IndexTag, PackageMetadata};
use sha2::{Digest, Sha256};

use super::archive::{self, Root, SET_ID};
use super::outcome::{Outcome, PackageDescription, SignedHeader, Stop, damaged};
use super::readers::Hashed;
use super::rpm_digests::{self, Payload};
use super::rpm_header;
use super::rpm_index::Role;

/// Linux has no longer paths.
const PATH_MAX: u64 = 4096;

/// The kind of what is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Other,
}

/// A file in the header's list.
#[derive(Debug)]
struct HeaderFile {
    path: String,
    size: u64,
    kind: Kind,
    mode: u32,
    /// SHA-256 in hexadecimal; empty if it is not a regular file.
    sha256: String,
    /// The target of a link.
    target: String,
    /// Whether the payload need not contain it.
    ghost: bool,
    /// The same for all hard links to a file; `None` if it has only one name.
    inode: Option<(u32, u32)>,
    /// Whether the payload has the contents under this name, not at another hard
    /// link.
    is_last: bool,
}

/// Source: rpm 4.18, docs/manual/format_v4.md; cpio(5), "New ASCII Format".
pub(super) fn check(mut file: impl BufRead, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let failed = |error: ::rpm::Error| damaged("the header", &error);
    let headers = rpm_header::read(&mut file)?;
    let signatures = headers.index(Role::Signatures)?;
    rpm_digests::check(&signatures, &headers.index(Role::Main)?, outcome);
    let metadata = PackageMetadata::parse(&mut headers.bytes.as_slice()).map_err(failed)?;
    let digests = metadata.check_digests().map_err(failed)?;
    if let Err(error) = digests.result() {
        outcome.finding(format!("its header is damaged: {error}"));
    }
    if !digests.has_header_digest() {
        outcome.finding("it has no digest of its header");
    }
    outcome.report.signed = Some(SignedHeader {
        header: headers.bytes[headers.main.clone()].to_vec(),
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
    outcome.report.about = Some(about(&metadata.header));
    let listed = listed(&metadata.header)?;
    judge(&listed, outcome);

    let header = &headers.bytes[headers.main.clone()];
    let mut payload = Payload::new(&mut file, &signatures, header);
    let read = {
        let packed = io::BufReader::with_capacity(256 << 10, &mut payload);
        let stream = archive::unpacked(&codec, packed, u64::MAX);
        let stream = stream.map_err(|e| damaged("the payload", &e))?;
        entries(stream, &listed, outcome)
    };
    let sum = payload.finish(&signatures, outcome);
    let sum = sum.map_err(|error| damaged("the payload", &error))?;
    if promised.is_none_or(|promised| promised != sum) {
        outcome.finding("its payload is not what the header says");
    }
    read
}

/// How the header describes the package.
fn about(header: &Header<IndexTag>) -> PackageDescription {
    let text = |tag| header.get_entry_data_as_string(tag).unwrap_or_default().to_owned();
    let all = |tag| header.get_entry_data_as_string_array(tag).unwrap_or_default();
    let name = text(IndexTag::RPMTAG_NAME);
    let summary = all(IndexTag::RPMTAG_SUMMARY).first().map_or("", |text| text).to_owned();
    let depends = all(IndexTag::RPMTAG_REQUIRENAME).into_iter().map(str::to_owned).collect();
    PackageDescription { name, summary, depends }
}

/// The files that a header lists.
///
/// Source: rpm 4.18, docs/manual/tags.md, "File tags".
fn listed(header: &Header<IndexTag>) -> Result<Vec<HeaderFile>, Stop> {
    const GHOST: u32 = 1 << 6;
    fn all<T>(found: Result<Vec<T>, ::rpm::Error>) -> Result<Vec<T>, Stop> {
        match found {
            // The tag is missing if no file has such a value.
            Err(::rpm::Error::TagNotFound(_)) => Ok(Vec::new()),
            found => found.map_err(|error| damaged("the header", &error)),
        }
    }
    let strings = |tag| all(header.get_entry_data_as_string_array(tag));
    let numbers = |tag| all(header.get_entry_data_as_u32_array(tag));
    let names = strings(IndexTag::RPMTAG_BASENAMES)?;
    let dirs = strings(IndexTag::RPMTAG_DIRNAMES)?;
    let dir_indexes = numbers(IndexTag::RPMTAG_DIRINDEXES)?;
    let mut sizes = all(header.get_entry_data_as_u64_array(IndexTag::RPMTAG_LONGFILESIZES))?;
    if sizes.is_empty() {
        sizes.extend(numbers(IndexTag::RPMTAG_FILESIZES)?.into_iter().map(u64::from));
    }
    let modes = all(header.get_entry_data_as_u16_array(IndexTag::RPMTAG_FILEMODES))?;
    let digests = strings(IndexTag::RPMTAG_FILEDIGESTS)?;
    let targets = strings(IndexTag::RPMTAG_FILELINKTOS)?;
    let flags = numbers(IndexTag::RPMTAG_FILEFLAGS)?;
    let devices = numbers(IndexTag::RPMTAG_FILEDEVICES)?;
    let inodes = numbers(IndexTag::RPMTAG_FILEINODES)?;
    let count = names.len();
    let whole = [dir_indexes.len(), sizes.len(), modes.len()].iter().all(|len| *len == count);
    let or_none = [digests.len(), targets.len(), flags.len(), devices.len(), inodes.len()];
    if !whole || or_none.iter().any(|len| *len != 0 && *len != count) {
        return Err(Stop::Damaged("its header lists files by halves".to_owned()));
    }
    let mut listed = Vec::with_capacity(count);
    for (index, name) in names.iter().enumerate() {
        let Some(dir) = dirs.get(dir_indexes[index] as usize) else {
            return Err(Stop::Damaged("its header lists a file in no directory".to_owned()));
        };
        let kind = match modes[index] & 0o170_000 {
            0o100_000 => Kind::File,
            0o040_000 => Kind::Directory,
            0o120_000 => Kind::Link,
            _ => Kind::Other,
        };
        let inode = devices.get(index).copied().zip(inodes.get(index).copied());
        listed.push(HeaderFile {
            path: format!("{dir}{name}"),
            size: sizes[index],
            kind,
            mode: u32::from(modes[index]),
            sha256: digests.get(index).copied().unwrap_or_default().to_owned(),
            target: targets.get(index).copied().unwrap_or_default().to_owned(),
            ghost: flags.get(index).is_some_and(|flags| flags & GHOST != 0),
            inode: inode.filter(|_| kind == Kind::File),
            is_last: true,
        });
    }
    join_names(&mut listed);
    Ok(listed)
}

/// Finds hard links. The payload has the contents at the last one.
///
/// Source: rpm 4.18, lib/rpmfi.c, `rpmfilesBuildNLink`,
/// `rpmfiArchiveHasContent`.
fn join_names(listed: &mut [HeaderFile]) {
    let mut names: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (index, file) in listed.iter().enumerate().filter(|(_, file)| !file.ghost) {
        if let Some(inode) = file.inode {
            names.entry(inode).or_default().push(index);
        }
    }
    for (index, file) in listed.iter_mut().enumerate() {
        match file.inode.and_then(|inode| names.get(&inode)) {
            Some(names) if names.len() > 1 => file.is_last = names.last() == Some(&index),
            _ => file.inode = None,
        }
    }
}

/// Reports files that a package must not have.
fn judge(listed: &[HeaderFile], outcome: &mut Outcome<'_, '_>) {
    let links = listed.iter().filter(|file| file.kind == Kind::Link);
    let links: BTreeSet<String> = links.map(|file| file.path.clone()).collect();
    for file in listed {
        let path = &file.path;
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            outcome.finding(format!("`{path}` leads out of the package"));
        }
        if let Some(link) = archive::behind(path, &links) {
            outcome.finding(format!("`{path}` is below the link `{link}`"));
        }
        match file.kind {
            Kind::File if file.mode & SET_ID != 0 => {
                outcome.finding(format!("`{path}` runs with the rights of its owner"));
            }
            Kind::Link if !archive::stays_inside(path, &file.target, Root::System) => {
                outcome.finding(format!("`{path}` is a link that leads out: `{}`", file.target));
            }
            Kind::Other => outcome.finding(format!("`{path}` is no file")),
            _ => {}
        }
    }
}

fn entries(
    mut stream: impl Read,
    listed: &[HeaderFile],
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged("the payload", &error);
    let indexes: HashMap<&str, usize> =
        listed.iter().enumerate().map(|(index, file)| (&*file.path, index)).collect();
    let mut seen = vec![false; listed.len()];
    let mut contents: BTreeMap<(u32, u32), (String, &str)> = BTreeMap::new();
    while let Some(entry) = next(&mut stream, listed, &indexes).map_err(failed)? {
        let Some(index) = entry.index else {
            return Err(Stop::Damaged(format!("`{}` is not in the header", entry.name)));
        };
        let file = &listed[index];
        let path = &file.path;
        if std::mem::replace(&mut seen[index], true) {
            outcome.finding(format!("`{path}` is in the payload twice"));
        }
        let mut body = Read::take(&mut stream, entry.size);
        match file.kind {
            Kind::File if entry.size == 0 && file.size > 0 && file.inode.is_some() => {}
            Kind::File => {
                let mut hashed = Hashed::new(&mut body, Sha256::new());
                outcome.file(path, &mut hashed)?;
                let (sum, _) = hashed.finish();
                if sum != file.sha256 {
                    outcome.finding(format!("`{path}` is not what the header says"));
                }
                contents.extend(file.inode.map(|inode| (inode, (sum, &**path))));
            }
            Kind::Link => {
                let mut target = Vec::new();
                (&mut body).take(PATH_MAX).read_to_end(&mut target).map_err(failed)?;
                if target != file.target.as_bytes() {
                    outcome.finding(format!("`{path}` is not the link that the header says"));
                }
                outcome.link(path, &file.target);
            }
            Kind::Directory | Kind::Other => {
                if entry.size > 0 {
                    outcome.finding(format!("`{path}` has contents and no digest"));
                }
            }
        }
        io::copy(&mut body, &mut io::sink()).map_err(failed)?;
        if body.limit() > 0 {
            return Err(Stop::Damaged(format!("`{path}` is cut short")));
        }
        pad(&mut stream, entry.size).map_err(failed)?;
    }
    compare_with_header(listed, &seen, &contents, outcome);
    Ok(())
}

/// Reports files of the header that the payload lacks or that differ. `seen` is
/// by index in the header. `contents` has, for each file with hard links, its
/// digest and the name that it came with.
fn compare_with_header(
    listed: &[HeaderFile],
    seen: &[bool],
    contents: &BTreeMap<(u32, u32), (String, &str)>,
    outcome: &mut Outcome<'_, '_>,
) {
    for (file, &seen) in listed.iter().zip(seen) {
        let path = &file.path;
        let body = file.inode.map(|inode| contents.get(&inode));
        match body {
            _ if file.ghost || file.kind != Kind::File => {}
            Some(Some((sum, _))) if seen && *sum != file.sha256 => {
                outcome.finding(format!("`{path}` is not what the header says"));
            }
            Some(Some((_, first))) if seen => {
                if first != path {
                    outcome.link(path, first);
                }
            }
            None if seen => {}
            _ => outcome.finding(format!("`{path}` is in the header and not in the payload")),
        }
    }
}

struct PayloadEntry {
    name: String,
    index: Option<usize>,
    size: u64,
}

/// The next entry; `None` at the trailer. Entries have names, or, if the payload
/// is too large for that, indices of files in the header.
fn next(
    stream: &mut impl Read,
    listed: &[HeaderFile],
    indexes: &HashMap<&str, usize>,
) -> io::Result<Option<PayloadEntry>> {
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
            let size = listed.get(index).map_or(0, |file| match file.kind {
                Kind::File if file.is_last => file.size,
                Kind::Link => file.size,
                _ => 0,
            });
            let index = (index < listed.len()).then_some(index);
            Ok(Some(PayloadEntry { name: String::new(), index, size }))
        }
        b"070701" | b"070702" => {
            let mut fields = [0; 13];
            for field in &mut fields {
                *field = number(stream)?;
            }
            let (size, length) = (fields[6], fields[11]);
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
            let rooted = name.starts_with("./");
            let index = indexes.get(name.get(usize::from(rooted)..).unwrap_or_default()).copied();
            Ok(Some(PayloadEntry { name, index, size }))
        }
        _ => Err(io::Error::other("an entry begins with no known mark")),
    }
}

/// Skips padding up to a multiple of four.
fn pad(stream: &mut impl Read, length: u64) -> io::Result<()> {
    let padding = (length.next_multiple_of(4) - length) as usize;
    stream.read_exact(&mut [0; 4][..padding])
}
