//! Writes packages in every format, several at once as memory allows, and the
//! signatures beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gfxpack_compile::{Cancel, interrupted};
use gfxpack_model::Target;
use gfxpack_model::package::{Content, PackageSpec, RelationKind};
use gfxpack_package::sbom::{BuildProvenance, Checksums};
use gfxpack_package::signing::Signer;
use gfxpack_package::{FORMATS, Format, Sign, Written, before_release, sbom, sums};

use crate::build::MadeKdb;
use crate::destination;
use crate::error::{self, Result};
use crate::options::PackageOptions;
use crate::outputs::{FileRecords, OutputDigest, Outputs};
use crate::progress::{Event, Progress};

/// A package that was written.
pub struct MadePackage {
    /// The target of its kernels; `None` for a family's package.
    pub target: Option<Target>,
    /// The package's name.
    pub name: String,
    /// Its version and revision.
    pub version: String,
    /// Its format, as `--format` names it.
    pub format: &'static str,
    /// The file.
    pub written: Written,
    /// Its detached signature, if it is signed and can't contain a signature.
    pub signature: Option<Written>,
    /// The paths at which it installs the kdb and the databases.
    pub installs: Vec<String>,
    /// The names of packages that it depends on.
    pub depends: Vec<String>,
}

/// A package to be written.
pub(crate) struct PackageToWrite<'a> {
    pub(crate) spec: PackageSpec,
    /// The spec of the wheel, for kernels that MIOpen reads.
    pub(crate) wheel_spec: Option<PackageSpec>,
    /// The kdb in it, if any.
    pub kdb: Option<&'a MadeKdb>,
    /// The target, if the package is for a single one.
    pub target: Option<Target>,
    /// The performance and find databases in it, by their names in the package.
    pub tuning: Vec<(String, PathBuf)>,
}

impl PackageToWrite<'_> {
    /// A package with only a spec.
    pub(crate) fn new(spec: PackageSpec, target: Option<Target>) -> Self {
        Self { spec, wheel_spec: None, kdb: None, target, tuning: Vec::new() }
    }
}

/// The contents of a package's bill of material, without its archives: those of
/// earlier runs are known only when the directory's manifest is written.
pub(crate) struct BillOfMaterial {
    /// The target of the package; `None` for a family's.
    pub(crate) target: Option<Target>,
    pub(crate) spec: PackageSpec,
    pub(crate) making: BuildProvenance,
    /// SHA-256 of the spec's files, except for those in memory.
    pub(crate) file_digests: Vec<String>,
    /// Checksums of the spec's files, if they had to be computed anyway.
    pub(crate) checksums: Option<Vec<Checksums>>,
}

/// The result of writing packages.
#[derive(Default)]
pub struct MadePackages {
    /// The packages.
    pub packages: Vec<MadePackage>,
    /// Bills of material that are still to be written.
    pub(crate) bills: Vec<BillOfMaterial>,
    /// Performance and find databases, by the target of their package.
    pub tuning: Vec<(Option<Target>, Written)>,
}

/// One package in one format.
struct PackageJob<'p, 'k> {
    package_index: usize,
    package: &'p PackageToWrite<'k>,
    writer: Writer,
    /// `None` if the package never has the same bytes twice.
    digest: Option<OutputDigest>,
    /// The existing file, if it is up to date.
    up_to_date: Option<Written>,
}

/// Which bill of material: all formats of a package share one, but for a wheel that has another name
/// or version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BillId {
    package_index: usize,
    of_wheel: bool,
}

impl BillId {
    fn of_job(job: &PackageJob<'_, '_>) -> Self {
        let name = sbom::file_name(job.writer.spec(job.package));
        let of_wheel = name != sbom::file_name(&job.package.spec);
        Self { package_index: job.package_index, of_wheel }
    }

    fn spec<'p>(self, package: &'p PackageToWrite<'_>) -> &'p PackageSpec {
        match &package.wheel_spec {
            Some(wheel_spec) if self.of_wheel => wheel_spec,
            _ => &package.spec,
        }
    }

