//! An empty store for tests.

use gfxpack_model::{Digest, Error, KernelKey};

use super::{CorruptObject, ObjectPurpose, ObjectStore};

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: ObjectStore,
    pub(crate) job: Digest,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = ObjectStore::open(dir.path()).unwrap();
    Fixture { store, dir, job: Digest::of(b"job") }
}

/// The purpose of an example object.
pub(crate) fn about_it() -> ObjectPurpose {
    let key = KernelKey::for_source("a.cl", " -DA", "gfx906");
    let arguments = ["-DA", "a.cl"].map(Into::into).to_vec();
    ObjectPurpose { key, target_id: "gfx906".parse().unwrap(), arguments }
}

pub(crate) fn is_corrupt(read: &Result<Vec<u8>, Error>) -> bool {
    read.as_ref().is_err_and(|error| error.cause::<CorruptObject>().is_some())
}
