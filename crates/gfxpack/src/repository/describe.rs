//! What a package says of itself, as the tools of its system read it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::tools::{self, Tool};

const DPKG_DEB: Tool = Tool { program: "dpkg-deb", from: "dpkg" };
const DPKG: Tool = Tool { program: "dpkg", from: "dpkg" };
const RPM: Tool = Tool { program: "rpm", from: "rpm" };

/// A package in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    /// With its revision.
    version: String,
    /// The names of packages that it depends on.
    pub(crate) depends: Vec<String>,
}

/// What a .deb or .rpm says; `None` where it can't be read.
pub(crate) fn describe(path: &Path) -> anyhow::Result<Option<Described>> {
    let deb = path.extension().is_some_and(|extension| extension == "deb");
    let (tool, words) = if deb {
        (DPKG_DEB, &["-W", "--showformat=${Package}\\n${Version}\\n${Depends}\\n"][..])
    } else {
        let format = "--qf=%{NAME}\\n%{VERSION}-%{RELEASE}\\n[%{REQUIRENAME}\\n]";
        // The name is that file's, whatever is in it, and so is what it says.
        (RPM, &["-qp", "--noglob", "--nomanifest", format][..])
    };
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).chain([path.as_os_str()]).collect();
    let (status, text, _) = tools::capture(tool, &words, Path::new("."), &[])?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::to_owned);
    let (Some(name), Some(version), true) = (lines.next(), lines.next(), status.success()) else {
        return Ok(None);
    };
    // It goes into an expression of rpm's below.
    if !version.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+~^:-".contains(&b)) {
        return Ok(None);
    }
    let depends = lines.flat_map(|line| names(&line)).collect();
    Ok(Some(Described { path: path.to_owned(), name, version, depends }))
}

/// The names in a line of relations: `a (= 1), b`.
fn names(line: &str) -> Vec<String> {
    let names = line.split(',').filter_map(|one| one.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Whether the version of one package is above the other's, by the rules of
/// their system.
pub(crate) fn is_newer(one: &Described, other: &Described) -> anyhow::Result<bool> {
    let here = Path::new(".");
    if one.path.extension().is_some_and(|extension| extension == "deb") {
        let words = ["--compare-versions", &one.version, "gt", &other.version];
        return Ok(tools::capture(DPKG, &words, here, &[])?.0.success());
    }
    let ask = format!("%{{lua:print(rpm.vercmp('{}', '{}'))}}", one.version, other.version);
    let told = tools::output(RPM, &["--eval", &ask], here, &[])?;
    Ok(String::from_utf8_lossy(&told).trim() == "1")
}
