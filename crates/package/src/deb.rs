//! Writes a package spec as a .deb: an ar archive of control data and
//! contents, both packed tarballs.

mod control;

pub(crate) use self::control::relation;

use std::io::{self, Write};
use std::path::Path;

use gfxpack_model::Error;
use gfxpack_model::package::PackageSpec;

use crate::compress::{Compression, Encoder, gzipped};
use crate::contents::Contents;
use crate::output::Output;
use crate::tarball::Tarball;

/// Largest size of a member: an ar header has ten decimal digits for it.
const MEMBER_MAX: u64 = 9_999_999_999;
/// Size of an ar header.
const MEMBER_HEADER: usize = 60;
/// Hexadecimal digits of an MD5 digest.
const MD5_DIGITS: usize = 32;
/// Every dpkg reads gzip, so it is used here whatever compresses the contents.
const CONTROL_NAME: &str = "control.tar.gz";

/// Writes `spec` as a .deb.
///
/// Adds a changelog below `/usr/share/doc/<name>`, and overrides with reasons for
/// intended warnings of lintian, such as those about files in `/opt`. There are
/// no maintainer scripts.
///
/// # Errors
/// If paths clash or a member is too large; errors of the output and the contents.
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

    // The checksums come before the contents but are known only after these, so
    // room is left for them. Their size does not depend on their values.
    let control = control::control(spec, &contents);
    let unknown = contents.iter().map(|_| "0".repeat(MD5_DIGITS)).collect();
    let size = control_member(spec, &control, &md5sums(&contents, unknown))?.len();
    let mtime = spec.source_date_epoch;
    let path = output.path();
    let header = |name: &str, size| member_header(name, size, mtime, &path);
    output.write_all(b"!<arch>\n")?;
    output.write_all(header("debian-binary", 4)?.as_bytes())?;
    output.write_all(b"2.0\n")?;
    let control_at = output.size();
    output.leave((MEMBER_HEADER + size).next_multiple_of(2) as u64)?;
    let data_at = output.size();
    output.leave(MEMBER_HEADER as u64)?;
    let encoder = compression.encoder(&mut *output, threads)?;
    let digests = write_data(spec, &contents, encoder)?;
    let data_size = output.size() - data_at - MEMBER_HEADER as u64;
    pad(output, data_size)?;

    let data_name = format!("data.tar.{}", compression.extension());
    output.fill(data_at, header(&data_name, data_size)?.as_bytes())?;
    let control = control_member(spec, &control, &md5sums(&contents, digests))?;
    assert_eq!(control.len(), size, "nothing is compressed in it");
    let mut whole = header(CONTROL_NAME, size as u64)?.into_bytes();
    whole.extend(control);
    pad(&mut whole, size as u64)?;
    output.fill(control_at, &whole)
}

/// Writes the compressed tarball of the contents, and returns their MD5 digests.
fn write_data(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    out: Encoder<&mut Output>,
) -> io::Result<Vec<String>> {
    let mut tarball = Tarball::new(out, spec.source_date_epoch);
    tarball.directory("./")?;
    let mut directories = contents.directories().into_iter().peekable();
    let mut digests = Vec::new();
    for (install_path, item) in contents.iter() {
        // Parents sort before their files, so all their parents come now.
        while let Some(directory) = directories.next_if(|directory| *directory < install_path) {
            tarball.directory(&format!(".{directory}/"))?;
        }
        digests.push(tarball.digested_file(&format!(".{install_path}"), item)?);
    }
    tarball.finish()?.finish()?;
    Ok(digests)
}

/// The text of the `md5sums` file.
fn md5sums(contents: &Contents<'_>, digests: Vec<String>) -> String {
    let lines = contents.iter().zip(digests);
    lines.map(|((path, _), digest)| format!("{digest}  {}\n", &path[1..])).collect()
}

/// The tarball of the control data, in gzip's format without compression, so that
/// its size does not depend on digests. With compression it would be some
/// kilobytes smaller, but the package, which is large, would have to be written
/// twice.
fn control_member(spec: &PackageSpec, control: &str, md5sums: &str) -> io::Result<Vec<u8>> {
    let mut tarball = Tarball::new(Vec::new(), spec.source_date_epoch);
    tarball.directory("./")?;
    tarball.bytes("./control", control.as_bytes())?;
    tarball.bytes("./md5sums", md5sums.as_bytes())?;
    gzipped(&tarball.finish()?, 0)
}

/// The 60-byte header of a member.
///
/// Source: deb(5), ar(5).
pub(crate) fn member_header(name: &str, size: u64, mtime: u64, path: &Path) -> io::Result<String> {
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

/// Members begin at even offsets.
pub(crate) fn pad(out: &mut impl Write, size: u64) -> io::Result<()> {
    if size % 2 == 1 { out.write_all(b"\n") } else { Ok(()) }
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