    fn bill(
        self,
        package: &PackageToWrite<'_>,
        file_digests: Vec<String>,
        checksums: Option<Vec<Checksums>>,
    ) -> BillOfMaterial {
        BillOfMaterial {
            target: package.target.clone(),
            spec: self.spec(package).clone(),
            making: package.kdb.map(|kdb| kdb.inputs.making()).unwrap_or_default(),
            file_digests,
            checksums,
        }
    }
}

/// Writes all packages into `out`, except for those that are up to date according
/// to `outputs`.
pub(crate) fn write(
    packages: &[PackageToWrite<'_>],
    options: &PackageOptions,
    signer: Option<&Signer>,
    out: &Path,
    outputs: &Outputs<'_>,
    progress: &dyn Progress,
) -> Result<MadePackages> {
    let file_digests =
        packages.iter().map(|package| file_digests(&package.spec, outputs.records()));
    let file_digests: Vec<Vec<String>> = file_digests.collect::<Result<_>>()?;
    let jobs = jobs(packages, options, signer, outputs, &file_digests);
    warn(&jobs, signer, progress);
    let to_do: Vec<&PackageJob<'_, '_>> =
        jobs.iter().filter(|job| job.up_to_date.is_none()).collect();
    let (at_once, threads) = share(&to_do, memory());
    let write = |job: &&PackageJob<'_, '_>| {
        if progress.cancel().is_cancelled() {
            return Err(interrupted());
        }
        let spec = job.writer.spec(job.package);
        let signer = signer.map(|signer| signer as &dyn Sign);
        let written = job.writer.format.write(spec, out, threads, signer)?;
        if let Some(digest) = &job.digest {
            outputs.remember(digest, &written);
        }
        Ok(written)
    };
    let (written, mut checksums) = std::thread::scope(|scope| {
        // Computed while packages are compressed, which leaves processors idle at
        // times.
        let checksums =
            scope.spawn(|| checksums(packages, &file_digests, &to_do, progress.cancel()));
        let written = each(&to_do, at_once, &write);
        (written, checksums.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut written = written?.into_iter();
    let mut made = MadePackages::default();
    let bills: BTreeSet<BillId> = jobs.iter().map(BillId::of_job).collect();
    for job in jobs {
        let new = job.up_to_date.is_none();
        let Some(written) = job.up_to_date.or_else(|| written.next()) else { continue };
        let (file_name, size) = (&*written.file_name, written.size);
        progress.event(Event::Package { file_name, size, new });
        made.packages.push(described(job.package, &job.writer, written));
    }
    if let Some(signer) = signer {
        sign(&mut made.packages, signer, out)?;
    }
    for id in bills {
        let file_digests = file_digests[id.package_index].clone();
        let checksums = checksums.remove(&id).transpose()?;
        made.bills.push(id.bill(&packages[id.package_index], file_digests, checksums));
    }
    made.tuning = tuning(packages)?;
    Ok(made)
}

/// Warns of packages that will be refused, or taken for newer than they are.
fn warn(jobs: &[PackageJob<'_, '_>], signer: Option<&Signer>, progress: &dyn Progress) {
    let is_rpm = |job: &PackageJob<'_, '_>| matches!(job.writer.format, Format::Rpm { .. });
    let rpms = jobs.iter().any(is_rpm);
    if let Some(signer) = signer {
        if let Some(why) = signer.weakness() {
            progress.warning(&why);
        }
        if let Some(why) = signer.unknown_to_rpm().filter(|_| rpms) {
            progress.warning(why);
        }
    }
    let mut sorted =
        jobs.iter().filter(|job| is_rpm(job) || matches!(job.writer.format, Format::Deb { .. }));
    let version = sorted.find_map(|job| {
        let version = &job.package.spec.version;
        Some((version, before_release(version)?))
    });
    if let Some((version, before)) = version {
        progress.warning(&format!(
            "dpkg and rpm hold the version `{version}` for newer than the release that it comes \
             before: say --package-version '{before}'"
        ));
    }
}

/// The performance and find databases in packages, by the target of their package.
fn tuning(packages: &[PackageToWrite<'_>]) -> Result<Vec<(Option<Target>, Written)>> {
    let mut tuning = Vec::new();
    for package in packages {
        for (name, path) in &package.tuning {
            let written = Written { file_name: name.clone(), ..sums::digest_file(path)? };
            tuning.push((package.target.clone(), written));
        }
    }
    Ok(tuning)
}

/// The jobs for every format of every package.
fn jobs<'p, 'k>(
    packages: &'p [PackageToWrite<'k>],
    options: &PackageOptions,
    signer: Option<&Signer>,
    outputs: &Outputs<'_>,
    file_digests: &[Vec<String>],
) -> Vec<PackageJob<'p, 'k>> {
    let mut jobs = Vec::new();
    for (package_index, package) in packages.iter().enumerate() {
        for writer in writers(package, options) {
            // A signature contains the time.
            let lasting = signer.is_none();
            let digest = lasting
                .then(|| output_digest(outputs, package, &writer, &file_digests[package_index]));
            let up_to_date = digest.as_ref().and_then(|digest| outputs.unchanged(digest));
            jobs.push(PackageJob { package_index, package, writer, digest, up_to_date });
        }
    }
    jobs
}

/// Runs `at_once` jobs at a time. Returns the results in the order of the jobs,
/// or the first error, which stops the other jobs.
fn each<J: Sync, T: Send>(
    jobs: &[J],
    at_once: usize,
    act: &(dyn Fn(&J) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<T>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(position) else { break };
                    let result = act(job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    done.lock().expect("no panic inside")[position] = Some(result);
                }
            });
        }
    });
    done.into_inner().expect("no panic inside").into_iter().flatten().collect()
}

