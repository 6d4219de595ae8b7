//! `install`: the kernel packages of this machine's GPUs, by the system's
//! package manager.

use std::path::{Path, PathBuf};

use gfxpack_package::repository::{self, PackageInfo};
use gfxpack_package::{PackageManager, one_for_each};
use gfxpack_process::SystemTool;
use gfxpack_runtime::Environment;
use serde_json::json;

use super::detect;
use super::repo::left_out;
use crate::args::{Install, Manager};
use crate::fail::{self, Failure, Result};
use crate::output::Output;

/// Installs one package for each device: that for exactly its compute units
/// where there is one, else the device-wide one.
pub(crate) fn run(args: &Install, output: &Output) -> Result {
    let detection = detect::detect(&args.hardware, &Environment::read())?;
    for note in &detection.notes {
        output.say(&format!("note: {note}"));
    }
    if detection.devices.is_empty() {
        return Err(Failure::NoGpu);
    }
    let manager = manager(args.with)?;
    let given = args.from.as_deref().map(|dir| described(dir, &manager, output)).transpose()?;
    let names: Vec<Vec<String>> = detection
        .devices
        .iter()
        .map(|device| detect::candidates(device, &args.name_template))
        .collect();
    let chosen = match &given {
        Some(given) => one_for_each(&names, |name| {
            Ok::<_, Failure>(given.iter().any(|package| package.name == name))
        }),
        None => one_for_each(&names, |name| Ok(manager.knows(name, &args.words)?)),
    }?;
    let mut wanted: Vec<String> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for (device, chosen) in detection.devices.iter().zip(chosen) {
        let found = match (chosen, &given) {
            (None, _) => Vec::new(),
            (Some(name), None) => vec![name],
            (Some(name), Some(given)) => files(given, &name)?,
        };
        output.say(&format!("{}: {}", device, told(&found)));
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
        return Err(Failure::NoPackage { targets, given });
    }
    if !without.is_empty() {
        output.warn(&format!("there is no package for {}", without.join(", ")));
    }
    start(&manager, args, wanted, output)
}

/// Has the package manager install them, or says how it would be called.
fn start(manager: &PackageManager, args: &Install, wanted: Vec<String>, output: &Output) -> Result {
    let mut words: Vec<String> = manager.install.iter().map(|word| (*word).to_owned()).collect();
    words.extend(args.words.iter().cloned());
    words.extend(wanted);
    if args.dry_run {
        if !output.json {
            output.data(&format!("{} {}", manager.tool.program, words.join(" ")));
        }
        return Ok(());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(manager.tool.interact(&words)?);
    }
    words.insert(0, manager.tool.program.to_owned());
    let sudo = SystemTool { program: "sudo", provided_by: "sudo, or run this as root" };
    Ok(sudo.interact(&words)?)
}

fn told(found: &[String]) -> String {
    if found.is_empty() { "no package".to_owned() } else { found.join(", ") }
}

/// The package manager that is meant, or the one that is there.
fn manager(chosen: Option<Manager>) -> Result<PackageManager> {
    let named = chosen.map(|manager| match manager {
        Manager::Apt => PackageManager::APT,
        Manager::Dnf => PackageManager::DNF,
        Manager::Zypper => PackageManager::ZYPPER,
    });
    named.or_else(PackageManager::installed).ok_or_else(|| {
        fail::usage(
            "failed to find a package manager",
            "install apt, dnf or zypper, or take the tarball",
        )
    })
}

/// The packages of a directory and below it that the installer takes.
fn described(dir: &Path, manager: &PackageManager, output: &Output) -> Result<Vec<PackageInfo>> {
    let dir = std::path::absolute(dir).map_err(fail::io("find", dir))?;
    let there = repository::packages(&dir)?;
    let there: Vec<PathBuf> = there
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == manager.extension))
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

/// The files of a package and of those there that it depends on.
fn files(given: &[PackageInfo], name: &str) -> Result<Vec<String>> {
    let files = repository::with_dependencies(given, name)?;
    Ok(files.iter().map(|file| file.display().to_string()).collect())
}
