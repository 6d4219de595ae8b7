//! A directory that no other user can read, removed when its value is dropped.

use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub(crate) struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Creates a directory of mode 0700 in `parent`, with a name that can't be
    /// guessed.
    ///
    /// # Errors
    /// The errors of the file system.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        // Each `RandomState` has its own random keys from the operating system.
        let path = parent.join(format!("gfxpack-{:016x}", RandomState::new().hash_one(())));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_directory_has_mode_0700_and_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dirs = [(); 2].map(|()| PrivateDir::create(parent.path()).unwrap());
        for dir in &dirs {
            assert_eq!(dir.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
            std::fs::write(dir.path().join("copy"), "").unwrap();
        }
        drop(dirs);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(PrivateDir::create(&parent.path().join("absent")).is_err());
    }
}
