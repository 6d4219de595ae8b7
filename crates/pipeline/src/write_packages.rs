//! Writes packages in every format, several at once as memory allows, and the
//! signatures beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gfxpack_compile::interrupted;
use gfxpack_model::Target;
use gfxpack_model::package::{Content, PackageSpec, RelationKind};
use gfxpack_package::sbom::{BuildProvenance, Checksums};
use gfxpack_package::signing::Signer;
use gfxpack_package::{FORMATS, Format, Sign, Written, before_release, sbom, sums};
use gfxpack_process::ScratchDir;
use rayon::prelude::*;

use crate::build::MadeKdb;
use crate::destination;
use crate::error::{self, Result};
use crate::options::PackageOptions;
use crate::outputs::{FileRecords, OutputDigest, Outputs};
use crate::progress::{Event, Progress};
use crate::record::{File, Package};

/// A package that was written.
pub struct MadePackage {
    /// The target of its kernels; `None` for a family's package.
    pub target: Option<Target>,
    /// What the manifest says of it.
    pub package: Package,
    /// The file.
    pub written: Written,
    /// Its detached signature, if it is signed and can't contain a signature.
    pub signature: Option<Written>,
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
    /// Checksums of the spec's files, if a package with them was written.
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
    /// The directory with files that were merged for families' packages, of which bills tell.
    pub(crate) _merged_files: Option<ScratchDir>,
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

/// Writes all packages into the directory of `outputs`, except for those that are up to date
/// according to it.
pub(crate) fn write(
    packages: &[PackageToWrite<'_>],
    options: &PackageOptions,
    signer: Option<&Signer>,
    outputs: &Outputs<'_>,
    progress: &dyn Progress,
) -> Result<MadePackages> {
    let out = &*outputs.given;
    let file_digests = packages.iter().map(|package| file_digests(&package.spec, &outputs.records));
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
    let pool = rayon::ThreadPoolBuilder::new().num_threads(at_once).build();
    let pool = pool.expect("threads can be started");
    let mut bills = bills(&jobs, &file_digests);
    // Computed while packages are compressed, which leaves processors idle at times.
    let (written, summed) = rayon::join(
        || pool.install(|| to_do.par_iter().with_max_len(1).map(write).collect::<Result<Vec<_>>>()),
        || {
            let wanted = to_do.iter().map(|job| job.bill()).collect::<BTreeSet<_>>().into_iter();
            let sums = wanted.take_while(|_| !progress.cancel().is_cancelled());
            let sums =
                sums.map(|id| Ok((id, checksums(&bills[&id].spec, &bills[&id].file_digests)?)));
            sums.collect::<Result<Vec<_>>>()
        },
    );
    let mut written = written?.into_iter();
    for (id, checksums) in summed? {
        bills.entry(id).and_modify(|bill| bill.checksums = Some(checksums));
    }
    let mut made = MadePackages::default();
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
    made.bills = bills.into_values().collect();
    made.tuning = tuning(packages)?;
    Ok(made)
}

impl PackageJob<'_, '_> {
    /// Identifies the bill of the package. All formats share one, but for a wheel that has another
    /// name or version.
    fn bill(&self) -> (usize, bool) {
        let own = sbom::file_name(self.writer.spec(self.package));
        (self.package_index, own != sbom::file_name(&self.package.spec))
    }
}

/// The bills of the packages.
fn bills(
    jobs: &[PackageJob<'_, '_>],
    file_digests: &[Vec<String>],
) -> BTreeMap<(usize, bool), BillOfMaterial> {
    let mut bills = BTreeMap::new();
    for job in jobs {
        let package = job.package;
        bills.entry(job.bill()).or_insert_with(|| BillOfMaterial {
            target: package.target.clone(),
            spec: job.writer.spec(package).clone(),
            making: package.kdb.map(|kdb| kdb.inputs.making()).unwrap_or_default(),
            file_digests: file_digests[job.package_index].clone(),
            checksums: None,
        });
    }
    bills
}

/// The checksums of a spec's files, whose SHA-256 are known.
pub(crate) fn checksums(spec: &PackageSpec, file_digests: &[String]) -> Result<Vec<Checksums>> {
    let mut known = file_digests.iter().cloned();
    let of_file = |content: &Content| match content {
        Content::Bytes(bytes) => Ok(Checksums::of_bytes(bytes)),
        Content::File(path) => {
            Checksums::of_file(path, known.next().expect("one for each of the spec's files"))
        }
    };
    spec.files.iter().map(|file| &file.content).map(of_file).collect()
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

/// SHA-256 of a spec's files, in its order, except for those in memory.
fn file_digests(spec: &PackageSpec, records: &FileRecords<'_>) -> Result<Vec<String>> {
    let mut file_digests = Vec::new();
    for file in &spec.files {
        if let Content::File(path) = &file.content {
            file_digests.push(records.described(path).map_err(error::io("read", path))?.sha256);
        }
    }
    Ok(file_digests)
}

/// A package that was written or is up to date.
fn described(package: &PackageToWrite<'_>, writer: &Writer, written: Written) -> MadePackage {
    let spec = writer.spec(package);
    let shipped = spec.files.iter().filter(|file| matches!(file.content, Content::File(_)));
    let needed = spec.relations.iter().filter(|it| it.kind == RelationKind::Depends);
    MadePackage {
        target: package.target.clone(),
        package: Package {
            format: writer.name.to_owned(),
            name: spec.name.clone(),
            version: format!("{}-{}", spec.version, spec.revision),
            file: File::new(&written),
            installs: shipped.map(|file| file.path.clone()).collect(),
            depends: needed.map(|it| it.name.clone()).collect(),
        },
        written,
        signature: None,
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
    for package in packages.iter_mut().filter(|package| package.package.format != "rpm") {
        let signature = signer.armoured_file(&package.written.path)?;
        let path = out.join(format!("{}.asc", package.written.file_name));
        destination::replace(&path, &signature)?;
        package.signature = Some(sums::digest_file(&path)?);
    }
    Ok(())
}

/// Checks that all formats can hold the packages.
pub(crate) fn check(packages: &[PackageToWrite<'_>], options: &PackageOptions) -> Result<()> {
    for package in packages {
        for writer in writers(package, options) {
            writer.format.check(writer.spec(package))?;
        }
    }
    Ok(())
}

/// A format with its name.
#[derive(Debug)]
struct Writer {
    name: &'static str,
    format: Format,
}

/// The writers of a package, of the formats that are wanted. A metapackage has only dependencies,
/// which a tarball, wheel or image can't express.
fn writers(package: &PackageToWrite<'_>, options: &PackageOptions) -> Vec<Writer> {
    let fits = |(.., format): &&(_, _, Format)| {
        options.format.contains(format)
            && (package.spec.section != "metapackages" || format.has_dependencies())
            && (*format != Format::Wheel || package.wheel_spec.is_some())
    };
    let writer = |(name, _, format): &(&'static str, _, Format)| {
        let format = format.compressed(options.compression);
        Writer { name, format }
    };
    FORMATS.iter().filter(fits).map(writer).collect()
}

impl Writer {
    /// The spec of a package in this format.
    fn spec<'p>(&self, package: &'p PackageToWrite<'_>) -> &'p PackageSpec {
        match (self.format, &package.wheel_spec) {
            (Format::Wheel, Some(wheel_spec)) => wheel_spec,
            _ => &package.spec,
        }
    }
}
