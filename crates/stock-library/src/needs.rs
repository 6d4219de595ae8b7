//! What a library needs from others, and what of it is stood in for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::elf::{ElfError, ElfFile, SharedObject};

/// Libraries of the GPU's side, by the beginning of their sonames: the probe
/// defines what libMIOpen calls of them.
pub(crate) const STOOD_IN: &[&str] = &[
    "libamd_comgr.so",
    "libamdhip64.so",
    "libhipblas.so",
    "libhipblaslt.so",
    "libhiprtc.so",
    "libhiprtc-builtins.so",
    "libhsa-runtime64.so",
    "libMLIRMIOpen.so",
    "librocblas.so",
    "librocprofiler-register.so",
    "librocprofiler-sdk-roctx.so",
    "librocrand.so",
    "libroctx64.so",
];

/// Where the loader of a system looks without being told.
///
/// Source: ld.so(8); `{}` is the triplet of Debian's multiarch directories.
const SYSTEM_DIRS: [&str; 6] =
    ["/lib/{}", "/usr/lib/{}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Whether a library, by its soname, is one that is stood in for.
#[must_use]
pub fn is_stood_in(soname: &str) -> bool {
    STOOD_IN.iter().any(|name| {
        soname.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// What a library needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Sonames of libraries that are stood in for, as it names them.
    pub stood_in: BTreeSet<String>,
    /// Sonames of other libraries, its own and theirs, that are not found.
    pub missing: BTreeSet<String>,
    /// Symbols that none of the libraries that were found defines: what the
    /// probe must define for it to be loaded at all.
    pub symbols: BTreeSet<String>,
}

impl Needs {
    /// What a file needs, a library or a program. `search_path` is looked into before
    /// the system's directories.
    ///
    /// # Errors
    /// [`ElfError`], for a file that cannot be read.
    pub fn of_file(file: &Path, search_path: &[PathBuf]) -> Result<Self, ElfError> {
        let mut needs = Self::default();
        let object = ElfFile::open(file)?.shared_object()?;
        let others = closure(
            &object,
            |object| dirs(object, search_path),
            |soname| {
                needs.missing.insert(soname.to_owned());
            },
        );
        needs.stood_in =
            object.needed.iter().filter(|soname| is_stood_in(soname)).cloned().collect();
        let supplied = |name: &str| others.iter().any(|(_, other)| other.defined.contains(name));
        let wanted = object.undefined.iter().filter(|symbol| !symbol.weak);
        let wanted = wanted.filter(|symbol| match &symbol.from {
            Some(soname) if is_stood_in(soname) => true,
            // The loader names a version that the library found does not have.
            Some(_) => false,
            None => !supplied(&symbol.name),
        });
        needs.symbols = wanted.map(|symbol| symbol.name.clone()).collect();
        Ok(needs)
    }
}

/// The file that the loader would take for a library that `object` needs.
pub(crate) fn file_of(
    object: &SharedObject,
    search_path: &[PathBuf],
    is_wanted: impl Fn(&str) -> bool,
) -> Option<PathBuf> {
    let soname = object.needed.iter().find(|soname| is_wanted(soname))?;
    dirs(object, search_path).into_iter().map(|dir| dir.join(soname)).find(|path| path.is_file())
}

/// Which of `dirs` the loader must be told, for files and what they need.
pub(crate) fn search_path(objects: &[SharedObject], dirs: &[PathBuf]) -> Vec<PathBuf> {
    let found = objects.iter().flat_map(|object| closure(object, |_| dirs.to_vec(), |_| ()));
    let found: Vec<_> = found.collect();
    let used: BTreeSet<&Path> = found.iter().filter_map(|(path, _)| path.parent()).collect();
    dirs.iter().filter(|dir| used.contains(dir.as_path())).cloned().collect()
}

/// The directories in which the loader looks for what `object` needs.
fn dirs(object: &SharedObject, search_path: &[PathBuf]) -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let system = SYSTEM_DIRS.iter().map(|dir| PathBuf::from(dir.replace("{}", &triplet)));
    search_path.iter().chain(&object.run_path).cloned().chain(system).collect()
}

/// All libraries that are needed and not stood in for, from `dirs`.
fn closure(
    object: &SharedObject,
    dirs: impl Fn(&SharedObject) -> Vec<PathBuf>,
    mut missing: impl FnMut(&str),
) -> Vec<(PathBuf, SharedObject)> {
    let mut found: Vec<(PathBuf, SharedObject)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = 0;
    let mut user = object.clone();
    loop {
        let places = dirs(&user);
        for soname in &user.needed {
            if is_stood_in(soname) || !seen.insert(soname.clone()) {
                continue;
            }
            let usable = |dir: &PathBuf| {
                let path = dir.join(soname);
                let other = ElfFile::open(&path).ok()?.shared_object().ok()?;
                (other.machine == user.machine).then_some((path, other))
            };
            match places.iter().find_map(usable) {
                Some(other) => found.push(other),
                None => missing(soname),
            }
        }
        let Some((_, other)) = found.get(next) else { return found };
        user = other.clone();
        next += 1;
    }
}

/// Whether a soname is that of an SQLite, AMD's own build of it included.
#[must_use]
pub fn is_sqlite(soname: &str) -> bool {
    soname.contains("sqlite3.so")
}

/// Libraries among these that a probe takes the place of: those of the GPU's
/// side, and SQLite.
pub(crate) fn stood_in(needed: &[String]) -> BTreeSet<String> {
    let stands_in = |soname: &&String| is_stood_in(soname) || is_sqlite(soname);
    needed.iter().filter(stands_in).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::is_stood_in;

    #[test]
    fn libraries_of_the_gpu_are_stood_in_for_in_any_version() {
        for name in ["libamdhip64.so.6", "libamdhip64.so.7", "librocblas.so.4", "libroctx64.so"] {
            assert!(is_stood_in(name), "{name}");
        }
        for name in ["libsqlite3.so.0", "libc.so.6", "librocblas.sole", "libhipblaslt_x.so"] {
            assert!(!is_stood_in(name), "{name}");
        }
    }
}
