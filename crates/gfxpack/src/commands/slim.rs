//! `slim`: the same files, without the device code that other GPUs need.

mod packages;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use gfxpack_fatbin::{Change, Error as CodeError, Slimmer, normal};
use gfxpack_model::TargetId;
use gfxpack_package::read::PackageKind;
use gfxpack_runtime::Environment;
use serde_json::{Value, json};
use walkdir::{DirEntry, WalkDir};

use super::detect::detect;
use crate::args::Slim;
use crate::fail::{Error, Result, io, usage};
use crate::output::{Output, counted, display, harmless, if_any, size};

/// Writes the smaller file, directory or packages, and says what was taken out.
pub(crate) fn run(args: &Slim, output: &Output) -> Result {
    if !args.only {
        check_machine(args)?;
    }
    let (out, targets) = (args.out.as_deref().filter(|_| !args.dry_run), &args.target);
    let is_package = |path: &PathBuf| path.is_file() && PackageKind::from_name(path).is_some();
    output.building();
    if let [from] = args.from.as_slice()
        && !is_package(from)
    {
        let slimmer = slim(from, out, targets)?;
        report(from, &slimmer, manifest(&slimmer, targets), output);
        return Ok(());
    }
    if let Some(other) = args.from.iter().find(|path| !is_package(path)) {
        return Err(usage(
            format!("failed to make `{}` smaller: it is no package", other.display()),
            "give packages, or one file or directory",
        ));
    }
    packages::slim(&args.from, out, targets, output)
}

fn report(from: &Path, slimmer: &Slimmer<'_>, mut manifest: Value, output: &Output) {
    for (path, why) in &slimmer.kept {
        output.warn(&harmless(&format!("`{}` stays as it is: {why}", path.display())));
    }
    let taken = slimmer.changes.iter().filter(|change| change.after.is_none()).count();
    let smaller = slimmer.changes.len() - taken;
    output.info(&format!(
        "{} smaller, {} taken out",
        counted(smaller, "file"),
        counted(taken, "file")
    ));
    let (before, after) = (slimmer.before, slimmer.after);
    manifest["file"] = display(from).into();
    // Every message has one of its own.
    manifest.as_object_mut().and_then(|it| it.shift_remove("format"));
    output.message("slimmed", &manifest);
    output.text(&format!("{}: {} instead of {}", from.display(), size(after), size(before)));
}

/// What was taken out, for people who want to know later.
fn manifest(slimmer: &Slimmer<'_>, targets: &[TargetId]) -> Value {
    let change = |change: &Change| {
        json!({
            "path": change.path, "before": change.before, "after": change.after,
            "removed": change.removed,
        })
    };
    json!({
        "format": 1,
        "targets": targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "before": slimmer.before, "after": slimmer.after,
        "changes": slimmer.changes.iter().map(change).collect::<Vec<_>>(),
        "kept": slimmer.kept.iter().map(|(path, why)| json!({ "path": path, "why": why.to_string() }))
            .collect::<Vec<_>>(),
    })
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

/// Writes a smaller file or directory to `out`, which is whole or not there; without it, finds out
/// how small it would be.
///
/// # Errors
/// If a library would be left without code, a file on its own is not understood, `out` exists, or
/// a file can't be read or written.
fn slim<'a>(from: &Path, out: Option<&Path>, targets: &'a [TargetId]) -> Result<Slimmer<'a>> {
    let mut slimmer = Slimmer::new(targets);
    let Some(out) = out else {
        tree(from, None, &mut slimmer)?;
        refuse(&slimmer, from)?;
        return Ok(slimmer);
    };
    let parent = out.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_out(from, out, parent)?;
    let new = tempfile::Builder::new().prefix(".slim-").tempdir_in(parent);
    let new = new.map_err(io("write", parent))?;
    let made = new.path().join("out");
    tree(from, Some(&made), &mut slimmer)?;
    refuse(&slimmer, from)?;
    fs::rename(&made, out).map_err(io("write", out))?;
    Ok(slimmer)
}

/// Nothing is changed in place: whoever installed a file would not know of it.
fn check_out(from: &Path, out: &Path, parent: &Path) -> Result {
    let from = from.canonicalize().map_err(io("read", from))?;
    let parent = parent.canonicalize().map_err(io("write", parent))?;
    if out.symlink_metadata().is_ok() {
        return Err(usage(
            format!("failed to write `{}`: it exists", out.display()),
            "give --out a new name: nothing is changed in place",
        ));
    }
    if from.is_dir() && parent.starts_with(&from) {
        let message = format!("failed to write `{}`: it is in what is read", out.display());
        return Err(usage(message, "give --out a name elsewhere"));
    }
    Ok(())
}

