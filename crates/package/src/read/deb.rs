//! Reads a .deb: its members in order, and every file, which is compared with
//! `md5sums` if that exists.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use md5::{Digest, Md5};

use super::archive::{self, ArchiveFile, Root};
use super::deb_control::Control;
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use super::readers::Hashed;

/// Maximum size of uncompressed control data, which are normally small.
const CONTROL_MAX: u64 = 64 << 20;

/// Maximum size of `debian-binary`: four bytes for the version, and more lines.
const VERSION_MAX: u64 = 64;

/// Source: dpkg 1.21, lib/dpkg/compress.c, `compressor_find_by_extension`;
/// src/deb/extract.c, `extracthalf`.
const CODECS: [&str; 3] = ["gz", "xz", "zst"];

/// MD5 digests by path, without leading slash.
type Sums = BTreeMap<String, String>;

/// Source: deb(5).
pub(super) fn check(mut file: impl BufRead, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let mut magic = [0; 8];
    file.read_exact(&mut magic).map_err(|error| damaged("the archive", &error))?;
    if &magic != b"!<arch>\n" {
        return Err(Stop::Damaged("it is no .deb".to_owned()));
    }
    let mut sums = None;
    let mut seen = Vec::new();
    while let Some((name, size)) = header(&mut file).map_err(|e| damaged("the archive", &e))? {
        let mut member = io::Read::take(&mut file, size);
        match name.split_once(".tar.").filter(|(_, codec)| CODECS.contains(codec)) {
            Some(("control", codec)) if size <= CONTROL_MAX => {
                sums = control(codec, &mut member, outcome)?
            }
            Some(("data", codec)) => data(codec, &mut member, sums.as_mut(), outcome)?,
            _ if name == "debian-binary" => {
                let mut version = Vec::new();
                (&mut member)
                    .take(VERSION_MAX)
                    .read_to_end(&mut version)
                    .map_err(|e| damaged(&name, &e))?;
                if !is_version_2(&version) {
                    let version = String::from_utf8_lossy(&version);
                    return Err(Stop::Damaged(format!("its format is `{}`", version.trim())));
                }
            }
            _ => outcome.finding(format!("its member `{name}` is not known")),
        }
        io::copy(&mut member, &mut io::sink()).map_err(|error| damaged(&name, &error))?;
        if member.limit() > 0 {
            return Err(Stop::Damaged(format!("`{name}` is cut short")));
        }
        if size % 2 == 1 {
            let mut pad = [0];
            file.read_exact(&mut pad).map_err(|error| damaged(&name, &error))?;
        }
        seen.push(name.split('.').next().unwrap_or_default().to_owned());
    }
    if seen != ["debian-binary", "control", "data"] {
        outcome.finding(format!("its members are {}", seen.join(", ")));
    }
    for path in sums.iter().flat_map(Sums::keys) {
        outcome.finding(format!("`/{path}` is in md5sums and not in the package"));
    }
    Ok(())
}

/// Whether `debian-binary` has a line with version 2 and any minor number.
///
/// Source: dpkg 1.21, lib/dpkg/deb-version.c, `deb_version_parse`;
/// dpkg-deb/extract.c.
fn is_version_2(text: &[u8]) -> bool {
    let mut lines = text.splitn(2, |byte| *byte == b'\n');
    let (Some(line), Some(_)) = (lines.next(), lines.next()) else { return false };
    let number = |digits: &[u8]| -> Option<i32> {
        let digits = std::str::from_utf8(digits).ok()?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mut numbers = line.splitn(2, |byte| *byte == b'.').map(number);
    numbers.next() == Some(Some(2)) && numbers.next().flatten().is_some()
}

/// Name and size of the next member; `None` at the end.
///
/// Source: dpkg 1.21, lib/dpkg/ar.c, `dpkg_ar_normalize_name`,
/// `dpkg_ar_member_get_size`, `dpkg_ar_member_is_illegal`.
fn header(file: &mut impl BufRead) -> io::Result<Option<(String, u64)>> {
    if file.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut header = [0; 60];
    file.read_exact(&mut header)?;
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).into_owned();
    let (name, size) = (text(0..16), text(48..58));
    let size = size.trim_matches(' ');
    let digits = size.bytes().all(|byte| byte.is_ascii_digit());
    match size.parse() {
        Ok(size) if digits && &header[58..] == b"`\n" => {
            let name = name.trim_end_matches(' ');
            Ok(Some((name.strip_suffix('/').unwrap_or(name).to_owned(), size)))
        }
        _ => Err(io::Error::other("a member's header is damaged")),
    }
}

