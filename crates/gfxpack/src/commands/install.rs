//! `install`: the kernel packages of this machine's GPUs, by the system's
//! package manager.

use std::path::Path;

use gfxpack_runtime::Environment;
use gfxpack_runtime::device::Device;
use serde_json::json;

use super::detect;
use crate::args::{Install, Manager, Which};
use crate::fail::{self, Outcome};
use crate::output::Output;
use crate::repository;
use crate::tools::{self, Tool};

/// How a package manager is asked and told.
struct Commands {
    /// What installs.
    tool: Tool,
    install: &'static [&'static str],
    /// What knows whether there is a package of a name.
    asker: Tool,
    ask: &'static [&'static str],
    /// The ending of its packages.
    ending: &'static str,
}

const APT: Commands = Commands {
    tool: Tool { program: "apt-get", from: "apt" },
    install: &["install", "--yes"],
    asker: Tool { program: "apt-cache", from: "apt" },
    ask: &["show", "--quiet", "--no-all-versions"],
    ending: "deb",
};
const DNF: Commands = Commands {
    tool: Tool { program: "dnf", from: "dnf" },
    install: &["install", "--assumeyes"],
    asker: Tool { program: "dnf", from: "dnf" },
    ask: &["list", "--quiet"],
    ending: "rpm",
};
const ZYPPER: Commands = Commands {
    tool: Tool { program: "zypper", from: "zypper" },
    install: &["--non-interactive", "install"],
    asker: Tool { program: "zypper", from: "zypper" },
    ask: &["--non-interactive", "search", "--match-exact"],
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
    let mut wanted: Vec<String> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for device in &detection.devices {
        let found = of_device(device, args, &commands)?;
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
        return tools::interact(commands.tool, &words);
    }
    words.insert(0, commands.tool.program.to_owned());
    tools::interact(Tool { program: "sudo", from: "sudo, or run this as root" }, &words)
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
        .find(|commands| tools::is_there(commands.tool))
        .ok_or_else(|| {
            fail::usage(
                "failed to find a package manager",
                "install apt, dnf or zypper, or take the tarball",
            )
        })
}

/// What there is for a device: names, or files of the directory given.
fn of_device(device: &Device, args: &Install, commands: &Commands) -> anyhow::Result<Vec<String>> {
    let names = detect::names(std::slice::from_ref(device), Which::Both, &args.name_template);
    match &args.from {
        Some(dir) => from_directory(dir, &names, commands.ending),
        None => {
            let mut there = Vec::new();
            for name in names {
                let mut words: Vec<&str> = commands.ask.to_vec();
                words.extend(args.words.iter().map(String::as_str));
                words.push(&name);
                let here = Path::new(".");
                let (status, _, _) = tools::capture(commands.asker, &words, here, &[])?;
                if status.success() {
                    there.push(name);
                }
            }
            Ok(there)
        }
    }
}

/// The files of a directory that hold the packages of these names.
fn from_directory(dir: &Path, names: &[String], ending: &str) -> anyhow::Result<Vec<String>> {
    let files = repository::packages(&std::path::absolute(dir).map_err(fail::io("find", dir))?)?;
    let mut found = Vec::new();
    for name in names {
        let of_name = files.iter().filter(|path| {
            let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let version = file.strip_prefix(name.as_str()).and_then(|rest| match ending {
                "deb" => rest.strip_prefix('_'),
                _ => rest.strip_prefix('-').filter(|rest| rest.matches('-').count() == 1),
            });
            file.ends_with(&format!(".{ending}")) && version.is_some()
        });
        found.extend(of_name.map(|path| path.display().to_string()));
    }
    Ok(found)
}
