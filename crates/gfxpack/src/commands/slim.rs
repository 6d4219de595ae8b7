//! `slim`: the same files, without the device code that other GPUs need.

use gfxpack_model::TargetId;
use gfxpack_package::read::PackageKind;
use gfxpack_pipeline::device_code::{self, Slimmed};
use gfxpack_runtime::Environment;

use super::detect::detect;
use crate::args::Slim;
use crate::fail::{Result, usage};
use crate::output::{Output, counted, display, harmless, size};

/// Writes the smaller file or directory, and says what was taken out.
pub(crate) fn run(args: &Slim, output: &Output) -> Result {
    if !args.only {
        check_machine(args)?;
    }
    if args.from.is_file() && PackageKind::from_name(&args.from).is_some() {
        return Err(usage(
            format!("failed to make `{}` smaller: it is a package", args.from.display()),
            "unpack it (dpkg-deb -R, rpm2archive, unzip), and give the directory",
        ));
    }
    let out = args.out.as_deref().filter(|_| !args.dry_run);
    output.building();
    let slimmed = device_code::slim(&args.from, out, &args.target)?;
    report(&slimmed, output);
    let (before, after) = (slimmed.before, slimmed.after);
    let mut manifest = slimmed.manifest(&args.target);
    manifest["file"] = display(&args.from).into();
    output.message("slimmed", &manifest);
    output.text(&format!("{}: {} instead of {}", args.from.display(), size(after), size(before)));
    Ok(())
}

fn report(slimmed: &Slimmed, output: &Output) {
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
