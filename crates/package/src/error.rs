//! Errors of writing a package, and what to do about them.

use std::io;
use std::path::{Path, PathBuf};

/// Why a package, or the checksums of packages, could not be written.
///
/// After an error, no new file is left, and an older output is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The package name breaks the format's rules.
    #[error("failed to name a {format} package `{name}`")]
    Name {
        /// The format, as `deb`.
        format: &'static str,
        /// The name asked for.
        name: String,
    },
    /// The version or the revision breaks the format's rules.
    #[error("failed to give a {format} package the {part} `{value}`")]
    Version {
        /// The format, such as `deb`.
        format: &'static str,
        /// `version` or `revision`.
        part: &'static str,
        /// The value asked for.
        value: String,
    },
    /// A field of the spec can't be written as it is.
    #[error("failed to write the field {field}: `{value}` {reason}")]
    Field {
        /// The field's name.
        field: String,
        /// Its value.
        value: String,
        /// What is wrong with the value: `has a line break`.
        reason: &'static str,
    },
    /// Two files of the spec have the same path, or one is the other's parent.
    #[error("failed to pack both `{first}` and `{second}`")]
    PathClash {
        /// The path that sorts first.
        first: String,
        /// The path in conflict with it.
        second: String,
    },
    /// The time stamp is too large for the formats.
    #[error(
        "failed to write a time stamp: `{seconds}` seconds since the epoch do not fit into a package"
    )]
    TimeStamp {
        /// The value asked for.
        seconds: u64,
    },
    /// The compressor has no such level.
    #[error("failed to compress with {codec} level `{level}`")]
    Level {
        /// `xz`, `gzip` or `zstd`.
        codec: &'static str,
        /// The level asked for.
        level: u32,
    },
    /// An input file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The input file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An input is a directory, a device or a pipe.
    #[error("failed to pack `{path}`: it is no regular file")]
    NotAFile {
        /// The input.
        path: PathBuf,
    },
    /// An input file was written to while it was being packed.
    #[error("failed to pack `{path}`: it changed while it was being read")]
    Changed {
        /// The input file.
        path: PathBuf,
    },
    /// The output could not be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The output file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A package that another made is damaged, or made in a way that is not understood.
    #[error("failed to make `{path}` smaller")]
    Rewrite {
        /// The package.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A package would get a version of its own, and needs another's present one.
    #[error("failed to rename `{package}`: it needs exactly {version} of `{needed}`")]
    NeedsExactly {
        /// The package.
        package: String,
        /// The package that it needs.
        needed: String,
        /// The version that it needs.
        version: String,
    },
    /// A member of a .deb is too large for its header.
    #[error("failed to write `{path}`: its member {member} has {size} bytes")]
    MemberTooLarge {
        /// The output file.
        path: PathBuf,
        /// The member's name.
        member: String,
        /// Its size in bytes.
        size: u64,
    },
    /// The rpm library refused the spec or could not lay out the header.
    #[error("failed to write the header of `{path}`")]
    RpmHeader {
        /// The output file.
        path: PathBuf,
        /// The cause.
        source: Box<::rpm::Error>,
    },
    /// The signer returned something that is no OpenPGP signature that rpm reads.
    #[error("failed to put a signature into `{path}`: rpm can't read it")]
    Signature {
        /// The output file.
        path: PathBuf,
    },
    /// The signer failed.
    #[error("failed to sign")]
    Sign(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file for a list of checksums is outside of the list's directory, or its
    /// name can't be listed.
    #[error("failed to list `{path}` in the checksums of `{dir}`: {reason}")]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Directory of the list.
        dir: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Error {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::Name { format, .. } => name_hint(format),
            Self::Version { format, part, .. } => version_hint(format, part),
            Self::Field { field, .. } if field == "maintainer" => {
                "give another one, as --maintainer 'NAME <MAIL>'; without it, DEBFULLNAME and \
                 DEBEMAIL count"
            }
            Self::Field { field, .. } => return format!("give {field} another value"),
            Self::PathClash { .. } => {
                "drop one of the two; the writers add the copyright and the changelog themselves"
            }
            Self::TimeStamp { .. } => "set SOURCE_DATE_EPOCH to a time between 1970 and 2106",
            Self::Level { codec: "zstd", .. } => "zstd has the levels 1 to 22",
            Self::Level { codec: "gzip", .. } => "gzip has the levels 1 to 9",
            Self::Level { .. } => "xz has the levels 0 to 9",
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => {
                    "the file is gone or never was; build again, then package"
                }
                io::ErrorKind::PermissionDenied => "make the file readable",
                _ => "check the disk that holds the file",
            },
            Self::NotAFile { .. } => "name a regular file as the source",
            Self::Changed { .. } => "let whatever writes to the file finish, then package again",
            Self::Write { path, source } => return write_hint(path, source),
            Self::Rewrite { source, .. } if source.raw_os_error().is_some() => {
                "check the disk, and the space that is left there and in TMPDIR"
            }
            Self::Rewrite { .. } => "unpack it, and give the directory",
            Self::NeedsExactly { needed, .. } => {
                return format!("give the package `{needed}` of that version in the same command");
            }
            Self::MemberTooLarge { .. } => {
                "a .deb holds less than 10 GB compressed: split the package by gfx target, or \
                 write .rpm or tar"
            }
            Self::RpmHeader { .. } => "see the cause; the spec holds what rpm can't express",
            Self::Signature { .. } => "sign with an RSA, DSA or Ed25519 key of OpenPGP version 4",
            Self::Sign(_) => "see the cause; `gpg --list-secret-keys` lists the keys",
            Self::Checksum { .. } => "list each file once, from below the directory of the list",
        };
        fixed.to_owned()
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn rewrite(path: &Path, source: io::Error) -> Self {
        Self::Rewrite { path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}

/// How to write a package's name in a format.
fn name_hint(format: &str) -> &'static str {
    match format {
        "deb" => {
            "use lower-case letters, digits, `+`, `-` and `.`, at least two, and begin with a \
                 letter or a digit (Debian Policy 5.6.1)"
        }
        "wheel" => {
            "use letters, digits, `.`, `_` and `-`, begin with a letter, and end with a \
                 letter or a digit"
        }
        _ => "use letters, digits, `.`, `_`, `+` and `-`, and begin with a letter or a digit",
    }
}

/// How to write a version, or a part of it, in a format.
fn version_hint(format: &str, part: &str) -> &'static str {
    match (format, part) {
        ("deb", "version") => {
            "begin with a digit, and use letters, digits, `.`, `+`, `~` and `-`, 100 at the \
                 most (Debian Policy 5.6.12)"
        }
        ("deb", _) => {
            "use letters, digits, `.`, `+` and `~`, 100 at the most (Debian Policy 5.6.12)"
        }
        ("arch", "revision") => "use a number, or two with a point between them: 1 or 1.1",
        ("arch", _) => "use letters, digits, `.`, `_`, `+` and `~`, 100 at the most",
        ("wheel", "revision") => "use a number: a wheel of revision 2 has the version 1.0.post2",
        ("wheel", _) => "use a version of Python's packages, as 1.0 or 1.0rc1 (PEP 440)",
        _ => {
            "use letters, digits, `.`, `_`, `+`, `~` and `^`, 100 at the most; rpm takes no \
                 `-` in a version or release"
        }
    }
}

