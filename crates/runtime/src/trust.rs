//! Whose a directory or file is, and who else could have put something there.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why a directory or file is not taken for the user's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// It, or a directory above it, is another user's.
    #[error("`{}` is owned by user {owner}, not by user {user}", path.display())]
    Owner {
        /// What is owned.
        path: PathBuf,
        /// By whom.
        owner: u32,
        /// Who is asking.
        user: u32,
    },
    /// Any user may write to it.
    #[error("any user may write to `{}`", path.display())]
    Writable {
        /// What may be written to.
        path: PathBuf,
    },
    /// A symbolic link where none is followed, or not a directory or file.
    #[error("`{}` is {found}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// `a symbolic link`.
        found: &'static str,
    },
    /// The operating system refuses.
    #[error("failed to look at `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

impl Untrusted {
    /// What the user can do about it.
    #[must_use]
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

/// Permission bits: others may write, group may write, only the owner may
/// remove what is in the directory.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;
/// What files of users without a number in a container's name space show as
/// theirs: the directories above a home directory that is mounted into it.
const OVERFLOW_USER: u32 = 65534;

/// What becomes of a group's right to write to what is the user's own. With a
/// group for each user, that is what `mkdir` gives, and no reason for mistrust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupWrite {
    /// It is taken away: what is kept there is handed out later.
    Taken,
    /// It stays, since nothing is to be changed.
    Left,
}

/// The number of the user as whom files are accessed.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The real name of a directory that is the user's or root's, and that nobody
/// else can write to or replace.
///
/// A symbolic link in its place or on the way there is followed only if it is
/// the user's or root's own.
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

/// Whether each link that stands in a path was made by the user or root, and
/// not by somebody who wants something put elsewhere.
fn check_links(path: &Path) -> Result<(), Untrusted> {
    for name in path.ancestors().filter(|name| !name.as_os_str().is_empty()) {
        let metadata = fs::symlink_metadata(name).map_err(Untrusted::io(name))?;
        if metadata.is_symlink() && metadata.uid() != OVERFLOW_USER {
            check_owner(name, &metadata)?;
        }
    }
    Ok(())
}

/// Whether nobody else can replace what is below these directories, each the
/// one above that before it.
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
            // Anybody can have made what is in it.
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

/// Whether a file in a checked directory is a plain one of the user's or
/// root's own that nobody else can write to.
pub(crate) fn check_file(file: &Path, group: GroupWrite) -> Result<(), Untrusted> {
    let metadata = fs::symlink_metadata(file).map_err(Untrusted::io(file))?;
    let found = match metadata.file_type() {
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_dir() => Some("a directory"),
        kind if !kind.is_file() => Some("not a regular file"),
        // Somebody may have linked to a file of ours from elsewhere.
        _ if metadata.nlink() > 1 => Some("a file with a second name"),
        _ => None,
    };
    if let Some(found) = found {
        return Err(Untrusted::Kind { path: file.to_owned(), found });
    }
    check_owner(file, &metadata)?;
    check_mode(file, &metadata, group)
}

/// Makes a directory and those above it that are missing, all for the user
/// alone, and gives its real name. Nothing is made where what is there already
/// can't be trusted.
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

/// Whether a directory is the user's own and nobody else may even look into
/// it: what is asked of one that has a predictable name in a shared place.
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
        // By name, without opening it. Where it can't be changed, the file
        // system is read-only to the group too.
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !GROUP_WRITES)).ok();
    }
    Ok(())
}
