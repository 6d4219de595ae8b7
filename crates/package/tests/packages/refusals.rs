//! What users say of packages that dpkg or rpm would not take is rejected.

use gfxpack_model::package::PackageSpec;
use gfxpack_package::{Compression, Error, Format};

use crate::support::{NAME, file_names, plain_spec, temp};

#[test]
fn specs_that_policy_forbids_are_refused_with_a_hint() {
    let dir = temp();
    let refused = |change: &dyn Fn(&mut PackageSpec)| {
        let mut spec = plain_spec(Vec::new());
        change(&mut spec);
        let error = Format::DEB.write(&spec, dir.path(), 1, None).expect_err("illegal");
        assert!(error.to_string().starts_with("failed to "), "{error}");
        assert!(!error.hint().is_empty());
        assert_eq!(file_names(dir.path()), Vec::<String>::new());
        error
    };
    assert!(matches!(refused(&|s| s.name = "Upper".to_owned()), Error::Name { .. }));
    assert!(matches!(refused(&|s| s.version = "v1".to_owned()), Error::Version { .. }));
    assert!(matches!(refused(&|s| s.revision = "1-1".to_owned()), Error::Version { .. }));
    assert!(matches!(refused(&|s| s.version = "1".repeat(101)), Error::Version { .. }));
    for maintainer in ["me", "X <@>", "A <a@b.c> x <d@e>", "A <a b@c>"] {
        assert!(matches!(refused(&|s| s.maintainer = maintainer.to_owned()), Error::Field { .. }));
    }
    assert!(matches!(
        refused(&|s| s.homepage = "a\nEssential: yes".to_owned()),
        Error::Field { .. }
    ));
    assert!(matches!(refused(&|s| s.source_date_epoch = 1 << 32), Error::TimeStamp { .. }));
    assert!(matches!(refused(&|s| s.files.push(s.files[0].clone())), Error::PathClash { .. }));
    assert!(matches!(
        refused(&|s| s.files[0].path = format!("/usr/share/doc/{NAME}/copyright")),
        Error::PathClash { .. }
    ));
    let format = Format::Rpm { compression: Compression::Xz { level: 10 } };
    let written = format.write(&plain_spec(Vec::new()), dir.path(), 1, None);
    assert!(matches!(written, Err(Error::Level { .. })));
}

#[test]
fn specs_that_rpm_forbids_are_refused_with_a_hint() {
    let dir = temp();
    let refused = |change: &dyn Fn(&mut PackageSpec)| {
        let mut spec = plain_spec(Vec::new());
        change(&mut spec);
        let error = Format::RPM.write(&spec, dir.path(), 1, None).expect_err("illegal");
        assert!(error.to_string().starts_with("failed to "), "{error}");
        assert!(!error.hint().is_empty());
        assert_eq!(file_names(dir.path()), Vec::<String>::new());
        error
    };
    let error = refused(&|s| s.version = "1.0-rc1".to_owned());
    assert!(matches!(error, Error::Version { .. }) && error.hint().contains('-'), "{error}");
    assert!(matches!(refused(&|s| s.name = "a b".to_owned()), Error::Name { .. }));
    assert!(matches!(refused(&|s| s.license.clear()), Error::Field { .. }));
}
