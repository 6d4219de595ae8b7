//! `slim`: the same files, without the device code that other GPUs need.

use std::path::{Path, PathBuf};

use gfxpack_model::TargetId;
use gfxpack_package::read::PackageKind;
use gfxpack_pipeline::device_code::{self, Slimmed};
use gfxpack_runtime::Environment;

use super::detect::detect;
use crate::args::Slim;
use crate::fail::{Result, usage};
use crate::output::{Output, counted, display, harmless, size};

/// Writes the smaller file, directory or packages, and says what was taken out.
pub(crate) fn run(args: &Slim, output: &Output) -> Result {
    if !args.only {
        check_machine(args)?;
    }
    let out = args.out.as_deref().filter(|_| !args.dry_run);
    let is_package = |path: &PathBuf| path.is_file() && PackageKind::from_name(path).is_some();
    output.building();
    if let [from] = args.from.as_slice()
        && !is_package(from)
    {
        let slimmed = device_code::slim(from, out, &args.target)?;
        report(from, &slimmed, slimmed.manifest(&args.target), output);
        return Ok(());
    }
    if let Some(other) = args.from.iter().find(|path| !is_package(path)) {
        return Err(usage(
            format!("failed to make `{}` smaller: it is no package", other.display()),
            "give packages, or one file or directory",
        ));
    }
    device_code::slim_packages(&args.from, out, &args.target, &mut |from, slimmed, manifest| {
        report(from, slimmed, manifest.clone(), output);
    })?;
    Ok(())
}

fn report(from: &Path, slimmed: &Slimmed, mut manifest: serde_json::Value, output: &Output) {
    for (path, why) in &slimmed.kept {
        output.warn(&harmless(&format!("`{}` stays as it is: {why}", path.display())));
    }
    let taken = slimmed.changes.iter().filter(|change| change.after.is_none()).count();
    let smaller = slimmed.changes.len() - taken;
    output.info(&format!(
        "{} smaller, {} taken out",
        counted(smaller, "file"),
        counted(taken, "file")
    ));
    let (before, after) = (slimmed.before, slimmed.after);
    manifest["file"] = display(from).into();
    output.message("slimmed", &manifest);
    output.text(&format!("{}: {} instead of {}", from.display(), size(after), size(before)));
}

/// An error if a GPU of this machine would lose its code.
fn check_machine(args: &Slim) -> Result {
    let detection = detect(&args.hardware, &Environment::read())?;
    let stays = |id: &TargetId| args.target.iter().any(|target| target.serves(id));
    let lost = detection.devices.iter().find(|device| !stays(&device.target_id));
    match lost {
        None => Ok(()),
        Some(device) => Err(usage(
            format!("failed to leave out {}: this machine has it", device.target_id),
            "give it with --target too; or give --only if programs never see it \
             (HIP_VISIBLE_DEVICES): HIP up to July 2026 fails for all GPUs if the first has no code",
        )),
    }
}
