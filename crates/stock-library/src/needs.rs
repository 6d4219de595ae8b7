//! The libraries and symbols that a library needs, and those with a stand-in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::Result;

use crate::elf::{ElfFile, SharedObject};
use crate::tree;

/// Libraries of the GPU with a stand-in, by the beginning of their sonames: the probe defines the
/// functions that libMIOpen calls.
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

/// The directories in which the system's loader searches by default.
///
/// Source: ld.so(8); `{}` is the triplet of Debian's multiarch directories.
const SYSTEM_DIRS: [&str; 6] =
    ["/lib/{}", "/usr/lib/{}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Whether the library with this soname has a stand-in.
pub fn is_stood_in(soname: &str) -> bool {
    STOOD_IN.iter().any(|name| {
        soname.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The needs of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Sonames of libraries with a stand-in, as the library names them.
    pub stood_in: BTreeSet<String>,
    /// Sonames of other libraries, needed by it or by its libraries, that are not found.
    pub missing: BTreeSet<String>,
    /// Symbols that none of the found libraries defines. The probe must define them so that the
    /// library can be loaded.
    pub symbols: BTreeSet<String>,
}

impl Needs {
    /// The needs of a file, a library or a program. `search_path` is searched before the system's
    /// directories.
    pub fn of_file(file: &Path, search_path: &[PathBuf]) -> Result<Self> {
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
            // The symbol names a library version that the found library does not have.
            Some(_) => false,
            None => !supplied(&symbol.name),
        });
        needs.symbols = wanted.map(|symbol| symbol.name.clone()).collect();
        Ok(needs)
    }
}

/// The file that the loader would use for a library that `object` needs.
pub(crate) fn file_of(
    object: &SharedObject,
    search_path: &[PathBuf],
    is_wanted: impl Fn(&str) -> bool,
) -> Option<PathBuf> {
    let soname = object.needed.iter().find(|soname| is_wanted(soname))?;
    dirs(object, search_path).into_iter().map(|dir| dir.join(soname)).find(|path| path.is_file())
}

/// The directories among `dirs` that the loader needs as a search path, for these files and their
/// libraries.
pub(crate) fn search_path(objects: &[SharedObject], dirs: &[PathBuf]) -> Vec<PathBuf> {
    let found = objects.iter().flat_map(|object| closure(object, |_| dirs.to_vec(), |_| ()));
    let found: Vec<_> = found.collect();
    let used: BTreeSet<&Path> = found.iter().filter_map(|(path, _)| path.parent()).collect();
    dirs.iter().filter(|dir| used.contains(dir.as_path())).cloned().collect()
}

/// The directories in which the loader searches for the libraries of `object`.
fn dirs(object: &SharedObject, search_path: &[PathBuf]) -> Vec<PathBuf> {
    let triplet = tree::triplet();
    let system = SYSTEM_DIRS.iter().map(|dir| PathBuf::from(dir.replace("{}", &triplet)));
    search_path.iter().chain(&object.run_path).cloned().chain(system).collect()
}

/// All libraries without a stand-in that are needed, directly or not, from `dirs`.
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

/// Whether a soname belongs to an SQLite; includes AMD's own build of it.
pub fn is_sqlite(soname: &str) -> bool {
    soname.contains("sqlite3.so")
}

/// The libraries among these that the probe replaces: those of the GPU, and SQLite.
pub(crate) fn stood_in(needed: &[String]) -> BTreeSet<String> {
    let stands_in = |soname: &&String| is_stood_in(soname) || is_sqlite(soname);
    needed.iter().filter(stands_in).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::is_stood_in;

    #[test]
    fn libraries_of_the_gpu_have_stand_ins_in_any_version() {
        for name in ["libamdhip64.so.6", "libamdhip64.so.7", "librocblas.so.4", "libroctx64.so"] {
            assert!(is_stood_in(name), "{name}");
        }
        for name in ["libsqlite3.so.0", "libc.so.6", "librocblas.sole", "libhipblaslt_x.so"] {
            assert!(!is_stood_in(name), "{name}");
        }
    }
}
