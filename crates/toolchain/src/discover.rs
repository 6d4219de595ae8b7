//! Finds compilers, headers and device libraries by looking at the file system only; no program is
//! started.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::Error;
use gfxpack_process::find_in_path;

use crate::error::{self, Missing};

/// The directory in which ROCm's own packages are installed.
pub(crate) const OPT: &str = "/opt";

/// What to do about a given program that is not there.
const CHECK: &str = "check the path, and that the program is installed and may be run";

/// Where to look for toolchains, and the environment in which they run. If a part is given, others
/// of its kind are not looked for. Each may be given several times, the preferred one first.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Given `hipcc` programs.
    pub hipcc: Vec<PathBuf>,
    /// Given `clang` programs, to be used without hipcc.
    pub clang: Vec<PathBuf>,
    /// Directories with the bitcode of device libraries.
    pub device_libs: Vec<PathBuf>,
    /// ROCm prefixes.
    pub rocm_path: Vec<PathBuf>,
    /// The `hipcc` that the user's environment prefers among those found.
    pub preferred_hipcc: Option<PathBuf>,
    /// The complete environment of every program. Programs are also looked for in its `PATH`.
    pub environment: Vec<(OsString, OsString)>,
}

/// The program that runs a toolchain's HIP jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Driver {
    /// hipcc, which finds clang, headers and device libraries.
    Hipcc(PathBuf),
    /// clang alone, with options for the other parts.
    Clang(PathBuf),
}

impl Driver {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Hipcc(path) | Self::Clang(path) => path,
        }
    }
}

/// A possible toolchain, before it is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) driver: Driver,
    /// The prefix whose `include` contains HIP's headers; `None` if hipcc decides.
    pub(crate) rocm: Option<PathBuf>,
    /// The device libraries; `None` if hipcc decides, or if there are none.
    pub(crate) device_libs: Option<PathBuf>,
    /// Whether it was found with a prefix of its own, so that the prefix in the environment is not
    /// for it.
    pub(crate) own_prefix: bool,
}

/// The candidates in order of preference: the default hipcc, those of other
/// ROCm installations, then clangs; of each kind the newest first.
///
/// # Errors
/// If a given path can't be used, or there is no candidate.
pub(crate) fn candidates(search: &Search) -> Result<Vec<Candidate>, Error> {
    if let Some(none) = search.rocm_path.iter().find(|dir| !dir.is_dir()) {
        return Err(Error::usage(
            format!(
                "failed to find the ROCm installation `{}`: it is no directory",
                none.display()
            ),
            "give --rocm-path the directory that holds bin, include and lib: /opt/rocm",
        ));
    }
    if let Some(none) = search.device_libs.iter().find(|dir| !holds_bitcode(dir)) {
        return Err(Error::usage(
            format!("failed to find device libraries in `{}`: it holds no bitcode", none.display()),
            "give --device-libs the directory that holds ockl.bc: /opt/rocm/amdgcn/bitcode",
        ));
    }
    let finder = Finder { search, opt: Path::new(OPT) };
    let found = finder.find()?;
    if found.is_empty() { Err(Missing::Hipcc.into()) } else { Ok(found) }
}

fn holds_bitcode(dir: &Path) -> bool {
    let mut files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.any(|entry| entry.path().extension().is_some_and(|extension| extension == "bc"))
}

/// Compilers run in other directories than this process.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(error::io("find", path))
}

impl Search {
    /// Whether a toolchain was given, so that others are not looked for.
    pub fn is_given(&self) -> bool {
        !(self.hipcc.is_empty() && self.clang.is_empty() && self.rocm_path.is_empty())
    }

    pub(crate) fn path(&self) -> OsString {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// A program given by path or by name; if there is none, an error with what was given, as
    /// `said`, and a hint.
    fn program(&self, given: &Path, said: &str, hint: &str) -> Result<PathBuf, Error> {
        let found = if given.components().count() == 1 {
            find_in_path(&given.to_string_lossy(), &self.path())
        } else {
            given.is_file().then(|| given.to_owned())
        };
        let none = || {
            let given = given.display();
            Error::usage(format!("failed to find `{given}`{said}: it is no executable file"), hint)
        };
        absolute(&found.ok_or_else(none)?)
    }
}

struct Finder<'a> {
    search: &'a Search,
    opt: &'a Path,
}

