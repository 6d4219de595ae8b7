//! Checks names, versions, fields and paths against the rules of each package
//! format.

use gfxpack_model::package::{PackageFile, PackageSpec, Relation, RelationKind};

use crate::Error;
use crate::format::Format;
use crate::text::{COLUMNS, columns};

/// Maximum length of a version, in bytes. File names can have 255 in all.
const MAX_VERSION: usize = 100;

impl Format {
    /// Whether the format has this kind of relation.
    fn has(self, kind: RelationKind) -> bool {
        match self {
            Self::Deb { .. } => {
                !matches!(kind, RelationKind::Obsoletes | RelationKind::Supplements)
            }
            Self::Rpm { .. } => kind != RelationKind::Replaces,
            Self::Arch => !matches!(
                kind,
                RelationKind::Enhances
                    | RelationKind::Replaces
                    | RelationKind::Obsoletes
                    | RelationKind::Supplements
            ),
            Self::Tar { .. } | Self::Wheel | Self::Oci => false,
        }
    }

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

/// Whether the value is a number, or two numbers with a point between them.
///
/// Source: pacman 6.0.2, `scripts/libmakepkg/lint_pkgbuild/pkgrel.sh.in`.
fn is_release(value: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
    number(whole) && number(part)
}

/// Checks a spec against the rules of `format` before anything is written.
///
/// # Errors
/// The first rule that is broken, as its own kind of error.
pub(crate) fn spec(spec: &PackageSpec, format: Format) -> Result<(), Error> {
    if !format.takes_name(&spec.name) {
        return Err(Error::Name { format: format.name(), name: spec.name.clone() });
    }
    for (part, value) in [("version", &spec.version), ("revision", &spec.revision)] {
        if !format.takes_version(value, part) {
            return Err(Error::Version { format: format.name(), part, value: value.clone() });
        }
    }
    fields(spec)?;
    spec.relations.iter().try_for_each(|relation| self::relation(relation, format))?;
    spec.files.iter().try_for_each(path)?;
    let dates = spec.changelog.iter().map(|entry| entry.date);
    // rpm has 32 bits for times. The same limit for all formats keeps them alike.
    match dates.chain([spec.source_date_epoch]).find(|date| u32::try_from(*date).is_err()) {
        Some(seconds) => Err(Error::TimeStamp { seconds }),
        None => Ok(()),
    }
}

fn fields(spec: &PackageSpec) -> Result<(), Error> {
    let must = |holds: bool, field: &str, value: &str, reason| {
        if holds {
            return Ok(());
        }
        Err(Error::Field { field: field.to_owned(), value: value.to_owned(), reason })
    };
    let one_line = |field: &str, value: &str| {
        must(!value.chars().any(char::is_control), field, value, "has a control character")?;
        must(value.trim() == value, field, value, "begins or ends with a space")
    };
    let text = |field: &str, value: &str| {
        let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
        must(!value.chars().any(odd), field, value, "has a control character")
    };
    one_line("summary", &spec.summary)?;
    must(!spec.summary.is_empty(), "summary", "", "is empty")?;
    must(!spec.summary.ends_with('.'), "summary", &spec.summary, "ends with a full stop")?;
    let short = columns(&spec.summary) <= COLUMNS;
    must(short, "summary", &spec.summary, "is longer than 79 columns")?;
    text("description", &spec.description)?;
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
    one_line("section", &spec.section)?;
    must(!spec.section.is_empty(), "section", "", "is empty")?;
    text("copyright", &spec.copyright)?;
    must(!spec.copyright.trim().is_empty(), "copyright", "", "is empty")?;
    must(spec.copyright.ends_with('\n'), "copyright", &spec.copyright, "lacks the final newline")?;
    must(!spec.changelog.is_empty(), "changelog", "", "has no entry")?;
    for entry in &spec.changelog {
        one_line("changelog", &entry.version)?;
        must(!entry.version.is_empty(), "changelog", "", "has an entry without version")?;
        must(!entry.changes.is_empty(), "changelog", &entry.version, "has no change")?;
        for change in &entry.changes {
            one_line("changelog", change)?;
            must(!change.is_empty(), "changelog", &entry.version, "has an empty change")?;
        }
    }
    Ok(())
}

/// Source: Debian Policy 4.7.0, 7.1; only `=` bounds what is provided (7.5).
fn relation(relation: &Relation, format: Format) -> Result<(), Error> {
    let fail = |reason| {
        let Relation { kind, name, version } = relation;
        let bound = version.as_ref().map_or(String::new(), |(op, v)| format!(" ({op} {v})"));
        Err(Error::Relation { relation: format!("{kind:?}: {name}{bound}"), reason })
    };
    if !format.has(relation.kind) {
        return Ok(());
    }
    let named = match format {
        Format::Deb { .. } | Format::Arch => format.takes_name(&relation.name),
        // In rpm, a relation may name any word: a package, a capability, a path.
        Format::Rpm { .. } => {
            !relation.name.is_empty() && !relation.name.contains(|c: char| c <= ' ' || c == '\x7f')
        }
        Format::Tar { .. } | Format::Wheel | Format::Oci => true,
    };
    if !named {
        return fail("that is no package name");
    }
    let Some((operator, version)) = &relation.version else { return Ok(()) };
    if !["=", "<<", "<=", ">=", ">>"].contains(&operator.as_str()) {
        return fail("there is no such operator");
    }
    if relation.kind == RelationKind::Provides && operator != "=" {
        return fail("what is provided can only be bounded with =");
    }
    let takes = |b: u8| b.is_ascii_alphanumeric() || b".+~-:_^".contains(&b);
    if version.is_empty() || !version.bytes().all(takes) {
        return fail("that is no version");
    }
    Ok(())
}

fn path(file: &PackageFile) -> Result<(), Error> {
    let fail = |reason| Err(Error::InstallPath { path: file.path.clone(), reason });
    let Some(rest) = file.path.strip_prefix('/') else {
        return fail("the path is not absolute");
    };
    if rest.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return fail("the path has an empty part, `.` or `..`");
    }
    if file.path.chars().any(char::is_control) {
        return fail("the path has a control character");
    }
    if file.mode & !0o7777 != 0 {
        return fail("the mode has more than permission bits");
    }
    Ok(())
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

