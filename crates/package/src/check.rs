//! Checks what users say of packages: names and versions against the rules of each
//! format, and texts.

use gfxpack_model::package::PackageSpec;
use gfxpack_model::{Error, Result};

use crate::format::Format;

/// Maximum length of a version, in bytes. File names can have 255 in all.
const MAX_VERSION: usize = 100;

impl Format {
    /// Source: Debian Policy 4.7.0, 5.6.1; rpm 4.18 `build/parsePreamble.c`,
    /// allowed characters of `Name`; Python's core metadata, `Name`.
    fn takes_name(self, name: &str) -> bool {
        let first = name.bytes().next();
        match self {
            Self::Deb { .. } => {
                let takes =
                    |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
                name.len() >= 2
                    && first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                    && name.bytes().all(takes)
            }
            Self::Rpm { .. } | Self::Tar { .. } | Self::Oci | Self::Arch => {
                first.is_some_and(|b| b.is_ascii_alphanumeric())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b))
            }
            // It is also the name in Python, which can't begin with a digit.
            Self::Wheel => {
                first.is_some_and(|b| b.is_ascii_alphabetic())
                    && name.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
            }
        }
    }

    /// Source: Debian Policy 4.7.0, 5.6.12, without epoch; rpm 4.18
    /// `build/parsePreamble.c`, allowed characters of `Version` and `Release`;
    /// pacman 6.0.2, `scripts/libmakepkg/lint_pkgbuild/pkgver.sh.in`.
    fn takes_version(self, value: &str, part: &str) -> bool {
        let others: &[u8] = match (self, part) {
            (Self::Deb { .. }, "version") => b".+~-",
            (Self::Deb { .. }, _) => b".+~",
            (Self::Arch, "version") => b"._+~",
            (Self::Arch, _) => b".",
            _ => b"._+~^",
        };
        let digit_first = value.bytes().next().is_some_and(|b| b.is_ascii_digit());
        !value.is_empty()
            && value.len() <= MAX_VERSION
            && (digit_first || !matches!(self, Self::Deb { .. }) || part != "version")
            && (self != Self::Arch || part == "version" || is_release(value))
            && value.bytes().all(|b| b.is_ascii_alphanumeric() || others.contains(&b))
    }
}

/// The version that sorts before its release, if this one sorts after it: `3.6.0~rc1` for
/// `3.6.0rc1`. dpkg and rpm compare letters as additions, Python as what is before a release.
pub fn before_release(version: &str) -> Option<String> {
    let (release, rest) = version.split_at(version.find(|c: char| c.is_ascii_alphabetic())?);
    let (kind, number) =
        rest.split_at(rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len()));
    let numbered = number.starts_with(|c: char| c.is_ascii_digit());
    let kind = match &*kind.to_ascii_lowercase() {
        kind @ ("a" | "b") if numbered => kind.to_owned(),
        "c" if numbered => "rc".to_owned(),
        "preview" => "pre".to_owned(),
        kind @ ("alpha" | "beta" | "rc" | "pre" | "dev") => kind.to_owned(),
        _ => return None,
    };
    let release = release.strip_suffix(['.', '-', '_']).unwrap_or(release);
    let is_release = release.ends_with(|c: char| c.is_ascii_digit())
        && release.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_release.then(|| format!("{release}~{kind}{number}"))
}

/// Whether the value is a number, or two numbers with a point between them.
///
/// Source: pacman 6.0.2, `scripts/libmakepkg/lint_pkgbuild/pkgrel.sh.in`.
fn is_release(value: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
    number(whole) && number(part)
}

/// Checks a spec against the rules of `format` before anything is written.
pub(crate) fn spec(spec: &PackageSpec, format: Format) -> Result {
    if !format.takes_name(&spec.name) {
        let message = format!("failed to name a {} package `{}`", format.name(), spec.name);
        return Err(Error::usage(message, name_hint(format)));
    }
    for (part, value) in [("version", &spec.version), ("revision", &spec.revision)] {
        if !format.takes_version(value, part) {
            return Err(wrong_version(format, part, value));
        }
    }
    fields(spec)?;
    let dates = spec.changelog.iter().map(|entry| entry.date);
    // rpm has 32 bits for times. The same limit for all formats keeps them alike.
    match dates.chain([spec.source_date_epoch]).find(|date| u32::try_from(*date).is_err()) {
        Some(seconds) => Err(Error::usage(
            format!(
                "failed to write a time stamp: `{seconds}` seconds since the epoch do not fit into \
                 a package"
            ),
            "set SOURCE_DATE_EPOCH to a time between 1970 and 2106",
        )),
        None => Ok(()),
    }
}

/// The error of a version, or a revision, that breaks the format's rules.
pub(crate) fn wrong_version(format: Format, part: &str, value: &str) -> Error {
    let message = format!("failed to give a {} package the {part} `{value}`", format.name());
    Error::usage(message, version_hint(format, part))
}

fn name_hint(format: Format) -> &'static str {
    match format {
        Format::Deb { .. } => {
            "use lower-case letters, digits, `+`, `-` and `.`, at least two, and begin with a \
             letter or a digit (Debian Policy 5.6.1)"
        }
        Format::Wheel => {
            "use letters, digits, `.`, `_` and `-`, begin with a letter, and end with a letter or \
             a digit"
        }
        _ => "use letters, digits, `.`, `_`, `+` and `-`, and begin with a letter or a digit",
    }
}

