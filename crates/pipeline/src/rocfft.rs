//! Asks the stock librocfft which kernels plans want, for every target.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::{Cancel, SourceDirs};
use gfxpack_model::{Digest, KernelFileFormat, KernelKey, Language, Target, processors};
use gfxpack_plan::Location;
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_process::{ScratchDir, temporary_dir};
use gfxpack_rocfft::{
    AskOptions, FftPlan, InstalledCache, Kernel, PlanFailure, ROCFFT, ask, check, read_plans,
};
use gfxpack_stock_library::{ElfFile, Library};
use serde::{Deserialize, Serialize};

use crate::build::MadeKdb;
use crate::error::{self, Result};
use crate::inputs::InputCollector;
use crate::kdb_check::TargetCheck;
use crate::kernel_library::{LibraryFacts, ProblemsFact};
use crate::ledger::Absences;
use crate::options::{CacheDir, InputOptions, ProblemOptions};
use crate::progress::Progress;
use crate::skipped_lines;
use crate::stock_library::{self, LibraryAnswer};
use crate::text::{counted, display, joined, open};

/// What hipRTC includes implicitly.
const PREAMBLE: &str = "#include <hip/hip_runtime.h>\n";
/// Additional option of every program: nobody would act on warnings about
/// generated code.
const QUIET: &str = " -w";

/// librocfft's answer: the kernels that it asks for.
pub struct RocfftAnswer {
    pub(crate) library: Library,
    /// The parameters of the query, as manifests record them.
    pub facts: RocfftFacts,
    /// The plans; failures refer to them by index.
    pub plans: Vec<FftPlan>,
    /// By target: the kernels, sorted by name.
    pub kernels: BTreeMap<Target, Vec<AskedKernel>>,
    /// The directory with the kernels' sources.
    pub(crate) sources: Arc<ScratchDir>,
    /// Plans that the library fails to create.
    pub failures: Vec<(Target, usize, PlanFailure)>,
}

/// The librocfft that asked for the kernels, as manifests and packages say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RocfftFacts {
    pub(crate) version: String,
    pub(crate) origin: String,
    pub(crate) sha256: Digest,
    /// `HIP_VERSION` of the headers that the library was built with. It finds
    /// only kernels with this number and this `generator_sum`.
    pub hip_version: i64,
    /// SHA-256 of the sources of its generator.
    pub generator_sum: Digest,
    /// Whether the library reads one file for all processors.
    pub shares_file: bool,
    /// Lists of plans that the library was asked for.
    pub plans: Vec<ProblemsFact>,
}

impl LibraryFacts for RocfftFacts {
    fn name(&self) -> (&'static str, &str) {
        ("rocFFT", &self.version)
    }

    fn in_words(&self) -> String {
        format!("rocFFT {} ({})", self.version, self.origin)
    }

    fn lists(&self) -> &[ProblemsFact] {
        &self.plans
    }

    /// Says which rocFFT finds them, too. It contains all its sources.
    fn kernels_in_words(&self, _without: u64) -> String {
        format!(
            "The kernels are those that {} asks for when it makes the plans of {}. It \
             finds them if its generator has the SHA-256 {} and it was built with HIP {}.",
            self.in_words(),
            joined(self.plans.iter().map(|list| list.name())),
            self.generator_sum,
            hip_version_in_words(self.hip_version)
        )
    }

    fn shares_file(&self) -> bool {
        self.shares_file
    }

    fn exact_package(&self) -> Option<(String, String)> {
        // For example `Debian sid, librocfft0 6.4.3-1`.
        let (name, version) = self.origin.split_once(", ")?.1.split_once(' ')?;
        Some((name.to_owned(), version.to_owned()))
    }
}

