//! Unpacks the files of a .deb into a directory, and nowhere else.
//!
//! Source: deb(5). Scripts are not run; owners and set-ID bits are ignored.

use std::cell::Cell;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use gfxpack_package::read::{Metered, deb_files};
use tar::EntryType;

/// Maximum size of an unpacked package, in bytes; the largest of MIOpen's has 0.8
/// GB.
const UNPACKED_MAX: u64 = 16 << 30;
/// Maximum size of a long name, or of attributes, before a file, in bytes.
const EXTENSION_MAX: u64 = 1 << 20;

/// The error of this machine that made unpacking fail, such as a full disk; `None` if the package is
/// at fault.
pub(crate) fn system_error(error: &io::Error) -> Option<io::Error> {
    use io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound};
    let system = io::Error::from_raw_os_error(system_number(error)?);
    let package = [AlreadyExists, IsADirectory, NotADirectory, NotFound];
    (!package.contains(&system.kind())).then_some(system)
}

/// The number of the system's error that is behind an error.
fn system_number(error: &(dyn Error + 'static)) -> Option<i32> {
    let inner: Option<&(dyn Error + 'static)> = match error.downcast_ref::<io::Error>() {
        Some(io) if io.raw_os_error().is_some() => return io.raw_os_error(),
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    };
    system_number(inner?)
}

/// Unpacks the files of a package below `dir`, which exists and is empty.
pub(crate) fn unpack(package: &Path, dir: &Path) -> io::Result<()> {
    let file = File::open(package)?;
    let stream = deb_files(BufReader::with_capacity(256 << 10, file))?;
    let left = Cell::new(UNPACKED_MAX);
    let mut archive = tar::Archive::new(Metered::new(stream, &left));
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    archive.set_overwrite(false);
    let mut entries = archive.entries()?;
    let mut all = UNPACKED_MAX;
    loop {
        // The library reads names and attributes before an entry into memory, so
        // they are limited.
        left.set(EXTENSION_MAX);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry?;
        left.set(all);
        place(&mut entry, dir)?;
        all = left.get();
    }
    left.set(EXTENSION_MAX);
    // The stream's own checksum is at its end, so read up to there.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(())
}

fn place(entry: &mut tar::Entry<'_, impl Read>, dir: &Path) -> io::Result<()> {
    let path = entry.path()?.into_owned();
    let shown = path.display().to_string();
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(io::Error::other(format!("`{shown}` leads out of it")));
    }
    real_parents(dir, &path)?;
    let kind = entry.header().entry_type();
    if kind == EntryType::Directory {
        return fs::create_dir_all(dir.join(&path));
    }
    let path = normal(&path);
    if path.as_os_str().is_empty() {
        return Err(io::Error::other(format!("`{shown}` is its root, and no directory")));
    }
    match kind {
        EntryType::Regular | EntryType::Continuous => entry.unpack_in(dir).map(drop)?,
        EntryType::Symlink => {
            let target = entry.link_name()?.unwrap_or_default().into_owned();
            let target = inside(&path, &target).ok_or_else(|| {
                io::Error::other(format!("`{shown}` is a link that leads out of it"))
            })?;
            let place = dir.join(&path);
            fs::create_dir_all(place.parent().unwrap_or(dir))?;
            std::os::unix::fs::symlink(target, place)?;
        }
        EntryType::Link => {
            let target = entry.link_name()?.unwrap_or_default().into_owned();
            if target.components().any(|part| matches!(part, Component::ParentDir)) {
                return Err(io::Error::other(format!("`{shown}` is a link that leads out of it")));
            }
            let target = normal(&target);
            real_parents(dir, &target)?;
            fs::hard_link(dir.join(&target), dir.join(&path))?;
        }
        _ => {
            return Err(io::Error::other(format!("`{shown}` is neither file, directory nor link")));
        }
    }
    Ok(())
}

/// A path without `.` and a leading `/`.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Rejects a path behind a link: another package's link could lead anywhere, and
/// the package's own link would give a file two names.
fn real_parents(dir: &Path, path: &Path) -> io::Result<()> {
    let mut place = dir.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "`{}` is below something that is not a directory",
                    path.display()
                )));
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// The target for a link so that it leads to the same place below the directory
/// as it would below the root; `None` if it leads out. `path` has no `.` in it.
fn inside(path: &Path, target: &Path) -> Option<PathBuf> {
    let above = path.components().count().checked_sub(1)?;
    let ups = target.components().filter(|part| *part == Component::ParentDir).count();
    let leading = target.components().take_while(|part| *part == Component::ParentDir).count();
    // `..` after another link could lead anywhere.
    if ups > leading || ups > above {
        return None;
    }
    if !target.is_absolute() {
        return (!target.as_os_str().is_empty()).then(|| target.to_owned());
    }
    let up = std::iter::repeat_n("..", above);
    let down = target.strip_prefix("/").ok()?;
    let place = up.collect::<PathBuf>().join(down);
    Some(if place.as_os_str().is_empty() { ".".into() } else { place })
}

#[cfg(test)]
mod tests;
