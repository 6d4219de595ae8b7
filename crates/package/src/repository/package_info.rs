//! What a package says of itself, as the tools of its system read it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gfxpack_process::{SystemTool, SystemToolError};

const DPKG_DEB: SystemTool = SystemTool { program: "dpkg-deb", provided_by: "dpkg" };
const DPKG: SystemTool = SystemTool { program: "dpkg", provided_by: "dpkg" };
const RPM: SystemTool = SystemTool { program: "rpm", provided_by: "rpm" };

/// Name, version, relations in one line, summary, and description.
const DEB_FORMAT: &str = "--showformat=${Package}\\n${Version}\\n${Depends}\\n${Description}\\n";
const RPM_FORMAT: &str = "--qf=%{NAME}\\n%{VERSION}-%{RELEASE}\\n[%{REQUIRENAME},]\\n%{SUMMARY}\\n\
                          %{DESCRIPTION}\\n";

/// A package in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageInfo {
    /// The file.
    pub path: PathBuf,
    /// The package's name.
    pub name: String,
    /// With its revision.
    pub(super) version: String,
    /// The names of packages that it depends on.
    pub depends: Vec<String>,
    /// What it is, in a line.
    pub(super) summary: String,
    /// The same at length; paragraphs have an empty line between them.
    pub(super) description: String,
}

impl PackageInfo {
    /// What a .deb or .rpm says; `None` where it can't be read.
    ///
    /// # Errors
    /// Where dpkg-deb or rpm does not start.
    pub fn read(path: &Path) -> Result<Option<Self>, SystemToolError> {
        let (tool, words) = if is_deb(path) {
            (DPKG_DEB, &["-W", DEB_FORMAT][..])
        } else {
            // The name is that file's, whatever is in it, and so is what it says.
            (RPM, &["-qp", "--noglob", "--nomanifest", RPM_FORMAT][..])
        };
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).chain([path.as_os_str()]).collect();
        let output = tool.capture(&words, Path::new("."), &[])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (Some(name), Some(version), Some(depends), Some(summary), true) =
            (lines.next(), lines.next(), lines.next(), lines.next(), output.status.success())
        else {
            return Ok(None);
        };
        // It goes into an expression of rpm's below.
        if !version.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+~^:-".contains(&b)) {
            return Ok(None);
        }
        // An empty line is a dot in a .deb.
        let paragraph = |line: &str| if line == " ." { "" } else { line.trim() }.to_owned() + "\n";
        Ok(Some(Self {
            path: path.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
            depends: names(depends),
            summary: summary.to_owned(),
            description: lines.map(paragraph).collect(),
        }))
    }

    /// Whether its version is above the other's, by the rules of their system.
    ///
    /// # Errors
    /// Where dpkg or rpm fails.
    pub fn is_newer_than(&self, other: &Self) -> Result<bool, SystemToolError> {
        let here = Path::new(".");
        if is_deb(&self.path) {
            let words = ["--compare-versions", &self.version, "gt", &other.version];
            return Ok(DPKG.capture(&words, here, &[])?.status.success());
        }
        let ask = format!("%{{lua:print(rpm.vercmp('{}', '{}'))}}", self.version, other.version);
        let told = RPM.output(&["--eval", &ask], here, &[])?;
        Ok(String::from_utf8_lossy(&told).trim() == "1")
    }
}

/// The files of the package of that name and of all that it depends on, as far
/// as they are among `packages`; the newest of each name.
///
/// # Errors
/// Where dpkg or rpm can't compare versions.
pub fn with_dependencies(
    packages: &[PackageInfo],
    name: &str,
) -> Result<Vec<PathBuf>, SystemToolError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        let mut newest: Option<&PackageInfo> = None;
        for one in packages.iter().filter(|one| one.name == name) {
            let newer = match newest {
                Some(other) => one.is_newer_than(other)?,
                None => true,
            };
            newest = if newer { Some(one) } else { newest };
        }
        if let Some(package) = newest
            && !found.contains(&package.path)
        {
            found.push(package.path.clone());
            pending.extend(package.depends.iter().map(String::as_str));
        }
    }
    Ok(found)
}

fn is_deb(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "deb")
}

/// The names in a line of relations: `a (= 1), b`.
fn names(line: &str) -> Vec<String> {
    let names = line.split(',').filter_map(|one| one.split_whitespace().next());
    names.map(str::to_owned).collect()
}
