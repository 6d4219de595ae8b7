//! Which toolchain builds which target: those that were found, each probed
//! when first needed, and the first that fits taken.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gfxpack_model::compiler::SuppliedConstant;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{Digest, Language, TargetId};
use gfxpack_process::watch::Looks;
use gfxpack_process::{Cancel, FileDigests, FileError, Timestamp, WorkDir};

use crate::discover::{self, Candidate, Driver, Search};
use crate::error::ToolchainError;
use crate::probe::{self, Asker};
use crate::probe_watch::Watch;
use crate::support;
use crate::toolchain::Toolchain;
use crate::trial::{Trial, TrialArguments, Verdict};

/// The toolchains of this machine, in order of preference.
#[derive(Debug)]
pub struct Toolchains<'a> {
    search: &'a Search,
    digests: &'a FileDigests,
    cancel: &'a Cancel,
    /// What is learnt and made is kept here, if anything may be.
    cache: &'a Path,
    keep: bool,
    trial: TrialArguments,
    scratch: WorkDir,
    entries: Vec<ProbedCandidate>,
}

#[derive(Debug)]
struct ProbedCandidate {
    candidate: Candidate,
    environment: Vec<(OsString, OsString)>,
    probed: Option<Result<Toolchain, ToolchainError>>,
}

