//! The names of packages of kernels, and their relations to AMD's, whose names changed in nearly
//! every release.

use gfxpack_model::package::{Relation, RelationKind};
use gfxpack_model::package_name::expand;
use gfxpack_model::{InstallLayout, Target};

use super::release::Release;
use crate::consumer::Consumer;

impl Release {
    /// The name of the package with a target's kdb. It contains the ROCm version if the directory
    /// does.
    pub fn package_name(&self, target: &Target) -> String {
        let version = self.layout.version().unwrap_or_default();
        expand(&self.name_template, &target.package_suffix(), version)
    }

    /// The version of the packages, in the form that relations use.
    pub(super) fn full_version(&self) -> String {
        format!("{}-{}", self.version, self.revision)
    }
}

fn any(kind: RelationKind, name: &str) -> Relation {
    Relation { kind, name: name.to_owned(), version: None }
}

fn bounded(kind: RelationKind, name: &str, operator: &str, version: &str) -> Relation {
    let version = Some((operator.to_owned(), version.to_owned()));
    Relation { kind, name: name.to_owned(), version }
}

/// Relations of a kdb's package: the packages that it is for, and those of AMD that it replaces.
///
/// AMD's package of the same file can't be installed beside this one. Whichever is installed later
/// replaces the other: by `Conflicts` with `Replaces` for apt, by `Obsoletes` for dnf. The latter
/// applies to older versions only, since otherwise AMD's could never be installed again.
///
/// Source: Debian Policy 4.7.0, 7.6.2; Fedora Packaging Guidelines, "Renaming
/// or replacing existing packages".
pub(super) fn relations(release: &Release, target: &Target) -> Vec<Relation> {
    let own = release.package_name(target);
    let version = release.full_version();
    let mut relations = with_consumer(release.consumer, &release.layout, &own, &version, target);
    if let Some((package, of)) = &release.exact_package {
        relations = vec![bounded(RelationKind::Enhances, package, "=", of)];
    }
    // If all of them install one file, only one can be installed at a time.
    let shared = release.consumer.properties().shared_package;
    if let Some(shared) = shared.filter(|_| release.shares_file) {
        relations.push(bounded(RelationKind::Provides, shared, "=", &version));
        relations.push(any(RelationKind::Conflicts, shared));
        relations.push(any(RelationKind::Replaces, shared));
    }
    relations
}

/// Relations of the package `own` with a target's kernels to the packages of its consumer, and to
/// AMD's packages of the same file.
pub(super) fn with_consumer(
    consumer: Consumer,
    layout: &InstallLayout,
    own: &str,
    version: &str,
    target: &Target,
) -> Vec<Relation> {
    let rocm = layout.version().unwrap_or_default();
    let properties = consumer.properties();
    let mut relations: Vec<Relation> =
        properties.packages.iter().map(|package| any(RelationKind::Enhances, package)).collect();
    if let Some(package) = properties.amds_package
        && !rocm.is_empty()
        && layout.is_amds()
    {
        relations.push(any(RelationKind::Enhances, &format!("{package}{rocm}")));
    }
    relations.extend(instead_of(consumer, layout, own, version, &target.package_suffix(), rocm));
    relations
}

/// Relations of a package that also contains tuning databases, which AMD's own package of MIOpen
/// contains for some devices: this package's files win. Only Debian knows such a relation.
///
/// Source: Debian Policy 4.7.0, 7.6.1.
pub(super) fn over_databases(layout: &InstallLayout, consumer: Consumer) -> Option<Relation> {
    let package = consumer.properties().amds_package.filter(|_| layout.is_amds())?;
    let rocm = layout.version().unwrap_or_default();
    Some(any(RelationKind::Replaces, &format!("{package}{rocm}")))
}

/// Relations of the package `own` to AMD's packages for `gfx` and `rocm`.
pub(super) fn instead_of(
    consumer: Consumer,
    layout: &InstallLayout,
    own: &str,
    version: &str,
    gfx: &str,
    rocm: &str,
) -> Vec<Relation> {
    let mut relations = Vec::new();
    for template in consumer.properties().amds_templates {
        let theirs = expand(template, gfx, rocm);
        if theirs == own {
            continue;
        }
        relations.push(bounded(RelationKind::Provides, &theirs, "=", version));
        if layout.is_amds() {
            relations.push(any(RelationKind::Conflicts, &theirs));
            relations.push(any(RelationKind::Replaces, &theirs));
            relations.push(bounded(RelationKind::Obsoletes, &theirs, "<<", version));
        }
    }
    relations
}

#[cfg(test)]
mod tests {
    use super::super::tests::release;
    use super::*;

    fn texts(relations: &[Relation]) -> Vec<String> {
        let one = |relation: &Relation| {
            let bound = relation.version.as_ref();
            let bound = bound.map(|(op, v)| format!(" ({op} {v})")).unwrap_or_default();
            format!("{:?}: {}{bound}", relation.kind, relation.name)
        };
        relations.iter().map(one).collect()
    }

    #[test]
    fn amds_packages_of_the_same_file_are_replaced() {
        let target: Target = "gfx90a@110".parse().unwrap();
        let mut release = release(&[]);
        let readers = |more: &[&str]| {
            let mut all: Vec<String> = Consumer::Miopen
                .properties()
                .packages
                .iter()
                .map(|r| format!("Enhances: {r}"))
                .collect();
            all.extend(more.iter().map(|relation| (*relation).to_owned()));
            all
        };
        assert_eq!(
            texts(&relations(&release, &target)),
            readers(&[
                "Enhances: miopen-hip6.4.1",
                "Provides: miopenkernels-gfx90a-110kdb6.4.1 (= 1.0.0-1)",
                "Conflicts: miopenkernels-gfx90a-110kdb6.4.1",
                "Replaces: miopenkernels-gfx90a-110kdb6.4.1",
                "Obsoletes: miopenkernels-gfx90a-110kdb6.4.1 (<< 1.0.0-1)",
            ])
        );
        release.layout = InstallLayout::Fhs;
        release.name_template = "kernels-{gfx}".to_owned();
        assert_eq!(
            texts(&relations(&release, &target)),
            readers(&[
                "Provides: miopenkernels-gfx90a-110kdb (= 1.0.0-1)",
                "Provides: miopen-hip-gfx90a-110kdb (= 1.0.0-1)",
            ])
        );
    }
}
