//! What users say of packages that dpkg or rpm would not take is rejected.

use gfxpack_model::package::PackageSpec;
use gfxpack_package::{Compression, Format};

use crate::support::{NAME, file_names, plain_spec, temp};

#[test]
fn specs_that_a_format_forbids_are_refused_with_a_hint() {
    let dir = temp();
    let refused = |format: Format, begin: &str, change: &dyn Fn(&mut PackageSpec)| {
        let mut spec = plain_spec(Vec::new());
        change(&mut spec);
        let error = format.write(&spec, dir.path(), 1, None).expect_err(begin);
        assert!(error.to_string().starts_with(begin), "{begin}: {error}");
        assert!(error.hint().is_some());
        assert_eq!(file_names(dir.path()), Vec::<String>::new());
    };
    let (deb, field) = (Format::DEB, "failed to write the field ");
    refused(deb, "failed to name a deb package `", &|s| s.name = "Upper".to_owned());
    let version = "failed to give a deb package the ";
    refused(deb, version, &|s| s.version = "v1".to_owned());
    refused(deb, version, &|s| s.revision = "1-1".to_owned());
    refused(deb, version, &|s| s.version = "1".repeat(101));
    for maintainer in ["me", "X <@>", "A <a@b.c> x <d@e>", "A <a b@c>"] {
        refused(deb, field, &|s| s.maintainer = maintainer.to_owned());
    }
    refused(deb, field, &|s| s.homepage = "a\nEssential: yes".to_owned());
    refused(deb, "failed to write a time stamp: ", &|s| s.source_date_epoch = 1 << 32);
    let both = "failed to pack both `";
    refused(deb, both, &|s| s.files.push(s.files[0].clone()));
    refused(deb, both, &|s| s.files[0].path = format!("/usr/share/doc/{NAME}/copyright"));
    let rpm = Format::RPM;
    let version = "failed to give a rpm package the version `1.0-rc1`";
    refused(rpm, version, &|s| s.version = "1.0-rc1".to_owned());
    refused(rpm, "failed to name a rpm package `", &|s| s.name = "a b".to_owned());
    refused(rpm, field, &|s| s.license.clear());
    let format = Format::Rpm { compression: Compression::Xz { level: 10 } };
    refused(format, "failed to compress with xz level `10`", &|_| ());
}
