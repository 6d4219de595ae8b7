//! Writes a package spec as a .deb: an ar archive of control data and
//! contents, both packed tarballs.

mod control;

pub(crate) use self::control::relation;

use std::io::{self, Read, Write};
use std::path::Path;

use gfxpack_model::Error;
use gfxpack_model::package::PackageSpec;

use crate::compress::{Compression, gzipped};
use crate::contents::Contents;
use crate::output::{Output, Packed};
use crate::tarball::Tarball;

/// Largest size of a member: an ar header has ten decimal digits for it.
const MEMBER_MAX: u64 = 9_999_999_999;
/// Size of an ar header.
const MEMBER_HEADER: usize = 60;
/// Every dpkg reads gzip, so it is used here whatever compresses the contents.
const CONTROL_NAME: &str = "control.tar.gz";

/// Writes `spec` as a .deb.
///
/// Adds a changelog below `/usr/share/doc/<name>`, and overrides with reasons for
/// intended warnings of lintian, such as those about files in `/opt`. There are
/// no maintainer scripts.
///
/// Source: deb(5); Debian Policy 4.7.0, chapters 5 and 12.
pub(crate) fn write(
    spec: &PackageSpec,
    mut contents: Contents<'_>,
    output: &mut Output,
    compression: Compression,
    threads: usize,
) -> io::Result<()> {
    let changelog = gzipped(control::changelog(spec).as_bytes(), 9)?;
    contents.add(&format!("/usr/share/doc/{}/changelog.Debian.gz", spec.name), changelog)?;
    if let Some(overrides) = control::lintian_overrides(spec, &contents) {
        let path = format!("/usr/share/lintian/overrides/{}", spec.name);
        contents.add(&path, overrides.into_bytes())?;
    }

    let (mut data, digests) =
        Packed::new(output, Some(compression), threads, |out| write_data(spec, &contents, out))?;
    let control =
        control_member(spec, &control::control(spec, &contents), &md5sums(&contents, digests))?;
    let data_name = format!("data.tar.{}", compression.extension());
    write_members(output, spec.source_date_epoch, (CONTROL_NAME, &control), &data_name, &mut data)
}

/// Writes a .deb: an ar archive of these two members after its version.
///
/// Source: deb(5), ar(5).
pub(crate) fn write_members(
    output: &mut Output,
    mtime: u64,
    (control_name, control): (&str, &[u8]),
    data_name: &str,
    data: &mut Packed,
) -> io::Result<()> {
    output.write_all(b"!<arch>\n")?;
    for (name, size, bytes) in [
        ("debian-binary", 4, &mut b"2.0\n".as_slice() as &mut dyn Read),
        (control_name, control.len() as u64, &mut &*control),
        (data_name, data.size, &mut data.file),
    ] {
        output.write_all(member_header(name, size, mtime, &output.path())?.as_bytes())?;
        io::copy(bytes, output)?;
        // Members begin at even offsets.
        output.write_all(&b"\n"[..(size % 2) as usize])?;
    }
    Ok(())
}

/// Writes the tarball of the contents, and returns their MD5 digests.
fn write_data(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let mut tarball = Tarball::new(out, spec.source_date_epoch);
    tarball.directory("./")?;
    let mut digests = Vec::new();
    for (path, item) in contents.with_directories(contents.directories()) {
        match item {
            Some(item) => digests.push(tarball.digested_file(&format!(".{path}"), item)?),
            None => tarball.directory(&format!(".{path}/"))?,
        }
    }
    tarball.finish()?;
    Ok(digests)
}

/// The text of the `md5sums` file.
fn md5sums(contents: &Contents<'_>, digests: Vec<String>) -> String {
    let lines = contents.iter().zip(digests);
    lines.map(|((path, _), digest)| format!("{digest}  {}\n", &path[1..])).collect()
}

/// The tarball of the control data, in gzip's format without compression, which would save some
/// kilobytes.
fn control_member(spec: &PackageSpec, control: &str, md5sums: &str) -> io::Result<Vec<u8>> {
    let mut tarball = Tarball::new(Vec::new(), spec.source_date_epoch);
    tarball.directory("./")?;
    tarball.bytes("./control", control.as_bytes())?;
    tarball.bytes("./md5sums", md5sums.as_bytes())?;
    gzipped(&tarball.finish()?, 0)
}

/// The 60-byte header of a member.
fn member_header(name: &str, size: u64, mtime: u64, path: &Path) -> io::Result<String> {
    if size > MEMBER_MAX {
        let error = Error::usage(
            format!("failed to write `{}`: its member {name} has {size} bytes", path.display()),
            "a .deb holds less than 10 GB compressed: split the package by gfx target, or write \
             .rpm or tar",
        );
        return Err(error.into());
    }
    let header = format!("{name:<16}{mtime:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 100_644);
    assert_eq!(header.len(), MEMBER_HEADER, "every field keeps its width");
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_header_has_sixty_bytes_and_ten_digits_for_the_size() {
        let path = Path::new("x.deb");
        let header = member_header("data.tar.xz", MEMBER_MAX, 1_700_000_000, path);
        assert_eq!(
            header.expect("ten digits fit"),
            "data.tar.xz     1700000000  0     0     100644  9999999999`\n"
        );
        let error = member_header("data.tar.xz", MEMBER_MAX + 1, 0, path).expect_err("eleven");
        assert!(error.to_string().ends_with("data.tar.xz has 10000000000 bytes"), "{error}");
    }
}
