//! The packages of kdbs: their names, the installed paths, their relations to other packages, and
//! their descriptions.

mod copyright;
mod hardware;
mod installed;
mod metapackages;
mod names;
mod release;

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_model::package::{ChangelogEntry, Content, PackageFile, PackageSpec};
use gfxpack_model::{InstallLayout, Target, processors};

use crate::consumer::named;

pub use self::release::{Release, SourceLicense};
pub use hardware::{escaped, modaliases};
pub use installed::{Statements, statements};
pub use metapackages::{Family, family, merged, unversioned};

/// One kdb to package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KdbToPackage {
    /// The devices that it serves.
    pub target: Target,
    /// The kdb on this machine.
    pub kdb: PathBuf,
    /// The number of kernels in it.
    pub kernels: u64,
    /// The number of kernels that are missing because they could not be compiled.
    pub missing: u64,
    /// The compiler, as text; empty if not known.
    pub compiler: String,
    /// MIOpen's performance and find databases to install beside the kdb: file names, and the files
    /// on this machine.
    pub tuning: Vec<(String, PathBuf)>,
}

/// The spec of a kdb's package.
///
/// If packages for several ROCm versions can be installed side by side, it claims no devices, since
/// a package manager that selects by hardware would install all of them: [`unversioned`] claims
/// them.
pub fn spec(release: &Release, contents: &KdbToPackage) -> PackageSpec {
    let target = &contents.target;
    let dir = release.kdb_dir();
    let aliases = hardware::claimed(&release.layout, release.consumer, target);
    let place = match release.layout {
        InstallLayout::Python => "a Python package of its own".to_owned(),
        _ => dir.clone(),
    };
    let mut spec = base_spec(release, release.package_name(target), release.version.clone());
    spec.summary = summary(release, &in_words(target), "");
    spec.description = description(release, contents, &place);
    spec.relations = names::relations(release, target);
    spec.relations.extend(hardware::supplements(release.consumer, &aliases));
    spec.deb_fields = hardware::deb_fields([target.id().processor()], &aliases);
    let kdb = (release.installed_name(target), contents.kdb.clone());
    let files = [kdb].into_iter().chain(contents.tuning.iter().cloned());
    spec.files.extend(
        files.map(|(name, file)| {
            PackageFile::readable(format!("{dir}/{name}"), Content::File(file))
        }),
    );
    if !contents.tuning.is_empty() {
        spec.relations.extend(names::over_databases(&release.layout, release.consumer));
    }
    spec.files.extend(hardware::metainfo(&spec, &aliases));
    spec
}

/// The spec of a kdb's wheel, with paths below the Python package; `None` for kernels that nothing
/// looks for there.
pub fn wheel_spec(release: &Release, contents: &KdbToPackage) -> Option<PackageSpec> {
    if !release.consumer.properties().supports_wheels {
        return None;
    }
    let release = Release { layout: InstallLayout::Python, ..release.clone() };
    let mut spec = spec(&release, contents);
    as_package(&mut spec);
    Some(spec)
}

fn description(release: &Release, contents: &KdbToPackage, place: &str) -> String {
    let target = &contents.target;
    let products = processors::by_name(target.id().processor())
        .filter(|processor| !processor.products.is_empty())
        .map(|processor| {
            // It is not known which of the products have how many compute units.
            let these = match target.compute_units() {
                Some(_) if processor.compute_units.len() > 1 => {
                    format!("GPUs of type {}, with various numbers of them,", processor.name)
                }
                _ => "These".to_owned(),
            };
            format!(" {these} are, among others: {}.", processor.products.join(", "))
        })
        .unwrap_or_default();
    let consumer = release.consumer.properties();
    let why = named(consumer.purpose, &release.library);
    let mut paragraphs = vec![format!(
        "{why} This package installs {} kernels for GPUs of type {} in {place}.{products}",
        contents.kernels,
        in_words(target)
    )];
    if !contents.compiler.is_empty() {
        paragraphs
            .push(format!("The kernels were compiled from source with {}.", contents.compiler));
    }
    if !contents.tuning.is_empty() {
        let names: Vec<&str> = contents.tuning.iter().map(|(name, _)| name.as_str()).collect();
        paragraphs.push(format!(
            "It also installs how to run them best, as measured on such GPUs: {}.",
            names.join(", ")
        ));
    }
    if contents.missing > 0 {
        paragraphs.push(format!(
            "Incomplete: {} could not be compiled, {}.",
            if contents.missing == 1 {
                "1 kernel".to_owned()
            } else {
                format!("{} kernels", contents.missing)
            },
            consumer.missing
        ));
    }
    if !release.description.is_empty() {
        paragraphs.push(release.description.clone());
    }
    paragraphs.join("\n\n")
}

