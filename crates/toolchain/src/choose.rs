//! Chooses the toolchain for a target: the first one found that fits. Each is probed when first
//! needed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gfxpack_model::compiler::SuppliedConstant;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{Digest, Error, Language, TargetId};
use gfxpack_process::watch::FileSystemCache;
use gfxpack_process::{Cancel, FileDigests, ScratchDir, Timestamp};

use crate::discover::{self, Candidate, Driver, Search};
use crate::error::{self, Missing};
use crate::probe::{self, ProgramRunner};
use crate::probe_cache::ProbeRecorder;
use crate::support;
use crate::toolchain::Toolchain;
use crate::trial::{Trial, TrialArguments};

/// The toolchains of this machine, in order of preference.
#[derive(Debug)]
pub struct Toolchains<'a> {
    search: &'a Search,
    digests: &'a FileDigests,
    cancel: &'a Cancel,
    /// The directory for probe results and generated files, if they may be kept.
    cache: &'a Path,
    keep: bool,
    trial: TrialArguments,
    scratch: ScratchDir,
    entries: Vec<ProbedCandidate>,
}

#[derive(Debug)]
struct ProbedCandidate {
    candidate: Candidate,
    environment: Vec<(OsString, OsString)>,
    probed: Option<Result<Toolchain, Error>>,
}