impl Finder<'_> {
    fn find(&self) -> Result<Vec<Candidate>, Error> {
        let search = self.search;
        let mut found = Vec::new();
        let (libs, prefixes) = (each(&search.device_libs)?, each(&search.rocm_path)?);
        let pairs = || prefixes.iter().flat_map(|rocm| libs.iter().map(move |libs| (rocm, libs)));
        for given in &search.hipcc {
            let program = search.program(given, "", CHECK)?;
            let with = |(rocm, libs): (&Option<PathBuf>, &Option<PathBuf>)| {
                hipcc(program.clone(), rocm.as_deref(), libs.as_deref(), false)
            };
            found.extend(pairs().map(with));
        }
        for given in &search.clang {
            let program = search.program(given, "", CHECK)?;
            let with = |(rocm, libs): (&Option<PathBuf>, &Option<PathBuf>)| {
                self.clang(program.clone(), rocm.as_deref(), libs.as_deref())
            };
            found.extend(pairs().map(with));
        }
        if search.hipcc.is_empty() && search.clang.is_empty() {
            if search.rocm_path.is_empty() {
                self.installed(&libs, &mut found)?;
            } else {
                self.below_given_prefixes(&libs, &mut found)?;
            }
        }
        Ok(distinct(found))
    }

    /// The toolchains of given prefixes. A prefix without a hipcc is passed to the default hipcc.
    fn below_given_prefixes(
        &self,
        libs: &[Option<PathBuf>],
        found: &mut Vec<Candidate>,
    ) -> Result<(), Error> {
        for prefix in &self.search.rocm_path {
            let prefix = absolute(prefix)?;
            let own = Some(prefix.join("bin/hipcc")).filter(|file| file.is_file());
            let program = match own {
                Some(own) => Some(own),
                None => self.default_hipcc()?,
            };
            for libs in libs {
                if let Some(program) = &program {
                    found.push(hipcc(program.clone(), Some(&prefix), libs.as_deref(), false));
                }
                if let Some(clang) = clang_of(&prefix) {
                    found.push(self.clang(clang, Some(&prefix), libs.as_deref()));
                }
            }
        }
        Ok(())
    }

    /// All installed toolchains.
    fn installed(&self, libs: &[Option<PathBuf>], found: &mut Vec<Candidate>) -> Result<(), Error> {
        let prefixes = self.prefixes();
        let in_path = find_in_path("hipcc", &self.search.path());
        let in_path = in_path.as_deref().map(absolute).transpose()?;
        for libs in libs {
            let libs = libs.as_deref();
            if let Some(program) = self.default_hipcc()? {
                found.push(hipcc(program, None, libs, false));
            }
            for prefix in &prefixes {
                let program = prefix.join("bin/hipcc");
                if program.is_file() {
                    found.push(hipcc(program, Some(prefix), libs, true));
                }
            }
            if let Some(program) = &in_path {
                found.push(hipcc(program.clone(), None, libs, true));
            }
        }
        for libs in libs {
            let libs = libs.as_deref();
            for prefix in &prefixes {
                let clang = clang_of(prefix).map(|clang| self.clang(clang, Some(prefix), libs));
                found.extend(clang);
            }
            let named = clangs_in(&self.search.path());
            for program in named.into_iter().rev() {
                found.push(self.clang(absolute(&program)?, None, libs));
            }
        }
        Ok(())
    }

    /// The default hipcc.
    fn default_hipcc(&self) -> Result<Option<PathBuf>, Error> {
        if let Some(preferred) = &self.search.preferred_hipcc {
            let (said, hint) = (", which HIPCC names", "correct HIPCC, or unset it");
            return self.search.program(preferred, said, hint).map(Some);
        }
        let own = Some(self.opt.join("rocm/bin/hipcc")).filter(|file| file.is_file());
        let found = own.or_else(|| find_in_path("hipcc", &self.search.path()));
        found.as_deref().map(absolute).transpose()
    }

    /// ROCm's installations: `/opt/rocm`, then those with a version in their
    /// name, newest first, `/opt/rocm/core-X.Y` and `/opt/rocm-X.Y.Z`.
    fn prefixes(&self) -> Vec<PathBuf> {
        let mut versioned: Vec<(Vec<u32>, PathBuf)> = Vec::new();
        for (dir, start) in [(self.opt.to_owned(), "rocm-"), (self.opt.join("rocm"), "core-")] {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let version = name.to_str().and_then(|name| name.strip_prefix(start));
                if let Some(version) = version.map(numbers).filter(|parts| !parts.is_empty()) {
                    versioned.push((version, entry.path()));
                }
            }
        }
        versioned.sort();
        let newest_first = versioned.into_iter().rev().map(|(_, path)| path);
        [self.opt.join("rocm")].into_iter().chain(newest_first).collect()
    }

    /// A clang with the headers and device libraries of the prefix, or of the first prefix that has
    /// them.
    fn clang(&self, program: PathBuf, rocm: Option<&Path>, libs: Option<&Path>) -> Candidate {
        let prefixes = match rocm {
            Some(rocm) => vec![rocm.to_owned()],
            None => self.prefixes().into_iter().chain(["/usr".into()]).collect(),
        };
        let has_headers = |prefix: &&PathBuf| prefix.join("include/hip/hip_runtime.h").is_file();
        let rocm = prefixes.iter().find(has_headers).or(prefixes.last()).cloned();
        let own = rocm.iter().cloned().chain(prefixes);
        let device_libs = match libs {
            Some(given) => Some(given.to_owned()),
            None => find_device_libs(own),
        };
        Candidate { driver: Driver::Clang(program), rocm, device_libs, own_prefix: false }
    }
}

