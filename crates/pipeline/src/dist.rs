//! The whole job: prepare, compile, assemble, verify, package, record.

use gfxpack_compile::Summary;
use gfxpack_model::Target;
use gfxpack_plan::kernel_package::Release;
use gfxpack_plan::stored::Jobs;

use crate::ask::ListCoverage;
use crate::build::{self, MadeKdb, executor_options, incomplete};
use crate::cache::Cache;
use crate::environment::ENVIRONMENT;
use crate::error::{self, Result};
use crate::kdb_check::TargetCheck;
use crate::ledger::{self, Absences};
use crate::options::{BuildOptions, PackageOptions, Purpose};
use crate::packages::{self, PackageSettings};
use crate::prepare::{self, Preparation, Prepared};
use crate::progress::Progress;
use crate::record;
use crate::shards::stored::Stored;
use crate::shipped_databases::ShippedDatabases;
use crate::stock_library::LibraryAnswer;
use crate::text::joined;
use crate::write_packages::MadePackages;

/// A run whose inputs were read and whose plan is made.
pub struct Dist<'a> {
    build: &'a BuildOptions,
    package: Option<&'a PackageOptions>,
    /// The inputs and the plan.
    pub prepared: Prepared,
    answer: Option<Box<dyn LibraryAnswer>>,
}

/// The result of a run.
pub struct FinishedDist {
    /// The kdbs, in the plan's order.
    pub kdbs: Vec<MadeKdb>,
    /// The packages.
    pub packages: MadePackages,
    /// How the jobs ended.
    pub summary: Summary,
    /// How much of every list of problems each kdb holds.
    pub coverage: Vec<ListCoverage>,
    /// The kernels that are in no kdb.
    pub absences: Absences,
    /// Number of missing kernels; a kernel counts once for each kdb that lacks it.
    pub missing: u64,
    /// Whether no kernel is missing, or missing ones are allowed.
    is_allowed: bool,
    /// Whether packages were asked for.
    packages_wanted: bool,
}

impl<'a> Dist<'a> {
    /// Reads the inputs, or the stored plan, and chooses toolchains. Without `package`, no packages
    /// are made.
    ///
    /// # Errors
    /// Like [`prepare::gather`] and [`prepare::PlanInputs::plan`], and if a stored plan can't be run here.
    pub fn prepare(
        build: &'a BuildOptions,
        package: Option<&'a PackageOptions>,
        progress: &dyn Progress,
    ) -> Result<Preparation<Self>> {
        ENVIRONMENT.epoch()?;
        build.check()?;
        let purpose = if build.dry_run { Purpose::Look } else { Purpose::Build };
        let (prepared, answer) = match &build.plan {
            Some(plan) => {
                let cache = Cache::open_for(&build.compilers.cache, purpose)?;
                let search = build.compilers.toolchain.search();
                let stored = Stored::open(plan)?;
                let prepared = stored.prepare(&Jobs::All, cache, &search, progress.cancel())?;
                (prepared, None)
            }
            None => {
                let license = package.and_then(PackageOptions::stated_license);
                let (inputs, compilers) = (&build.inputs, &build.compilers);
                let license = license.as_ref();
                match prepare::gather(inputs, compilers, purpose, Some(build), license, progress)? {
                    Preparation::ToDo(plan_inputs) => plan_inputs.plan()?,
                    Preparation::NothingToDo(coverage) => {
                        return Ok(Preparation::NothingToDo(coverage));
                    }
                }
            }
        };
        Ok(Preparation::ToDo(Box::new(Self { build, package, prepared, answer })))
    }

    /// Checks the packages' options, so that errors in them are reported before
    /// hours of work.
    ///
    /// # Errors
    /// If no package can be made with the options.
    pub fn check_packages(&self, progress: &dyn Progress) -> Result<Option<PackageSettings>> {
        let Some(options) = self.package else { return Ok(None) };
        let library = &self.prepared.inputs.library;
        let release = packages::release(options, library)?;
        let options = packages::with_formats(options, &release, library, progress);
        packages::report_gaps(&options, library, progress);
        let kdbs = &self.prepared.plan.kdbs;
        let targets: Vec<Target> = kdbs.iter().map(|kdb| kdb.target.clone()).collect();
        packages::check(&release, &targets, &options)?;
        let shipped = ShippedDatabases::find(&options.with_perfdb, &targets, progress)?;
        Ok(Some(PackageSettings { options, shipped }))
    }

