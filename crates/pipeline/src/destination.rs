//! The destination of `-o`. A file is written whole and then put in place, also
//! at the end of a symbolic link; devices and pipes are written to directly.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gfxpack_process::write_output;
use serde::Serialize;

use crate::error::{self, Result};

/// Maximum number of links to follow, as in Linux.
const MAX_LINKS: usize = 40;

/// What a path leads to.
enum Destination {
    /// It need not exist yet.
    File(PathBuf),
    /// A character device or a pipe.
    Stream(File),
}

impl Destination {
    /// Follows the path. It may lead to no directory, block device or socket, and not into a loop.
    fn follow(path: &Path) -> io::Result<Self> {
        let kind = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => return fs::canonicalize(path).map(Self::File),
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return followed(path).map(Self::File);
            }
            Err(error) => return Err(error),
        };
        if kind.is_char_device() || kind.is_fifo() {
            return File::options().write(true).open(path).map(Self::Stream);
        }
        let what = if kind.is_dir() { "it is a directory" } else { "it is no regular file" };
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }
}

/// The path at the end of links, at which nothing exists yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => {
                path.pop();
                path.push(to);
            }
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// The destination of a database, which must be a file and not a pipe.
///
/// # Errors
/// A usage error if the path leads to something else.
pub fn database(path: &Path) -> Result<PathBuf> {
    let why = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => "it is no regular file".into(),
        _ => match Destination::follow(path) {
            Ok(Destination::File(path)) => {
                let above = if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    Some(path.as_path())
                } else {
                    path.parent().filter(|above| !above.as_os_str().is_empty())
                };
                match above.filter(|above| !above.is_dir()) {
                    None => return Ok(path),
                    Some(above) => format!("`{}` is no directory", above.display()),
                }
            }
            Ok(Destination::Stream(_)) => "it is no regular file".into(),
            Err(error) => error.to_string(),
        },
    };
    Err(error::usage(
        format!("failed to write `{}`: {why}", path.display()),
        "name a file, with its directory: one that is there is replaced",
    ))
}

/// Writes a file atomically. A device or a pipe is written to directly.
///
/// # Errors
/// If it can't be written.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    replace_with(path, |out| out.write_all(bytes.as_ref()))
}

/// The same, with the content written by `write`.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let put = || match Destination::follow(path)? {
        Destination::File(path) => write_output(&path, write),
        Destination::Stream(mut stream) => write(&mut stream),
    };
    put().map_err(error::io("write", path))
}

/// The same, with these as JSON, one per line.
///
/// # Errors
/// If it can't be written.
pub fn replace_lines(path: &Path, lines: &[impl Serialize]) -> Result<()> {
    replace_with(path, |out| {
        let mut out = BufWriter::new(out);
        for line in lines {
            serde_json::to_writer(&mut out, line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    })
}

/// Like [`replace`], for a script: who may read it may run it.
///
/// # Errors
/// If it can't be written.
pub fn replace_executable(path: &Path, text: &str) -> Result<()> {
    replace(path, text)?;
    let metadata = path.metadata().map_err(error::io("write", path))?;
    if metadata.is_file() {
        let mode = metadata.permissions().mode();
        let executable = fs::Permissions::from_mode(mode | (mode & 0o444) >> 2);
        fs::set_permissions(path, executable).map_err(error::io("write", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_devices_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let path = |name: &str| root.join(name);
        fs::write(path("file"), "").unwrap();
        fs::create_dir(path("sub")).unwrap();
        for (link, to) in [("a", "file"), ("b", "a"), ("sub/c", "../new"), ("loop", "loop")] {
            symlink(to, path(link)).unwrap();
        }
        symlink("/dev/null", path("null")).unwrap();
        let file = |name: &str| match Destination::follow(&path(name)) {
            Ok(Destination::File(path)) => path,
            _ => panic!("{name} is a file"),
        };
        assert_eq!((file("file"), file("b")), (path("file"), path("file")));
        assert_eq!(file("none"), path("none"));
        assert_eq!(file("sub/c"), path("sub/../new"));
        for stream in [Path::new("/dev/null"), &path("null")] {
            assert!(matches!(Destination::follow(stream), Ok(Destination::Stream(_))));
            assert!(database(stream).is_err());
        }
        assert!(database(Path::new("new.kdb")).is_ok());
        for none in [path("none/x.kdb"), path("none/"), path("file/x.kdb")] {
            assert!(database(&none).is_err(), "{none:?}");
        }
        for none in [path("sub"), path("loop")] {
            assert!(Destination::follow(&none).is_err() && database(&none).is_err(), "{none:?}");
        }
    }
}
