//! The toolchain: found once, probed once, and identified by the bytes of
//! everything that can decide what an object looks like.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gfxpack_plan::Digest;
use gfxpack_plan::arguments::{self, CompilerFacts, Program};
use gfxpack_plan::digest::Hasher;
use gfxpack_plan::plan::{Job, PlanToolchain};

use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::probe;
use crate::process::{Cancel, find_in_path};
use crate::work::WorkDir;

/// Where to look for the toolchain, and the environment it runs in.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// `hipcc`, if named.
    pub hipcc: Option<PathBuf>,
    /// `clang`, if named; hipcc is not used then.
    pub clang: Option<PathBuf>,
    /// The directory of the device libraries' bitcode, if named.
    pub device_libs: Option<PathBuf>,
    /// The ROCm prefix, if named.
    pub rocm_path: Option<PathBuf>,
    /// The whole environment of every program started. `PATH` in it is also
    /// where programs are looked for.
    pub environment: Vec<(OsString, OsString)>,
}

/// A probed toolchain.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The hipcc driver; none when clang alone was asked for.
    pub hipcc: Option<PathBuf>,
    /// The clang that hipcc runs, or the one asked for.
    pub clang: PathBuf,
    /// Clang's version, as `15.0.6`.
    pub clang_version: String,
    /// HIP's version, where known.
    pub hip_version: Option<[u32; 3]>,
    /// The directory of the device libraries' bitcode.
    pub device_libs: PathBuf,
    /// The prefix whose `include` holds HIP's headers.
    pub rocm: PathBuf,
    /// Digest of the closure: programs, shared libraries, device libraries,
    /// the compiler's and HIP's headers.
    pub digest: Digest,
    /// Directories whose files the digest covers.
    pub(crate) covered: Vec<PathBuf>,
    /// Processors that clang knows.
    pub(crate) processors: BTreeSet<String>,
    /// ISA versions that the device libraries know: `906`, `90a`.
    pub(crate) isas: BTreeSet<String>,
    /// Programs and libraries that the digest covers.
    files: Vec<PathBuf>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl Search {
    pub(crate) fn path(&self) -> OsString {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// A program given by path or by name.
    fn program(&self, given: &Path) -> Result<PathBuf, CompileError> {
        let found = if given.components().count() == 1 {
            find_in_path(&given.to_string_lossy(), &self.path())
        } else {
            given.is_file().then(|| given.to_owned())
        };
        absolute(&found.ok_or_else(|| CompileError::NoProgram(given.to_owned()))?)
    }

    fn find_hipcc(&self) -> Result<PathBuf, CompileError> {
        if let Some(given) = &self.hipcc {
            return self.program(given);
        }
        let prefixes = self.rocm_path.iter().cloned().chain([PathBuf::from("/opt/rocm")]);
        let found = prefixes
            .map(|prefix| prefix.join("bin/hipcc"))
            .find(|file| file.is_file())
            .or_else(|| find_in_path("hipcc", &self.path()));
        absolute(&found.ok_or(CompileError::NoHipcc)?)
    }

    /// The environment of every program: hipcc takes the prefix and the
    /// device libraries from it.
    fn full_environment(&self) -> Result<Vec<(OsString, OsString)>, CompileError> {
        let mut environment = self.environment.clone();
        for (name, given) in
            [("ROCM_PATH", &self.rocm_path), ("DEVICE_LIB_PATH", &self.device_libs)]
        {
            if let Some(dir) = given {
                environment.retain(|(other, _)| other != name);
                environment.push((name.into(), absolute(dir)?.into()));
            }
        }
        Ok(environment)
    }
}

/// Compilers run in other directories than we do.
fn absolute(path: &Path) -> Result<PathBuf, CompileError> {
    std::path::absolute(path).map_err(CompileError::io("find", path))
}

impl Toolchain {
    /// Finds and probes the toolchain. `scratch` is a directory for the
    /// probe's files, which are removed.
    ///
    /// # Errors
    /// [`CompileError`] where nothing is found, a program that was named is
    /// none, one answers nonsense, or someone asked to stop.
    pub fn probe(
        search: &Search,
        digests: &FileDigests,
        scratch: &Path,
        cancel: &Cancel,
    ) -> Result<Self, CompileError> {
        let scratch = WorkDir::create(scratch)?;
        let environment = search.full_environment()?;
        let ask = probe::Asker::new(scratch.path(), &environment, cancel);
        let (hipcc, found) = match &search.clang {
            Some(given) => {
                let clang = search.program(given)?;
                let rocm = search.rocm_path.as_deref().map(absolute).transpose()?;
                let libs = search.device_libs.as_deref().map(absolute).transpose()?;
                (None, probe::ask_clang(&ask, &clang, rocm.as_deref(), libs.as_deref())?)
            }
            None => {
                let hipcc = search.find_hipcc()?;
                let found = probe::ask_hipcc(&ask, &hipcc)?;
                (Some(hipcc), found)
            }
        };
        // What hipcc itself will link, which must be what was asked for.
        let device_libs = found.device_libs;
        if let Some(given) = &search.device_libs
            && std::fs::canonicalize(given).ok() != std::fs::canonicalize(&device_libs).ok()
        {
            return Err(CompileError::OtherDeviceLibs { given: given.clone(), used: device_libs });
        }
        let isas = probe::isas(&device_libs)?;
        let clang_version = ask.clang_version(&found.clang)?;
        let processors = ask.processors(&found.clang)?;
        let hip_headers = found.rocm.join("include/hip");
        let mut programs = vec![found.clang.clone()];
        programs.extend(found.lld.clone());
        let mut files = Vec::new();
        for program in &programs {
            files.extend(ask.with_libraries(program)?);
        }
        if let Some(hipcc) = &hipcc {
            files.extend(probe::wrapper_files(hipcc));
        }
        let covered: Vec<PathBuf> =
            [device_libs.clone(), found.resource_dir.join("include"), hip_headers]
                .into_iter()
                .filter(|dir| dir.is_dir())
                .collect();
        let digest = closure_digest(&files, &covered, digests)?;
        Ok(Self {
            hipcc,
            clang: found.clang,
            clang_version,
            hip_version: found.hip_version,
            device_libs,
            rocm: found.rocm,
            digest,
            covered,
            processors,
            isas,
            files,
            environment,
        })
    }

    /// The clang that compiles, by whatever wrapper.
    #[must_use]
    pub fn clang(&self) -> &Path {
        &self.clang
    }

    /// The compiler in words: `hipcc 5.2.21153, clang 15.0.6`.
    #[must_use]
    pub fn identity(&self) -> String {
        let hip = match (&self.hipcc, self.hip_version) {
            (Some(_), Some([major, minor, patch])) => format!("hipcc {major}.{minor}.{patch}, "),
            (Some(_), None) => "hipcc, ".to_owned(),
            (None, Some([major, minor, patch])) => format!("HIP {major}.{minor}.{patch}, "),
            (None, None) => String::new(),
        };
        format!("{hip}clang {}", self.clang_version)
    }

    /// Whether the toolchain's files are still those that were digested.
    ///
    /// # Errors
    /// [`CompileError::ToolchainChanged`] where they are not, or can't be read.
    pub(crate) fn check_unchanged(&self, digests: &FileDigests) -> Result<(), CompileError> {
        match closure_digest(&self.files, &self.covered, digests) {
            Ok(digest) if digest == self.digest => Ok(()),
            _ => Err(CompileError::ToolchainChanged),
        }
    }

    /// What a plan needs to know of this toolchain.
    #[must_use]
    pub fn for_plan(&self) -> PlanToolchain {
        let hip_program = if self.hipcc.is_some() { Program::Hipcc } else { Program::Clang };
        PlanToolchain {
            identity: self.identity(),
            digest: self.digest,
            facts: CompilerFacts { hip_program, hip_version: self.hip_version },
        }
    }

    /// The command of a job as a shell would take it, without the output.
    #[must_use]
    pub fn command_line(&self, job: &Job) -> String {
        let program = self.program(job.program).display().to_string();
        let words: Vec<String> = std::iter::once(program)
            .chain(job.arguments.iter().map(|word| self.fill(word).to_string_lossy().into_owned()))
            .collect();
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }

    /// The program of a job.
    pub(crate) fn program(&self, program: Program) -> &Path {
        match (program, &self.hipcc) {
            (Program::Hipcc, Some(hipcc)) => hipcc,
            _ => &self.clang,
        }
    }

    /// A planned argument with the toolchain's own directories filled in.
    pub(crate) fn fill(&self, argument: &str) -> OsString {
        for (placeholder, dir) in
            [(arguments::DEVICE_LIBS, &self.device_libs), (arguments::ROCM, &self.rocm)]
        {
            if let Some(before) = argument.strip_suffix(placeholder) {
                let mut filled = OsString::from(before);
                filled.push(dir);
                return filled;
            }
        }
        argument.into()
    }
}

/// Digest over the content of all files, under names that do not depend on
/// where the toolchain is installed.
fn closure_digest(
    files: &[PathBuf],
    dirs: &[PathBuf],
    digests: &FileDigests,
) -> Result<Digest, CompileError> {
    let mut entries = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        entries.push((name, digests.digest(file)?));
    }
    for dir in dirs {
        for entry in walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name() {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(dir).to_owned();
                CompileError::io("read", path)(error.into())
            })?;
            if entry.file_type().is_file() {
                let relative = entry.path().strip_prefix(dir).unwrap_or(entry.path());
                let name = format!(
                    "{}/{}",
                    dir.file_name().unwrap_or_default().to_string_lossy(),
                    relative.display()
                );
                entries.push((name, digests.digest(entry.path())?));
            }
        }
    }
    entries.sort();
    entries.dedup();
    Ok(Hasher::new("gfxpack toolchain 1")
        .list(entries.iter().map(|(name, _)| name.as_bytes()))
        .list(entries.iter().map(|(_, digest)| digest))
        .finish())
}
