//! Copies objects between stores: from the cache into a shard's output, and back.

use std::path::Path;

use gfxpack_model::{Digest, Error};

use super::entry::{Entry, ObjectInfo};
use super::object_store::ObjectStore;
use super::paths::{is_gone, object_path};
use crate::error::CompileError;

impl ObjectStore {
    /// Copies an object from another store. Its bytes are checked on the way; `None` if the other
    /// store does not have it, or has removed it because it was damaged.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be read or written.
    pub fn adopt(&self, from: &Self, key: Digest) -> Result<Option<ObjectInfo>, CompileError> {
        self.adopt_file(from, key, &object_path(key))
    }

    /// Copies the file of an object or a refusal.
    pub(super) fn adopt_file(
        &self,
        from: &Self,
        key: Digest,
        path: &Path,
    ) -> Result<Option<ObjectInfo>, CompileError> {
        let raw = match from.read_entry(path) {
            Err(error) if is_gone(&error) => return Ok(None),
            raw => raw.map_err(Error::io("read", from.dir.join(path)))?,
        };
        let Some(Entry { info, .. }) = Entry::parse(&raw, key) else {
            from.drop_one(key, path)?;
            return Ok(None);
        };
        self.write(path, &[&raw])?;
        Ok(Some(info))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::test_support::about_it;
    use super::*;
    use crate::store::VERSION;

    #[test]
    fn an_object_is_adopted_whole_or_not_at_all() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [from, to] = [&dirs[0], &dirs[1]].map(|dir| ObjectStore::open(dir.path()).unwrap());
        let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
        let info = from.insert(key, b"object", &about_it()).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None);
        assert_eq!(to.adopt(&from, key).unwrap(), Some(info.clone()));
        assert_eq!(to.lookup(key), Some(info));
        assert_eq!(to.read(key).unwrap(), b"object");
        assert_eq!(to.about(key), Some(about_it()));

        from.insert(other, b"object", &about_it()).unwrap();
        let file = dirs[0].path().join(VERSION).join(object_path(other));
        let text = String::from_utf8(fs::read(&file).unwrap()).unwrap();
        fs::write(&file, text.replace("\nobject", "\nobiect")).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None, "damaged");
        assert!(to.info(other).is_none() && !file.exists());
    }
}
