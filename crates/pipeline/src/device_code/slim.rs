//! Makes files and directories smaller.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use gfxpack_fatbin::{Change, Error as CodeError, Slimmer, normal};
use gfxpack_model::TargetId;
use serde_json::json;

use super::{entries, failed, open};
use crate::error::{Error, ErrorKind, Result, io, usage};

/// What was taken out.
#[derive(Debug)]
pub struct Slimmed {
    /// Bytes of all files before.
    pub before: u64,
    /// Bytes of all files now.
    pub after: u64,
    /// What changed.
    pub changes: Vec<Change>,
    /// Files with device code that stay as they are, and why.
    pub kept: Vec<(PathBuf, CodeError)>,
}

/// Writes a smaller file or directory, with the code for these GPUs, to `out`, which is whole or not
/// there; without it, finds out how small it would be.
///
/// # Errors
/// If a library would be left without code, a file on its own is not understood, `out` exists, or
/// a file can't be read or written.
pub fn slim(from: &Path, out: Option<&Path>, targets: &[TargetId]) -> Result<Slimmed> {
    let mut slimmer = Slimmer::new(targets);
    match out {
        None => tree(from, None, &mut slimmer)?,
        Some(out) => {
            let parent = out.parent().filter(|it| !it.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("."));
            check_out(from, out, parent)?;
            let new = tempfile::Builder::new().prefix(".slim-").tempdir_in(parent);
            let new = new.map_err(io("write", parent))?;
            let made = new.path().join("out");
            tree(from, Some(&made), &mut slimmer)?;
            refuse(&slimmer, from)?;
            fs::rename(&made, out).map_err(io("write", out))?;
        }
    }
    refuse(&slimmer, from)?;
    Ok(slimmer.into())
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
pub(super) fn refuse(slimmer: &Slimmer<'_>, from: &Path) -> Result {
    let alone = slimmer.kept.iter().filter(|(path, _)| path == from);
    let mut refused = slimmer.refused.iter().chain(alone);
    let Some((path, error)) = refused.next() else { return Ok(()) };
    let inside = if path.starts_with(from) { path.clone() } else { from.join(path) };
    let more = match refused.count() {
        0 => String::new(),
        more => format!(", nor {more} more"),
    };
    Err(Error::new(
        ErrorKind::Usage,
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
    let from = open(path)?;
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

impl From<Slimmer<'_>> for Slimmed {
    fn from(slimmer: Slimmer<'_>) -> Self {
        let Slimmer { before, after, changes, kept, .. } = slimmer;
        Self { before, after, changes, kept }
    }
}

impl Slimmed {
    /// What was taken out, for people who want to know later.
    #[must_use]
    pub fn manifest(&self, targets: &[TargetId]) -> serde_json::Value {
        let change = |change: &Change| {
            json!({
                "path": change.path, "before": change.before, "after": change.after,
                "removed": change.removed,
            })
        };
        json!({
            "format": 1,
            "targets": targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "before": self.before, "after": self.after,
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "kept": self.kept.iter().map(|(path, why)| json!({ "path": path, "why": why.to_string() }))
                .collect::<Vec<_>>(),
        })
    }
}
