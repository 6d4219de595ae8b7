//! Kept refusals: failures that are the kernel's own fault. They are stored by key, in files of the
//! same form as objects.

use gfxpack_model::{Digest, Error};
use serde::{Deserialize, Serialize};

use super::entry::{Entry, ObjectInfo, ObjectPurpose};
use super::object_store::ObjectStore;
use super::refusal_path;
use crate::job::{Failure, FailureKind};

/// This version of gfxpack; another one may judge differently.
const JUDGE: &str = env!("CARGO_PKG_VERSION");

/// The content of a refusal's file in place of an object.
#[derive(Serialize, Deserialize)]
struct KeptRefusal {
    /// The version of gfxpack that judged the failure.
    judge: String,
    reason: FailureKind,
    output: String,
}

impl ObjectStore {
    /// Stores a failure, which is the kernel's own fault.
    ///
    /// # Errors
    /// If it can't be written.
    pub(crate) fn insert_refusal(
        &self,
        key: Digest,
        failure: &Failure,
        about: &ObjectPurpose,
    ) -> Result<(), Error> {
        let Failure { kind, output, .. } = failure.clone();
        let refusal = KeptRefusal { judge: JUDGE.to_owned(), reason: kind, output };
        let bytes = serde_json::to_vec(&refusal).expect("plain data");
        let (_, header, about) = ObjectInfo::for_object(key, &bytes, about);
        self.write(&refusal_path(key), &[&header, &bytes, &about])
    }

    /// The kept failure with this key, if this version of gfxpack judged it.
    pub fn refusal(&self, key: Digest) -> Option<Failure> {
        let bytes = self.read_entry(&refusal_path(key)).ok()?;
        let refusal = serde_json::from_slice(Entry::parse(&bytes, key)?.object).ok()?;
        let KeptRefusal { judge, reason: kind, output } = refusal;
        (judge == JUDGE).then(|| Failure::new(kind, output))
    }

    /// Copies a kept refusal from another store. Returns whether there is one.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn adopt_refusal(&self, from: &Self, key: Digest) -> Result<bool, Error> {
        self.adopt_file(from, key, &refusal_path(key)).map(|info| info.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{about_it, fixture};
    use super::*;

    #[test]
    fn another_version_of_gfxpack_ignores_a_refusal() {
        let f = fixture();
        let failure = Failure::new(FailureKind::Refused(1), "a.cl:1:1: error: no".to_owned());
        f.store.insert_refusal(f.job, &failure, &about_it()).unwrap();
        assert_eq!(f.store.refusal(f.job), Some(failure.clone()));
        let Failure { kind: reason, output, .. } = failure;
        let refusal = KeptRefusal { judge: "0.0.0".to_owned(), reason, output };
        let bytes = serde_json::to_vec(&refusal).unwrap();
        let (_, header, about) = ObjectInfo::for_object(f.job, &bytes, &about_it());
        f.store.write(&refusal_path(f.job), &[&header, &bytes, &about]).unwrap();
        assert_eq!(f.store.refusal(f.job), None);
    }
}
