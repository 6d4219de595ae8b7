//! Writes a package spec as a wheel, which Python's package managers install.

use std::io::{self, Write};
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gfxpack_model::Result;
use gfxpack_model::date::Date;
use gfxpack_model::package::PackageSpec;
use pep440_rs::Version;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

use crate::check::wrong_version;
use crate::contents::{Contents, Item};
use crate::format::Format;
use crate::output::{Hashing, Output};
use crate::text::{paragraphs, wrap};

/// The module of a package that Python imports when it starts, if the spec has it.
const START: &str = "/_start.py";
/// Zip's default level is also 6, but may change.
const LEVEL: i64 = 6;
/// Members that may be larger than this, compressed or not, have 64-bit sizes.
pub(crate) const LARGE: u64 = 0xf000_0000;
/// Maximum line length of the description.
const WIDTH: usize = 79;

/// The name of the file. It is tagged for any Python on any system, since the
/// contents are for GPUs.
///
/// Source: PyPA, "Binary distribution format", "File name convention".
pub(crate) fn file_name(spec: &PackageSpec) -> Result<String> {
    Ok(format!("{}-{}-py3-none-any.whl", module(spec), version(spec)?))
}

/// Writes `spec` as a wheel.
///
/// All files are put into one Python package, named after the spec, at the spec's
/// absolute paths. If it has a module `/_start.py`, a .pth file beside the
/// package calls the function `start` in it whenever Python starts.
///
/// Source: PyPA, "Binary distribution format", "Core metadata specifications"
/// 2.4; Python, `site`.
pub(crate) fn write(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    output: &mut Output,
) -> io::Result<()> {
    let (module, version) = (module(spec), version(spec)?);
    let info = format!("{module}-{version}.dist-info");
    let mut wheel = Wheel::new(output, spec.source_date_epoch);
    for (path, item) in contents.iter() {
        wheel.file(&format!("{module}{path}"), item)?;
    }
    if contents.iter().any(|(path, _)| path == START) {
        let line = format!("import {module}._start; {module}._start.start()\n");
        wheel.bytes(&format!("{module}.pth"), line.as_bytes())?;
    }
    wheel.bytes(&format!("{info}/licenses/copyright"), spec.copyright.as_bytes())?;
    wheel.bytes(&format!("{info}/METADATA"), metadata(spec, &version).as_bytes())?;
    let generator = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));
    let about = format!(
        "Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    );
    wheel.bytes(&format!("{info}/WHEEL"), about.as_bytes())?;
    wheel.finish(&format!("{info}/RECORD"))
}

/// The package's name as a module and in file names.
///
/// Source: PyPA, "Names and normalization"; "Binary distribution format",
/// "Escaping and Unicode".
fn module(spec: &PackageSpec) -> String {
    let parts = spec.name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_").to_ascii_lowercase()
}

/// The version as Python's package managers order it. Revision 1 is omitted;
/// later ones are post-releases, so that they are upgrades.
///
/// Source: PyPA, "Version specifiers".
pub(crate) fn version(spec: &PackageSpec) -> Result<Version> {
    let refused = |part, value: &str| wrong_version(Format::Wheel, part, value);
    let version = from_native(&spec.version).ok_or_else(|| refused("version", &spec.version))?;
    let revision: u64 = spec.revision.parse().map_err(|_| refused("revision", &spec.revision))?;
    match revision {
        0 | 1 => Ok(version),
        // A version can have only one post-release number, and that of a development release would
        // sort after its release.
        _ if version.is_post() || version.is_dev() => Err(refused("revision", &spec.revision)),
        _ => Ok(version.with_post(Some(revision))),
    }
}

/// The version that PEP 440 sorts as dpkg and rpm sort `text`: what follows `~` comes before the
/// release. `3.4.0~20260622` is 3.4.0.dev20260622, and `3.4.0~rc1` is 3.4.0rc1. `None` if there is
/// no such version.
fn from_native(text: &str) -> Option<Version> {
    let Some((release, before)) = text.split_once('~') else {
        return Version::from_str(text).ok();
    };
    let at = before.find(|c: char| c.is_ascii_digit()).unwrap_or(before.len());
    let (kind, after) = before.split_at(at);
    let number = after.split_once('+').map_or(after, |(number, _)| number);
    let suffix = match kind.trim_end_matches('.') {
        "" | "dev" => ".dev",
        kind @ ("a" | "alpha" | "b" | "beta" | "rc" | "pre") => kind,
        _ => return None,
    };
    let is_plain = number.bytes().all(|b| b.is_ascii_digit()) && !release.contains('+');
    let is_numbered = !kind.is_empty() || !number.is_empty();
    (is_plain && is_numbered)
        .then(|| Version::from_str(&format!("{release}{suffix}{after}")).ok())?
}

/// Source: PyPA, "Core metadata specifications".
fn metadata(spec: &PackageSpec, version: &Version) -> String {
    let mut fields = vec![
        ("Metadata-Version", "2.4".to_owned()),
        ("Name", spec.name.clone()),
        ("Version", version.to_string()),
        ("Summary", spec.summary.clone()),
        ("Maintainer-email", spec.maintainer.clone()),
        ("License-Expression", spec.license.clone()),
        ("License-File", "copyright".to_owned()),
        ("Requires-Python", ">=3.8".to_owned()),
        ("Description-Content-Type", "text/plain".to_owned()),
    ];
    if !spec.homepage.is_empty() {
        fields.push(("Project-URL", format!("Homepage, {}", spec.homepage)));
    }
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let description: Vec<String> = paragraphs(&spec.description)
        .iter()
        .map(|paragraph| wrap(paragraph, WIDTH).join("\n") + "\n")
        .collect();
    format!("{fields}\n{}", description.join("\n"))
}

