//! The common part of all specs of a release.

use std::collections::BTreeSet;

use gfxpack_model::Target;
use gfxpack_model::package::{ChangelogEntry, PackageSpec};

use super::release::Release;

/// The common part of all specs of a release.
pub(super) fn base_spec(release: &Release, name: String, version: String) -> PackageSpec {
    let licenses: BTreeSet<&str> =
        release.licenses.iter().map(|(_, license)| license.license.as_str()).collect();
    PackageSpec {
        name,
        summary: String::new(),
        description: String::new(),
        license: conjunction(&licenses),
        homepage: release.homepage.clone(),
        maintainer: release.maintainer.clone(),
        section: "libs".to_owned(),
        relations: Vec::new(),
        deb_fields: Vec::new(),
        files: Vec::new(),
        copyright: super::copyright::copyright(release),
        changelog: vec![ChangelogEntry {
            version: format!("{version}-{}", release.revision),
            date: release.source_date_epoch,
            changes: vec![format!("{} {}, built from source.", release.library, release.version)],
        }],
        source_date_epoch: release.source_date_epoch,
        version,
        revision: release.revision.clone(),
    }
}

/// A summary line of the package of kernels for these GPUs; `kind` describes the package itself, or
/// is empty. If the line would be too long for a package, the library is left out, which the
/// package's name contains, and then the kind.
pub(super) fn summary(release: &Release, whose: &str, kind: &str) -> String {
    /// The limit of package formats.
    const COLUMNS: usize = 79;
    let full = format!("precompiled {} for {whose}{kind}", release.kernels());
    let short = format!("precompiled kernels for {whose}");
    let fits = |text: &String| text.chars().count() <= COLUMNS;
    [full, format!("{short}{kind}")].into_iter().find(fits).unwrap_or(short)
}

/// The target as text: `gfx90a with 104 compute units`.
pub(super) fn in_words(target: &Target) -> String {
    let xnack = if target.id().xnack() == Some(true) { " (XNACK on)" } else { "" };
    let count = target.compute_units();
    let count = count.map(|count| format!(" with {count} compute units")).unwrap_or_default();
    format!("{}{xnack}{count}", target.id().processor())
}

/// All licences apply, each to its own sources.
fn conjunction(licenses: &BTreeSet<&str>) -> String {
    match licenses.len() {
        1 => licenses.iter().copied().collect(),
        _ => {
            let parenthesised = licenses.iter().map(|license| {
                if license.contains(" OR ") {
                    format!("({license})")
                } else {
                    (*license).to_owned()
                }
            });
            parenthesised.collect::<Vec<_>>().join(" AND ")
        }
    }
}