    /// Compiles, assembles, verifies, packages and records.
    ///
    /// # Errors
    /// If a step fails. Failed jobs are not an error: [`FinishedDist::outcome`]
    /// says whether their kernels may be missing.
    pub fn run(
        &self,
        settings: Option<PackageSettings>,
        progress: &dyn Progress,
    ) -> Result<FinishedDist> {
        let (prepared, options) = (&self.prepared, self.build);
        let packaging = settings.as_ref().map(|settings| &settings.options);
        let signer = packaging.map(packages::signer).transpose()?.flatten();
        let executor = executor_options(prepared, options)?;
        std::fs::create_dir_all(&options.out).map_err(error::io("create", &options.out))?;
        // Where nothing can be written, nothing should be compiled.
        tempfile::tempfile_in(&options.out).map_err(error::io("write into", &options.out))?;
        for (index, toolchain) in prepared.toolchains.iter().enumerate() {
            let kdbs = prepared.plan.kdbs.iter().filter(|kdb| kdb.toolchain.0 == index);
            let targets = joined(kdbs.map(|kdb| &kdb.target));
            progress.info(&format!("using {} for {targets}", toolchain.identity()));
        }
        let outputs = prepared.cache.outputs(&options.out)?;
        let (kdbs, summary, ledger) =
            build::build(prepared, options, executor, &outputs, progress)?;
        let lacks = |kdb: &MadeKdb| ledger::missing(&kdb.absent);
        let missing: u64 = kdbs.iter().map(lacks).sum();
        // An empty package would only replace one that has kernels.
        let empty = kdbs.iter().any(|kdb| kdb.kernels == 0 && lacks(kdb) > 0);
        let packages_wanted = settings.is_some();
        let is_allowed = missing == 0 || (options.allow_partial && !(empty && packages_wanted));
        let signer = signer.as_ref().filter(|_| is_allowed);
        let mut packages = MadePackages::default();
        if let Some(settings) = settings.filter(|_| is_allowed) {
            let (library, options) = (&prepared.inputs.library, &settings.options);
            let release = packages::release(options, library)?;
            let release_of = |kdb: &MadeKdb| packages::of_kdb(&release, options, library, kdb);
            let releases: Vec<Release> = kdbs.iter().map(release_of).collect();
            let known = &self.build.inputs.missing_from;
            packages = settings.write(&kdbs, &releases, known, signer, &outputs, progress)?;
        }
        record::write(&kdbs, &packages, Some(&ledger), signer, &outputs, progress)?;
        let absences = ledger.absences;
        let mut coverage = Vec::new();
        if let Some(answer) = &self.answer {
            for kdb in &prepared.plan.kdbs {
                coverage.extend(answer.coverage(&absences, &kdb.target));
            }
        }
        prepared.cache.shrink(progress);
        Ok(FinishedDist {
            kdbs,
            packages,
            summary,
            coverage,
            absences,
            missing,
            is_allowed,
            packages_wanted,
        })
    }

    /// Lets the library that was asked look for its kernels in the new files, and
    /// passes libMIOpen's result for each target to `each`. Does nothing if no
    /// library was asked.
    ///
    /// # Errors
    /// If the library can't be run, or does not find a kernel that has a source.
    pub fn check_kdbs(
        &self,
        finished: &FinishedDist,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&TargetCheck),
    ) -> Result<()> {
        let (kdbs, absences) = (&finished.kdbs, &finished.absences);
        self.answer.as_ref().map_or(Ok(()), |answer| answer.check(kdbs, absences, progress, each))
    }
}

impl FinishedDist {
    /// Returns an error if kernels are missing without permission.
    ///
    /// # Errors
    /// An error of the kind `ErrorKind::Incomplete`.
    pub fn outcome(&self) -> Result<()> {
        if self.is_allowed {
            return Ok(());
        }
        Err(incomplete(&self.kdbs, "see the reasons above", self.packages_wanted))
    }
}