/// A zip archive that records what is put into it.
struct Wheel<'o> {
    zip: ZipWriter<&'o mut Output>,
    options: SimpleFileOptions,
    /// Lines of `RECORD`.
    record: String,
}

impl<'o> Wheel<'o> {
    fn new(output: &'o mut Output, mtime: u64) -> Self {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .system(System::Unix)
            .last_modified_time(dos_time(mtime));
        Self { zip: ZipWriter::new(output), options, record: String::new() }
    }

    fn file(&mut self, name: &str, item: &Item<'_>) -> io::Result<()> {
        self.member(name, item.mode, item.size, |out| item.copy_to(out))
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.member(name, 0o644, bytes.len() as u64, |out| out.write_all(bytes))
    }

    fn member(
        &mut self,
        name: &str,
        mode: u32,
        size: u64,
        fill: impl FnOnce(&mut Hashing<&mut ZipWriter<&'o mut Output>>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.start(name, mode, size)?;
        let mut hashing = Hashing::new(&mut self.zip);
        fill(&mut hashing)?;
        let (_, sha256, size) = hashing.finish_raw();
        let sha256 = BASE64_URL_SAFE_NO_PAD.encode(sha256);
        self.record += &format!("{},sha256={sha256},{size}\n", quoted(name));
        Ok(())
    }

    fn start(&mut self, name: &str, mode: u32, size: u64) -> io::Result<()> {
        let options = self.options.unix_permissions(mode).large_file(size > LARGE);
        Ok(self.zip.start_file(name, options)?)
    }

    /// Adds `RECORD`, which has no digest of itself.
    fn finish(mut self, name: &str) -> io::Result<()> {
        self.record += &format!("{},,\n", quoted(name));
        self.start(name, 0o644, self.record.len() as u64)?;
        self.zip.write_all(self.record.as_bytes())?;
        self.zip.finish()?;
        Ok(())
    }
}

/// A field of a CSV line.
pub(crate) fn quoted(name: &str) -> String {
    if name.contains([',', '"']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// The time in zip's format: from 1980 to 2107, in steps of two seconds.
fn dos_time(seconds: u64) -> DateTime {
    let Date { year, month, day, hour, minute, second, .. } = Date::at(seconds);
    let small = |number: u64| u8::try_from(number).unwrap_or_default();
    let year = u16::try_from(year).unwrap_or_default();
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(small);
    DateTime::from_date_and_time(year, month, day, hour, minute, second).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::empty_spec;

    fn spec(name: &str, version: &str, revision: &str) -> PackageSpec {
        PackageSpec {
            name: name.to_owned(),
            version: version.to_owned(),
            revision: revision.to_owned(),
            ..empty_spec()
        }
    }

    #[test]
    fn file_names_are_normalized() {
        let check = |name: &str, version: &str, revision: &str, expected: Option<&str>| {
            let spec = spec(name, version, revision);
            let takes_name = crate::check::spec(&spec, Format::Wheel);
            let made = takes_name.and_then(|()| file_name(&spec)).ok();
            let expected = expected.map(|expected| format!("{expected}-py3-none-any.whl"));
            assert_eq!(made, expected, "{name} {version}-{revision}");
        };
        let name = "miopen-hip-gfx90a-104kdb";
        check(name, "3.4.0", "1", Some("miopen_hip_gfx90a_104kdb-3.4.0"));
        check(name, "3.4.0", "2", Some("miopen_hip_gfx90a_104kdb-3.4.0.post2"));
        check(name, "1.0~rc1+git5", "3", Some("miopen_hip_gfx90a_104kdb-1.0rc1.post3+git5"));
        check(name, "3.4.0~20260622", "1", Some("miopen_hip_gfx90a_104kdb-3.4.0.dev20260622"));
        check(name, "3.4.0~20260622", "2", None);
        check(name, "1.0~1", "1", Some("miopen_hip_gfx90a_104kdb-1.0.dev1"));
        check(name, "1.0~alpha2", "1", Some("miopen_hip_gfx90a_104kdb-1.0a2"));
        for elsewhere in ["1.0~1.2", "3.4~rc1~2", "3.4.0+1~2", "3.4.0~~", "3.4.0~", "3.4.0~git"] {
            check(name, elsewhere, "1", None);
        }
        check("Miopen.hip--kdb6.4", "1", "1", Some("miopen_hip_kdb6_4-1"));
        check(name, "3.4.0", "ubuntu1", None);
        check(name, "1.0.post3", "2", None);
        check(name, "sid", "1", None);
        check("6kernels", "1", "1", None);
        check("kernels+", "1", "1", None);
    }

    #[test]
    fn times_before_1980_become_1980() {
        assert_eq!(dos_time(0).year(), 1980);
        let time = dos_time(1_735_689_599);
        assert_eq!((time.year(), time.month(), time.day()), (2024, 12, 31));
        assert_eq!((time.hour(), time.minute(), time.second()), (23, 59, 58));
    }

    #[test]
    fn names_with_commas_are_quoted() {
        assert_eq!(quoted("a/b.kdb"), "a/b.kdb");
        assert_eq!(quoted("a,\"b"), "\"a,\"\"b\"");
    }
}
