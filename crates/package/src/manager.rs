//! The systems' package managers: how to ask which packages exist, and how to
//! install them.

use gfxpack_model::Error;
use std::path::Path;

use gfxpack_process::SystemTool;

/// A package manager.
#[derive(Debug, Clone, Copy)]
pub struct PackageManager {
    /// The program that installs.
    pub tool: SystemTool,
    /// The arguments with which it installs packages, whose names follow.
    pub install: &'static [&'static str],
    /// The extension of package files.
    pub extension: &'static str,
    /// The program that knows which packages exist.
    asker: SystemTool,
    ask: &'static [&'static str],
    /// Whether an exit code and stderr of the asker say that there is no such
    /// package.
    has_none: fn(Option<i32>, &str) -> bool,
    /// Options of the installer that the asker also takes, including those with a
    /// value in the next argument; if empty, it takes all.
    shared: &'static [&'static str],
}

impl PackageManager {
    /// The package manager of Debian and Ubuntu.
    pub const APT: Self = Self {
        tool: SystemTool { program: "apt-get", provided_by: "apt" },
        install: &["install", "--yes"],
        extension: "deb",
        asker: SystemTool { program: "apt-cache", provided_by: "apt" },
        ask: &["show", "--quiet", "--no-all-versions"],
        has_none: |_, stderr| stderr.contains("No packages found"),
        shared: &["-o", "--option", "-c", "--config-file"],
    };
    /// The package manager of Fedora and RHEL.
    pub const DNF: Self = Self {
        tool: SystemTool { program: "dnf", provided_by: "dnf" },
        install: &["install", "--assumeyes"],
        extension: "rpm",
        asker: SystemTool { program: "dnf", provided_by: "dnf" },
        ask: &["list", "--quiet"],
        has_none: |_, stderr| stderr.contains("No matching Packages"),
        shared: &[],
    };
    /// The package manager of openSUSE and SLES.
    pub const ZYPPER: Self = Self {
        tool: SystemTool { program: "zypper", provided_by: "zypper" },
        install: &["--non-interactive", "install"],
        extension: "rpm",
        asker: SystemTool { program: "zypper", provided_by: "zypper" },
        ask: &["--non-interactive", "search", "--match-exact"],
        has_none: |code, _| code == Some(104),
        shared: &["-r", "--repo"],
    };

    /// The system's own package manager. Others may be installed as mere tools.
    pub fn installed() -> Option<Self> {
        [Self::APT, Self::ZYPPER, Self::DNF].into_iter().find(|manager| manager.tool.is_installed())
    }

    /// Whether a package with this name exists. `args` are the user's arguments
    /// for the installer; some of these say where to look for packages.
    pub fn knows(&self, name: &str, args: &[String]) -> Result<bool, Error> {
        let mut all: Vec<&str> = self.ask.to_vec();
        all.extend(shared(args, self.shared));
        all.push(name);
        let answer = self.asker.capture(&all, Path::new("."), &[])?;
        if answer.status.success() {
            Ok(true)
        } else if (self.has_none)(answer.status.code(), &answer.stderr) {
            Ok(false)
        } else {
            Err(answer.failure())
        }
    }
}

/// The arguments that are named in `known`, with their values.
fn shared<'a>(args: &'a [String], known: &[&str]) -> Vec<&'a str> {
    let mut taken = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        let name = arg.split('=').next().unwrap_or(arg);
        let joined = |known: &&str| known.len() == 2 && arg.len() > 2 && arg.starts_with(*known);
        if known.is_empty() || (name != arg && known.contains(&name)) || known.iter().any(joined) {
            taken.push(arg);
        } else if known.contains(&arg) {
            taken.push(arg);
            taken.extend(args.next());
        }
    }
    taken
}
