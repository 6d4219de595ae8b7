//! Reads a .deb: its members, and every file, which is compared with `md5sums` if
//! that exists.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use md5::{Digest as _, Md5};

use super::archive;
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use crate::deb822::Paragraph;
use crate::output::Hashing;

/// Maximum size of uncompressed control data, which are normally small.
const CONTROL_MAX: u64 = 64 << 20;

/// What dpkg and debconf run as root.
const SCRIPTS: [&str; 5] = ["preinst", "postinst", "prerm", "postrm", "config"];

/// MD5 digests by path, without leading slash.
type Sums = BTreeMap<String, String>;

/// Source: deb(5).
pub(super) fn check(mut file: impl BufRead, outcome: &mut Outcome<'_, '_>) -> Result<(), Stop> {
    let failed = |error: io::Error| damaged("the archive", error);
    begin(&mut file).map_err(failed)?;
    let mut sums = Sums::new();
    let mut has_files = false;
    while let Some((name, size)) = member(&mut file).map_err(failed)? {
        let mut bytes = (&mut file).take(size);
        match name.split_once(".tar") {
            Some(("control", _)) => sums = control(codec(&name), &mut bytes, outcome)?,
            Some(("data", _)) => {
                has_files = true;
                data(codec(&name), &mut bytes, &mut sums, outcome)?;
            }
            _ => {}
        }
        io::copy(&mut bytes, &mut io::sink()).map_err(|error| damaged(&name, error))?;
        if bytes.limit() > 0 {
            return Err(Stop::Damaged(format!("`{name}` is cut short")));
        }
        if size % 2 == 1 {
            file.read_exact(&mut [0]).map_err(|error| damaged(&name, error))?;
        }
    }
    if !has_files || outcome.report.about.is_none() {
        outcome.finding("its control file or its files are missing");
    }
    for path in sums.keys() {
        outcome.finding(format!("`/{path}` is in md5sums and not in the package"));
    }
    Ok(())
}

/// The archive with the files of a .deb, uncompressed.
pub fn deb_files<'a>(file: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(deb_member(file, "data")?.1)
}

/// The archive `data` or `control` of a .deb: its codec, and what is in it, uncompressed.
pub(crate) fn deb_member<'a>(
    mut file: impl BufRead + 'a,
    wanted: &str,
) -> io::Result<(String, Box<dyn Read + 'a>)> {
    begin(&mut file)?;
    while let Some((name, size)) = member(&mut file)? {
        if name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(".tar")) {
            let codec = codec(&name);
            let bytes = archive::unpacked(codec, file.take(size), u64::MAX)?;
            return Ok((codec.to_owned(), bytes));
        }
        let padded = size + size % 2;
        if io::copy(&mut (&mut file).take(padded), &mut io::sink())? < padded {
            break;
        }
    }
    Err(io::Error::other(format!("it has no `{wanted}.tar`")))
}

fn begin(file: &mut impl Read) -> io::Result<()> {
    let mut magic = [0; 8];
    file.read_exact(&mut magic)?;
    if &magic == b"!<arch>\n" { Ok(()) } else { Err(io::Error::other("it is no .deb")) }
}

/// Name and size of the next member; `None` at the end.
///
/// Source: ar(5).
fn member(file: &mut impl BufRead) -> io::Result<Option<(String, u64)>> {
    if file.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut header = [0; 60];
    file.read_exact(&mut header)?;
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).into_owned();
    match text(48..58).trim().parse() {
        Ok(size) if &header[58..] == b"`\n" && size < u64::MAX => {
            Ok(Some((text(0..16).trim().trim_end_matches('/').to_owned(), size)))
        }
        _ => Err(io::Error::other("a member's header is damaged")),
    }
}

fn codec(member: &str) -> &str {
    member.rsplit('.').next().unwrap_or_default()
}

/// Reads the control data, and returns the checksums if there are any.
fn control(
    codec: &str,
    member: &mut impl BufRead,
    outcome: &mut Outcome<'_, '_>,
) -> Result<Sums, Stop> {
    let mut sums = Sums::new();
    let stream = archive::unpacked(codec, member, CONTROL_MAX);
    let stream = stream.map_err(|error| damaged("control", error))?;
    let links = outcome.report.links.len();
    archive::files("control", stream, outcome, |path, bytes, outcome| {
        if SCRIPTS.contains(&path) {
            outcome.script(path);
        }
        let Some(bytes) = bytes.filter(|_| ["md5sums", "control"].contains(&path)) else {
            return Ok(());
        };
        let mut text = String::new();
        bytes.read_to_string(&mut text).map_err(|error| damaged(path, error))?;
        if path == "md5sums" {
            let lines = text.lines().filter_map(|line| line.split_once("  "));
            sums = lines.map(|(sum, path)| (path.to_owned(), sum.to_owned())).collect();
        } else {
            outcome.report.about = Some(about(Paragraph(&text)));
        }
        Ok(())
    })?;
    for path in outcome.report.links.split_off(links) {
        outcome.finding(format!("its control file `{path}` is a link"));
    }
    Ok(sums)
}

fn about(control: Paragraph<'_>) -> PackageDescription {
    let line = |field| control.line(field).unwrap_or_default().to_owned();
    let depends = control.lines("Depends").into_iter().flatten();
    let depends = depends.flat_map(|line| line.split([',', '|']));
    let name = |one: &str| one.split([' ', '(', ':']).find(|n| !n.is_empty()).map(str::to_owned);
    PackageDescription {
        name: line("Package"),
        summary: line("Description"),
        depends: depends.filter_map(name).collect(),
    }
}

/// Reads the files. Removes from `sums` what is there.
fn data(
    codec: &str,
    member: &mut impl BufRead,
    sums: &mut Sums,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let stream = archive::unpacked(codec, member, u64::MAX);
    let stream = stream.map_err(|error| damaged("data", error))?;
    archive::files("data", stream, outcome, |path, bytes, outcome| {
        let promised = sums.remove(path);
        let Some(bytes) = bytes else { return Ok(()) };
        let mut hashed = Hashing::with(bytes, Md5::new());
        outcome.file(&format!("/{path}"), &mut hashed)?;
        if promised.is_some_and(|promised| promised != hashed.finish().1) {
            outcome.finding(format!("`/{path}` is not what md5sums says"));
        }
        Ok(())
    })
}
