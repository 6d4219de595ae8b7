//! What the tasks need from the system, how to tell that it is missing, and
//! which package brings it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use xshell::{Shell, cmd};

use crate::say::say;

/// Something that a task cannot do without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    /// The sign that it is there.
    pub(crate) probe: Probe,
    /// What it is for: completes "needed to …".
    pub(crate) why: &'static str,
    /// The packages on Debian, Ubuntu and their kin, after options of
    /// apt-get's for them alone.
    pub(crate) apt: &'static str,
    /// The package on Fedora and its kin, where there is one.
    pub(crate) dnf: Option<&'static str>,
}

/// The sign by which a need is known to be met.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Probe {
    /// A program on `PATH`.
    Program(&'static str),
    /// A program on `PATH`, or this file.
    ProgramOrFile(&'static str, &'static str),
    /// What goes by that name: any of these files.
    File(&'static str, &'static [&'static str]),
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Self::Program(name) | Self::ProgramOrFile(name, _) | Self::File(name, _) => name,
        }
    }

    pub(crate) fn is_met(self, sh: &Shell) -> bool {
        let on_path = |name: &str| {
            let path = sh.var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
        };
        match self {
            Self::Program(name) => on_path(name),
            Self::ProgramOrFile(name, file) => on_path(name) || Path::new(file).is_file(),
            Self::File(_, files) => files.iter().any(|file| Path::new(file).exists()),
        }
    }
}

/// How packages are installed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Apt,
    Dnf,
}

/// Makes sure that every need is met, installing what is missing if asked to.
///
/// # Errors
/// Without `install`, one error that names what is missing and the command
/// that brings it; with it, where that command fails or does not help.
pub(crate) fn ensure(sh: &Shell, needs: &[Need], install: bool) -> anyhow::Result<()> {
    let missing = missing(needs, |probe| probe.is_met(sh));
    if missing.is_empty() {
        return Ok(());
    }
    let system = if Probe::Program("apt-get").is_met(sh) {
        System::Apt
    } else if Probe::Program("dnf").is_met(sh) {
        System::Dnf
    } else {
        bail!("missing, with neither apt-get nor dnf to install them:\n{}", list(&missing));
    };
    let commands = commands(system, &missing, is_root(sh)?)?;
    let line = commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" && ");
    if !install {
        bail!(
            "tools are missing:\n{}hint: run `{line}`, or give --setup to have that done",
            list(&missing)
        );
    }
    say(&format!("missing:\n{}installing with `{line}`", list(&missing)));
    for words in &commands {
        let (program, args) = words.split_first().expect("a program");
        cmd!(sh, "{program} {args...}").run().context("failed to install what is missing")?;
    }
    let still = self::missing(needs, |probe| probe.is_met(sh));
    if !still.is_empty() {
        bail!("still missing after the installation:\n{}", list(&still));
    }
    Ok(())
}

fn missing(needs: &[Need], is_met: impl Fn(Probe) -> bool) -> Vec<Need> {
    needs.iter().copied().filter(|need| !is_met(need.probe)).collect()
}

/// One line for each need, with its end of line.
fn list(needs: &[Need]) -> String {
    needs.iter().map(|need| format!("  {}: needed to {}\n", need.probe.name(), need.why)).collect()
}

/// The commands, as words, that bring what is missing.
fn commands(system: System, missing: &[Need], root: bool) -> anyhow::Result<Vec<Vec<String>>> {
    let mut by_options: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for need in missing {
        let package = match system {
            System::Apt => Some(need.apt),
            System::Dnf => need.dnf,
        };
        let package = package.with_context(|| {
            format!("no package is known here for {} (needed to {})", need.probe.name(), need.why)
        })?;
        let (options, packages): (Vec<_>, Vec<_>) =
            package.split(' ').partition(|word| word.starts_with('-'));
        by_options.entry(options).or_default().extend(packages);
    }
    let sudo: &[&str] = if root { &[] } else { &["sudo"] };
    let command = |words: &[&str]| -> Vec<String> {
        [sudo, words].concat().into_iter().map(str::to_owned).collect()
    };
    let (update, install): (Option<&[&str]>, &[&str]) = match system {
        System::Apt => (
            Some(&["apt-get", "update"]),
            &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes"],
        ),
        System::Dnf => (None, &["dnf", "install", "--assumeyes"]),
    };
    let mut commands: Vec<Vec<String>> = update.into_iter().map(command).collect();
    for (options, mut packages) in by_options {
        packages.sort_unstable();
        packages.dedup();
        commands.push(command(&[install, &options, &packages].concat()));
    }
    Ok(commands)
}

fn is_root(sh: &Shell) -> anyhow::Result<bool> {
    Ok(cmd!(sh, "id -u").quiet().read()? == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: Need = Need {
        probe: Probe::ProgramOrFile("no-such-compiler", "/opt/no-such/compiler"),
        why: "compile",
        apt: "compiler libcompiler-dev",
        dnf: Some("compiler-devel"),
    };
    const CHECKER: Need =
        Need { probe: Probe::Program("no-such-checker"), why: "check", apt: "checker", dnf: None };

    fn lines(system: System, missing: &[Need], root: bool) -> Vec<String> {
        let commands = commands(system, missing, root).unwrap();
        commands.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let sh = Shell::new().unwrap();
        let shell = Need { probe: Probe::Program("sh"), ..CHECKER };
        let root = Need { probe: Probe::File("root", &["/no/such/file", "/"]), ..CHECKER };
        assert!(missing(&[shell, root], |probe| probe.is_met(&sh)).is_empty());
        assert_eq!(missing(&[shell, COMPILER, CHECKER], |probe| probe.is_met(&sh)).len(), 2);
    }

    #[test]
    fn the_commands_are_those_of_the_system() {
        assert_eq!(
            lines(System::Apt, &[COMPILER, CHECKER, COMPILER], false),
            [
                "sudo apt-get update",
                "sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes \
                 checker compiler libcompiler-dev"
            ]
        );
        let lean = Need { apt: "--no-install-recommends newer", ..COMPILER };
        assert_eq!(
            lines(System::Apt, &[lean, CHECKER], true)[1..],
            [
                "env DEBIAN_FRONTEND=noninteractive apt-get install --yes checker",
                "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
                 newer",
            ]
        );
        assert_eq!(
            lines(System::Dnf, &[COMPILER], true),
            ["dnf install --assumeyes compiler-devel"]
        );
        let error = commands(System::Dnf, &[CHECKER], true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no package is known here for no-such-checker (needed to check)"
        );
    }

    #[test]
    fn without_leave_the_error_says_what_and_how() {
        let sh = Shell::new().unwrap();
        let error = ensure(&sh, &[COMPILER], false).unwrap_err().to_string();
        assert!(error.contains("no-such-compiler: needed to compile"), "{error}");
        assert!(error.contains("--setup") || error.contains("neither apt-get nor dnf"), "{error}");
    }
}