/// `HIP_VERSION` for display: `6.4.43484` for 60443484.
///
/// Source: HIP, hip_version.h: major * 10^7 + minor * 10^5 + patch.
fn hip_version_in_words(version: i64) -> String {
    format!("{}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

/// A kernel that rocFFT compiles.
pub struct AskedKernel {
    /// The name by which rocFFT looks the kernel up.
    pub name: String,
    /// The options that it is compiled with.
    pub options: Vec<String>,
    /// SHA-256 of the source that a compiler gets.
    pub source: Digest,
}

/// Reads the plans and asks the library for each of `targets`, none of which may have compute units.
/// If it has to be downloaded, it is unpacked into `cache`.
///
/// # Errors
/// If plans can't be read, there is no library, or it can't be asked.
pub fn ask_rocfft(
    asking: &ProblemOptions,
    targets: &[Target],
    cache: &CacheDir,
    progress: &dyn Progress,
) -> Result<RocfftAnswer> {
    let cache = cache.directory()?;
    let (plans, lists) = read(asking, progress)?;
    targets.iter().try_for_each(check_target)?;
    let source = asking.rocfft.rocfft.as_ref();
    let library = stock_library::locate(&ROCFFT, source, &asking.library, &cache, progress)?;
    let (mut kernels, mut failures, mut facts) = (BTreeMap::new(), Vec::new(), None);
    let sources = temporary_dir()?;
    let mut digests: HashMap<String, Digest> = HashMap::new();
    for target in targets {
        let mut own = Vec::new();
        let mut add = |Kernel { name, source, options }: Kernel| {
            // A compiler other than hipRTC includes nothing by itself.
            let text = format!("{PREAMBLE}{source}");
            let source = Digest::of(text.as_bytes());
            match digests.get(&name) {
                Some(known) if *known == source => {}
                Some(_) => {
                    let what = format!("rocFFT's kernel `{name}`, which differs between targets");
                    return Err(error::unsound(what));
                }
                None => {
                    let path = sources.path().join(source_name(&name));
                    fs::write(&path, text).map_err(error::io("write", &path))?;
                    digests.insert(name.clone(), source);
                }
            }
            own.push(AskedKernel { name, options, source });
            Ok(())
        };
        let answer = with_options(&library, target, progress.cancel(), |options| {
            ask(&plans, options, &mut add)
        })?;
        failures.extend(answer.failures.iter().map(|(plan, why)| (target.clone(), *plan, *why)));
        kernels.insert(target.clone(), own);
        facts.get_or_insert(RocfftFacts {
            version: answer.version,
            origin: library.origin.clone(),
            sha256: library.sha256,
            hip_version: answer.hip_version,
            generator_sum: Digest::from_bytes(answer.generator_sum),
            shares_file: shares_file(&library)?,
            plans: lists.clone(),
        });
    }
    let facts = facts.expect("there is a target");
    Ok(RocfftAnswer { library, facts, plans, kernels, sources: Arc::new(sources), failures })
}

impl LibraryAnswer for RocfftAnswer {
    fn report_failures(&self, hint: &str, progress: &dyn Progress) -> Result<()> {
        for (target, plan, failure) in &self.failures {
            progress.warning(&format!("the plan `{}` for {target} {failure}", self.plans[*plan]));
        }
        let failed: BTreeSet<usize> = self.failures.iter().map(|(_, plan, _)| *plan).collect();
        error::check_all_asked(failed.len(), &counted(self.plans.len(), "plan"), hint)
    }

    fn add_keys(&self, to: &mut InputCollector, _user: &SourceDirs, _dfsg: bool) -> Result<()> {
        let dir = self.sources.path();
        let dirs = SourceDirs::list(&[dir.to_owned()])?;
        let library: Arc<str> = format!("rocFFT {}", self.facts.version).into();
        for position in 0..to.requests.len() {
            let target = to.requests[position].target.clone();
            for (line, kernel) in (1..).zip(&self.kernels[&target]) {
                let location = Location { file: Arc::clone(&library), line };
                let key = key(kernel, &target);
                if to.excludes(&target, &key) {
                    continue;
                }
                let name = source_name(&kernel.name);
                let path = dir.join(&name);
                let source =
                    to.inputs.sources.load(&path, &name, Language::Hip, &[], &[], Some(&dirs));
                let source = source.map_err(|fault| location.error(&fault))?;
                to.inputs.library.licenses.entry(name.clone()).or_default().insert(license());
                to.generated.insert(name.clone());
                let request = KeyRequest {
                    key: Arc::new(key),
                    language: Language::Hip,
                    source: Path::new(&name).into(),
                    location,
                };
                to.requests[position].keys.push((Arc::new(request), source));
            }
        }
        to.inputs.own_sources.push(Arc::clone(&self.sources));
        to.inputs.library.consumer = Consumer::Rocfft;
        to.inputs.library.name = Some("rocFFT kernels".to_owned());
        to.inputs.library.homepage = Some("https://github.com/ROCm/rocm-libraries".to_owned());
        to.inputs.library.version = Some(self.facts.version.clone());
        to.inputs.library.prefix = self.library.layout().map(|layout| layout.prefix());
        to.inputs.library.rocfft = Some(self.facts.clone());
        to.has_input = true;
        Ok(())
    }

    /// Makes the library create all its plans with each of these files installed, and checks that
    /// it compiles nothing.
    fn check(
        &self,
        kdbs: &[MadeKdb],
        _absences: &Absences,
        progress: &dyn Progress,
        _each: &mut dyn FnMut(&TargetCheck),
    ) -> Result<()> {
        for MadeKdb { target, path: file, .. } in kdbs {
            let path = std::path::absolute(file).map_err(error::io("find", file))?;
            let checked = with_options(&self.library, target, progress.cancel(), |options| {
                check(&self.plans, InstalledCache::File(&path), options)
            })?;
            let failed = self.failures.iter().filter(|(of, ..)| of == target).count();
            let shown = file.display();
            if checked.programs > 0 || checked.failures.len() > failed {
                let kernel = checked.compiled.first().map_or("a plan", String::as_str);
                return Err(error::unsound(format!(
                    "`{shown}`: rocFFT compiles {} all the same, as {kernel}",
                    counted(checked.programs, "kernel")
                )));
            }
            let plans = counted(self.plans.len() - failed, "plan");
            progress.note(&format!("rocFFT finds every kernel of {plans} in {shown}"));
        }
        Ok(())
    }
}

/// The licence of the generated sources.
///
/// Source: ROCm/rocFFT, LICENSE.md, a933f71bf2d90cb5993f009ce1cc05df6dfa463e.
fn license() -> SourceLicense {
    SourceLicense {
        license: "MIT".to_owned(),
        copyright: "2016-2024 Advanced Micro Devices, Inc.".to_owned(),
    }
}

/// Calls a function with the options for asking a library about a target.
pub fn with_options<T>(
    library: &Library,
    target: &Target,
    cancel: &Cancel,
    act: impl FnOnce(&AskOptions<'_>) -> Result<T>,
) -> Result<T> {
    let arch = target.id().processor();
    let known = processors::by_name(arch).and_then(|known| known.compute_units.first());
    act(&AskOptions {
        library,
        probe: &stock_library::probe()?,
        scratch: &std::env::temp_dir(),
        arch,
        compute_units: known.copied().unwrap_or(64),
        cancelled: &|| cancel.is_cancelled(),
    })
}

/// Whether a library reads one file for all processors: then it contains the
/// file's name.
pub fn shares_file(library: &Library) -> Result<bool> {
    let constants = ElfFile::open(&library.file).and_then(|file| file.constants());
    let constants = constants.map_err(|error| ROCFFT.unreadable(error))?;
    let shared = KernelFileFormat::RocfftCache.shared_file_name();
    let has = |name: &str| memchr::memmem::find(&constants, format!("{name}\0").as_bytes());
    Ok(shared.and_then(has).is_some())
}

/// Checks that FFT plans are the only input.
pub(crate) fn check_alone(inputs: &InputOptions) -> Result<()> {
    let others = [&inputs.manifest, &inputs.keys, &inputs.source_dir, &inputs.missing_from];
    if others.iter().any(|others| !others.is_empty()) {
        return Err(error::usage(
            "failed to use --plans with other kernels: rocFFT's go into files of their own",
            "leave --manifest, --keys, --source-dir and --missing-from out",
        ));
    }
    Ok(())
}

/// Rejects targets with compute units or features: rocFFT looks kernels up by the
/// processor alone.
fn check_target(target: &Target) -> Result<()> {
    let plain = target.id().to_string() == target.id().processor();
    if target.compute_units().is_none() && plain {
        return Ok(());
    }
    let processor = target.id().processor();
    Err(error::usage(
        format!("failed to ask rocFFT for {target}: it has kernels for {processor} as a whole"),
        format!("leave compute units and features out, as --target {processor}"),
    ))
}

/// All plans of the lists, without duplicates, sorted, and what manifests record
/// of the lists.
fn read(
    asking: &ProblemOptions,
    progress: &dyn Progress,
) -> Result<(Vec<FftPlan>, Vec<ProblemsFact>)> {
    let (mut all, mut facts) = (BTreeSet::new(), Vec::new());
    for path in &asking.rocfft.plans {
        let (own, skipped) = read_plans(&display(path), open(path)?)?;
        skipped_lines::report(&display(path), &skipped, asking.strict, progress)?;
        let own: BTreeSet<FftPlan> = own.into_iter().collect();
        facts.push(ProblemsFact::of_list(path, &own));
        all.extend(own);
    }
    Ok((all.into_iter().collect(), facts))
}

/// A kernel that rocFFT looks up.
#[derive(Debug, Serialize)]
pub struct KernelLine<'a> {
    kernel_name: &'a str,
    /// Targets whose rocFFT asks for it.
    targets: Vec<String>,
    /// The options that it is compiled with.
    options: &'a [String],
    source: Digest,
}

/// The kernels without duplicates, each with all targets that want it, sorted by
/// name.
pub fn kernel_lines(answer: &RocfftAnswer) -> Vec<KernelLine<'_>> {
    let mut lines: BTreeMap<&str, KernelLine<'_>> = BTreeMap::new();
    for (target, kernels) in &answer.kernels {
        for kernel in kernels {
            let line = lines.entry(&kernel.name).or_insert_with(|| KernelLine {
                kernel_name: &kernel.name,
                targets: Vec::new(),
                options: &kernel.options,
                source: kernel.source,
            });
            line.targets.push(target.to_string());
        }
    }
    lines.into_values().collect()
}

/// Writes the source of each kernel.
///
/// # Errors
/// If a file can't be written.
pub fn write_sources(answer: &RocfftAnswer, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(error::io("create", dir))?;
    let names: BTreeSet<&str> =
        answer.kernels.values().flatten().map(|kernel| kernel.name.as_str()).collect();
    for name in names {
        let name = source_name(name);
        let path = dir.join(&name);
        fs::copy(answer.sources.path().join(&name), &path).map_err(error::io("write", &path))?;
    }
    Ok(())
}

pub(crate) fn source_name(kernel: &str) -> String {
    format!("{kernel}.cpp")
}

/// The name by which rocFFT looks up the kernel of a key.
pub(crate) fn kernel_name(key: &KernelKey) -> &str {
    key.kernel_name.strip_suffix(".cpp.o").unwrap_or(&key.kernel_name)
}

/// The key under which a kernel is compiled and looked up.
pub(crate) fn key(kernel: &AskedKernel, target: &Target) -> KernelKey {
    let options: String = kernel.options.iter().map(|option| format!(" {option}")).collect();
    let options = options + QUIET;
    KernelKey::for_source(&source_name(&kernel.name), &options, target.id().processor())
}