/// The common part of all specs of a release.
fn base_spec(release: &Release, name: String, version: String) -> PackageSpec {
    let licenses: BTreeSet<&str> =
        release.licenses.iter().map(|(_, license)| license.license.as_str()).collect();
    PackageSpec {
        name,
        license: conjunction(&licenses),
        homepage: release.homepage.clone(),
        maintainer: release.maintainer.clone(),
        section: "libs".to_owned(),
        copyright: copyright::copyright(release),
        changelog: vec![ChangelogEntry {
            version: format!("{version}-{}", release.revision),
            date: release.source_date_epoch,
            changes: vec![format!("{} {}, built from source.", release.library, release.version)],
        }],
        source_date_epoch: release.source_date_epoch,
        version,
        revision: release.revision.clone(),
        ..PackageSpec::default()
    }
}

/// A summary line of the package of kernels for these GPUs; `kind` describes the package itself, or
/// is empty. If the line would be too long for a package, the library is left out, which the
/// package's name contains, and then the kind.
fn summary(release: &Release, whose: &str, kind: &str) -> String {
    /// The limit of package formats.
    const COLUMNS: usize = 79;
    let full = format!("precompiled {} for {whose}{kind}", release.kernels());
    let short = format!("precompiled kernels for {whose}");
    let fits = |text: &String| text.chars().count() <= COLUMNS;
    [full, format!("{short}{kind}")].into_iter().find(fits).unwrap_or(short)
}