fn version_hint(format: Format, part: &str) -> &'static str {
    match (format, part) {
        (Format::Deb { .. }, "version") => {
            "begin with a digit, and use letters, digits, `.`, `+`, `~` and `-`, 100 at the most \
             (Debian Policy 5.6.12)"
        }
        (Format::Deb { .. }, _) => {
            "use letters, digits, `.`, `+` and `~`, 100 at the most (Debian Policy 5.6.12)"
        }
        (Format::Arch, "revision") => "use a number, or two with a point between them: 1 or 1.1",
        (Format::Arch, _) => "use letters, digits, `.`, `_`, `+` and `~`, 100 at the most",
        (Format::Wheel, "revision") => {
            "use a number: a wheel of revision 2 has the version 1.0.post2"
        }
        (Format::Wheel, _) => "use a version of Python's packages, as 1.0 or 1.0rc1 (PEP 440)",
        _ => {
            "use letters, digits, `.`, `_`, `+`, `~` and `^`, 100 at the most; rpm takes no `-` in \
             a version or release"
        }
    }
}

/// What users say of a package must not add fields to it.
fn fields(spec: &PackageSpec) -> Result {
    let must = |holds: bool, field: &str, value: &str, reason| {
        if holds {
            return Ok(());
        }
        let message = format!("failed to write the field {field}: `{value}` {reason}");
        Err(match field {
            "maintainer" => Error::usage(
                message,
                "give another one, as --maintainer 'NAME <MAIL>'; without it, DEBFULLNAME and \
                 DEBEMAIL count",
            ),
            _ => Error::usage(message, format!("give {field} another value")),
        })
    };
    let one_line = |field: &str, value: &str| {
        must(!value.chars().any(char::is_control), field, value, "has a control character")?;
        must(value.trim() == value, field, value, "begins or ends with a space")
    };
    one_line("summary", &spec.summary)?;
    one_line("license", &spec.license)?;
    must(!spec.license.is_empty(), "license", "", "is empty")?;
    one_line("homepage", &spec.homepage)?;
    one_line("maintainer", &spec.maintainer)?;
    let mail = spec.maintainer.split_once(" <").is_some_and(|(name, mail)| {
        let plain = |text: &str| !text.is_empty() && !text.contains(['<', '>']);
        let address = mail.strip_suffix('>').and_then(|mail| mail.rsplit_once('@'));
        let whole = |part: &str| plain(part) && !part.contains(char::is_whitespace);
        plain(name) && address.is_some_and(|(user, host)| whole(user) && whole(host))
    });
    must(mail, "maintainer", &spec.maintainer, "is not of the form `Name <mail@example.org>`")?;
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    must(!spec.description.chars().any(odd), "description", "", "has a control character")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_each_format() {
        let check = |name: &str, deb: bool, rpm: bool| {
            assert_eq!(Format::DEB.takes_name(name), deb, "deb: {name:?}");
            assert_eq!(Format::RPM.takes_name(name), rpm, "rpm: {name:?}");
            assert_eq!(Format::TAR.takes_name(name), rpm, "tar: {name:?}");
        };
        check("miopen-hip-gfx90a-104kdb", true, true);
        check("g++", true, true);
        check("a", false, true);
        check("Upper", false, true);
        check("under_score", false, true);
        for wrong in ["", "-a", ".a", "a b", "a/b", "ä", "a\n", "%{x}"] {
            check(wrong, false, false);
        }
    }

    #[test]
    fn versions_before_a_release_are_told_from_those_after_it() {
        for (version, expected) in [
            ("3.6.0rc1", "3.6.0~rc1"),
            ("3.6.0.rc1", "3.6.0~rc1"),
            ("3.6.0-RC1", "3.6.0~rc1"),
            ("10.0.0a20260903", "10.0.0~a20260903"),
            ("3.6.0b2+git5", "3.6.0~b2+git5"),
            ("3.6.0.dev3", "3.6.0~dev3"),
            ("3.6beta", "3.6~beta"),
        ] {
            assert_eq!(before_release(version).as_deref(), Some(expected), "{version}");
        }
        for version in ["3.6.0", "1.0.2a", "3.6.0~rc1", "3.6+rc1", "3.6.0+git5", "sid", "1.0p1", ""]
        {
            assert_eq!(before_release(version), None, "{version}");
        }
    }

    #[test]
    fn versions_follow_each_format() {
        let check = |version: &str, deb: bool, rpm: bool| {
            assert_eq!(Format::DEB.takes_version(version, "version"), deb, "deb: {version:?}");
            assert_eq!(Format::RPM.takes_version(version, "version"), rpm, "rpm: {version:?}");
        };
        check("1.0.0", true, true);
        check("1.0~rc1+git5", true, true);
        check("1.0-2", true, false);
        check("v1", false, true);
        check("1_0", false, true);
        check("1^git", false, true);
        for wrong in ["", "1:2", "1 0", "1/0", "1\u{e9}"] {
            check(wrong, false, false);
        }
        for (version, arch) in [("1.0~rc1+git5", true), ("1_0", true), ("1.0-2", false)] {
            assert_eq!(Format::Arch.takes_version(version, "version"), arch, "{version}");
        }
        for (revision, arch) in [("1", true), ("1.2", true), ("1.", false), ("1a", false)] {
            assert_eq!(Format::Arch.takes_version(revision, "revision"), arch, "{revision}");
        }
        assert!(Format::DEB.takes_version("ubuntu1", "revision"));
        assert!(!Format::DEB.takes_version("1-1", "revision"));
        assert!(!Format::RPM.takes_version("", "revision"));
    }
}
