//! Kept refusals: failures that are the kernel's own fault. They are stored by key, in files of the
//! same form as objects.

use gfxpack_model::{Digest, Error};
use serde::{Deserialize, Serialize};

use super::entry::{Entry, ObjectInfo, ObjectPurpose};
use super::object_store::ObjectStore;
use super::paths::refusal_path;
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
    #[must_use]
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
    use std::fs;
    use std::path::PathBuf;

    use super::super::test_support::{Fixture, about_it, fixture};
    use super::*;
    use crate::store::VERSION;

    fn failure(kind: FailureKind) -> Failure {
        let output = "a.cl:1:1: error: no\n  \"\u{e4}\"\0\n".to_owned();
        Failure::new(kind, output)
    }

    impl Fixture {
        fn insert(&self, kind: FailureKind) {
            self.store.insert_refusal(self.job, &failure(kind), &about_it()).unwrap();
        }

        fn kept(&self) -> Option<Failure> {
            self.store.refusal(self.job)
        }

        fn file(&self) -> PathBuf {
            self.dir.path().join(VERSION).join(refusal_path(self.job))
        }
    }

    #[test]
    fn a_kept_refusal_has_the_same_output() {
        let f = fixture();
        assert_eq!(f.kept(), None);
        let (expected, found) = ("gfx906".to_owned(), "gfx908".to_owned());
        for kind in [FailureKind::Refused(1), FailureKind::WrongTarget { expected, found }] {
            f.insert(kind.clone());
            assert_eq!(f.kept(), Some(failure(kind)));
            assert_eq!(f.store.info(f.job), None, "no object");
            f.store.remove(f.job);
            assert_eq!(f.kept(), None);
        }
    }

    #[test]
    fn another_version_of_gfxpack_ignores_a_refusal() {
        let f = fixture();
        f.insert(FailureKind::Refused(1));
        let refusal = KeptRefusal {
            judge: "0.0.0".to_owned(),
            reason: FailureKind::Refused(1),
            output: "a.cl:1:1: error: no".to_owned(),
        };
        let bytes = serde_json::to_vec(&refusal).unwrap();
        let (_, header, about) = ObjectInfo::for_object(f.job, &bytes, &about_it());
        f.store.write(&refusal_path(f.job), &[&header, &bytes, &about]).unwrap();
        assert_eq!(f.kept(), None);
    }

    #[test]
    fn no_damaged_refusal_is_reported() {
        let f = fixture();
        f.insert(FailureKind::Refused(1));
        let whole = fs::read(f.file()).unwrap();
        for at in 0..whole.len() {
            fs::write(f.file(), &whole[..at]).unwrap();
            assert_eq!(f.kept(), None, "cut at {at}");
            let mut bytes = whole.clone();
            bytes[at] ^= 0x04;
            fs::write(f.file(), bytes).unwrap();
            // Only damage that does not change the meaning may go unnoticed.
            let kept = f.kept();
            assert!(kept.is_none() || kept == Some(failure(FailureKind::Refused(1))), "{at}");
        }
    }

    #[test]
    fn a_refusal_is_adopted() {
        let (f, other) = (fixture(), fixture());
        assert!(!other.store.adopt_refusal(&f.store, f.job).unwrap());
        f.insert(FailureKind::Refused(1));
        assert!(other.store.adopt_refusal(&f.store, f.job).unwrap());
        assert_eq!(other.kept(), f.kept());
        assert!(other.kept().is_some());
    }
}
