//! `install`: installs the kernel packages for this machine's GPUs with the
//! system's package manager.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use gfxpack_model::Target;
use gfxpack_package::read::PackageKind;
use gfxpack_package::repository::KEY_FILE;
use gfxpack_package::signing::Keyring;
use gfxpack_package::sums::FILE_NAME;
use gfxpack_package::verify::Verifier;
use gfxpack_package::{PackageManager, PackageSource, Remedy};
use gfxpack_pipeline::inputs::unknown_count;
use gfxpack_pipeline::inspector::PackageInspector;
use gfxpack_process::SystemTool;
use gfxpack_runtime::Environment;

use super::detect;
use super::repo::left_out;
use crate::args::Install;
use crate::checked_files::CheckedFiles;
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, harmless, message};

/// Installs one package for each device: the one for exactly its compute units if
/// there is one, else the device-wide one.
pub(crate) fn run(args: &Install, output: &Output) -> Result {
    let mut gpus: Vec<(String, Target)> =
        args.target.concat().into_iter().map(|it| (it.to_string(), it)).collect();
    gpus.iter().filter_map(|(_, it)| unknown_count(it)).for_each(|doubt| output.warn(&doubt));
    if gpus.is_empty() {
        gpus = detected(args, output)?;
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
    let names = gpus.iter().map(|(_, target)| detect::candidates(target, &args.name_template));
    let names: Vec<Vec<String>> = names.collect();
    let mut wanted: Vec<String> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for ((gpu, target), found) in gpus.iter().zip(offered.for_each(&names)?) {
        let names = if found.is_empty() { "no package".to_owned() } else { found.join(", ") };
        output.info(&format!("{gpu}: {names}"));
        if found.is_empty() {
            without.push(target.to_string());
        }
        let new: Vec<String> = found.into_iter().filter(|name| !wanted.contains(name)).collect();
        wanted.extend(new);
    }
    without.sort();
    without.dedup();
    if let Some(dir) = &args.from {
        check(dir, args.keyring.as_deref(), &wanted, output)?;
    }
    message!(output, "install", { "packages": wanted, "without": without });
    if wanted.is_empty() {
        let others = args.from.iter().flat_map(|dir| of_processors(dir, &gpus)).collect::<Vec<_>>();
        let hint = match args.from {
            Some(_) if others.is_empty() => {
                "the directory given with --from has none: build it with `gfxpack dist`".to_owned()
            }
            Some(_) => format!(
                "the directory given with --from has {}: install a wheel with `pip install`, name \
                 another's target with --target, or build the one that lacks with `gfxpack dist`",
                others.join(", ")
            ),
            None => {
                "add a repository that has one, give a directory of packages with --from, or build \
                 it with `gfxpack dist`"
                    .to_owned()
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

/// This machine's GPUs, described, with their targets.
fn detected(args: &Install, output: &Output) -> Result<Vec<(String, Target)>> {
    let detection = detect::detect(&args.hardware, &Environment::read())?;
    for note in &detection.notes {
        output.info(&format!("note: {note}"));
    }
    if detection.devices.is_empty() {
        return Err(detect::no_gpu(detect::OTHERS));
    }
    let devices = detection.devices.iter();
    Ok(devices.map(|device| (device.to_string(), device.target())).collect())
}

/// Checks the packages, and what lists, indexes and signatures in their directory say of them: a
/// package manager takes any package that it is given by its path.
fn check(dir: &Path, keyring: Option<&Path>, packages: &[String], output: &Output) -> Result {
    let dir = std::path::absolute(dir).map_err(fail::io("find", dir))?;
    // Whoever changed the directory may have changed its key too.
    let own = Some(dir.join(KEY_FILE)).filter(|own| keyring.is_none() && own.is_file());
    let trusted = keyring.or(own.as_deref()).map(Keyring::open).transpose()?;
    if keyring.is_none() && (own.is_some() || dir.join(format!("{FILE_NAME}.asc")).exists()) {
        output.info("note: no key is trusted here: --keyring FILE has signatures checked");
    }
    let mut checked = CheckedFiles::new(output);
    let mut verifier = Verifier {
        keyring: trusted.as_ref(),
        inspector: &mut PackageInspector::Places,
        report: &mut |result| match result {
            Ok(verified) => {
                let counts = |remedy| own.is_none() || remedy != Remedy::Sign;
                let findings = verified.findings.iter().filter(|one| counts(one.remedy));
                let mut findings = findings.peekable();
                if findings.peek().is_some() {
                    checked.unsound(&verified.path, findings.clone().map(|one| one.remedy.hint()));
                }
                let path = verified.path.display();
                findings
                    .for_each(|one| output.warn(&harmless(&format!("`{path}`: {}", one.detail))));
            }
            Err(error) => checked.unread(error),
        },
    };
    let packages: BTreeSet<PathBuf> = packages.iter().map(PathBuf::from).collect();
    if let Err(error) = verifier.packages_below(&dir, &packages) {
        (verifier.report)(Err(error));
    }
    checked.finish()
}

/// The packages in a directory that are for other compute units of these GPUs' processors, or wheels.
fn of_processors(dir: &Path, gpus: &[(String, Target)]) -> BTreeSet<String> {
    let name = |entry: DirEntry| entry.file_name().into_string().ok();
    let names = fs::read_dir(dir).into_iter().flatten().flatten().filter_map(name);
    let is_package = |name: &String| PackageKind::from_name(Path::new(name)).is_some();
    let is_for = |name: &String| gpus.iter().any(|(_, gpu)| name.contains(gpu.id().processor()));
    names.filter(|name| is_package(name) && is_for(name)).collect()
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
        return manager.tool.interact(&arguments);
    }
    arguments.insert(0, manager.tool.program.to_owned());
    let sudo = SystemTool { program: "sudo", provided_by: "sudo, or run this as root" };
    sudo.interact(&arguments)
}