/// The target as text: `gfx90a with 104 compute units`.
fn in_words(target: &Target) -> String {
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

/// The modules of a Python package.
const MODULES: [(&str, &str); 4] = [
    ("/__init__.py", include_str!("kernel_package/python/__init__.py")),
    ("/__main__.py", include_str!("kernel_package/python/__main__.py")),
    ("/_databases.py", include_str!("kernel_package/python/_databases.py")),
    ("/_start.py", include_str!("kernel_package/python/_start.py")),
];

/// Makes a Python package, for the MIOpen of torch, from a spec whose paths are below one.
fn as_package(spec: &mut PackageSpec) {
    // These name packages of the system.
    spec.relations.clear();
    spec.deb_fields.clear();
    spec.description.push_str(
        "\n\nWhen a program imports a ROCm build of torch, MIOPEN_SYSTEM_DB_PATH is set to a \
         directory in the user's cache with links to these kernels and to torch's own databases, \
         unless it is set already. No file of torch is changed.",
    );
    spec.files.extend(
        MODULES.map(|(path, text)| PackageFile::readable(path, Content::Bytes(text.into()))),
    );
}

#[cfg(test)]
mod tests {
    use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;

    use super::*;
    use crate::consumer::Consumer;

    pub(super) fn release(licenses: &[(&str, &str)]) -> Release {
        Release {
            library: "kernels".to_owned(),
            description: "More.".to_owned(),
            homepage: String::new(),
            version: "1.0.0".to_owned(),
            revision: "1".to_owned(),
            maintainer: "A <a@example.org>".to_owned(),
            licenses: licenses
                .iter()
                .map(|(source, license)| {
                    let copyright = format!("{source}'s author");
                    (
                        (*source).to_owned(),
                        SourceLicense { license: (*license).to_owned(), copyright },
                    )
                })
                .collect(),
            layout: InstallLayout::Rocm { version: Some("6.4.1".to_owned()) },
            consumer: Consumer::Miopen,
            shares_file: false,
            exact_package: None,
            name_template: DEFAULT_NAME_TEMPLATE.to_owned(),
            source_date_epoch: 0,
        }
    }

    pub(super) fn contents(target: &str) -> KdbToPackage {
        KdbToPackage {
            target: target.parse().unwrap(),
            kdb: "x".into(),
            kernels: 3,
            missing: 0,
            compiler: "clang 15".to_owned(),
            tuning: Vec::new(),
        }
    }

    #[test]
    fn the_package_has_its_name_and_the_kdb() {
        let spec = spec(&release(&[("a.cl", "MIT")]), &contents("gfx90a:xnack+@104"));
        assert_eq!(spec.name, "miopen-hip-gfx90a-xnack-104kdb6.4.1");
        assert_eq!(spec.files[0].path, "/opt/rocm-6.4.1/share/miopen/db/gfx90a_xnack68.kdb");
        assert_eq!(
            spec.summary,
            "precompiled MIOpen kernels for gfx90a (XNACK on) with 104 compute units"
        );
        assert_eq!(spec.license, "MIT");
    }

    #[test]
    fn products_with_other_compute_units_are_not_claimed() {
        let text = |target: &str| spec(&release(&[("a.cl", "MIT")]), &contents(target)).description;
        let sixty = text("gfx906@60");
        assert!(
            sixty.contains(". GPUs of type gfx906, with various numbers of them, are"),
            "{sixty}"
        );
        for all in [text("gfx906"), text("gfx908@120")] {
            assert!(all.contains(". These are, among others: "), "{all}");
        }
    }

    #[test]
    fn packages_of_programs_kernels_differ_from_miopens() {
        let mut release = release(&[("a.cl", "MIT")]);
        release.layout = InstallLayout::Fhs;
        release.consumer = Consumer::Runtime;
        release.library = "our-kernels".to_owned();
        release.name_template = Consumer::Runtime.default_name_template("our-kernels");
        let spec = spec(&release, &contents("gfx1030"));
        assert_eq!(spec.name, "our-kernels-gfx1030");
        let paths: Vec<&str> = spec.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["/usr/share/our-kernels/db/gfx1030.kdb"]);
        assert_eq!(spec.relations, []);
        assert_eq!(spec.summary, "precompiled kernels of our-kernels for gfx1030");
        release.library = "kernels-of-a-library-with-quite-a-long-name".to_owned();
        let target = "gfx90a:xnack+@104".parse().unwrap();
        let short = "precompiled kernels for gfx90a (XNACK on) with 104 compute units";
        assert_eq!(super::spec(&release, &contents("gfx90a:xnack+@104")).summary, short);
        release.layout = InstallLayout::Rocm { version: Some("6.4.1".to_owned()) };
        let meta = unversioned(&release, &target).unwrap();
        assert_eq!(meta.summary, format!("{short} (metapackage)"));
        assert!(!spec.description.contains("MIOpen"), "{}", spec.description);
    }

    #[test]
    fn databases_are_installed_beside_the_kdb() {
        let mut contents = contents("gfx90a@104");
        contents.tuning = vec![("gfx90a68.HIP.fdb.txt".to_owned(), "y".into())];
        let spec = spec(&release(&[]), &contents);
        let paths: Vec<&str> = spec.files.iter().map(|file| file.path.as_str()).collect();
        let dir = "/opt/rocm-6.4.1/share/miopen/db";
        let names = ["gfx90a68.kdb", "gfx90a68.HIP.fdb.txt"];
        assert_eq!(paths[..2], names.map(|name| format!("{dir}/{name}")));
        assert!(spec.description.contains("gfx90a68.HIP.fdb.txt"), "{}", spec.description);
        let replaced: Vec<&str> = spec
            .relations
            .iter()
            .filter(|relation| relation.kind == gfxpack_model::package::RelationKind::Replaces)
            .map(|relation| relation.name.as_str())
            .collect();
        assert!(replaced.contains(&"miopen-hip6.4.1"), "{replaced:?}");
    }

    #[test]
    fn the_package_has_the_licences_of_all_sources() {
        let release = release(&[("a.cl", "MIT OR Apache-2.0"), ("b.s", "BSD-3-Clause")]);
        let spec = spec(&release, &contents("gfx1030"));
        assert_eq!(spec.license, "BSD-3-Clause AND (MIT OR Apache-2.0)");
    }
}
