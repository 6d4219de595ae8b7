//! Reads compressed streams, and tar archives in them.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use liblzma::stream::{CONCATENATED, Stream};

use super::outcome::{Outcome, Stop, damaged};
use super::readers::Limited;
use super::tar_numbers::is_number;

/// Memory limit for xz. The largest dictionary of its own levels takes 65 MiB.
const XZ_MEMORY_MAX: u64 = 1 << 30;

/// Maximum size of a long name, or of attributes, before a file.
const EXTENSION_MAX: u64 = 1 << 20;

/// Size of a block. A tar ends with two empty blocks.
const BLOCK: u64 = 512;

/// Set-user-ID and set-group-ID.
pub(super) const SET_ID: u32 = 0o6000;

/// The uncompressed stream, by name of the codec. Reading fails after `max` bytes.
pub(super) fn unpacked<'a>(
    codec: &str,
    packed: impl BufRead + 'a,
    max: u64,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match codec {
        "gz" | "tgz" | "gzip" => {
            Box::new(Limited::new(flate2::bufread::MultiGzDecoder::new(packed), max))
        }
        "xz" => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_MAX, CONCATENATED)?;
            Box::new(Limited::new(liblzma::bufread::XzDecoder::new_stream(packed, stream), max))
        }
        "zst" | "zstd" => {
            Box::new(Limited::new(zstd::stream::read::Decoder::with_buffer(packed)?, max))
        }
        other => return Err(io::Error::other(format!("its compression `{other}` is not known"))),
    })
}

/// An entry of an archive.
pub(super) enum ArchiveFile<'a> {
    /// A regular file.
    File(&'a mut dyn Read),
    /// A hard link to a file of this archive.
    Again(&'a str),
}

/// The directory in which an archive is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// Any directory. No link may lead out of it.
    Anywhere,
    /// A directory of dpkg's, which allows fewer kinds of entries.
    Control,
    /// The system's root, to which absolute links are relative.
    System,
}

/// Passes a regular file to the visitor; hard links are skipped.
pub(super) fn show(
    path: &str,
    found: ArchiveFile<'_>,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    match found {
        ArchiveFile::File(bytes) => outcome.file(&format!("/{path}"), bytes),
        ArchiveFile::Again(_) => Ok(()),
    }
}

/// Visits an archive's files and hard links. `see` gets the path without a
/// leading `./`.
///
/// An archive may be unpacked by root. It must only create files below the
/// current directory, without special permissions; anything else is a finding.
pub(super) fn files(
    what: &str,
    root: Root,
    stream: impl Read,
    outcome: &mut Outcome<'_, '_>,
    mut see: impl FnMut(&str, ArchiveFile<'_>, &mut Outcome<'_, '_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged(what, &error);
    let left = Cell::new(u64::MAX);
    let mut archive = ::tar::Archive::new(Metered { inner: stream, left: &left });
    let mut entries = archive.entries().map_err(failed)?;
    let mut seen = BTreeSet::new();
    let mut links = BTreeSet::new();
    loop {
        // The library reads names and attributes before an entry into memory, so
        // they are limited.
        left.set(EXTENSION_MAX);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if kind != ::tar::EntryType::XGlobalHeader {
            left.set(u64::MAX);
        }
        let target = entry.link_name_bytes().unwrap_or_default();
        let target = String::from_utf8_lossy(&target).into_owned();
        let path = checked_path(what, &entry, &links, outcome);
        match kind {
            ::tar::EntryType::Regular => {
                if entry.header().mode().map_or(true, |mode| mode & SET_ID != 0) {
                    outcome.finding(format!("`/{path}` runs with the rights of its owner"));
                }
                see(&path, ArchiveFile::File(&mut entry), outcome)?;
                io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
                seen.insert(path);
            }
            ::tar::EntryType::Directory => {}
            // `git archive` stores its commit in one.
            ::tar::EntryType::XGlobalHeader if root == Root::Anywhere => {
                if !is_comment(&mut entry).map_err(failed)? {
                    outcome.finding(format!("`/{path}` changes what is said of all files"));
                }
            }
            ::tar::EntryType::Symlink => {
                if !stays_inside(&path, &target, root) {
                    outcome.finding(format!("`/{path}` is a link that leads out: `{target}`"));
                }
                outcome.link(&format!("/{path}"), &target);
                links.insert(path);
            }
            ::tar::EntryType::Link => match below(&target).filter(|to| seen.contains(to)) {
                Some(target) => {
                    see(&path, ArchiveFile::Again(&target), outcome)?;
                    outcome.link(&format!("/{path}"), &format!("/{target}"));
                    seen.insert(path);
                }
                None => outcome.finding(format!("`/{path}` is a link to no file: `{target}`")),
            },
            other => outcome.finding(format!("`/{path}` is no file: {other:?}")),
        }
    }
    left.set(u64::MAX);
    // The library has read the first of the two empty blocks at the end.
    what_follows(what, archive.into_inner().inner, outcome)
}

/// The path of an entry, relative to the directory of unpacking. Reports a path
/// that leads out of it, and a header that other programs can't read.
fn checked_path<R: Read>(
    what: &str,
    entry: &::tar::Entry<'_, R>,
    links: &BTreeSet<String>,
    outcome: &mut Outcome<'_, '_>,
) -> String {
    let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let path = below(&raw);
    if path.is_none() {
        outcome.finding(format!("`{raw}` leads out of {what}"));
    }
    let header = entry.header().as_old();
    if !is_number(&header.mode) || !is_number(&header.mtime) {
        outcome.finding(format!("`{raw}` has a mode or a time that tar cannot read"));
    }
    let path = path.unwrap_or_else(|| raw.trim_start_matches(['/', '.']).to_owned());
    if let Some(link) = behind(&path, links) {
        outcome.finding(format!("`/{path}` is below the link `/{link}`"));
    }
    path
}

/// Reads what follows an archive's end, since the stream's checksum covers it.
fn what_follows(
    what: &str,
    mut rest: impl Read,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged(what, &error);
    let mut after = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match rest.read(&mut buffer).map_err(failed)? {
            0 => break,
            filled if buffer[..filled].iter().all(|byte| *byte == 0) => after += filled as u64,
            _ => {
                outcome.finding(format!("there is more behind the end of {what}"));
                io::copy(&mut rest, &mut io::sink()).map_err(failed)?;
                return Ok(());
            }
        }
    }
    if after < BLOCK {
        outcome.finding(format!("{what} has no end"));
    }
    Ok(())
}

