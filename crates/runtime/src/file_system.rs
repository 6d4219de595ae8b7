//! Identifies files and file systems, and checks whether a path can be written
//! to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};

/// Identifies a file by device and inode; with its version, also by size and by the seconds and
/// nanoseconds of its last modification and change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity([u64; 2], Option<(u64, [i64; 4])>);

impl FileIdentity {
    /// Identifies the file that `path` leads to, with its version.
    pub(crate) fn with_content(path: &Path) -> io::Result<Self> {
        let it = fs::metadata(path)?;
        let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
        Ok(Self([it.dev(), it.ino()], Some((it.size(), times))))
    }

    /// Identifies the file itself, which changes while it is in use, without following a link.
    pub(crate) fn of_link(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self([metadata.dev(), metadata.ino()], None))
    }
}

/// Network file systems by the number from `statfs`. MIOpen does not choose a
/// directory on these for its cache.
///
/// Source: ROCm/MIOpen 2d1fd997a, `IsNetworkedFilesystem` in db_path.cpp;
/// numbers from Linux, include/uapi/linux/magic.h, and of Lustre and Ceph from
/// their own headers.
const NETWORK: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x7375_7245, "CODA"),
    (0x7461_636f, "OCFS2"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x00c3_6400, "Ceph"),
];

/// The name of the network file system that a path is, or would be, on; `None`
/// on a local one.
pub(crate) fn network(path: &Path) -> Option<&'static str> {
    let kind = statfs(existing(path)).ok()?.f_type;
    // The numbers have 32 bits; the field is wider, and signed on some machines.
    name(kind as u32)
}

fn name(kind: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

/// Whether the directory, or the nearest one above it that exists, may be
/// written to.
pub(crate) fn is_writable(directory: &Path) -> bool {
    let existing = existing(directory);
    let access = Access::WRITE_OK | Access::EXEC_OK;
    existing.is_dir() && accessat(CWD, existing, access, AtFlags::EACCESS).is_ok()
}

/// Whether an existing file may be written to.
pub(crate) fn is_writable_file(file: &Path) -> bool {
    accessat(CWD, file, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The path, or its nearest existing ancestor.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_number() {
        assert_eq!(name(0x6969), Some("NFS"));
        assert_eq!(name(0xff53_4d42_u32), Some("CIFS"));
        // Sign-extended, as in a 64-bit field.
        assert_eq!(name((0xffff_ffff_ff53_4d42_u64 as i64) as u32), Some("CIFS"));
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x794c_7630] {
            assert_eq!(name(local), None, "{local:#x} is ext4, tmpfs, btrfs, xfs or overlayfs");
        }
    }

    #[test]
    fn an_absent_path_has_the_properties_of_its_nearest_ancestor() {
        let directory = tempfile::tempdir().unwrap();
        assert!(is_writable(&directory.path().join("a/b/c")));
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(!is_writable(&file.join("below")), "a file has nothing below it");
        assert_eq!(network(&directory.path().join("a")), None);
    }
}