/// Reads the control data, and returns the checksums if there are any.
fn control(
    codec: &str,
    member: &mut impl BufRead,
    outcome: &mut Outcome<'_, '_>,
) -> Result<Option<Sums>, Stop> {
    let mut sums = None;
    let mut about = None;
    let stream = archive::unpacked(codec, member, CONTROL_MAX);
    let stream = stream.map_err(|error| damaged("control", &error))?;
    let links = outcome.report.links.len();
    archive::files("control", Root::Control, stream, outcome, |path, found, _| {
        let ArchiveFile::File(bytes) = found else { return Ok(()) };
        let mut text = String::new();
        bytes.read_to_string(&mut text).map_err(|error| damaged(path, &error))?;
        if path == "md5sums" {
            let lines = text.lines().filter_map(|line| line.split_once("  "));
            sums = Some(lines.map(|(sum, path)| (path.to_owned(), sum.to_owned())).collect());
        }
        if path == "control" {
            about = Some(Control::read(&text).map(|control| PackageDescription {
                name: control.field("Package").to_owned(),
                summary: control.field("Description").lines().next().unwrap_or_default().to_owned(),
                depends: control.depends(),
            }));
        }
        Ok(())
    })?;
    for (path, _) in outcome.report.links.split_off(links) {
        outcome.finding(format!("its control file `{path}` is a link"));
    }
    match about {
        Some(Ok(about)) => outcome.report.about = Some(about),
        Some(Err(what)) => outcome.finding(what),
        None => outcome.finding("it has no control file"),
    }
    Ok(sums)
}

fn data(
    codec: &str,
    member: &mut impl BufRead,
    mut sums: Option<&mut Sums>,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let stream = archive::unpacked(codec, member, u64::MAX);
    let stream = stream.map_err(|error| damaged("data", &error))?;
    // A hard link has the digest of its file.
    let mut digests = Sums::new();
    archive::files("data", Root::System, stream, outcome, |path, found, outcome| {
        let Some(sums) = sums.as_mut() else { return archive::show(path, found, outcome) };
        let sum = match found {
            ArchiveFile::File(bytes) => {
                let mut hashed = Hashed::new(bytes, Md5::new());
                outcome.file(&format!("/{path}"), &mut hashed)?;
                hashed.finish().0
            }
            ArchiveFile::Again(target) => digests.get(target).cloned().unwrap_or_default(),
        };
        match sums.remove(path) {
            Some(promised) if promised == sum => {}
            Some(_) => outcome.finding(format!("`/{path}` is not what md5sums says")),
            None => outcome.finding(format!("`/{path}` is not in md5sums")),
        }
        digests.insert(path.to_owned(), sum);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::is_version_2;

    #[test]
    fn the_format_is_a_line_with_two_numbers() {
        for taken in ["2.0\n", "2.1\n", "02.10\nmore\n", "2.0\n\n"] {
            assert!(is_version_2(taken.as_bytes()), "{taken:?}");
        }
        for refused in [
            "2.0",
            "2.\n",
            "2\n",
            ".0\n",
            "2.0 \n",
            "2.0x\n",
            "2.x\n",
            "2,0\n",
            "3.0\n",
            "+2.0\n",
            "2.+0\n",
            "2.0.0\n",
            "2.99999999999\n",
            "\n",
            "",
        ] {
            assert!(!is_version_2(refused.as_bytes()), "{refused:?}");
        }
        assert!(!is_version_2(b"2.\xff\n"));
    }
}
