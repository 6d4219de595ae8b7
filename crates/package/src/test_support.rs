//! A package spec for unit tests.

use gfxpack_model::package::{ChangelogEntry, PackageSpec};

/// A spec without files; tests set the fields that they are about.
pub(crate) fn empty_spec() -> PackageSpec {
    PackageSpec {
        name: "name".to_owned(),
        version: "1".to_owned(),
        revision: "1".to_owned(),
        summary: "Summary".to_owned(),
        license: "MIT".to_owned(),
        maintainer: "A <a@example.org>".to_owned(),
        section: "libs".to_owned(),
        copyright: "A\n".to_owned(),
        changelog: vec![ChangelogEntry {
            version: "1-1".to_owned(),
            date: 0,
            changes: vec!["First".to_owned()],
        }],
        ..PackageSpec::default()
    }
}