/// SHA-256 of a spec's files, in its order, except for those in memory.
pub(crate) fn file_digests(spec: &PackageSpec, records: &FileRecords<'_>) -> Result<Vec<String>> {
    let mut file_digests = Vec::new();
    for file in &spec.files {
        if let Content::File(path) = &file.content {
            file_digests.push(records.described(path).map_err(error::io("read", path))?.sha256);
        }
    }
    Ok(file_digests)
}

/// The checksums of a spec's files, whose [`file_digests`] are known.
pub(crate) fn bill_checksums(
    spec: &PackageSpec,
    file_digests: &[String],
) -> Result<Vec<Checksums>> {
    let mut known = file_digests.iter().cloned();
    let of_file = |content: &Content| match content {
        Content::Bytes(bytes) => Ok(Checksums::of_bytes(bytes)),
        Content::File(path) => {
            Checksums::of_file(path, known.next().expect("one for each of the spec's files"))
        }
    };
    let checksums = spec.files.iter().map(|file| &file.content).map(of_file);
    checksums.collect()
}

/// The checksums of the files in each bill of material, if one of its packages is to be written.
fn checksums(
    packages: &[PackageToWrite<'_>],
    file_digests: &[Vec<String>],
    to_do: &[&PackageJob<'_, '_>],
    cancel: &Cancel,
) -> BTreeMap<BillId, Result<Vec<Checksums>>> {
    let bills: BTreeSet<BillId> = to_do.iter().map(|job| BillId::of_job(job)).collect();
    let bills = bills.into_iter().take_while(|_| !cancel.is_cancelled());
    bills
        .map(|bill| {
            let index = bill.package_index;
            (bill, bill_checksums(bill.spec(&packages[index]), &file_digests[index]))
        })
        .collect()
}

/// A package that was written or is up to date.
fn described(package: &PackageToWrite<'_>, writer: &Writer, written: Written) -> MadePackage {
    let spec = writer.spec(package);
    let shipped = spec.files.iter().filter(|file| matches!(file.content, Content::File(_)));
    let needed = spec.relations.iter().filter(|it| it.kind == RelationKind::Depends);
    MadePackage {
        target: package.target.clone(),
        name: spec.name.clone(),
        version: format!("{}-{}", spec.version, spec.revision),
        format: writer.name,
        written,
        signature: None,
        installs: shipped.map(|file| file.path.clone()).collect(),
        depends: needed.map(|it| it.name.clone()).collect(),
    }
}

/// The digest of a package. The spec has only the paths of files, so their
/// digests are added.
fn output_digest(
    outputs: &Outputs<'_>,
    package: &PackageToWrite<'_>,
    writer: &Writer,
    file_digests: &[String],
) -> OutputDigest {
    let name = format!("{} {}", writer.name, package.spec.name);
    let decides = format!("{writer:?} {:?}", writer.spec(package));
    let fields = file_digests.iter().map(String::as_bytes);
    outputs.digest_of(&name, std::iter::once(decides.as_bytes()).chain(fields))
}

/// Bytes of memory that compressors may take: half of what is free.
fn memory() -> u64 {
    gfxpack_process::available_memory().map_or(512 << 20, |free| free / 2)
}

/// How many packages are written at once, and with how many threads each.
fn share(jobs: &[&PackageJob<'_, '_>], memory: u64) -> (usize, usize) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let memory_of =
        |job: &&PackageJob<'_, '_>, threads| job.writer.format.compression().memory(threads);
    let largest = |threads| jobs.iter().map(|job| memory_of(job, threads)).max().unwrap_or(1);
    // A single package ends with one thread compressing its last block, so
    // several packages with few threads each are faster.
    let at_once = (1..=processors.min(jobs.len()).max(1))
        .rev()
        .find(|count| largest(processors.div_ceil(*count)).saturating_mul(*count as u64) <= memory);
    let at_once = at_once.unwrap_or(1);
    let threads = processors.div_ceil(at_once);
    // If memory is short, one thread is used in any case.
    let threads = (1..=threads).rev().find(|threads| largest(*threads) <= memory).unwrap_or(1);
    (at_once, threads)
}

