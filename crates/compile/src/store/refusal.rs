//! Kept refusals: failures that are the kernel's own fault. They are stored by their jobs' digests,
//! in files of the same form as objects, and become out of date in the same way.

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

use super::dependencies::Dependencies;
use super::entry::{Entry, ObjectInfo, ObjectPurpose};
use super::object_store::{ObjectStore, ValidityCheck};
use super::paths::refusal_path;
use crate::error::CompileError;
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
    /// Stores a job's failure, which is the kernel's own fault, with its dependencies besides the
    /// job's digest.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be written.
    pub(crate) fn insert_refusal(
        &self,
        job: Digest,
        failure: &Failure,
        about: &ObjectPurpose,
        dependencies: &Dependencies,
    ) -> Result<(), CompileError> {
        let Failure { kind, output, .. } = failure.clone();
        let refusal = KeptRefusal { judge: JUDGE.to_owned(), reason: kind, output };
        let bytes = serde_json::to_vec(&refusal).expect("plain data");
        let states = self.insert_states(dependencies)?;
        let (_, header, about) = ObjectInfo::for_object(job, &bytes, about, states, dependencies);
        Ok(self.write(&refusal_path(job), &[&header, &bytes, &about])?)
    }

    /// A job's kept failure, if it is up to date: every file access of the
    /// compiler would have the same result now, and this version of gfxpack
    /// judged it.
    #[must_use]
    pub fn refusal(&self, job: Digest, check: ValidityCheck<'_>) -> Option<Failure> {
        let info = self.refusal_info(job)?;
        if !self.all_hold(&info, check) {
            return None;
        }
        let bytes = self.read_entry(&refusal_path(job)).ok()?;
        let refusal = serde_json::from_slice(Entry::parse(&bytes, job)?.object).ok()?;
        let KeptRefusal { judge, reason: kind, output } = refusal;
        (judge == JUDGE).then(|| Failure::new(kind, output))
    }

    /// The dependencies of a job's kept refusal, even if it is out of date.
    pub fn refusal_info(&self, job: Digest) -> Option<ObjectInfo> {
        self.info_at(&refusal_path(job), job)
    }

    /// Copies a job's kept refusal from another store. Returns whether there is one.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be read or written.
    pub fn adopt_refusal(&self, from: &Self, job: Digest) -> Result<bool, CompileError> {
        self.adopt_file(from, job, &refusal_path(job)).map(|info| info.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::test_support::{Fixture, about_it, as_another_build, depends_on, fixture};
    use super::*;
    use crate::store::VERSION;

    fn failure(kind: FailureKind) -> Failure {
        let output = "a.cl:1:1: error: no\n  \"\u{e4}\"\0\n".to_owned();
        Failure::new(kind, output)
    }

    impl Fixture {
        fn insert(&self, kind: FailureKind, dependencies: &Dependencies) {
            self.store.insert_refusal(self.job, &failure(kind), &about_it(), dependencies).unwrap();
        }

        /// The refusal as another build sees it.
        fn kept(&self) -> Option<Failure> {
            let store = ObjectStore::open(self.dir.path()).unwrap();
            as_another_build(|check| store.refusal(self.job, check))
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
            f.insert(kind.clone(), &Dependencies::default());
            assert_eq!(f.kept(), Some(failure(kind)));
            assert_eq!(f.store.info(f.job), None, "no object");
            f.store.remove(f.job);
            assert_eq!(f.kept(), None);
        }
    }

    #[test]
    fn a_refusal_is_out_of_date_when_an_object_would_be() {
        let f = fixture();
        let header = f.dir.path().join("limits");
        fs::write(&header, "1").unwrap();
        let absent = f.dir.path().join("not-there");
        f.insert(FailureKind::Refused(1), &depends_on([(&header, Some("1")), (&absent, None)]));
        assert!(f.kept().is_some());
        fs::write(&header, "2").unwrap();
        assert_eq!(f.kept(), None, "another header");
        fs::write(&header, "1").unwrap();
        assert!(f.kept().is_some());
        fs::write(&absent, "").unwrap();
        assert_eq!(f.kept(), None, "one that would come before it");
        fs::remove_file(&absent).unwrap();
        fs::remove_dir_all(f.dir.path().join(VERSION).join("answers")).unwrap();
        assert_eq!(f.kept(), None, "nobody knows what it depends on");
    }

    #[test]
    fn another_version_of_gfxpack_ignores_a_refusal() {
        let f = fixture();
        f.insert(FailureKind::Refused(1), &Dependencies::default());
        let refusal = KeptRefusal {
            judge: "0.0.0".to_owned(),
            reason: FailureKind::Refused(1),
            output: "a.cl:1:1: error: no".to_owned(),
        };
        let bytes = serde_json::to_vec(&refusal).unwrap();
        let dependencies = Dependencies::default();
        let (_, header, about) =
            ObjectInfo::for_object(f.job, &bytes, &about_it(), Vec::new(), &dependencies);
        f.store.write(&refusal_path(f.job), &[&header, &bytes, &about]).unwrap();
        assert_eq!(f.kept(), None);
    }

    #[test]
    fn no_damaged_refusal_is_reported() {
        let f = fixture();
        f.insert(FailureKind::Refused(1), &Dependencies::default());
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
    fn a_refusal_is_adopted_with_its_dependencies() {
        let (f, other) = (fixture(), fixture());
        let header = f.dir.path().join("limits");
        fs::write(&header, "1").unwrap();
        assert!(!other.store.adopt_refusal(&f.store, f.job).unwrap());
        f.insert(FailureKind::Refused(1), &depends_on([(&header, Some("1"))]));
        assert!(other.store.adopt_refusal(&f.store, f.job).unwrap());
        assert_eq!(other.kept(), f.kept());
        assert!(other.kept().is_some());
        fs::write(&header, "2").unwrap();
        assert_eq!(other.kept(), None);
    }
}