fn hipcc(program: PathBuf, rocm: Option<&Path>, libs: Option<&Path>, own: bool) -> Candidate {
    Candidate {
        driver: Driver::Hipcc(program),
        rocm: rocm.map(Path::to_owned),
        device_libs: libs.map(Path::to_owned),
        own_prefix: own,
    }
}

/// The absolute paths, or a single `None` if there are none.
fn each(paths: &[PathBuf]) -> Result<Vec<Option<PathBuf>>, Error> {
    if paths.is_empty() {
        return Ok(vec![None]);
    }
    paths.iter().map(|path| absolute(path).map(Some)).collect()
}

/// The numbers at the beginning of a version: 6.4.1 of `6.4.1-beta`.
fn numbers(version: &str) -> Vec<u32> {
    let plain = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next();
    plain.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

/// The clang of a ROCm installation.
fn clang_of(prefix: &Path) -> Option<PathBuf> {
    let places = ["lib/llvm/bin/clang", "llvm/bin/clang"];
    places.iter().map(|place| prefix.join(place)).find(|file| file.is_file())
}

/// The clangs in a `PATH`, oldest first: `clang-NN` by its number; `clang`, whose name has no
/// version, before all.
fn clangs_in(path: &OsString) -> Vec<PathBuf> {
    let mut found: BTreeSet<(u32, std::cmp::Reverse<usize>, PathBuf)> = BTreeSet::new();
    for (position, dir) in std::env::split_paths(path).enumerate() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = match name.to_str() {
                Some("clang") => Some(0),
                Some(name) => name.strip_prefix("clang-").and_then(|number| number.parse().ok()),
                None => None,
            };
            if let Some(number) = number.filter(|_| entry.path().is_file()) {
                found.insert((number, std::cmp::Reverse(position), entry.path()));
            }
        }
    }
    found.into_iter().map(|(_, _, path)| path).collect()
}

/// The device libraries of the first prefix that has them, else Debian's.
fn find_device_libs(prefixes: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let below =
        ["amdgcn/bitcode", "lib/llvm/amdgcn/bitcode", "lib/amdgcn/bitcode", "lib64/amdgcn/bitcode"];
    let multiarch = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut multiarch: Vec<PathBuf> =
        multiarch.map(|entry| entry.path().join("amdgcn/bitcode")).collect();
    multiarch.sort();
    let own = prefixes.flat_map(|prefix| below.map(|dir| prefix.join(dir)));
    own.chain(multiarch).find(|dir| dir.join("ockl.bc").is_file())
}

