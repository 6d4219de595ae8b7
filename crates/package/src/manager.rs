//! The package managers of systems: which packages each knows, and the words
//! by which it installs.

use std::path::Path;

use gfxpack_process::{SystemTool, SystemToolError};

/// A package manager, and how it is asked for packages and installs them.
#[derive(Debug, Clone, Copy)]
pub struct PackageManager {
    /// What installs.
    pub tool: SystemTool,
    /// The words by which it installs the packages named after them.
    pub install: &'static [&'static str],
    /// The extension of its packages' files.
    pub extension: &'static str,
    /// What knows whether there is a package of a name.
    asker: SystemTool,
    ask: &'static [&'static str],
    /// Whether an exit code and an output on standard error say that there is no
    /// such package.
    has_none: fn(Option<i32>, &str) -> bool,
    /// Which words of the installer's the asker takes too, those with a value of
    /// their own among them; all of them where none are named.
    shared: &'static [&'static str],
}

impl PackageManager {
    /// Debian's and Ubuntu's.
    pub const APT: Self = Self {
        tool: SystemTool { program: "apt-get", provided_by: "apt" },
        install: &["install", "--yes"],
        extension: "deb",
        asker: SystemTool { program: "apt-cache", provided_by: "apt" },
        ask: &["show", "--quiet", "--no-all-versions"],
        has_none: |_, stderr| stderr.contains("No packages found"),
        shared: &["-o", "--option", "-c", "--config-file"],
    };
    /// Fedora's and RHEL's.
    pub const DNF: Self = Self {
        tool: SystemTool { program: "dnf", provided_by: "dnf" },
        install: &["install", "--assumeyes"],
        extension: "rpm",
        asker: SystemTool { program: "dnf", provided_by: "dnf" },
        ask: &["list", "--quiet"],
        has_none: |_, stderr| stderr.contains("No matching Packages"),
        shared: &[],
    };
    /// openSUSE's and SLES's.
    pub const ZYPPER: Self = Self {
        tool: SystemTool { program: "zypper", provided_by: "zypper" },
        install: &["--non-interactive", "install"],
        extension: "rpm",
        asker: SystemTool { program: "zypper", provided_by: "zypper" },
        ask: &["--non-interactive", "search", "--match-exact"],
        has_none: |code, _| code == Some(104),
        shared: &["-r", "--repo"],
    };

    /// The system's own; it may have others as mere tools.
    #[must_use]
    pub fn installed() -> Option<Self> {
        [Self::APT, Self::ZYPPER, Self::DNF].into_iter().find(|manager| manager.tool.is_installed())
    }

    /// Whether there is a package of that name. `words` are the user's for the
    /// installer, some of which say where packages are looked for.
    ///
    /// # Errors
    /// [`SystemToolError`], where it does not start or does not answer.
    pub fn knows(&self, name: &str, words: &[String]) -> Result<bool, SystemToolError> {
        let mut all: Vec<&str> = self.ask.to_vec();
        all.extend(shared(words, self.shared));
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

/// Those of the words that `known` names, with their values.
fn shared<'a>(words: &'a [String], known: &[&str]) -> Vec<&'a str> {
    let mut taken = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        let joined = |known: &&str| known.len() == 2 && word.len() > 2 && word.starts_with(*known);
        if known.is_empty() || (name != word && known.contains(&name)) || known.iter().any(joined) {
            taken.push(word);
        } else if known.contains(&word) {
            taken.push(word);
            taken.extend(words.next());
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_where_packages_are_go_to_both_programs() {
        let words: Vec<String> = ["--no-install-recommends", "-o", "A=1", "-oB=2", "--option=C=3"]
            .map(str::to_owned)
            .to_vec();
        let apt = shared(&words, PackageManager::APT.shared);
        assert_eq!(apt, ["-o", "A=1", "-oB=2", "--option=C=3"]);
        assert_eq!(shared(&words, PackageManager::DNF.shared).len(), words.len());
    }
}
