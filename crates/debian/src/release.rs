//! The signed list of a suite's files.
//!
//! Source: Debian wiki, "DebianRepository/Format", "Release" files.

use gfxpack_model::Digest;

use crate::download::ExpectedFile;
use gfxpack_package::deb822::Paragraph;
use gfxpack_package::seconds_of;

/// The contents of a `Release` file.
#[derive(Debug, Clone)]
pub(crate) struct Release {
    pub(crate) origin: String,
    /// The suite, such as `unstable`.
    suite: String,
    /// The code name, such as `sid`.
    codename: String,
    /// When it was made, as written in the file.
    pub(crate) date: String,
    /// The same in seconds since 1970; 0 if it does not say so.
    made: u64,
    /// Until when it is valid, in seconds since 1970, if it says so.
    pub(crate) valid_until: Option<u64>,
    /// Whether files are also available by their digests.
    pub(crate) by_hash: bool,
    /// The list of packages: its path relative to the suite, and its digest.
    pub(crate) packages: (String, ExpectedFile),
}

impl Release {
    /// Parses the text, for packages in `main` for one architecture.
    pub(crate) fn parse(text: &str, architecture: &str) -> Result<Self, String> {
        let paragraph = Paragraph(text);
        let line = |field| paragraph.line(field).unwrap_or_default().to_owned();
        let wanted = format!("main/binary-{architecture}/Packages.xz");
        let mut files = paragraph.lines("SHA256").into_iter().flatten();
        let promise = files.find_map(|file| {
            let mut fields = file.split_ascii_whitespace();
            let (sha256, size, path) = (fields.next()?, fields.next()?, fields.next()?);
            if path != wanted {
                return None;
            }
            Some(ExpectedFile { size: size.parse().ok()?, sha256: sha256.parse::<Digest>().ok()? })
        });
        let promise = promise.ok_or_else(|| format!("it does not list `{wanted}`"))?;
        let valid_until = paragraph
            .line("Valid-Until")
            .map(|date| seconds_of(date).ok_or_else(|| format!("`{date}` is no date")));
        Ok(Self {
            origin: line("Origin"),
            suite: line("Suite"),
            codename: line("Codename"),
            date: line("Date"),
            made: paragraph.line("Date").and_then(seconds_of).unwrap_or(0),
            valid_until: valid_until.transpose()?,
            by_hash: line("Acquire-By-Hash") == "yes",
            packages: (wanted, promise),
        })
    }

    /// Whether this was made before the other. Whoever can't sign may still offer what was signed
    /// long ago.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.made < other.made
    }

    /// Whether this is the suite with that name. An older list of another suite
    /// also has a valid signature.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        !name.is_empty() && (self.suite == name || self.codename == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_the_packages_of_one_architecture() {
        let text = "Origin: Debian\nSuite: unstable\nCodename: sid\nAcquire-By-Hash: yes\n\
            Date: Fri, 30 Oct 2026 08:08:01 UTC\nValid-Until: Fri, 06 Nov 2026 08:08:01 UTC\n\
            MD5Sum:\n 58bc30204c16e9a8aa57f9362ecc0d03 1 main/binary-amd64/Packages.xz\n\
            SHA256:\n \
            ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  77 main/binary-amd64/Packages.xz\n";
        let release = Release::parse(text, "amd64").unwrap();
        assert_eq!(release.packages.0, "main/binary-amd64/Packages.xz");
        assert_eq!(release.packages.1.size, 77);
        assert!(release.is_of("sid") && release.is_of("unstable") && !release.is_of("trixie"));
        assert!(release.by_hash);
        assert_eq!(release.valid_until, Some(1_793_952_481));
        assert!(Release::parse(text, "arm64").is_err());
        assert!(Release::parse("", "amd64").is_err());
        let later = Release::parse(&text.replace("30 Oct", "31 Oct"), "amd64").unwrap();
        assert!(release.is_older_than(&later) && !later.is_older_than(&release));
        assert!(!release.is_older_than(&release));
        let unnamed = text.replace("Suite: unstable\nCodename: sid\n", "");
        assert!(!Release::parse(&unnamed, "amd64").unwrap().is_of(""));
    }
}
