//! Reads packages from beginning to end: every file in them, and the digests that they have.
//! Whether a package is one that can be installed is for its package manager to say.

mod arch;
mod archive;
mod deb;
mod oci;
mod outcome;
mod rpm;
mod rpm_header;
mod wheel;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gfxpack_model::{Error, Result};

use archive::Limited;
pub use archive::{Metered, unpacked};
pub use deb::deb_files;
pub(crate) use deb::deb_member;
use outcome::{Outcome, Stop};
pub use outcome::{PackageDescription, Report, SignedHeader, Visitor};
pub(crate) use rpm::{PATH_MAX, check_rpm_headers, file_type};
pub(crate) use wheel::{wheel_record, wheel_text};

/// Maximum number of bytes read from an index, a signature or a key file. An
/// index of all of Debian has 60 MB.
pub(crate) const INDEX_MAX: u64 = 256 << 20;

/// The kind of a package, from its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackageKind {
    /// `.deb`
    Deb,
    /// `.rpm`
    Rpm,
    /// `.tar.gz`, `.tar.xz`, `.tar.zst`
    Tar,
    /// `.whl`
    Wheel,
    /// `.oci.tar`
    Oci,
    /// `.pkg.tar.zst`, `.pkg.tar.xz`, `.pkg.tar.gz`
    Arch,
}

impl PackageKind {
    /// The kind of package from the name of a file, if it has such an extension.
    pub fn from_name(path: &Path) -> Option<Self> {
        const ENDINGS: [(&str, PackageKind); 11] = [
            (".deb", PackageKind::Deb),
            (".rpm", PackageKind::Rpm),
            (".whl", PackageKind::Wheel),
            (".oci.tar", PackageKind::Oci),
            (".pkg.tar.zst", PackageKind::Arch),
            (".pkg.tar.xz", PackageKind::Arch),
            (".pkg.tar.gz", PackageKind::Arch),
            (".tar.gz", PackageKind::Tar),
            (".tgz", PackageKind::Tar),
            (".tar.xz", PackageKind::Tar),
            (".tar.zst", PackageKind::Tar),
        ];
        let name = path.file_name()?.as_bytes();
        let ends = |(ending, _): &&(&str, Self)| name.ends_with(ending.as_bytes());
        ENDINGS.iter().find(ends).map(|(_, kind)| *kind)
    }
}

/// Reads a package completely. Damage is reported as findings.
///
/// # Errors
/// If the file can't be opened, or `visit` fails.
pub fn check(path: &Path, kind: PackageKind, visit: &mut Visitor<'_>) -> Result<Report> {
    let file = open(path).map_err(Error::io("read", path))?;
    let mut report = Report::default();
    let mut outcome = Outcome { report: &mut report, visit };
    let file = BufReader::with_capacity(256 << 10, file);
    let ended = match kind {
        PackageKind::Deb => deb::check(file, &mut outcome),
        PackageKind::Rpm => rpm::check(file, &mut outcome),
        PackageKind::Tar => archive::tarball(file, path, &mut outcome),
        PackageKind::Wheel => wheel::check(file, &mut outcome),
        PackageKind::Oci => oci::check(file, path, &mut outcome),
        PackageKind::Arch => arch::check(file, path, &mut outcome),
    };
    match ended {
        Ok(()) => {}
        Err(Stop::Damaged(what)) => report.findings.push(what),
        Err(Stop::Visitor(error)) => {
            let hint = error.hint().unwrap_or("see the cause").to_owned();
            let message = "failed to look at the files of a package";
            return Err(Error::internal(message, hint).caused_by(error));
        }
    }
    Ok(report)
}

/// Opens a regular file. A named pipe or a device is rejected, since reading it
/// could block or have side effects.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// The bytes of a file, if they are at most `max`.
pub fn bytes(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(open(path)?, max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a compressed file, if it is at most `max` bytes. The extension of
/// `path` determines the codec.
pub fn unpacked_text(path: &Path, packed: &[u8], max: u64) -> io::Result<String> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let codec = if codec == "xml" { "tar" } else { codec };
    let mut text = String::new();
    archive::unpacked(codec, packed, max)?.read_to_string(&mut text)?;
    Ok(text)
}
