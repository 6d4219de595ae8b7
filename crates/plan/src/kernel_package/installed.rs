//! Declarations of a package of kernels that was made by a maintainer's own recipe, not by gfxpack.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_model::package::Relation;
use gfxpack_model::{InstallLayout, Target};

use super::{hardware, names};
use crate::consumer::{Consumer, ConsumerProperties};

/// The declarations of a package about its kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statements {
    /// Relations to other packages.
    pub relations: Vec<Relation>,
    /// Fields of a .deb's control file.
    pub deb_fields: Vec<(String, String)>,
}

/// The declarations of the package `name` that installs these files: the same as those of gfxpack's
/// own packages, as far as file names show. They do not show which version of rocFFT finds the
/// kernels, nor which GPUs are in the single file of a rocFFT that has no file for each. Files
/// without kernels are ignored, and a package with no others has no declarations.
///
/// `paths` are absolute, as on the machine where they are installed; `version` is that of the
/// package, with its revision.
pub fn statements(paths: &[&str], name: &str, version: &str) -> Statements {
    let mut relations: Vec<Relation> = Vec::new();
    let (mut processors, mut aliases) = (BTreeSet::new(), Vec::new());
    for path in paths {
        let Some((consumer, layout, target)) = kernels(path) else { continue };
        let mut of_file = names::with_consumer(consumer, &layout, name, version, &target);
        let claimed = hardware::claimed(&layout, consumer, &target);
        of_file.extend(hardware::supplements(consumer, &claimed));
        if paths.iter().any(|other| has_tuning_beside(path, other)) {
            of_file.extend(names::over_databases(&layout, consumer));
        }
        for relation in of_file {
            if !relations.contains(&relation) {
                relations.push(relation);
            }
        }
        processors.insert(target.id().processor().to_owned());
        aliases.extend(claimed);
    }
    if processors.is_empty() {
        return Statements::default();
    }
    aliases.sort();
    aliases.dedup();
    let processors = processors.iter().map(String::as_str);
    Statements { relations, deb_fields: hardware::deb_fields(processors, &aliases) }
}

/// The consumer of the file, its layout, and its devices; `None` if it contains no kernels.
fn kernels(path: &str) -> Option<(Consumer, InstallLayout, Target)> {
    let (dir, file) = path.rsplit_once('/')?;
    Consumer::ALL.into_iter().find_map(|consumer| {
        let ConsumerProperties { format, layout, .. } = consumer.properties();
        let target = format.target_of(Path::new(file)).ok()??;
        (format.file_name(&target) == file).then_some((consumer, layout(dir)?, target))
    })
}

/// Whether the other file is one of MIOpen's performance and find databases in a kdb's directory.
fn has_tuning_beside(kdb: &str, other: &str) -> bool {
    let in_same = kdb.rsplit_once('/').zip(other.rsplit_once('/'));
    in_same.is_some_and(|((dir, _), (other_dir, file))| {
        dir == other_dir && (file.ends_with("db.txt") || file.ends_with(".db"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{contents, release};
    use super::super::{KdbToPackage, spec};
    use super::*;

    /// A recipe's package has the same declarations as gfxpack's own.
    #[test]
    fn a_recipes_package_declares_the_same_as_gfxpacks() {
        for (layout, target) in [
            (InstallLayout::Debian, "gfx1030"),
            (InstallLayout::Fhs, "gfx90a@104"),
            (InstallLayout::Rocm { version: None }, "gfx906@60"),
            (InstallLayout::Rocm { version: Some("6.4.1".to_owned()) }, "gfx942"),
            (InstallLayout::TheRock { version: "7.11".to_owned() }, "gfx90a:xnack+@104"),
        ] {
            let mut release = release(&[]);
            release.layout = layout;
            for tuning in [vec![], vec![("gfx906_60.HIP.fdb.txt".to_owned(), "y".into())]] {
                let spec = spec(&release, &KdbToPackage { tuning, ..contents(target) });
                let paths: Vec<&str> = spec.files.iter().map(|file| file.path.as_str()).collect();
                let found = statements(&paths, &spec.name, "1.0.0-1");
                assert_eq!(found.relations, spec.relations, "{target}");
                assert_eq!(found.deb_fields, spec.deb_fields, "{target}");
            }
        }
        let mut release = release(&[]);
        release.consumer = Consumer::Rocfft;
        release.name_template = Consumer::Rocfft.default_name_template("");
        for layout in
            [InstallLayout::Debian, InstallLayout::Rocm { version: Some("6.4.1".to_owned()) }]
        {
            release.layout = layout;
            let spec = spec(&release, &contents("gfx1100"));
            let found = statements(&[&spec.files[0].path], &spec.name, "1.0.0-1");
            assert_eq!((found.relations, found.deb_fields), (spec.relations, spec.deb_fields));
        }
    }

    #[test]
    fn a_package_of_several_devices_repeats_no_declaration() {
        let files = ["/usr/share/miopen/db/gfx1030.kdb", "/usr/share/miopen/db/gfx942.kdb"];
        let found = statements(&files, "kernels", "1-1");
        assert_eq!(found.deb_fields[0].1, "gfx1030, gfx942");
        let enhanced = found.relations.iter().filter(|relation| relation.name == "miopen-hip");
        assert_eq!(enhanced.count(), 1);
        let provided = found.relations.iter().filter(|relation| relation.name.ends_with("kdb"));
        assert_eq!(provided.count(), 4);
    }

    #[test]
    fn other_files_are_ignored() {
        for path in ["/usr/bin/x", "/usr/share/miopen/db/x.kdb", "gfx906.kdb", "/a/gfx906_60.db"] {
            assert_eq!(statements(&[path], "kernels", "1-1"), Statements::default(), "{path}");
        }
    }
}
