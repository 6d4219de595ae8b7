//! Reads a package's description with the tools of its system.

use gfxpack_model::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gfxpack_process::SystemTool;

const DPKG_DEB: SystemTool = SystemTool { program: "dpkg-deb", provided_by: "dpkg" };
const DPKG: SystemTool = SystemTool { program: "dpkg", provided_by: "dpkg" };
const RPM: SystemTool = SystemTool { program: "rpm", provided_by: "rpm" };

/// Name, version, and dependencies on one line.
const DEB_FORMAT: &str = "--showformat=${Package}\\n${Version}\\n${Depends}\\n";
const RPM_FORMAT: &str = "--qf=%{NAME}\\n%{VERSION}-%{RELEASE}\\n[%{REQUIRENAME},]\\n";

/// A package in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageInfo {
    /// The file.
    pub path: PathBuf,
    /// The package's name.
    pub name: String,
    /// The version with the revision.
    version: String,
    /// The names of packages that it depends on.
    pub depends: Vec<String>,
}

impl PackageInfo {
    /// Reads the description of a .deb or .rpm; `None` if the package is damaged.
    ///
    /// # Errors
    /// If dpkg-deb or rpm does not start.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let (tool, arguments) = if is_deb(path) {
            (DPKG_DEB, &["-W", DEB_FORMAT][..])
        } else {
            // These options make rpm take the argument as the name of a package
            // file and nothing else.
            (RPM, &["-qp", "--noglob", "--nomanifest", RPM_FORMAT][..])
        };
        let arguments: Vec<&OsStr> =
            arguments.iter().map(OsStr::new).chain([path.as_os_str()]).collect();
        let output = tool.capture(&arguments, Path::new("."), &[])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (Some(name), Some(version), Some(depends), true) =
            (lines.next(), lines.next(), lines.next(), output.status.success())
        else {
            return Ok(None);
        };
        // The version is inserted into an expression for rpm below.
        if !version.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+~^:-".contains(&b)) {
            return Ok(None);
        }
        Ok(Some(Self {
            path: path.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
            depends: names(depends),
        }))
    }

    /// Whether this version is greater than the other's, by the system's rules.
    fn is_newer_than(&self, other: &Self) -> Result<bool, Error> {
        let here = Path::new(".");
        if is_deb(&self.path) {
            let arguments = ["--compare-versions", &self.version, "gt", &other.version];
            return Ok(DPKG.capture(&arguments, here, &[])?.status.success());
        }
        let ask = format!("%{{lua:print(rpm.vercmp('{}', '{}'))}}", self.version, other.version);
        let output = RPM.output(&["--eval", &ask], here, &[])?;
        Ok(String::from_utf8_lossy(&output).trim() == "1")
    }
}

/// The files of the package with this name and of its dependencies, as far as
/// they are in `packages`. Of several versions, the newest is taken.
pub fn with_dependencies(packages: &[PackageInfo], name: &str) -> Result<Vec<PathBuf>, Error> {
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

/// The names in a list of relations: `a (= 1), b`.
fn names(line: &str) -> Vec<String> {
    let names = line.split(',').filter_map(|one| one.split_whitespace().next());
    names.map(str::to_owned).collect()
}