/// Drops duplicates: several names may lead to one program.
fn distinct(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        let libs = candidate.device_libs.as_deref().map(real);
        let is_clang = matches!(candidate.driver, Driver::Clang(_));
        // hipcc of a prefix is the same whether or not the prefix was given.
        let rocm = candidate.rocm.as_deref().filter(|_| !candidate.own_prefix).map(real);
        if seen.insert((is_clang, real(candidate.driver.path()), rocm, libs)) {
            kept.push(candidate);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Creates empty files in a directory, and checks which candidates are found there, with the
    /// directory as `/opt` and its `bin` as `PATH`.
    fn check(files: &[&str], adjust: impl Fn(&mut Search, &Path), expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = std::env::join_paths([root.join("first"), root.join("bin")]).unwrap();
        let mut search = Search { environment: vec![("PATH".into(), path)], ..Search::default() };
        adjust(&mut search, &root);
        let finder = Finder { search: &search, opt: &root };
        let found: Vec<String> = finder
            .find()
            .unwrap()
            .iter()
            .map(|candidate| {
                let name =
                    |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
                let (kind, program) = match &candidate.driver {
                    Driver::Hipcc(program) => ("hipcc", program),
                    Driver::Clang(program) => ("clang", program),
                };
                let with = candidate.rocm.as_deref().filter(|rocm| rocm.starts_with(&root));
                let with = with.map(|rocm| format!(" of {}", name(rocm))).unwrap_or_default();
                format!("{kind} {}{with}", name(program))
            })
            .collect();
        assert_eq!(found, expected);
    }

    const INSTALLED: &[&str] = &[
        "rocm-6.4.1/bin/hipcc",
        "rocm-6.10.0/bin/hipcc",
        "rocm-6.10.0/lib/llvm/bin/clang",
        "rocm-6.10.0/include/hip/hip_runtime.h",
        "rocm/core-7.10/bin/hipcc",
        "rocm-old/bin/hipcc",
        "bin/hipcc",
        "bin/clang-9",
        "bin/clang-19",
        "bin/clang-cpp-19",
        "first/clang",
    ];

    #[test]
    fn installed_toolchains_are_found_newest_first() {
        check(
            INSTALLED,
            |_, _| {},
            &[
                "hipcc bin/hipcc",
                "hipcc rocm/core-7.10/bin/hipcc of rocm/core-7.10",
                "hipcc rocm-6.10.0/bin/hipcc of rocm-6.10.0",
                "hipcc rocm-6.4.1/bin/hipcc of rocm-6.4.1",
                "clang rocm-6.10.0/lib/llvm/bin/clang of rocm-6.10.0",
                "clang bin/clang-19 of rocm-6.10.0",
                "clang bin/clang-9 of rocm-6.10.0",
                "clang first/clang of rocm-6.10.0",
            ],
        );
        check(
            &["rocm/bin/hipcc", "bin/hipcc"],
            |_, _| {},
            &["hipcc rocm/bin/hipcc", "hipcc bin/hipcc"],
        );
        check(
            INSTALLED,
            |search, root| search.preferred_hipcc = Some(root.join("rocm-old/bin/hipcc")),
            &[
                "hipcc rocm-old/bin/hipcc",
                "hipcc rocm/core-7.10/bin/hipcc of rocm/core-7.10",
                "hipcc rocm-6.10.0/bin/hipcc of rocm-6.10.0",
                "hipcc rocm-6.4.1/bin/hipcc of rocm-6.4.1",
                "hipcc bin/hipcc",
                "clang rocm-6.10.0/lib/llvm/bin/clang of rocm-6.10.0",
                "clang bin/clang-19 of rocm-6.10.0",
                "clang bin/clang-9 of rocm-6.10.0",
                "clang first/clang of rocm-6.10.0",
            ],
        );
        check(&[], |_, _| {}, &[]);
    }

    #[test]
    fn given_toolchains_are_taken_alone_and_in_order() {
        check(
            INSTALLED,
            |search, _| search.clang = vec!["clang-9".into(), "clang-19".into()],
            &["clang bin/clang-9 of rocm-6.10.0", "clang bin/clang-19 of rocm-6.10.0"],
        );
        check(
            INSTALLED,
            |search, root| {
                search.hipcc = vec!["hipcc".into()];
                search.rocm_path = vec![root.join("rocm-6.4.1"), root.join("rocm-6.10.0")];
            },
            &["hipcc bin/hipcc of rocm-6.4.1", "hipcc bin/hipcc of rocm-6.10.0"],
        );
        check(
            INSTALLED,
            |search, root| search.rocm_path = vec![root.join("rocm-6.10.0"), root.join("none")],
            &[
                "hipcc rocm-6.10.0/bin/hipcc of rocm-6.10.0",
                "clang rocm-6.10.0/lib/llvm/bin/clang of rocm-6.10.0",
                "hipcc bin/hipcc of none",
            ],
        );
    }
}
