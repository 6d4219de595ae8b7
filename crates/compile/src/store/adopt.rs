//! Copies objects between stores: from the cache into a shard's output, and back.

use std::path::Path;

use gfxpack_model::Digest;
use gfxpack_process::FileError;

use super::entry::{Entry, ObjectInfo};
use super::object_store::ObjectStore;
use super::paths::{is_gone, object_path};
use crate::error::CompileError;

impl ObjectStore {
    /// Copies a job's object from another store, with the sets of file accesses that it depends on, if
    /// they are missing here. Its bytes are checked on the way; `None` if the other store does not
    /// have it, or has removed it because it was damaged.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be read or written.
    pub fn adopt(&self, from: &Self, job: Digest) -> Result<Option<ObjectInfo>, CompileError> {
        self.adopt_file(from, job, &object_path(job))
    }

    /// Copies a job's file with the file accesses that it depends on.
    pub(super) fn adopt_file(
        &self,
        from: &Self,
        job: Digest,
        path: &Path,
    ) -> Result<Option<ObjectInfo>, CompileError> {
        let raw = match from.read_entry(path) {
            Err(error) if is_gone(&error) => return Ok(None),
            raw => raw.map_err(FileError::io("read", from.dir.join(path)))?,
        };
        let Some(Entry { info, .. }) = Entry::parse(&raw, job) else {
            from.drop_one(job, path)?;
            return Ok(None);
        };
        for (name, file) in info.state_files() {
            if self.read_states(name).is_none() {
                let text = from.read_file(file.as_ref());
                let text = text.map_err(FileError::io("read", from.dir.join(&file)))?;
                self.write(file.as_ref(), &[&text])?;
            }
        }
        self.write(path, &[&raw])?;
        Ok(Some(info))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::test_support::{about_it, as_another_build, depends_on};
    use super::*;
    use crate::store::{Dependencies, VERSION};

    #[test]
    fn an_object_is_adopted_with_its_dependencies_or_not_at_all() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [from, to] = [&dirs[0], &dirs[1]].map(|dir| ObjectStore::open(dir.path()).unwrap());
        let header = dirs[0].path().join("x.h");
        fs::write(&header, "1").unwrap();
        let about = about_it();
        let dependencies = |text| depends_on([(&header, Some(text))]);
        let (job, other) = (Digest::of(b"job"), Digest::of(b"other"));
        let info = from.insert(job, b"object", &about, &dependencies("1")).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None);
        assert_eq!(to.adopt(&from, job).unwrap(), Some(info.clone()));
        assert_eq!(as_another_build(|check| to.lookup(job, check)), Some(info));
        assert_eq!(to.read(job).unwrap(), b"object");
        assert_eq!(to.about(job), Some(about.clone()));
        fs::remove_dir_all(dirs[1].path().join(VERSION).join("answers")).unwrap();
        let store = || ObjectStore::open_to_look(dirs[1].path());
        let found = || as_another_build(|check| store().lookup(job, check));
        assert_eq!(found(), None);
        assert_eq!(to.adopt(&from, job).unwrap(), found());
        assert!(found().is_some());

        // Another system header, and the object that was made with it.
        fs::write(&header, "2").unwrap();
        let fresh = from.insert(job, b"another", &about, &dependencies("2")).unwrap();
        assert_eq!(to.adopt(&from, job).unwrap(), Some(fresh));
        assert_eq!(to.read(job).unwrap(), b"another");

        from.insert(other, b"object", &about, &Dependencies::default()).unwrap();
        let file = dirs[0].path().join(VERSION).join(object_path(other));
        let text = String::from_utf8(fs::read(&file).unwrap()).unwrap();
        fs::write(&file, text.replace("\nobject", "\nobiect")).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None, "damaged");
        assert!(to.info(other).is_none() && !file.exists());
    }
}
