//! Checks who owns a directory or file, and who else could have written to it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why a directory or file is not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// It, or a directory above it, belongs to another user.
    #[error("`{}` is owned by user {owner}, not by user {user}", path.display())]
    Owner {
        /// The directory or file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The current user.
        user: u32,
    },
    /// Any user may write to it.
    #[error("any user may write to `{}`", path.display())]
    Writable {
        /// The directory or file.
        path: PathBuf,
    },
    /// A symbolic link where none is allowed, or neither a directory nor a
    /// file.
    #[error("`{}` is {found}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// `a symbolic link`.
        found: &'static str,
    },
    /// The operating system reports an error.
    #[error("failed to look at `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Untrusted {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Owner { .. } => {
                "set MIOPEN_CUSTOM_CACHE_DIR to a directory of your own; in a container, to one that \
                 the container's user owns"
            }
            Self::Writable { .. } => {
                "take the right away with `chmod o-w`, or use another directory"
            }
            Self::Kind { .. } => "remove it, or set MIOPEN_CUSTOM_CACHE_DIR to another directory",
            Self::Io { .. } => "check the permissions of the directories above it",
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

/// Permission bits: others may write; the group may write; only the owner may
/// remove a directory's entries.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;
/// The owner shown for files of users without a number in a container's user
/// namespace, such as the directories above a mounted home directory.
const OVERFLOW_USER: u32 = 65534;

/// What to do with a group's right to write to the user's own files. With a
/// group for each user, `mkdir` grants it, and it is no reason for mistrust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupWrite {
    /// Remove it, since the content is returned later.
    Taken,
    /// Leave it, since nothing may be changed.
    Left,
}

/// The number of the effective user.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the real path of a directory if it belongs to the user or root, and
/// nobody else can write to it or replace it.
///
/// A symbolic link on the path is followed only if it belongs to the user or
/// root.
pub(crate) fn check_directory(directory: &Path, group: GroupWrite) -> Result<PathBuf, Untrusted> {
    let link = fs::symlink_metadata(directory).map_err(Untrusted::io(directory))?;
    check_owner(directory, &link)?;
    check_links(directory)?;
    let real = fs::canonicalize(directory).map_err(Untrusted::io(directory))?;
    let metadata = fs::symlink_metadata(&real).map_err(Untrusted::io(&real))?;
    if !metadata.is_dir() {
        return Err(Untrusted::Kind { path: real, found: "not a directory" });
    }
    check_owner(&real, &metadata)?;
    check_mode(&real, &metadata, group)?;
    check_above(real.ancestors().skip(1), Some((&real, metadata)))?;
    Ok(real)
}

/// Checks that the user or root made each link in a path, and not somebody who
/// wants files to be put elsewhere.
fn check_links(path: &Path) -> Result<(), Untrusted> {
    for name in path.ancestors().filter(|name| !name.as_os_str().is_empty()) {
        let metadata = fs::symlink_metadata(name).map_err(Untrusted::io(name))?;
        if metadata.is_symlink() && metadata.uid() != OVERFLOW_USER {
            check_owner(name, &metadata)?;
        }
    }
    Ok(())
}

/// Checks that nobody else can replace what is below these directories. Each is
/// the parent of the one before it.
fn check_above<'a>(
    directories: impl Iterator<Item = &'a Path>,
    mut below: Option<(&'a Path, Metadata)>,
) -> Result<(), Untrusted> {
    for above in directories {
        let metadata = fs::symlink_metadata(above).map_err(Untrusted::io(above))?;
        if metadata.mode() & OTHERS_WRITE != 0 {
            if metadata.mode() & STICKY == 0 {
                return Err(Untrusted::Writable { path: above.to_owned() });
            }
            // Anybody may have created its entries.
            if let Some((name, below)) = &below {
                check_owner(name, below)?;
            }
        }
        if metadata.uid() != OVERFLOW_USER {
            check_owner(above, &metadata)?;
        }
        below = Some((above, metadata));
    }
    Ok(())
}

/// Checks that a file in a checked directory is a regular file of the user or
/// root that nobody else can write to.
pub(crate) fn check_file(file: &Path, group: GroupWrite) -> Result<(), Untrusted> {
    let metadata = fs::symlink_metadata(file).map_err(Untrusted::io(file))?;
    let found = match metadata.file_type() {
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_dir() => Some("a directory"),
        kind if !kind.is_file() => Some("not a regular file"),
        // Somebody may have linked to one of our files from elsewhere.
        _ if metadata.nlink() > 1 => Some("a file with a second name"),
        _ => None,
    };
    if let Some(found) = found {
        return Err(Untrusted::Kind { path: file.to_owned(), found });
    }
    check_owner(file, &metadata)?;
    check_mode(file, &metadata, group)
}

/// Creates a directory and its missing parents, accessible only to the user,
/// and returns its real path. Nothing is created if the existing part of the
/// path can't be trusted.
pub(crate) fn make_directory(directory: &Path) -> Result<PathBuf, Untrusted> {
    let there = directory.ancestors().find(|above| above.symlink_metadata().is_ok());
    if let Some(there) = there.filter(|there| *there != directory) {
        check_links(there)?;
        let real = fs::canonicalize(there).map_err(Untrusted::io(there))?;
        check_above(real.ancestors(), None)?;
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(Untrusted::io(directory))?;
    check_directory(directory, GroupWrite::Taken)
}

/// Checks that a directory is the user's own and that nobody else can even list
/// it. Needed for one with a predictable name in a shared place.
pub(crate) fn check_private(directory: &Path) -> Result<(), Untrusted> {
    let metadata = fs::symlink_metadata(directory).map_err(Untrusted::io(directory))?;
    if !metadata.is_dir() {
        return Err(Untrusted::Kind { path: directory.to_owned(), found: "not a directory" });
    }
    let (owner, user) = (metadata.uid(), user());
    if owner != user {
        return Err(Untrusted::Owner { path: directory.to_owned(), owner, user });
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(Untrusted::Kind { path: directory.to_owned(), found: "open to other users" });
    }
    Ok(())
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), Untrusted> {
    let (owner, user) = (metadata.uid(), user());
    if owner == user || owner == 0 {
        Ok(())
    } else {
        Err(Untrusted::Owner { path: path.to_owned(), owner, user })
    }
}

fn check_mode(path: &Path, metadata: &Metadata, group: GroupWrite) -> Result<(), Untrusted> {
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        return Err(Untrusted::Writable { path: path.to_owned() });
    }
    let may_change = group == GroupWrite::Taken && metadata.uid() == user();
    if mode & GROUP_WRITES != 0 && may_change {
        // Changed by name, without opening it. If this fails, the file system
        // is read-only for the group too.
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !GROUP_WRITES)).ok();
    }
    Ok(())
}
