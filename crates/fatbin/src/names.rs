//! Files that are named after the GPU that needs them.

use std::path::Path;

use gfxpack_model::{Target, TargetId, processors};

use crate::code::CodeTarget;

/// The ends of names of files that a library reads for one GPU alone: code objects, Tensile's
/// lists, kpack's archives, the databases and models of MIOpen, and AOTriton's code.
const ENDINGS: [&str; 10] =
    [".co", ".hsaco", ".dat", ".kpack", ".kdb", ".db", ".db.txt", ".fdb.txt", ".model", ".aks2"];

/// The target in a file's name, or in the name of a directory that it is in, if it is a file that
/// only GPUs of that target need.
pub(crate) fn named_target(path: &Path) -> Option<CodeTarget> {
    let name = path.file_name()?.to_str()?;
    if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    path.iter().rev().find_map(|part| target_in(part.to_str()?))
}

/// Whether no device of these targets needs the file, by its name.
pub fn is_for_others(path: &Path, targets: &[TargetId]) -> bool {
    named_target(path).is_some_and(|code| !targets.iter().any(|target| code.serves(target)))
}

/// The last target in a name.
fn target_in(name: &str) -> Option<CodeTarget> {
    let at = name.rfind("gfx")?;
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-:".contains(c);
    let rest = &name[at..];
    let mut word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
    loop {
        let processor = word.split([':', '-']).next().unwrap_or_default();
        let is_known = processors::by_name(processor).is_some() || word.contains("-generic");
        if let Some(target) = CodeTarget::parse(word).filter(|_| is_known) {
            return Some(target);
        }
        if let Some(target) = Target::from_database_name(word)
            && processors::by_name(target.id().processor()).is_some()
        {
            return CodeTarget::parse(&target.id().to_string());
        }
        word = &word[..word.rfind('-')?];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_gpu_that_needs_the_file() {
        let check = |path: &str, expected: Option<&str>| {
            let found = named_target(Path::new(path)).map(|target| target.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        check("library/Kernels.so-000-gfx90a-xnack+.hsaco", Some("gfx90a:xnack+"));
        check("library/TensileLibrary_lazy_gfx1100.dat", Some("gfx1100"));
        check("library/TensileLibrary_Type_HH_fallback_gfx906.hsaco", Some("gfx906"));
        check("library/TensileLibrary_Type_HH_fallback.dat", None);
        check("library/hipblasltTransform.hsaco", None);
        check("db/gfx90a68.kdb", Some("gfx90a"));
        check("db/gfx1030_36.HIP.fdb.txt", Some("gfx1030"));
        check("db/gfx120140.fdb.txt", Some("gfx1201"));
        check("db/gfx942130.db.txt", Some("gfx942"));
        check("kpack/blas-gfx9-4-generic.kpack", Some("gfx9-4-generic"));
        check("lib/amd-gfx90a/flash/attn.aks2", Some("gfx90a"));
        check("lib/gfx1100/readme.md", None);
        check("lib/libgfx1100.so", None);
        check("x/gfx9990.dat", None);
        check("x/gfxé.dat", None);
    }
}