/// What one toolchain is good for.
#[derive(Debug)]
pub struct Listed {
    /// hipcc or clang.
    pub program: PathBuf,
    /// What it is; or why it can't be used at all.
    pub toolchain: Result<Toolchain, String>,
    /// What it builds, by language, each processor with whether a constant
    /// must be supplied for it.
    pub builds: Vec<(Language, Vec<(&'static str, bool)>)>,
    /// Languages that it fails to build though it has all that is needed,
    /// with the compiler's words.
    pub refused: Vec<(Language, String)>,
    /// The constants that would be supplied.
    pub constants: Vec<SuppliedConstant>,
}

const LANGUAGES: [Language; 3] = [Language::Hip, Language::OpenclC, Language::Assembly];

impl<'a> Toolchains<'a> {
    /// Looks for toolchains and starts none of them. With `keep`, what is
    /// learnt of them and made for them stays in `cache`; else `scratch`, a
    /// directory for temporary files on the same disk as what is kept, has it
    /// until this value goes. `trial` says what a compiler is tried with.
    ///
    /// # Errors
    /// [`ToolchainError`] where a program that was named is none, or nothing is
    /// found at all.
    pub fn find(
        search: &'a Search,
        digests: &'a FileDigests,
        (cache, keep): (&'a Path, bool),
        scratch: &Path,
        trial: TrialArguments,
        cancel: &'a Cancel,
    ) -> Result<Self, ToolchainError> {
        let entries = discover::candidates(search)?;
        let entry = |candidate: Candidate| {
            let environment = environment_of(search, &candidate);
            ProbedCandidate { candidate, environment, probed: None }
        };
        let entries = entries.into_iter().map(entry).collect();
        let scratch =
            WorkDir::create(scratch).map_err(FileError::io("create", scratch.join("work")))?;
        Ok(Self { search, digests, cancel, cache, keep, trial, scratch, entries })
    }

    /// The toolchain for a target: the first that builds every language with
    /// what is installed, else the first that does so with constants
    /// supplied. Its device libraries are then in place, if anything is kept.
    ///
    /// # Errors
    /// [`ToolchainError::Unbuildable`], which says of each toolchain why not;
    /// the error of the toolchain that was named, or of the only one; or
    /// someone asked to stop.
    pub fn choose(
        &mut self,
        id: &TargetId,
        languages: &BTreeSet<Language>,
    ) -> Result<Toolchain, ToolchainError> {
        let processor = id.processor();
        let mut refusals: Vec<Option<String>> = vec![None; self.entries.len()];
        for with_constants in [false, true] {
            for (index, refusal) in refusals.iter_mut().enumerate() {
                if !with_constants && self.lacks_device_libs(index, processor, languages) {
                    continue;
                }
                let Some(toolchain) = self.variant(index, with_constants)? else { continue };
                if !builds_all(&toolchain, processor, languages) {
                    continue;
                }
                match self.fits(index, &toolchain, languages)? {
                    Verdict::Fits => return Ok(toolchain),
                    Verdict::Fails(words) => *refusal = Some(words),
                }
            }
        }
        Err(self.unbuildable(processor, languages, &refusals))
    }

    /// The toolchain with that digest, wherever it is installed, with its
    /// device libraries in place; `None` where there is none. `languages` are
    /// those that it is for.
    ///
    /// # Errors
    /// The error of a toolchain that was named; or someone asked to stop.
    pub fn with_digest(
        &mut self,
        digest: Digest,
        languages: &BTreeSet<Language>,
    ) -> Result<Option<Toolchain>, ToolchainError> {
        for with_constants in [false, true] {
            for index in 0..self.entries.len() {
                let variant = self.variant(index, with_constants)?;
                let Some(toolchain) = variant.filter(|variant| variant.digest == digest) else {
                    continue;
                };
                if let Verdict::Fits = self.fits(index, &toolchain, languages)? {
                    return Ok(Some(toolchain));
                }
            }
        }
        Ok(None)
    }

    /// What every toolchain is good for.
    ///
    /// # Errors
    /// [`ToolchainError::Interrupted`], or a disk that takes no temporary files.
    pub fn list(&mut self) -> Result<Vec<Listed>, ToolchainError> {
        (0..self.entries.len()).map(|index| self.one(index)).collect()
    }

    /// The versions of clang of all toolchains that can be used at all, in
    /// order of preference: `15.0.6`.
    ///
    /// # Errors
    /// As [`Toolchains::list`].
    pub fn clang_versions(&mut self) -> Result<Vec<String>, ToolchainError> {
        let mut versions: Vec<String> = Vec::new();
        for index in 0..self.entries.len() {
            self.probe(index)?;
            if let Some(Ok(toolchain)) = &self.entries[index].probed
                && !versions.contains(&toolchain.clang_version)
            {
                versions.push(toolchain.clang_version.clone());
            }
        }
        Ok(versions)
    }

    /// Why each hipcc that was asked and passed over is none. A clang need not
    /// have to do with ROCm.
    #[must_use]
    pub fn unusable(&self) -> Vec<String> {
        let reason = |entry: &ProbedCandidate| match (&entry.candidate.driver, &entry.probed) {
            (Driver::Hipcc(_), Some(Err(error))) => Some(error.to_string()),
            _ => None,
        };
        self.entries.iter().filter_map(reason).collect()
    }

    fn one(&mut self, index: usize) -> Result<Listed, ToolchainError> {
        let program = self.entries[index].candidate.driver.path().to_owned();
        let mut listed = Listed {
            program,
            toolchain: Err(String::new()),
            builds: Vec::new(),
            refused: Vec::new(),
            constants: Vec::new(),
        };
        self.probe(index)?;
        let own = match &self.entries[index].probed {
            Some(Ok(toolchain)) => toolchain.clone(),
            Some(Err(error)) => {
                listed.toolchain = Err(error.to_string());
                return Ok(listed);
            }
            None => return Err(ToolchainError::Interrupted),
        };
        let more = own.with_constants(self.cache);
        listed.constants = more.as_ref().map(|more| more.supplied.clone()).unwrap_or_default();
        for language in LANGUAGES {
            let only = BTreeSet::from([language]);
            let mut builds: Vec<(&'static str, bool)> = Vec::new();
            for (toolchain, supplied) in [(Some(&own), false), (more.as_ref(), true)] {
                let Some(toolchain) = toolchain else { continue };
                let new: Vec<_> = PROCESSORS
                    .iter()
                    .map(|processor| processor.name)
                    .filter(|name| builds_all(toolchain, name, &only))
                    .filter(|name| !builds.iter().any(|(known, _)| known == name))
                    .collect();
                if new.is_empty() {
                    continue;
                }
                match self.fits(index, toolchain, &only)? {
                    Verdict::Fits => builds.extend(new.into_iter().map(|name| (name, supplied))),
                    Verdict::Fails(words) => {
                        listed.refused.push((language, words));
                        break;
                    }
                }
            }
            let order = |name: &str| PROCESSORS.iter().position(|processor| processor.name == name);
            builds.sort_by_key(|(name, _)| order(name));
            listed.builds.push((language, builds));
        }
        listed.toolchain = Ok(own);
        Ok(listed)
    }

    /// Whether device libraries that nobody had to ask for lack the
    /// processor, so that there is no need to start the compiler.
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

    fn variant(
        &mut self,
        index: usize,
        with_constants: bool,
    ) -> Result<Option<Toolchain>, ToolchainError> {
        self.probe(index)?;
        let probed = match &self.entries[index].probed {
            Some(Ok(toolchain)) => toolchain,
            // What was named must work.
            Some(Err(_)) if self.search.is_given() => {
                let error = self.entries[index].probed.take();
                return Err(error.and_then(Result::err).unwrap_or(ToolchainError::NoHipcc));
            }
            _ => return Ok(None),
        };
        Ok(if with_constants { probed.with_constants(self.cache) } else { Some(probed.clone()) })
    }

    fn probe(&mut self, index: usize) -> Result<(), ToolchainError> {
        let Self { digests, cancel, cache, keep, scratch, entries, .. } = self;
        let ProbedCandidate { candidate, environment, probed } = &mut entries[index];
        if probed.is_none() {
            let ask = Asker::new(scratch.path(), environment, cancel);
            let kept = (*cache, *keep);
            match Toolchain::probe(candidate, environment, digests, &ask, kept) {
                Err(ToolchainError::Interrupted) => return Err(ToolchainError::Interrupted),
                other => *probed = Some(other),
            }
        }
        Ok(())
    }

    /// Whether the toolchain's parts fit together. hipcc's own are made for
    /// each other; those of a clang are tried.
    fn fits(
        &self,
        index: usize,
        toolchain: &Toolchain,
        languages: &BTreeSet<Language>,
    ) -> Result<Verdict, ToolchainError> {
        let environment = &self.entries[index].environment;
        let ask = Asker::new(self.scratch.path(), environment, self.cancel);
        if self.keep {
            toolchain.supply(&ask)?;
        }
        if toolchain.hipcc.is_some() {
            return Ok(Verdict::Fits);
        }
        let looks = Looks::new(self.digests);
        for language in languages {
            let Some(trial) = Trial::new(toolchain, *language, self.trial) else { continue };
            if trial.is_passed(self.cache, &looks) {
                continue;
            }
            let here = toolchain.with_libraries_in(self.scratch.path());
            let here = if self.keep { toolchain } else { &here };
            here.supply(&ask)?;
            let watch = Watch::new(&looks, Timestamp::now(), self.scratch.path(), self.keep);
            let watched = ask.watched_by(&watch);
            let run = Trial::new(here, *language, self.trial).map(|trial| trial.run(&watched));
            let verdict = match (run.unwrap_or(Ok(Verdict::Fits))?, watch.written()) {
                // As every kernel would.
                (Verdict::Fits, Some(path)) => Verdict::Fails(format!(
                    "it writes `{}`, outside the directory that it may write to",
                    path.display()
                )),
                (verdict, _) => verdict,
            };
            match verdict {
                Verdict::Fits => match watch.finish() {
                    Ok((told, _)) => trial.keep_passed(self.cache, &told),
                    Err(reason) => tracing::debug!(reason, "a trial is not kept"),
                },
                fails => return Ok(fails),
            }
        }
        Ok(Verdict::Fits)
    }

    fn unbuildable(
        &mut self,
        processor: &str,
        languages: &BTreeSet<Language>,
        refusals: &[Option<String>],
    ) -> ToolchainError {
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
            return match errors.into_iter().next() {
                // A clang that has nothing to do with ROCm.
                None | Some(ToolchainError::NoDeviceLibs) if !hipcc => ToolchainError::NoHipcc,
                Some(error) => error,
                None => ToolchainError::NoHipcc,
            };
        }
        let given = self.search.is_given();
        support::unbuildable(processor, languages, &toolchains, &errors, given)
    }
}

fn builds_all(toolchain: &Toolchain, processor: &str, languages: &BTreeSet<Language>) -> bool {
    let builds = toolchain.buildable(processor);
    let libraries = languages.iter().any(|language| *language != Language::Assembly);
    builds.compiler && (builds.device_libs || !libraries)
}

/// The environment of a candidate's programs: hipcc takes the prefix and the
/// device libraries from it.
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
