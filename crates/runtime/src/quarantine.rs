//! Renames a damaged user kdb, so that a new one can be started and nothing is
//! lost.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The files that SQLite keeps beside a database. If they stayed, they would be
/// applied to the new one.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Suffix for the name of a kept file, before a number.
const SUFFIX: &str = ".corrupt-";

/// How many damaged files of each name to keep. Older ones are removed.
const KEPT: usize = 2;

/// Renames the file and its companion files to `<name>.corrupt-<n>`, with the
/// next free number, and returns that name. Of earlier ones, only the newest is
/// kept.
///
/// # Errors
/// The operating system's errors; the file then still has its old name.
pub(crate) fn rename(path: &Path) -> io::Result<PathBuf> {
    let mut numbers = kept_numbers(path)?;
    numbers.sort_unstable();
    let kept_as = |number: u64| with_suffix(path, &format!("{SUFFIX}{number}"));
    let next = numbers.last().map_or(Some(1), |last| last.checked_add(1));
    let renamed = kept_as(next.ok_or(io::ErrorKind::AlreadyExists)?);
    for companion in COMPANIONS {
        match no_replace(&with_suffix(path, companion), &with_suffix(&renamed, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    no_replace(path, &renamed)?;
    let too_many = (numbers.len() + 1).saturating_sub(KEPT);
    for old in numbers.into_iter().take(too_many).map(kept_as) {
        for companion in COMPANIONS {
            std::fs::remove_file(with_suffix(&old, companion)).ok();
        }
        std::fs::remove_file(&old).ok();
    }
    Ok(renamed)
}

/// The numbers of the kept files.
fn kept_numbers(path: &Path) -> io::Result<Vec<u64>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut before = name.to_owned();
    before.push(SUFFIX);
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.as_bytes().strip_prefix(before.as_bytes());
        let number = number.and_then(|number| str::from_utf8(number).ok()?.parse::<u64>().ok());
        numbers.extend(number);
    }
    Ok(numbers)
}

fn no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports the flag; the callers hold a lock.
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
    fn the_last_two_files_are_kept_with_their_companions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ukdb");
        std::fs::write(directory.path().join("a.ukdb.corrupt-x"), "").unwrap();
        std::fs::write(directory.path().join("b.ukdb.corrupt-7"), "").unwrap();
        for round in 1..=4 {
            for suffix in ["", "-journal", "-wal"] {
                std::fs::write(with_suffix(&path, suffix), round.to_string()).unwrap();
            }
            let kept_as = rename(&path).unwrap();
            assert_eq!(kept_as, with_suffix(&path, &format!(".corrupt-{round}")));
            for suffix in ["", "-journal", "-wal"] {
                assert!(!with_suffix(&path, suffix).exists(), "left for the new file: {suffix}");
                let kept = std::fs::read_to_string(with_suffix(&kept_as, suffix)).unwrap();
                assert_eq!(kept, round.to_string());
            }
        }
        assert!(rename(&path).is_err(), "there is nothing to rename");
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let kept = ["3", "3-journal", "3-wal", "4", "4-journal", "4-wal", "x"];
        let kept = kept.map(|name| format!("a.ukdb.corrupt-{name}"));
        assert_eq!(names[..7], kept);
        assert_eq!(names[7..], ["b.ukdb.corrupt-7"]);
    }
}
