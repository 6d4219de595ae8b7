//! `install`: the kernel packages of this machine's GPUs, by the system's
//! package manager.

use std::path::{Path, PathBuf};

use gfxpack_package::repository::{self, PackageInfo};
use gfxpack_process::SystemTool;
use gfxpack_runtime::Environment;
use gfxpack_runtime::device::Device;
use serde_json::json;

use super::detect;
use super::repo::left_out;
use crate::args::{Install, Manager, Which};
use crate::fail::{self, Outcome};
use crate::output::Output;

/// How a package manager is asked and told.
struct Commands {
    /// What installs.
    tool: SystemTool,
    install: &'static [&'static str],
    /// What knows whether there is a package of a name.
    asker: SystemTool,
    ask: &'static [&'static str],
    /// Whether that answer says that there is none: its exit code, and what it
    /// said besides.
    has_none: fn(Option<i32>, &str) -> bool,
    /// Which of the user's words the asker takes too, those with a value of
    /// their own among them; all of them where none are named.
    shared: &'static [&'static str],
    /// The ending of its packages.
    ending: &'static str,
}

const APT: Commands = Commands {
    tool: SystemTool { program: "apt-get", provided_by: "apt" },
    install: &["install", "--yes"],
    asker: SystemTool { program: "apt-cache", provided_by: "apt" },
    ask: &["show", "--quiet", "--no-all-versions"],
    has_none: |_, words| words.contains("No packages found"),
    shared: &["-o", "--option", "-c", "--config-file"],
    ending: "deb",
};
const DNF: Commands = Commands {
    tool: SystemTool { program: "dnf", provided_by: "dnf" },
    install: &["install", "--assumeyes"],
    asker: SystemTool { program: "dnf", provided_by: "dnf" },
    ask: &["list", "--quiet"],
    has_none: |_, words| words.contains("No matching Packages"),
    shared: &[],
    ending: "rpm",
};
const ZYPPER: Commands = Commands {
    tool: SystemTool { program: "zypper", provided_by: "zypper" },
    install: &["--non-interactive", "install"],
    asker: SystemTool { program: "zypper", provided_by: "zypper" },
    ask: &["--non-interactive", "search", "--match-exact"],
    has_none: |code, _| code == Some(104),
    shared: &["-r", "--repo"],
    ending: "rpm",
};

/// Installs, for every device, the package for exactly its compute units and
/// the device-wide one, as far as there are any.
pub(crate) fn run(args: &Install, output: &Output) -> anyhow::Result<()> {
    let detection = detect::detect(&args.hardware, &Environment::read())?;
    for note in &detection.notes {
        output.say(&format!("note: {note}"));
    }
    if detection.devices.is_empty() {
        return Err(Outcome::NoGpu.into());
    }
    let commands = commands(args.with)?;
    let given = args.from.as_deref().map(|dir| described(dir, &commands, output)).transpose()?;
    let mut wanted: Vec<String> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for device in &detection.devices {
        let found = of_device(device, args, given.as_deref(), &commands)?;
        output.say(&format!("{}: {}", detect::in_words(device), told(&found)));
        if found.is_empty() {
            without.push(device.target().to_string());
        }
        let new: Vec<String> = found.into_iter().filter(|name| !wanted.contains(name)).collect();
        wanted.extend(new);
    }
    without.sort();
    without.dedup();
    output.message("install", &json!({ "packages": wanted, "without": without }));
    if wanted.is_empty() {
        let (targets, given) = (without.join(", "), args.from.is_some());
        return Err(Outcome::NoPackage { targets, given }.into());
    }
    if !without.is_empty() {
        output.warn(&format!("there is no package for {}", without.join(", ")));
    }
    let mut words: Vec<String> = commands.install.iter().map(|word| (*word).to_owned()).collect();
    words.extend(args.words.iter().cloned());
    words.extend(wanted);
    if args.dry_run {
        if !output.json {
            output.data(&format!("{} {}", commands.tool.program, words.join(" ")));
        }
        return Ok(());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(commands.tool.interact(&words)?);
    }
    words.insert(0, commands.tool.program.to_owned());
    let sudo = SystemTool { program: "sudo", provided_by: "sudo, or run this as root" };
    Ok(sudo.interact(&words)?)
}

fn told(found: &[String]) -> String {
    if found.is_empty() { "no package".to_owned() } else { found.join(", ") }
}

/// The package manager that is meant, or the one that is there.
fn commands(chosen: Option<Manager>) -> anyhow::Result<Commands> {
    let of = |manager| match manager {
        Manager::Apt => APT,
        Manager::Dnf => DNF,
        Manager::Zypper => ZYPPER,
    };
    if let Some(manager) = chosen {
        return Ok(of(manager));
    }
    // A system has one of its own, and may have others as mere tools.
    [Manager::Apt, Manager::Zypper, Manager::Dnf]
        .into_iter()
        .map(of)
        .find(|commands| commands.tool.is_installed())
        .ok_or_else(|| {
            fail::usage(
                "failed to find a package manager",
                "install apt, dnf or zypper, or take the tarball",
            )
        })
}

/// What there is for a device: names, or files of the directory given.
fn of_device(
    device: &Device,
    args: &Install,
    given: Option<&[PackageInfo]>,
    commands: &Commands,
) -> anyhow::Result<Vec<String>> {
    let names = detect::names(std::slice::from_ref(device), Which::Both, &args.name_template);
    match given {
        Some(given) => newest(given, &names),
        None => {
            let mut there = Vec::new();
            for name in names {
                let mut words: Vec<&str> = commands.ask.to_vec();
                words.extend(shared(&args.words, commands.shared));
                words.push(&name);
                let here = Path::new(".");
                let answer = commands.asker.capture(&words, here, &[])?;
                if answer.status.success() {
                    there.push(name);
                } else if !(commands.has_none)(answer.status.code(), &answer.stderr) {
                    return Err(answer.failure().into());
                }
            }
            Ok(there)
        }
    }
}

/// Those of the user's words for the installer that `known` names, with their
/// values.
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

/// The packages of a directory and below it that the installer takes.
fn described(dir: &Path, commands: &Commands, output: &Output) -> anyhow::Result<Vec<PackageInfo>> {
    let dir = std::path::absolute(dir).map_err(fail::io("find", dir))?;
    let there = repository::packages(&dir)?;
    let there: Vec<PathBuf> = there
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == commands.ending))
        .collect();
    let mut described: Vec<PackageInfo> = Vec::new();
    for path in there {
        match PackageInfo::read(&path)? {
            Some(package) => described.push(package),
            None => output.warn(&left_out(&path)),
        }
    }
    Ok(described)
}

/// The files that hold the packages of these names, the newest of each, with
/// those that they depend on.
fn newest(described: &[PackageInfo], names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut pending: Vec<String> = names.iter().rev().cloned().collect();
    while let Some(name) = pending.pop() {
        let mut newest: Option<&PackageInfo> = None;
        for one in described.iter().filter(|one| one.name == name) {
            let newer = match newest {
                Some(other) => one.is_newer_than(other)?,
                None => true,
            };
            newest = if newer { Some(one) } else { newest };
        }
        if let Some(package) = newest {
            let path = package.path.display().to_string();
            if !found.contains(&path) {
                found.push(path);
                pending.extend(package.depends.iter().cloned());
            }
        }
    }
    Ok(found)
}
