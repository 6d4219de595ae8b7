//! `install`: installs the kernel packages for this machine's GPUs with the
//! system's package manager.

use gfxpack_package::{PackageManager, PackageSource};
use gfxpack_pipeline::device_packages::candidates;
use gfxpack_process::SystemTool;
use gfxpack_runtime::Environment;

use super::detect;
use super::repo::left_out;
use crate::args::Install;
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, message};

/// Installs one package for each device: the one for exactly its compute units if
/// there is one, else the device-wide one.
pub(crate) fn run(args: &Install, output: &Output) -> Result {
    let detection = detect::detect(&args.hardware, &Environment::read())?;
    for note in &detection.notes {
        output.info(&format!("note: {note}"));
    }
    if detection.devices.is_empty() {
        return Err(detect::no_gpu());
    }
    let manager = args.with.or_else(PackageManager::installed).ok_or_else(|| {
        fail::usage(
            "failed to find a package manager",
            "install apt, dnf or zypper, or take the tarball",
        )
    })?;
    let offered = match &args.from {
        Some(dir) => PackageSource::below(dir, &manager, |path| output.warn(&left_out(path)))?,
        None => PackageSource::Repositories(&manager, &args.words),
    };
    let names = detection.devices.iter();
    let names: Vec<Vec<String>> =
        names.map(|device| candidates(device, &args.name_template)).collect();
    let mut wanted: Vec<String> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for (device, found) in detection.devices.iter().zip(offered.for_each(&names)?) {
        let names = if found.is_empty() { "no package".to_owned() } else { found.join(", ") };
        output.info(&format!("{device}: {names}"));
        if found.is_empty() {
            without.push(device.target().to_string());
        }
        let new: Vec<String> = found.into_iter().filter(|name| !wanted.contains(name)).collect();
        wanted.extend(new);
    }
    without.sort();
    without.dedup();
    message!(output, "install", { "packages": wanted, "without": without });
    if wanted.is_empty() {
        let hint = match args.from {
            Some(_) => "the directory given with --from has none: build it with `gfxpack dist`",
            None => {
                "add a repository that has one, give a directory of packages with --from, or build \
                 it with `gfxpack dist`"
            }
        };
        let message = format!("failed to find a package for {}", without.join(", "));
        return Err(Error::new(ErrorKind::NotFound, message, hint));
    }
    if !without.is_empty() {
        output.warn(&format!("there is no package for {}", without.join(", ")));
    }
    start(&manager, args, wanted, output)
}

/// Runs the package manager, or prints how it would be called.
fn start(manager: &PackageManager, args: &Install, wanted: Vec<String>, output: &Output) -> Result {
    let mut arguments: Vec<String> =
        manager.install.iter().map(|word| (*word).to_owned()).collect();
    arguments.extend(args.words.iter().cloned());
    arguments.extend(wanted);
    if args.dry_run {
        output.text(&format!("{} {}", manager.tool.program, arguments.join(" ")));
        return Ok(());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(manager.tool.interact(&arguments)?);
    }
    arguments.insert(0, manager.tool.program.to_owned());
    let sudo = SystemTool { program: "sudo", provided_by: "sudo, or run this as root" };
    Ok(sudo.interact(&arguments)?)
}