    #[test]
    fn relations_follow_policy() {
        let check = |kind, name: &str, version: Option<(&str, &str)>, deb: bool, rpm: bool| {
            let version = version.map(|(op, v)| (op.to_owned(), v.to_owned()));
            let made = Relation { kind, name: name.to_owned(), version };
            assert_eq!(relation(&made, Format::DEB).is_ok(), deb, "deb: {made:?}");
            assert_eq!(relation(&made, Format::RPM).is_ok(), rpm, "rpm: {made:?}");
        };
        use RelationKind::{Depends, Provides};
        check(Depends, "miopen-hip", None, true, true);
        check(Depends, "miopen-hip", Some((">=", "3.2.0-1")), true, true);
        check(Provides, "miopen-kdb", Some(("=", "1")), true, true);
        check(Provides, "miopen-kdb", Some((">=", "1")), false, false);
        check(Depends, "modalias(pci:v1002d*)", None, false, true);
        // Relations that a format lacks are left out, whatever they say.
        check(RelationKind::Supplements, "modalias(a:pci:v1002d*)", None, true, true);
        check(RelationKind::Replaces, "a | b", None, false, true);
        check(Depends, "a | b", None, false, false);
        check(Depends, "miopen-hip", Some((">", "1")), false, false);
        check(Depends, "miopen-hip", Some((">=", "")), false, false);
        check(Depends, "miopen-hip", Some((">=", "1) , b")), false, false);
    }

    #[test]
    fn only_plain_absolute_paths_are_installed_to() {
        let check = |given: &str, mode: u32, ok: bool| {
            let content = gfxpack_model::package::Content::Bytes(Vec::new());
            let file = PackageFile { path: given.to_owned(), content, mode };
            assert_eq!(path(&file).is_ok(), ok, "{given:?} {mode:o}");
        };
        check("/usr/share/miopen/db/gfx1030.kdb", 0o644, true);
        check("/usr/share/with space", 0o755, true);
        check("/usr", 0o100_644, false);
        for wrong in
            ["", "/", "usr/share", "/usr//share", "/usr/share/", "/a/../b", "/./a", "/a\nb"]
        {
            check(wrong, 0o644, false);
        }
    }
}
