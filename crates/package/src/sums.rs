//! Writes SHA256SUMS, the list of checksums that `sha256sum -c` reads.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use gfxpack_model::{Error, Result};

use crate::error::{reading, writing};
use crate::output::{Hashing, Output};
use crate::{Written, read};

/// Name of the list.
pub const FILE_NAME: &str = "SHA256SUMS";

/// Hashes an existing file, so that it can be listed too.
pub fn digest_file(path: &Path) -> Result<Written> {
    let failed = reading(path);
    let mut file = read::open(path).map_err(&failed)?;
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut file, &mut hashing).map_err(failed)?;
    let (_, sha256, size) = hashing.finish();
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Written { path: path.to_owned(), file_name, size, sha256 })
}

/// Writes `dir/SHA256SUMS` with one line for each file, sorted by name, with
/// names relative to `dir`. An older list is replaced.
///
/// # Errors
/// For a file outside of `dir`, a file with two different digests, or a name that the format can't
/// represent; if the list can't be written.
pub fn write_sha256sums(dir: &Path, files: &[Written]) -> Result<Written> {
    let mut digests: BTreeMap<&str, &str> = BTreeMap::new();
    for file in files {
        let fail = |reason| {
            let (path, dir) = (file.path.display(), dir.display());
            Err(Error::usage(
                format!("failed to list `{path}` in the checksums of `{dir}`: {reason}"),
                "list each file once, from below the directory of the list",
            ))
        };
        let Ok(relative) = file.path.strip_prefix(dir) else {
            return fail("it is outside the directory");
        };
        let Some(name) = relative.to_str() else {
            return fail("its name is not UTF-8");
        };
        if name.is_empty() || name.chars().any(|c| c.is_control() || c == '\\') {
            return fail("its name has a control character or a backslash");
        }
        if digests.insert(name, &file.sha256).is_some_and(|other| other != file.sha256) {
            return fail("it is listed with two digests");
        }
    }
    let mut output = Output::create(dir, FILE_NAME)?;
    for (name, digest) in digests {
        // Two spaces mean text mode, which is the same as binary mode on every
        // supported system.
        writeln!(output, "{digest}  {name}").map_err(writing(&output.path()))?;
    }
    output.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, sha256: &str) -> Written {
        let file_name = String::new();
        Written { path: path.to_owned(), file_name, size: 0, sha256: sha256.to_owned() }
    }

    #[test]
    fn files_outside_and_contradicting_entries_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        for files in [
            vec![file(Path::new("/elsewhere/a"), "0")],
            vec![file(dir, "0")],
            vec![file(&dir.join("a"), "0"), file(&dir.join("a"), "1")],
            vec![file(&dir.join("a\nb"), "0")],
            vec![file(&dir.join("a\\b"), "0")],
        ] {
            let made = write_sha256sums(dir, &files);
            assert!(made.is_err(), "{made:?}");
        }
        assert!(std::fs::read_dir(dir).expect("lists").next().is_none());
        let twice = [file(&dir.join("a"), "0"), file(&dir.join("a"), "0")];
        write_sha256sums(dir, &twice).expect("the same twice is once");
        assert_eq!(std::fs::read_to_string(dir.join(FILE_NAME)).expect("read"), "0  a\n");
    }
}
