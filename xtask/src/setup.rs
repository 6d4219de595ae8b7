//! What the tasks need from the system: how to detect that it is missing, and
//! which packages have it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use xshell::{Shell, cmd};

use crate::{print, root};

/// A program or file that a task needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) name: &'static str,
    /// Whether a program with this name on `PATH` suffices.
    on_path: bool,
    /// Files, any of which suffices.
    files: &'static [&'static str],
    /// The purpose, to complete "needed to …".
    why: &'static str,
    /// The packages on Debian, Ubuntu and the like.
    apt: &'static str,
    /// Whether these are installed without recommended packages.
    lean: bool,
    /// The package on Fedora and the like; empty if there is none.
    dnf: &'static str,
}

/// A program with its purpose, and the packages that have it.
pub(crate) const fn need(
    name: &'static str,
    why: &'static str,
    apt: &'static str,
    dnf: &'static str,
) -> Need {
    Need { name, on_path: true, files: &[], why, apt, lean: false, dnf }
}

impl Need {
    /// One of these files also suffices.
    pub(crate) const fn or(self, files: &'static [&'static str]) -> Self {
        Self { files, ..self }
    }

    /// Only one of these files suffices, not the program on `PATH`.
    pub(crate) const fn only(self, files: &'static [&'static str]) -> Self {
        Self { on_path: false, files, ..self }
    }

    /// On Debian, install it without recommended packages.
    pub(crate) const fn lean(self) -> Self {
        Self { lean: true, ..self }
    }

    fn is_met(&self, sh: &Shell) -> bool {
        (self.on_path && is_on_path(sh, self.name))
            || self.files.iter().any(|file| Path::new(file).exists())
    }
}

/// Whether there is a program with this name on `PATH`.
pub(crate) fn is_on_path(sh: &Shell, name: &str) -> bool {
    let path = sh.var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// The package manager of this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Apt,
    Dnf,
}

/// Checks that every need is met, and installs what is missing if `install` is set.
///
/// # Errors
/// Without `install`, an error that names what is missing and the command to
/// install it; with it, if that command fails or does not help.
pub(crate) fn ensure(sh: &Shell, needs: &[Need], install: bool) -> anyhow::Result<()> {
    let missing = missing(sh, needs);
    if missing.is_empty() {
        return Ok(());
    }
    let system = if is_on_path(sh, "apt-get") {
        System::Apt
    } else if is_on_path(sh, "dnf") {
        System::Dnf
    } else {
        bail!("missing, with neither apt-get nor dnf to install them:\n{}", list(&missing));
    };
    let commands = commands(system, &missing, is_root(sh)?)?;
    let line = commands.iter().map(|command| command.join(" ")).collect::<Vec<_>>().join(" && ");
    if !install {
        bail!(
            "tools are missing:\n{}hint: run `{line}`, or give --setup to have that done",
            list(&missing)
        );
    }
    print(&format!("missing:\n{}installing with `{line}`", list(&missing)));
    for command in &commands {
        let (program, args) = command.split_first().expect("a program");
        cmd!(sh, "{program} {args...}").run().context("failed to install what is missing")?;
    }
    let still = self::missing(sh, needs);
    if !still.is_empty() {
        bail!("still missing after the installation:\n{}", list(&still));
    }
    Ok(())
}

fn missing(sh: &Shell, needs: &[Need]) -> Vec<Need> {
    needs.iter().copied().filter(|need| !need.is_met(sh)).collect()
}

/// One line for each need, with a line end.
fn list(needs: &[Need]) -> String {
    needs.iter().map(|need| format!("  {}: needed to {}\n", need.name, need.why)).collect()
}

/// The commands that install what is missing, as lists of arguments.
fn commands(system: System, missing: &[Need], root: bool) -> anyhow::Result<Vec<Vec<String>>> {
    let (mut plain, mut lean) = (BTreeSet::new(), BTreeSet::new());
    for need in missing {
        let package = match system {
            System::Apt => need.apt,
            System::Dnf => need.dnf,
        };
        if package.is_empty() {
            bail!("no package is known here for {} (needed to {})", need.name, need.why);
        }
        let packages = if need.lean && system == System::Apt { &mut lean } else { &mut plain };
        packages.extend(package.split(' '));
    }
    let sudo: &[&str] = if root { &[] } else { &["sudo"] };
    let command = |args: &[&str]| -> Vec<String> {
        [sudo, args].concat().into_iter().map(str::to_owned).collect()
    };
    let (update, install): (Option<&[&str]>, &[&str]) = match system {
        System::Apt => (
            Some(&["apt-get", "update"]),
            &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes"],
        ),
        System::Dnf => (None, &["dnf", "install", "--assumeyes"]),
    };
    let mut commands: Vec<Vec<String>> = update.into_iter().map(command).collect();
    for (option, packages) in [(None, plain), (Some("--no-install-recommends"), lean)] {
        if !packages.is_empty() {
            let args = install.iter().copied().chain(option).chain(packages);
            commands.push(command(&args.collect::<Vec<_>>()));
        }
    }
    Ok(commands)
}

fn is_root(sh: &Shell) -> anyhow::Result<bool> {
    Ok(cmd!(sh, "id -u").quiet().read()? == "0")
}

/// A third-party cargo command in a fixed version, below target/tools.
pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The purpose, as a clause after the name.
    pub(crate) does: &'static str,
}

impl CargoTool {
    /// Makes sure that the program is installed, and returns its path.
    pub(crate) fn ensure(&self, sh: &Shell, install: bool) -> anyhow::Result<PathBuf> {
        let Self { name, version, does } = self;
        // Another version has another directory, so that it gets installed.
        let dir = root().join("target/tools").join(format!("{name}-{version}"));
        let program = dir.join("bin").join(name);
        if !program.is_file() {
            let what = format!("{name}@{version}");
            let command = cmd!(sh, "cargo install --quiet --locked --root {dir} {what}");
            anyhow::ensure!(
                install,
                "failed to find {what}, which {does}\nhint: give --setup to have `{command}` run"
            );
            print(&format!("missing: {what}, which {does}: installing it into {dir:?}"));
            command.run().with_context(|| format!("failed to install {name}"))?;
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: Need =
        need("no-such-compiler", "compile", "compiler libcompiler-dev", "compiler-devel")
            .or(&["/opt/no-such/compiler"]);
    const CHECKER: Need = need("no-such-checker", "check", "checker", "");

    fn lines(system: System, missing: &[Need], root: bool) -> Vec<String> {
        let commands = commands(system, missing, root).unwrap();
        commands.iter().map(|command| command.join(" ")).collect()
    }

    #[test]
    fn present_programs_are_not_installed() {
        let sh = Shell::new().unwrap();
        let shell = Need { name: "sh", ..CHECKER };
        let root = CHECKER.only(&["/no/such/file", "/"]);
        assert!(missing(&sh, &[shell, root]).is_empty());
        assert_eq!(missing(&sh, &[shell, COMPILER, CHECKER]).len(), 2);
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
        let lean = Need { apt: "newer", ..COMPILER }.lean();
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
    fn without_setup_the_error_lists_what_to_install_and_how() {
        let sh = Shell::new().unwrap();
        let error = ensure(&sh, &[COMPILER], false).unwrap_err().to_string();
        assert!(error.contains("no-such-compiler: needed to compile"), "{error}");
        assert!(error.contains("--setup") || error.contains("neither apt-get nor dnf"), "{error}");
    }
}
