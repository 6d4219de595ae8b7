//! Writes the files for users of a repository: one for apt, one for dnf and
//! zypper.

use gfxpack_model::Error;
use std::fmt::Write as _;
use std::path::Path;

use super::address::{Address, KEY_FILE, SetupFiles};
use super::apt::Suite;
use super::files::put;

/// Writes the files, if there are packages of the two formats. `key` is the public
/// key, if the indexes are signed.
pub(super) fn write(
    dir: &Path,
    address: &Address,
    suite: &Suite,
    key: Option<&[u8]>,
    (has_debs, has_rpms): (bool, bool),
) -> Result<SetupFiles, Error> {
    let name = file_stem(&suite.origin);
    let put_as = |ending: &str, text: String| {
        let name = format!("{name}.{ending}");
        put(&dir.join(&name), text.as_bytes()).map(|()| name)
    };
    let sources = has_debs.then(|| put_as("sources", sources(address, suite, key)));
    let repo = has_rpms.then(|| put_as("repo", repo(address, suite, &name, key.is_some())));
    Ok(SetupFiles { sources: sources.transpose()?, repo: repo.transpose()? })
}

/// A name for files and sections: `amd-kernels` for `AMD kernels`.
fn file_stem(origin: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let parts: String = origin.chars().map(plain).collect();
    let parts: Vec<&str> = parts.split('-').filter(|word| !word.is_empty()).collect();
    if parts.is_empty() { "kernels".to_owned() } else { parts.join("-") }
}

/// The file contains the key, so that users download only one file.
///
/// Source: sources.list(5), "DEB822-STYLE FORMAT".
fn sources(address: &Address, suite: &Suite, key: Option<&[u8]>) -> String {
    let Suite { suite, component, .. } = suite;
    let mut text =
        format!("Types: deb\nURIs: {}\nSuites: {suite}\nComponents: {component}\n", address.url());
    let Some(key) = key else { return text + "Trusted: yes\n" };
    text.push_str("Signed-By:\n");
    for line in String::from_utf8_lossy(key).lines() {
        let line = if line.trim().is_empty() { "." } else { line };
        let _ = writeln!(text, " {line}");
    }
    text
}

/// The signed index has the packages' digests, so packages are checked whether or
/// not they are signed themselves.
///
/// Source: dnf.conf(5), "REPO OPTIONS".
fn repo(address: &Address, suite: &Suite, name: &str, is_signed: bool) -> String {
    let url = address.url();
    let mut text = format!("[{name}]\nname={}\nbaseurl={url}\nenabled=1\n", suite.origin);
    if is_signed {
        let _ = writeln!(text, "repo_gpgcheck=1\ngpgcheck=0\ngpgkey={url}/{KEY_FILE}");
    } else {
        text.push_str("repo_gpgcheck=0\ngpgcheck=0\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_words() {
        for (origin, expected) in [
            ("gfxpack", "gfxpack"),
            ("AMD kernels, nightly", "amd-kernels-nightly"),
            ("…", "kernels"),
        ] {
            assert_eq!(file_stem(origin), expected);
        }
    }

    #[test]
    fn a_key_is_in_the_file_for_apt() {
        let address = Address::of_directory(Path::new("/a b"));
        let suite = Suite {
            origin: "x".to_owned(),
            suite: "stable".to_owned(),
            component: "main".to_owned(),
        };
        let expected = "Types: deb\nURIs: file:///a%20b\nSuites: stable\nComponents: main\nSigned-By:\n \
                        -----BEGIN\n .\n abc\n";
        assert_eq!(sources(&address, &suite, Some(b"-----BEGIN\n\nabc\n")), expected);
        assert!(sources(&address, &suite, None).ends_with("Trusted: yes\n"));
    }
}
