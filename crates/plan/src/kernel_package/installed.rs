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
#[must_use]
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
