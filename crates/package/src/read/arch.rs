//! Reads a package for pacman.

use std::io::{BufRead, Read};
use std::path::Path;

use super::archive::{self, Limited};
use super::outcome::{Outcome, PackageDescription, Stop, damaged};

/// Maximum size of text that is read into memory.
const TEXT_MAX: u64 = 64 << 20;

/// Source: pacman 6.0.2, lib/libalpm/be_package.c, `_alpm_pkg_load_internal`.
pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let stream = archive::by_extension(file, path)?;
    archive::files("the archive", stream, outcome, |path, bytes, outcome| match (path, bytes) {
        (".PKGINFO", Some(bytes)) => {
            let mut text = String::new();
            let read = Limited::new(bytes, TEXT_MAX).read_to_string(&mut text);
            read.map_err(|error| damaged(path, error))?;
            outcome.report.about = Some(parse_info(&text));
            Ok(())
        }
        (".INSTALL", _) => {
            outcome.script(path);
            Ok(())
        }
        // They describe the package, and are not installed.
        (".MTREE" | ".BUILDINFO" | ".CHANGELOG", _) => Ok(()),
        (path, bytes) => archive::show(path, bytes, outcome),
    })?;
    if outcome.report.about.is_none() {
        outcome.finding("there is no `.PKGINFO` in it");
    }
    Ok(())
}

fn parse_info(text: &str) -> PackageDescription {
    let all = |field: &str| -> Vec<String> {
        let values = text.lines().filter_map(|line| line.split_once('='));
        let values = values.filter(|(name, _)| name.trim() == field);
        values.map(|(_, value)| value.trim().to_owned()).collect()
    };
    let first = |field: &str| all(field).into_iter().next().unwrap_or_default();
    let bare =
        |bounded: String| bounded.split(['<', '>', '=']).next().unwrap_or_default().to_owned();
    PackageDescription {
        name: first("pkgname"),
        summary: first("pkgdesc"),
        depends: all("depend").into_iter().map(bare).collect(),
    }
}
