//! The location of a library, as users write it.

use std::path::PathBuf;
use std::str::FromStr;

use gfxpack_model::{Error, ErrorKind, Result};

/// The location of a library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LibrarySource {
    /// The library installed on this machine.
    Installed,
    /// A shared object, or a directory with an installed or unpacked ROCm.
    Path(PathBuf),
    /// Debian's package, to be fetched.
    Debian {
        /// `sid`, `experimental`.
        suite: String,
        /// The package's version; the newest if `None`.
        version: Option<String>,
    },
    /// The packages of Debian's archive with the digests in this file.
    Lock(PathBuf),
}

impl FromStr for LibrarySource {
    type Err = Error;

    /// `debian:SUITE`, `debian:SUITE=VERSION`, `lock:FILE`, or a path to a
    /// file or directory.
    fn from_str(text: &str) -> Result<Self> {
        let error = || {
            let message = format!("failed to read `{text}` as the place of a library");
            Error::without_hint(ErrorKind::Usage, message)
        };
        if let Some(debian) = text.strip_prefix("debian:") {
            let (suite, version) = match debian.split_once('=') {
                Some((suite, version)) => (suite, Some(version.to_owned())),
                None => (debian, None),
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if suite.is_empty() || !suite.bytes().all(plain) || version.as_deref() == Some("") {
                return Err(error());
            }
            return Ok(Self::Debian { suite: suite.to_owned(), version });
        }
        match text.strip_prefix("lock:").unwrap_or(text) {
            "" => Err(error()),
            file if file.len() < text.len() => Ok(Self::Lock(file.into())),
            path => Ok(Self::Path(path.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_by_place_or_package() {
        let check = |text: &str, expected: Option<LibrarySource>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        let debian = |suite: &str, version: Option<&str>| {
            let (suite, version) = (suite.to_owned(), version.map(str::to_owned));
            Some(LibrarySource::Debian { suite, version })
        };
        check("/opt/rocm", Some(LibrarySource::Path("/opt/rocm".into())));
        check("./debian:sid", Some(LibrarySource::Path("./debian:sid".into())));
        check("debian:sid", debian("sid", None));
        check("debian:rc-buggy=1:2.0~a+b1", debian("rc-buggy", Some("1:2.0~a+b1")));
        check(
            "lock:packaging/miopen.lock",
            Some(LibrarySource::Lock("packaging/miopen.lock".into())),
        );
        for none in ["", "debian:", "debian:../sid", "debian:sid=", "debian:=1", "lock:"] {
            check(none, None);
        }
    }
}