/// The abilities of one toolchain.
#[derive(Debug)]
pub struct ToolchainReport {
    /// hipcc or clang.
    pub program: PathBuf,
    /// The toolchain, or why it can't be used.
    pub toolchain: Result<Toolchain, String>,
    /// The processors that it builds for, by language, each with whether a constant must be
    /// supplied for it.
    pub builds: Vec<(Language, Vec<(&'static str, bool)>)>,
    /// Languages that it fails to build although nothing is missing, with the compiler's output.
    pub refused: Vec<(Language, String)>,
    /// The constants that would be supplied.
    pub constants: Vec<SuppliedConstant>,
}

impl<'a> Toolchains<'a> {
    /// Looks for toolchains without starting any. With `keep`, probe results and generated files
    /// stay in `cache`; otherwise they are in a temporary directory below `scratch`, which must be
    /// on the same disk as `cache`. `trial` makes the command with which a compiler is tried.
    ///
    /// # Errors
    /// If a given program can't be used, or none is found.
    pub fn find(
        search: &'a Search,
        digests: &'a FileDigests,
        (cache, keep): (&'a Path, bool),
        scratch: &Path,
        trial: TrialArguments,
        cancel: &'a Cancel,
    ) -> Result<Self, Error> {
        let entries = discover::candidates(search)?;
        let entry = |candidate: Candidate| {
            let environment = environment_of(search, &candidate);
            ProbedCandidate { candidate, environment, probed: None }
        };
        let entries = entries.into_iter().map(entry).collect();
        let scratch =
            ScratchDir::in_cache(scratch).map_err(error::io("create", scratch.join("work")))?;
        Ok(Self { search, digests, cancel, cache, keep, trial, scratch, entries })
    }

    /// The toolchain for a target: the first that builds every language as installed, else the
    /// first that does so with constants supplied. Its device libraries then exist, if anything is
    /// kept.
    ///
    /// # Errors
    /// If there is none, with a reason for each toolchain; the error of the given toolchain, or of
    /// the only one; or cancellation.
    pub fn choose(
        &mut self,
        id: &TargetId,
        languages: &BTreeSet<Language>,
    ) -> Result<Toolchain, Error> {
        let processor = id.processor();
        let mut refusals: Vec<Option<String>> = vec![None; self.entries.len()];
        for with_constants in [false, true] {
            for (index, refusal) in refusals.iter_mut().enumerate() {
                if !with_constants && self.lacks_device_libs(index, processor, languages) {
                    continue;
                }
                let Some(toolchain) = self.variant(index, with_constants)? else { continue };
                if !toolchain.builds(processor, languages) {
                    continue;
                }
                *refusal = self.misfit(index, &toolchain, languages)?;
                if refusal.is_none() {
                    return Ok(toolchain);
                }
            }
        }
        Err(self.unbuildable(processor, languages, &refusals))
    }

    /// The toolchain with that digest, wherever it is installed, with its device libraries in
    /// place; `None` if there is none. It must work for `languages`.
    ///
    /// # Errors
    /// The error of a given toolchain; or cancellation.
    pub fn with_digest(
        &mut self,
        digest: Digest,
        languages: &BTreeSet<Language>,
    ) -> Result<Option<Toolchain>, Error> {
        for with_constants in [false, true] {
            for index in 0..self.entries.len() {
                let variant = self.variant(index, with_constants)?;
                let Some(toolchain) = variant.filter(|variant| variant.digest == digest) else {
                    continue;
                };
                if self.misfit(index, &toolchain, languages)?.is_none() {
                    return Ok(Some(toolchain));
                }
            }
        }
        Ok(None)
    }

    /// The abilities of every toolchain.
    ///
    /// # Errors
    /// Cancellation, or an error of a temporary file.
    pub fn list(&mut self) -> Result<Vec<ToolchainReport>, Error> {
        (0..self.entries.len()).map(|index| self.one(index)).collect()
    }

    /// The versions of clang of all usable toolchains, in order of preference: `15.0.6`.
    ///
    /// # Errors
    /// As [`Toolchains::list`].
    pub fn clang_versions(&mut self) -> Result<Vec<String>, Error> {
        let mut versions: Vec<String> = Vec::new();
        for index in 0..self.entries.len() {
            if let Ok(toolchain) = self.probe(index)?
                && !versions.contains(&toolchain.clang_version)
            {
                versions.push(toolchain.clang_version.clone());
            }
        }
        Ok(versions)
    }

    /// Why each hipcc that was tried can't be used. Clangs are left out, since they need not be
    /// related to ROCm.
    pub fn unusable(&self) -> Vec<String> {
        let reason = |entry: &ProbedCandidate| match (&entry.candidate.driver, &entry.probed) {
            (Driver::Hipcc(_), Some(Err(error))) => Some(error.to_string()),
            _ => None,
        };
        self.entries.iter().filter_map(reason).collect()
    }

    fn one(&mut self, index: usize) -> Result<ToolchainReport, Error> {
        let program = self.entries[index].candidate.driver.path().to_owned();
        let mut listed = ToolchainReport {
            program,
            toolchain: Err(String::new()),
            builds: Vec::new(),
            refused: Vec::new(),
            constants: Vec::new(),
        };
        let own = match self.probe(index)? {
            Ok(toolchain) => toolchain.clone(),
            Err(error) => {
                listed.toolchain = Err(error.to_string());
                return Ok(listed);
            }
        };
        let more = own.with_constants(self.cache);
        listed.constants = more.as_ref().map(|more| more.supplied.clone()).unwrap_or_default();
        for language in Language::ALL {
            let only = BTreeSet::from([language]);
            let mut builds: Vec<(&'static str, bool)> = Vec::new();
            for (toolchain, supplied) in [(Some(&own), false), (more.as_ref(), true)] {
                let Some(toolchain) = toolchain else { continue };
                let new: Vec<_> = PROCESSORS
                    .iter()
                    .map(|processor| processor.name)
                    .filter(|name| toolchain.builds(name, &only))
                    .filter(|name| !builds.iter().any(|(known, _)| known == name))
                    .collect();
                if new.is_empty() {
                    continue;
                }
                if let Some(diagnostics) = self.misfit(index, toolchain, &only)? {
                    listed.refused.push((language, diagnostics));
                    break;
                }
                builds.extend(new.into_iter().map(|name| (name, supplied)));
            }
            let order = |name: &str| PROCESSORS.iter().position(|processor| processor.name == name);
            builds.sort_by_key(|(name, _)| order(name));
            listed.builds.push((language, builds));
        }
        listed.toolchain = Ok(own);
        Ok(listed)
    }

    /// Whether the candidate's device libraries lack the processor, so that the compiler need not
    /// be started.
    fn lacks_device_libs(
        &self,
        index: usize,
        processor: &str,
        languages: &BTreeSet<Language>,
    ) -> bool {
        let candidate = &self.entries[index].candidate;
        let isa = processor.trim_start_matches("gfx");
        matches!(candidate.driver, Driver::Clang(_))
            && languages.iter().any(|language| *language != Language::Assembly)
            && candidate
                .device_libs
                .as_deref()
                .is_some_and(|libs| !probe::isas(libs).is_ok_and(|isas| isas.contains(isa)))
    }

    fn variant(&mut self, index: usize, with_constants: bool) -> Result<Option<Toolchain>, Error> {
        let (cache, is_given) = (self.cache, self.search.is_given());
        match self.probe(index)? {
            Ok(probed) if with_constants => Ok(probed.with_constants(cache)),
            Ok(probed) => Ok(Some(probed.clone())),
            Err(_) if !is_given => Ok(None),
            // A given toolchain must work.
            Err(_) => {
                let error = self.entries[index].probed.take().and_then(Result::err);
                Err(error.unwrap_or_else(|| Missing::Hipcc.into()))
            }
        }
    }

    /// The toolchain of a candidate, or why it can't be used.
    fn probe(&mut self, index: usize) -> Result<&Result<Toolchain, Error>, Error> {
        let Self { digests, cancel, cache, keep, scratch, entries, .. } = self;
        let ProbedCandidate { candidate, environment, probed } = &mut entries[index];
        if probed.is_none() {
            let runner = ProgramRunner::new(scratch.path(), environment, cancel);
            let kept = (*cache, *keep);
            match Toolchain::probe(candidate, environment, digests, &runner, kept) {
                Err(error) if error.is_interrupted() => return Err(error),
                other => *probed = Some(other),
            }
        }
        Ok(probed.as_ref().expect("it was probed above"))
    }

    /// The compiler's output if the toolchain's parts do not fit together. hipcc's own parts belong
    /// together; those of a clang are tried.
    fn misfit(
        &self,
        index: usize,
        toolchain: &Toolchain,
        languages: &BTreeSet<Language>,
    ) -> Result<Option<String>, Error> {
        let environment = &self.entries[index].environment;
        let runner = ProgramRunner::new(self.scratch.path(), environment, self.cancel);
        if self.keep {
            toolchain.supply(&runner)?;
        }
        if toolchain.hipcc.is_some() {
            return Ok(None);
        }
        let file_system = FileSystemCache::new(self.digests);
        for language in languages {
            let Some(trial) = Trial::new(toolchain, *language, self.trial) else { continue };
            if trial.is_passed(self.cache, &file_system) {
                continue;
            }
            let here = toolchain.with_libraries_in(self.scratch.path());
            let here = if self.keep { toolchain } else { &here };
            here.supply(&runner)?;
            let watch =
                ProbeRecorder::new(&file_system, Timestamp::now(), self.scratch.path(), self.keep);
            let watched = runner.watched_by(&watch);
            let Some(here) = Trial::new(here, *language, self.trial) else { continue };
            let misfit = here.run(&watched)?;
            // Every kernel would do so.
            let writes = |path: PathBuf| {
                let path = path.display();
                format!("it writes `{path}`, outside the directory that it may write to")
            };
            let misfit = misfit.or_else(|| watch.written().map(writes));
            if misfit.is_some() {
                return Ok(misfit);
            }
            match watch.finish() {
                Ok((answers, _)) => trial.keep_passed(self.cache, &answers),
                Err(reason) => tracing::debug!(reason, "a trial is not kept"),
            }
        }
        Ok(None)
    }

    fn unbuildable(
        &mut self,
        processor: &str,
        languages: &BTreeSet<Language>,
        refusals: &[Option<String>],
    ) -> Error {
        let mut toolchains = Vec::new();
        let mut errors = Vec::new();
        for (entry, refusal) in self.entries.iter_mut().zip(refusals) {
            match entry.probed.take() {
                Some(Ok(toolchain)) => toolchains.push((toolchain, refusal.as_deref())),
                Some(Err(error)) => errors.push(error),
                None => {}
            }
        }
        if toolchains.is_empty() {
            let hipcc =
                self.entries.iter().any(|entry| matches!(entry.candidate.driver, Driver::Hipcc(_)));
            // A clang without device libraries is not related to ROCm.
            let is_of_rocm = |it: &Error| hipcc || it.cause() != Some(&Missing::DeviceLibs);
            let first = errors.into_iter().next().filter(is_of_rocm);
            return first.unwrap_or_else(|| Missing::Hipcc.into());
        }
        let given = self.search.is_given();
        support::unbuildable(processor, languages, &toolchains, &errors, given)
    }
}

/// The environment of a candidate's programs; hipcc takes the prefix and the device libraries from
/// it.
fn environment_of(search: &Search, candidate: &Candidate) -> Vec<(OsString, OsString)> {
    let mut environment = search.environment.clone();
    if candidate.own_prefix {
        let other = ["ROCM_PATH", "HIP_PATH", "HIP_CLANG_PATH", "DEVICE_LIB_PATH"];
        environment.retain(|(name, _)| !other.iter().any(|other| name == other));
    }
    let Driver::Hipcc(_) = candidate.driver else { return environment };
    for (name, value) in
        [("ROCM_PATH", &candidate.rocm), ("DEVICE_LIB_PATH", &candidate.device_libs)]
    {
        if let Some(value) = value {
            environment.retain(|(other, _)| other != name);
            environment.push((name.into(), value.into()));
        }
    }
    environment
}

#[cfg(test)]
mod tests;
