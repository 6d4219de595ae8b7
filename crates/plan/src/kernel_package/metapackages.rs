//! Packages that contain nothing but depend on others: those without a ROCm version in the name,
//! and those of a family of devices.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use gfxpack_model::Target;
use gfxpack_model::package::{Content, PackageFile, PackageSpec, Relation, RelationKind};
use gfxpack_model::package_name::{self, expand};
use gfxpack_model::processors::{self, PROCESSORS};

use super::release::Release;
use super::{base_spec, hardware, in_words, names, summary};

/// A family of devices: the beginning of processor names, such as `gfx9`, or `all`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family(String);

impl Family {
    /// Whether the device belongs to it. `gfx9` has gfx906 and gfx90a, and
    /// not gfx1030: the last two characters of a name are minor and stepping.
    pub fn has(&self, target: &Target) -> bool {
        self.0 == "all" || belongs(target.id().processor(), &self.0)
    }
}

fn belongs(processor: &str, family: &str) -> bool {
    let major = &processor[..processor.len().saturating_sub(2)];
    processor.starts_with(family) && family.len() >= major.len()
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Family {
    type Err = String;

    /// Reads a family that has a device.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" || PROCESSORS.iter().any(|processor| belongs(processor.name, text)) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "no device is of the family `{text}`\nhint: write all, or how names of a family \
             begin, as gfx9, gfx10 or gfx103"
        ))
    }
}

/// The package without a ROCm version in its name, which depends on the one with it; `None` if the
/// layout has no version.
///
/// Its own version begins with ROCm's, so that an upgrade goes to the newest.
pub fn unversioned(release: &Release, target: &Target) -> Option<PackageSpec> {
    let rocm = release.layout.version()?;
    let name = package_name::for_target(&release.name_template, target);
    let mut spec = base_spec(release, name.clone(), format!("{rocm}+{}", release.version));
    let aliases = hardware::wanted(release.consumer, target);
    spec.summary = summary(release, &in_words(target), " (metapackage)");
    spec.description = format!(
        "This metapackage depends on the kernels for the newest version of ROCm that they are \
         packaged for, which is ROCm {rocm}."
    );
    spec.section = "metapackages".to_owned();
    spec.relations = vec![depends(release, release.package_name(target))];
    let version = format!("{}-{}", spec.version, spec.revision);
    let gfx = target.package_suffix();
    let layout = &release.layout;
    spec.relations.extend(names::instead_of(release.consumer, layout, &name, &version, &gfx, ""));
    spec.relations.extend(hardware::supplements(release.consumer, &aliases));
    spec.deb_fields = hardware::deb_fields([target.id().processor()], &aliases);
    spec.files.extend(hardware::metainfo(&spec, &aliases));
    Some(spec)
}

/// The package that depends on one package for each device of the family: that for exactly its
/// compute units if it is among the targets, else the device-wide one. `None` if no target belongs
/// to the family.
pub fn family(release: &Release, family: &Family, targets: &[Target]) -> Option<PackageSpec> {
    let mut members = members(family, targets)?;
    let all = members.clone();
    members.retain(|target| is_opened(target, &all));
    let mut spec = family_base(release, family, " (metapackage)");
    spec.description = format!(
        "This metapackage depends on the kernels for these devices: {}.",
        devices(&members)
    );
    spec.section = "metapackages".to_owned();
    let mut names: Vec<String> =
        members.iter().map(|target| release.package_name(target)).collect();
    names.sort();
    spec.relations = names.into_iter().map(|name| depends(release, name)).collect();
    spec.deb_fields =
        hardware::deb_fields(members.iter().map(|target| target.id().processor()), &[]);
    Some(spec)
}

/// The package with the one file that serves all devices of the family, for a library that reads
/// one file: packages for single devices exclude each other. `file` contains the kernels of all
/// members. `None` if no target belongs to the family.
pub fn merged(
    release: &Release,
    family: &Family,
    targets: &[Target],
    file: &Path,
) -> Option<PackageSpec> {
    let members = members(family, targets)?;
    let first = members[0];
    let mut spec = family_base(release, family, "");
    let dir = release.kdb_dir();
    spec.description = format!(
        "This package installs the kernels for these devices in {dir}: {}. They are in one file, \
         since this version of {} reads one for all GPUs.",
        devices(&members),
        release.consumer.properties().name
    );
    let mut aliases: Vec<String> =
        members.iter().flat_map(|target| hardware::modaliases(target)).collect();
    aliases.sort();
    aliases.dedup();
    spec.relations = names::relations(release, first);
    spec.relations.extend(hardware::supplements(release.consumer, &aliases));
    let processors = members.iter().map(|target| target.id().processor());
    spec.deb_fields = hardware::deb_fields(processors, &aliases);
    let path = format!("{dir}/{}", release.installed_name(first));
    spec.files.push(PackageFile::readable(path, Content::File(file.to_owned())));
    spec.files.extend(hardware::metainfo(&spec, &aliases));
    Some(spec)
}

/// The targets of the family, if there are any.
fn members<'a>(family: &Family, targets: &'a [Target]) -> Option<Vec<&'a Target>> {
    let members: Vec<&Target> = targets.iter().filter(|target| family.has(target)).collect();
    (!members.is_empty()).then_some(members)
}