/// An error if something would be of no use, or a file on its own stays as it is.
fn refuse(slimmer: &Slimmer<'_>, from: &Path) -> Result {
    let alone = slimmer.kept.iter().filter(|(path, _)| path == from);
    let mut refused = slimmer.refused.iter().chain(alone);
    let Some((path, error)) = refused.next() else { return Ok(()) };
    let inside = if path.starts_with(from) { path.clone() } else { from.join(path) };
    let more = if_any(refused.count(), |more| format!(", nor {more} more"));
    Err(usage(
        format!("failed to make `{}` smaller{more}: {error}", inside.display()),
        "give --target GPUs that it has code for: `gfxpack verify` says for which it has none",
    ))
}

fn tree(root: &Path, out: Option<&Path>, slimmer: &mut Slimmer<'_>) -> Result {
    let mut links = Vec::new();
    for entry in entries(root) {
        let entry = entry?;
        let path = entry.path();
        let below = path.strip_prefix(root).expect("below it");
        let to = out.map(|out| if entry.depth() == 0 { out.to_owned() } else { out.join(below) });
        // What was given may be a link, as `/opt/rocm` is.
        let kind = match entry.depth() {
            0 => fs::metadata(path).map_err(io("read", path))?.file_type(),
            _ => entry.file_type(),
        };
        if kind.is_file() {
            file(path, to.as_deref(), slimmer)?;
        } else if kind.is_dir() {
            if let Some(to) = to {
                fs::create_dir(&to).map_err(io("write", &to))?;
            }
        } else if kind.is_symlink() {
            links.push((path.to_owned(), to));
        }
    }
    let taken = slimmer.changes.iter().filter(|change| change.after.is_none());
    let taken: BTreeSet<&Path> = taken.map(|change| change.path.as_path()).collect();
    for (path, to) in links {
        let target = fs::read_link(&path).map_err(io("read", &path))?;
        let leads = normal(&path.with_file_name(&target));
        if let Some(to) = to.filter(|_| !taken.contains(leads.as_path())) {
            symlink(&target, &to).map_err(io("write", &to))?;
        }
    }
    Ok(())
}

fn file(path: &Path, to: Option<&Path>, slimmer: &mut Slimmer<'_>) -> Result {
    let from = File::open(path).map_err(io("read", path))?;
    let metadata = from.metadata().map_err(io("read", path))?;
    if slimmer.takes_out(path, metadata.len()) {
        return Ok(());
    }
    let mut head = [0; 32];
    let read = from.read_at(&mut head, 0).map_err(io("read", path))?;
    if !Slimmer::is_wanted(&head[..read]) {
        slimmer.keeps(metadata.len());
        return match to {
            Some(to) => fs::copy(path, to).map(drop).map_err(io("write", to)),
            None => Ok(()),
        };
    }
    let written = match to {
        Some(to) => File::options().create_new(true).read(true).write(true).open(to),
        None => tempfile::tempfile(),
    };
    let written = written.map_err(io("write", to.unwrap_or(Path::new("a temporary file"))))?;
    let smaller = slimmer.file(path, &from, &written).map_err(failed(path))?;
    let Some(to) = to else { return Ok(()) };
    if !smaller {
        fs::copy(path, to).map_err(io("write", to))?;
        return Ok(());
    }
    let modified = metadata.modified().and_then(|time| written.set_modified(time));
    written.set_permissions(metadata.permissions()).and(modified).map_err(io("write", to))
}

/// The files, links and directories below `root`, or `root` itself, in order.
pub(super) fn entries(root: &Path) -> impl Iterator<Item = Result<DirEntry>> {
    WalkDir::new(root).sort_by_file_name().into_iter().map(move |entry| {
        entry.map_err(|error| {
            let path = error.path().unwrap_or(Path::new("")).to_owned();
            let cause = error.into_io_error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
            io("read", &path)(cause)
        })
    })
}

/// The error for a file with device code that can't be read or is not understood.
pub(super) fn failed(path: &Path) -> impl FnOnce(CodeError) -> Error {
    move |error| match error {
        CodeError::Io(error) => io("read", path)(error),
        other => usage(
            format!("failed to make `{}` smaller: {other}", path.display()),
            "`gfxpack verify FILE --target GPU` says what it has code for",
        ),
    }
}
