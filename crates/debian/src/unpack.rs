//! Unpacks the files of a .deb into a directory, and nowhere else.
//!
//! Source: deb(5). Scripts are not run; owners and set-ID bits are ignored.

use std::cell::Cell;
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

/// Unpacks the files of a package below `dir`, which exists and is empty.
pub(crate) fn unpack(package: &Path, dir: &Path) -> Result<(), String> {
    let file = File::open(package).map_err(text)?;
    let stream = deb_files(BufReader::with_capacity(256 << 10, file)).map_err(text)?;
    let left = Cell::new(UNPACKED_MAX);
    let mut archive = tar::Archive::new(Metered::new(stream, &left));
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    archive.set_overwrite(false);
    let mut entries = archive.entries().map_err(text)?;
    let mut all = UNPACKED_MAX;
    loop {
        // The library reads names and attributes before an entry into memory, so
        // they are limited.
        left.set(EXTENSION_MAX);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(text)?;
        left.set(all);
        place(&mut entry, dir)?;
        all = left.get();
    }
    left.set(EXTENSION_MAX);
    // The stream's own checksum is at its end, so read up to there.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(text)?;
    Ok(())
}

fn place(entry: &mut tar::Entry<'_, impl Read>, dir: &Path) -> Result<(), String> {
    let path = entry.path().map_err(text)?.into_owned();
    let shown = path.display().to_string();
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("`{shown}` leads out of it"));
    }
    match entry.header().entry_type() {
        EntryType::Directory => {
            real_parents(dir, &path)?;
            fs::create_dir_all(dir.join(&path)).map_err(text)
        }
        EntryType::Regular | EntryType::Continuous => {
            real_parents(dir, &path)?;
            entry.unpack_in(dir).map_err(text).map(drop)
        }
        EntryType::Symlink => {
            real_parents(dir, &path)?;
            let target = entry.link_name().map_err(text)?.unwrap_or_default().into_owned();
            let target = inside(&path, &target)
                .ok_or_else(|| format!("`{shown}` is a link that leads out of it"))?;
            let place = dir.join(&path);
            fs::create_dir_all(place.parent().unwrap_or(dir)).map_err(text)?;
            std::os::unix::fs::symlink(target, place).map_err(text)
        }
        EntryType::Link => {
            let target = entry.link_name().map_err(text)?.unwrap_or_default().into_owned();
            if target.components().any(|part| matches!(part, Component::ParentDir)) {
                return Err(format!("`{shown}` is a link that leads out of it"));
            }
            let target: PathBuf =
                target.components().filter(|part| matches!(part, Component::Normal(_))).collect();
            real_parents(dir, &path)?;
            real_parents(dir, &target)?;
            fs::hard_link(dir.join(&target), dir.join(&path)).map_err(text)
        }
        _ => Err(format!("`{shown}` is neither file, directory nor link")),
    }
}

/// Rejects a path behind a link: another package's link could lead anywhere, and
/// the package's own link would give a file two names.
fn real_parents(dir: &Path, path: &Path) -> Result<(), String> {
    let mut place = dir.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(format!(
                    "`{}` is below something that is not a directory",
                    path.display()
                ));
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// The target for a link so that it leads to the same place below the directory
/// as it would below the root; `None` if it leads out.
fn inside(path: &Path, target: &Path) -> Option<PathBuf> {
    let above = path.components().filter(|part| matches!(part, Component::Normal(_))).count() - 1;
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

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