/// Why writing a package ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The output can't be written.
    Output(io::Error),
    /// Anything else.
    Other(Error),
}

impl Failure {
    /// Converts it into an error about this output.
    pub(crate) fn of(self, output: &Path) -> Error {
        match self {
            Self::Output(source) => Error::write(output, source),
            Self::Other(error) => error,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn write_hint(path: &Path, source: &io::Error) -> String {
    let dir = path.parent().unwrap_or(path).display();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
            "free space in `{dir}`: a writer needs up to twice the package's size while it works"
        ),
        io::ErrorKind::FileTooLarge => {
            "raise the limit on file sizes (`ulimit -f`), or write to another file system"
                .to_owned()
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            format!("create the directory `{dir}`")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("make `{dir}` writable, or write elsewhere")
        }
        _ => format!("check the disk that holds `{dir}`"),
    }
}

/// Kind and hint of a package that could not be signed are those of the signer.
impl From<Error> for gfxpack_model::Error {
    fn from(error: Error) -> Self {
        use crate::signing::SigningError;
        let signer = match &error {
            Error::Sign(cause) => cause.downcast_ref::<SigningError>(),
            _ => None,
        };
        let (is_usage, hint) = match (signer, &error) {
            (Some(signer), _) => (signer.is_usage(), signer.hint()),
            (None, Error::Sign(_) | Error::Read { .. } | Error::Write { .. }) => {
                (false, error.hint())
            }
            _ => (true, error.hint()),
        };
        let kind = if is_usage {
            gfxpack_model::ErrorKind::Usage
        } else {
            gfxpack_model::ErrorKind::Internal
        };
        Self::new(kind, &error, hint).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_fits_the_cause() {
        let check = |kind: io::ErrorKind, expected: &str| {
            let error = Error::write(Path::new("/dist/x.deb"), kind.into());
            assert!(error.hint().starts_with(expected), "{kind:?}: {}", error.hint());
        };
        check(io::ErrorKind::StorageFull, "free space in `/dist`");
        check(io::ErrorKind::QuotaExceeded, "free space in `/dist`");
        check(io::ErrorKind::FileTooLarge, "raise the limit");
        check(io::ErrorKind::NotFound, "create the directory `/dist`");
        check(io::ErrorKind::ReadOnlyFilesystem, "make `/dist` writable");
    }

    #[test]
    fn the_cause_is_chained_and_not_repeated() {
        let error = Error::read(Path::new("/in"), io::ErrorKind::NotFound.into());
        assert_eq!(error.to_string(), "failed to read `/in`");
        let cause = std::error::Error::source(&error).expect("there is a cause");
        assert_eq!(cause.to_string(), "entity not found");
    }
}
