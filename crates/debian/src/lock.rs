//! Packages pinned by digest, as a file that users keep.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use gfxpack_model::{Digest, Error};
use serde::{Deserialize, Serialize};

use crate::error::DebianError;

/// Maximum size of such a file, in bytes.
const LOCK_MAX: u64 = 1 << 20;

/// One file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Path of its file, relative to the mirror's address.
    pub file: String,
    /// Size of the file, in bytes.
    pub size: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

/// Packages that are used together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The suite that the first package was taken from.
    pub suite: String,
    /// Debian's name for the processor that they are for.
    pub architecture: String,
    /// The packages. The others are dependencies of the first.
    #[serde(rename = "package")]
    pub packages: Vec<Pin>,
}

impl Lock {
    /// Reads a file that was written with [`Self::text`].
    ///
    /// # Errors
    /// If the file can't be read or is not a lock.
    pub fn read(path: &Path) -> Result<Self, DebianError> {
        let read = || {
            let mut text = String::new();
            let file = File::open(path).map_err(|error| error.to_string())?;
            let read = file.take(LOCK_MAX).read_to_string(&mut text);
            read.map_err(|error| error.to_string())?;
            Self::parse(&text)
        };
        read().map_err(|reason| unreadable(path, &reason))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lock: Self = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        for pin in &lock.packages {
            let mut parts = Path::new(&pin.file).components();
            if pin.file.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
                return Err(format!("`{}` is no file of an archive", pin.file));
            }
        }
        if lock.packages.is_empty() { Err("it has no packages".to_owned()) } else { Ok(lock) }
    }

    /// The text of the file, beginning with `comment`.
    ///
    /// # Errors
    /// If a value can't be written as TOML.
    pub fn text(&self, comment: &str) -> Result<String, DebianError> {
        let text = toml::to_string(self)
            .map_err(|error| unreadable(Path::new("packages"), &error.to_string()))?;
        let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        Ok(format!("{comment}{text}"))
    }
}

fn unreadable(path: &Path, reason: &str) -> DebianError {
    let path = path.display();
    DebianError::Other(Error::usage(
        format!("failed to read `{path}` as a list of pinned packages: {reason}"),
        "give a file that `gfxpack miopen --lock` wrote",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let pin = Pin {
            name: "libmiopen1".to_owned(),
            version: "6.4.3+dfsg-1+b1".to_owned(),
            file: "pool/main/m/miopen/libmiopen1_6.4.3+dfsg-1+b1_amd64.deb".to_owned(),
            size: 4_507_800,
            sha256: Digest::of(b"x"),
        };
        let lock = Lock {
            suite: "sid".to_owned(),
            architecture: "amd64".to_owned(),
            packages: vec![pin.clone(), Pin { name: "libc6".to_owned(), ..pin }],
        };
        let text = lock.text("Written by a machine.\nTwice.").unwrap();
        assert!(text.starts_with("# Written by a machine.\n# Twice.\nsuite = \"sid\"\n"), "{text}");
        assert_eq!(Lock::parse(&text).unwrap(), lock);
        for broken in [
            text.replace("pool/main", "../pool"),
            text.replace("pool/main", "/pool"),
            text.replace("sha256 = \"", "sha256 = \"0"),
            text.replace("suite", "suit"),
            text[..text.find("[[").unwrap()].to_owned() + "package = []\n",
        ] {
            assert!(Lock::parse(&broken).is_err(), "{broken}");
        }
    }
}