/// The common part of the specs of a family; `kind` as for [`summary`].
fn family_base(release: &Release, family: &Family, kind: &str) -> PackageSpec {
    let rocm = release.layout.version().unwrap_or_default();
    let name = expand(&release.name_template, &family.0, rocm);
    let mut spec = base_spec(release, name, release.version.clone());
    let whose = if family.0 == "all" { "all GPUs".to_owned() } else { format!("{family} GPUs") };
    spec.summary = summary(release, &whose, kind);
    spec
}

/// The members in words, in an order that no command line decides.
fn devices(members: &[&Target]) -> String {
    let mut words: Vec<String> = members.iter().map(|target| in_words(target)).collect();
    words.sort();
    words.join(", ")
}

/// Whether any device opens this target's kdb if all of these are installed. No device opens a
/// device-wide one if there is an exact one for every count of compute units that its devices, or
/// parts of them, are known to have.
fn is_opened(target: &Target, all: &[&Target]) -> bool {
    let counts: Vec<u32> = processors::by_name(target.id().processor())
        .map(|processor| [processor.compute_units, processor.partitions()].concat())
        .unwrap_or_default();
    let has_own = |count: &u32| {
        let exact = Target::new(target.id().clone(), Some(*count)).kdb_file_name();
        all.iter().any(|other| other.kdb_file_name() == exact)
    };
    target.compute_units().is_some() || counts.is_empty() || !counts.iter().all(has_own)
}

fn depends(release: &Release, name: String) -> Relation {
    let version = Some(("=".to_owned(), release.full_version()));
    Relation { kind: RelationKind::Depends, name, version }
}

#[cfg(test)]
mod tests {
    use super::super::tests::release;
    use gfxpack_model::InstallLayout;

    use super::super::{KdbToPackage, spec};
    use super::*;

    fn targets(names: &[&str]) -> Vec<Target> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_family_is_a_beginning_of_processor_names() {
        let check = |family: &str, target: &str, expected: bool| {
            let family: Family = family.parse().unwrap();
            assert_eq!(family.has(&target.parse().unwrap()), expected, "{family} {target}");
        };
        check("gfx9", "gfx90a@104", true);
        check("gfx9", "gfx906", true);
        check("gfx10", "gfx1030", true);
        check("gfx103", "gfx1031", true);
        check("gfx103", "gfx1010", false);
        check("all", "gfx1201", true);
        for wrong in ["", "gfx", "gfx1", "gfx99", "GFX9", "gfx90x"] {
            assert!(wrong.parse::<Family>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_family_depends_on_one_package_for_each_device() {
        let of = |name: &str, members: &[&str]| {
            family(&release(&[]), &name.parse().unwrap(), &targets(members))
        };
        assert_eq!(of("gfx11", &["gfx1030"]), None);
        let check = |members: &[&str], expected: &[&str]| {
            let family = of("gfx9", members).unwrap();
            assert_eq!(family.name, "miopen-hip-gfx9kdb6.4.1");
            let names: Vec<&str> = family.relations.iter().map(|r| r.name.as_str()).collect();
            let expected: Vec<String> =
                expected.iter().map(|gfx| format!("miopen-hip-{gfx}kdb6.4.1")).collect();
            assert_eq!(names, expected, "{members:?}");
        };
        check(&["gfx1030", "gfx90a@104", "gfx906"], &["gfx906", "gfx90a-104"]);
        // It has 60 or 64 compute units, and no other count.
        check(&["gfx906", "gfx906_60", "gfx906_64"], &["gfx906-60", "gfx906-64"]);
        check(&["gfx906", "gfx906_60"], &["gfx906-60", "gfx906"]);
        // Parts of one in the modes DPX, QPX and CPX have other counts than the whole device.
        check(
            &["gfx942", "gfx942@80", "gfx942@228", "gfx942@304"],
            &["gfx942-228", "gfx942-304", "gfx942-80", "gfx942"],
        );
        check(
            &["gfx906:xnack+", "gfx906_60", "gfx906_64"],
            &["gfx906-60", "gfx906-64", "gfx906-xnack"],
        );
    }

    #[test]
    fn devices_are_claimed_once_and_by_the_unversioned_package() {
        let mut release = release(&[("a.cl", "MIT")]);
        let contents = KdbToPackage {
            target: "gfx90a".parse().unwrap(),
            kdb: "x".into(),
            kernels: 1,
            missing: 0,
            compiler: String::new(),
            tuning: Vec::new(),
        };
        let claims = |spec: &PackageSpec| {
            spec.relations.iter().filter(|r| r.kind == RelationKind::Supplements).count()
        };
        let meta = unversioned(&release, &contents.target).unwrap();
        assert_eq!(
            (meta.name.as_str(), meta.version.as_str()),
            ("miopen-hip-gfx90akdb", "6.4.1+1.0.0")
        );
        assert_eq!((claims(&meta), claims(&spec(&release, &contents))), (8, 0));
        release.layout = InstallLayout::Fhs;
        assert_eq!(unversioned(&release, &contents.target), None);
        assert_eq!(claims(&spec(&release, &contents)), 8);
    }
}
