//! Taking a damaged user kdb out of the way without losing it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// What SQLite keeps beside a file. Left there, it would be taken for the new
/// file's.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// How the names of kept files go on, before a number.
pub(crate) const SUFFIX: &str = ".corrupt-";

/// More than anybody keeps: an end to the search for a free number.
const MOST: u32 = 10_000;

/// Renames the file and what SQLite has beside it to the first free
/// `<name>.corrupt-<n>`, and gives that name.
///
/// # Errors
/// As the operating system has them; the file itself has its old name then.
pub(crate) fn rename(path: &Path) -> io::Result<PathBuf> {
    let kept_as = (1..MOST)
        .map(|number| with_suffix(path, &format!("{SUFFIX}{number}")))
        .find(|kept_as| kept_as.symlink_metadata().is_err())
        .ok_or(io::ErrorKind::AlreadyExists)?;
    for companion in COMPANIONS {
        match no_replace(&with_suffix(path, companion), &with_suffix(&kept_as, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    no_replace(path, &kept_as)?;
    Ok(kept_as)
}

fn no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag; the callers' lock does.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(from, to),
        other => other.map_err(io::Error::from),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_kept_under_the_first_free_number() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ukdb");
        for round in ["1", "2"] {
            for suffix in ["", "-journal", "-wal"] {
                std::fs::write(with_suffix(&path, suffix), round).unwrap();
            }
            let kept_as = rename(&path).unwrap();
            assert_eq!(kept_as, with_suffix(&path, &format!(".corrupt-{round}")));
            for suffix in ["", "-journal", "-wal"] {
                assert!(!with_suffix(&path, suffix).exists(), "left for the new file: {suffix}");
                let kept = std::fs::read(with_suffix(&kept_as, suffix)).unwrap();
                assert_eq!(kept, round.as_bytes());
            }
        }
        assert!(rename(&path).is_err(), "there is nothing to rename");
    }
}