/// Writes the detached signatures of packages, for formats that can't contain one.
fn sign(packages: &mut [MadePackage], signer: &Signer, out: &Path) -> Result<()> {
    for package in packages.iter_mut().filter(|package| package.format != "rpm") {
        let signature = signer.armoured_file(&package.written.path)?;
        let path = out.join(format!("{}.asc", package.written.file_name));
        destination::replace(&path, &signature)?;
        package.signature = Some(sums::digest_file(&path)?);
    }
    Ok(())
}

/// Checks that all formats can hold the packages; for wheels, `wheel_specs`.
pub(crate) fn check(
    specs: &[PackageSpec],
    wheel_specs: &[PackageSpec],
    options: &PackageOptions,
) -> Result<()> {
    for writer in formats(options) {
        let specs = if writer.format == Format::Wheel { wheel_specs } else { specs };
        let mut fitting = specs.iter().filter(|spec| writer.fits(spec));
        fitting.try_for_each(|spec| writer.format.check(spec))?;
    }
    Ok(())
}

/// A format with its name.
#[derive(Debug)]
struct Writer {
    name: &'static str,
    format: Format,
}

/// The writers of a package.
fn writers(package: &PackageToWrite<'_>, options: &PackageOptions) -> Vec<Writer> {
    let fits = |writer: &Writer| {
        writer.fits(&package.spec)
            && (writer.format != Format::Wheel || package.wheel_spec.is_some())
    };
    formats(options).into_iter().filter(fits).collect()
}

/// The writers for the requested formats.
fn formats(options: &PackageOptions) -> Vec<Writer> {
    let chosen = FORMATS.iter().filter(|(.., format)| options.formats.contains(format));
    let writer = |(name, _, format): &(&'static str, _, Format)| Writer {
        name,
        format: format.compressed(options.compression),
    };
    chosen.map(writer).collect()
}

impl Writer {
    /// Whether the package can be written in this format. A metapackage has only
    /// dependencies, which a tarball, wheel or image can't express.
    fn fits(&self, spec: &PackageSpec) -> bool {
        spec.section != "metapackages" || self.format.has_dependencies()
    }

    /// The spec of a package in this format.
    fn spec<'p>(&self, package: &'p PackageToWrite<'_>) -> &'p PackageSpec {
        match (self.format, &package.wheel_spec) {
            (Format::Wheel, Some(wheel_spec)) => wheel_spec,
            _ => &package.spec,
        }
    }
}
