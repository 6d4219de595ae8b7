//! What users say of packages that dpkg or rpm would not take is rejected.

use gfxpack_model::package::PackageSpec;
use gfxpack_package::{Compression, Format};

use crate::support::{NAME, file_names, plain_spec, temp};

#[test]
fn specs_that_policy_forbids_are_refused_with_a_hint() {
    let dir = temp();
    let refused = |change: &dyn Fn(&mut PackageSpec)| {
        let mut spec = plain_spec(Vec::new());
        change(&mut spec);
        let error = Format::DEB.write(&spec, dir.path(), 1, None).expect_err("illegal");
        assert!(error.hint().is_some());
        assert_eq!(file_names(dir.path()), Vec::<String>::new());
        error.to_string()
    };
    assert!(
        refused(&|s| s.name = "Upper".to_owned()).starts_with("failed to name a deb package `")
    );
    assert!(
        refused(&|s| s.version = "v1".to_owned()).starts_with("failed to give a deb package the ")
    );
    assert!(
        refused(&|s| s.revision = "1-1".to_owned())
            .starts_with("failed to give a deb package the ")
    );
    assert!(
        refused(&|s| s.version = "1".repeat(101)).starts_with("failed to give a deb package the ")
    );
    for maintainer in ["me", "X <@>", "A <a@b.c> x <d@e>", "A <a b@c>"] {
        assert!(
            refused(&|s| s.maintainer = maintainer.to_owned())
                .starts_with("failed to write the field ")
        );
    }
    assert!(
        refused(&|s| s.homepage = "a\nEssential: yes".to_owned())
            .starts_with("failed to write the field ")
    );
    assert!(
        refused(&|s| s.source_date_epoch = 1 << 32).starts_with("failed to write a time stamp: ")
    );
    assert!(refused(&|s| s.files.push(s.files[0].clone())).starts_with("failed to pack both `"));
    assert!(
        refused(&|s| s.files[0].path = format!("/usr/share/doc/{NAME}/copyright"))
            .starts_with("failed to pack both `")
    );
    let format = Format::Rpm { compression: Compression::Xz { level: 10 } };
    let written = format.write(&plain_spec(Vec::new()), dir.path(), 1, None);
    let error = written.expect_err("no such level").to_string();
    assert_eq!(error, "failed to compress with xz level `10`");
}

#[test]
fn specs_that_rpm_forbids_are_refused_with_a_hint() {
    let dir = temp();
    let refused = |change: &dyn Fn(&mut PackageSpec)| {
        let mut spec = plain_spec(Vec::new());
        change(&mut spec);
        let error = Format::RPM.write(&spec, dir.path(), 1, None).expect_err("illegal");
        assert!(error.hint().is_some());
        assert_eq!(file_names(dir.path()), Vec::<String>::new());
        error.to_string()
    };
    let version = refused(&|s| s.version = "1.0-rc1".to_owned());
    assert_eq!(version, "failed to give a rpm package the version `1.0-rc1`");
    assert!(refused(&|s| s.name = "a b".to_owned()).starts_with("failed to name a rpm package `"));
    assert!(refused(&|s| s.license.clear()).starts_with("failed to write the field "));
}