/// Whether the attributes of a tar have only comments. The library stops at empty
/// lines, but other readers may not.
///
/// Source: POSIX.1-2017, pax, "pax Header Block": `LENGTH KEY=VALUE` lines.
fn is_comment(mut attributes: impl Read) -> io::Result<bool> {
    let mut all = Vec::new();
    attributes.read_to_end(&mut all)?;
    let mut records = &*all;
    while !records.is_empty() {
        let length = records.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
        let Some((record, rest)) = number.and_then(|number| records.split_at_checked(number))
        else {
            return Ok(false);
        };
        let Some(pair) = record.get(length.len()..) else { return Ok(false) };
        if !pair.starts_with(b" comment=") || !pair.ends_with(b"\n") {
            return Ok(false);
        }
        records = rest;
    }
    Ok(true)
}

/// The path without `.` and empty parts; `None` if it is absolute or has `..`.
pub(super) fn below(raw: &str) -> Option<String> {
    let parts = raw.split('/').filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<&str> = parts.collect();
    (!raw.starts_with('/') && !parts.contains(&"..")).then(|| parts.join("/"))
}

/// The first link among the directories of a path.
pub(super) fn behind<'a>(path: &'a str, links: &BTreeSet<String>) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
    ends.into_iter().find(|above| links.contains(*above))
}

/// Whether a link at `path` leads to something below the root.
pub(super) fn stays_inside(path: &str, target: &str, root: Root) -> bool {
    let plain = |part: &&str| !part.is_empty() && *part != ".";
    let absolute = target.starts_with('/');
    let mut depth = path.split('/').filter(plain).count().saturating_sub(1);
    if absolute {
        depth = 0;
    }
    let stays = target.split('/').filter(plain).all(|part| {
        let deeper = if part == ".." { depth.checked_sub(1) } else { Some(depth + 1) };
        depth = deeper.unwrap_or(0);
        deeper.is_some()
    });
    !target.is_empty() && stays && (!absolute || root == Root::System)
}

/// A reader with an adjustable limit.
struct Metered<'a, R> {
    inner: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("a name or an attribute is too long"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.inner.read(&mut buffer[..most])?;
        self.left.set(left.saturating_sub(filled as u64));
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_change_nothing() {
        for plain in ["", "16 comment=abcd\n", "16 comment=a\nbc\n13 comment=x\n"] {
            assert!(is_comment(plain.as_bytes()).expect("memory reads"), "{plain:?}");
        }
        for other in [
            "\n",
            "13 path=../x\n",
            "13 comment=x\n\n13 path=../x\n",
            "13 comment=x",
            "0 ",
            "2 comment=x\n",
            "99 comment=x\n",
            "-1 comment=x\n",
            "13comment=xx\n",
        ] {
            assert!(!is_comment(other.as_bytes()).expect("memory reads"), "{other:?}");
        }
    }

    #[test]
    fn names_and_links_stay_below_the_root() {
        let check = |raw: &str, expected: Option<&str>| assert_eq!(below(raw).as_deref(), expected);
        check("./usr/share/x", Some("usr/share/x"));
        check("usr//share/./x", Some("usr/share/x"));
        check("./", Some(""));
        check("..x/y..", Some("..x/y.."));
        for out in ["../x", "./../x", "./../../tmp/x", "/etc/cron.d/x", "usr/../../x", "usr/.."] {
            check(out, None);
        }
        let check = |path, target, expected| {
            assert_eq!(stays_inside(path, target, Root::Anywhere), expected, "{path} -> {target}");
        };
        check("usr/lib/a.so", "a.so.1", true);
        check("usr/lib/a.so", "../share/a", true);
        check("usr/lib/a.so", "../../etc/a", true);
        check("usr/lib/a.so", "../../../etc/a", false);
        check("usr/lib/a.so", "x/../../../../a", false);
        check("usr/lib/a.so", "/etc/a", false);
        check("usr/lib/a.so", "", false);
        assert!(stays_inside("usr/lib/a.so", "/etc/a", Root::System));
        assert!(!stays_inside("usr/lib/a.so", "/../etc/a", Root::System));
        let links = BTreeSet::from(["usr/x".to_owned()]);
        assert_eq!(behind("usr/x/y/z", &links), Some("usr/x"));
        assert_eq!(behind("usr/xy", &links), None);
        assert_eq!(behind("usr/x", &links), None);
    }
}
