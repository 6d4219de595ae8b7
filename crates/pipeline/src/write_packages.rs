//! Writes packages in every format, several at once as memory allows, and the
//! signatures beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

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
use crate::progress::Progress;
use crate::record::{File, Package};
use crate::text::size;

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

/// A package to be written, in one format.
pub(crate) struct PackageToWrite<'a> {
    spec: Arc<PackageSpec>,
    format_name: &'static str,
    format: Format,
    /// The kdb in it, if any.
    kdb: Option<&'a MadeKdb>,
    /// The target, if the package is for a single one.
    target: Option<Target>,
    /// The number of its bill of material. All formats share one, but for a wheel that has another
    /// name or version.
    bill: usize,
}

/// Adds a package in every format that is wanted, as a wheel by the spec of its own. A metapackage
/// has only dependencies, which a tarball, wheel or image can't express.
pub(crate) fn add<'a>(
    packages: &mut Vec<PackageToWrite<'a>>,
    options: &PackageOptions,
    spec: PackageSpec,
    wheel_spec: Option<PackageSpec>,
    kdb: Option<&'a MadeKdb>,
    target: Option<&Target>,
) {
    let is_meta = spec.section == "metapackages";
    let main_bill = sbom::file_name(&spec);
    let (spec, wheel_spec) = (Arc::new(spec), wheel_spec.map(Arc::new));
    let bill = packages.iter().map(|package| package.bill + 1).max().unwrap_or_default();
    for (format_name, _, format) in &FORMATS {
        let spec = if *format == Format::Wheel { wheel_spec.as_ref() } else { Some(&spec) };
        let fits = options.format.contains(format) && (!is_meta || format.has_dependencies());
        let Some(spec) = spec.filter(|_| fits) else { continue };
        packages.push(PackageToWrite {
            spec: Arc::clone(spec),
            format_name,
            format: format.compressed(options.compression),
            kdb,
            target: target.cloned(),
            bill: bill + usize::from(sbom::file_name(spec) != main_bill),
        });
    }
}

impl PackageToWrite<'_> {
    /// The digest of the package. The spec has only the paths of files, so their digests are added.
    fn digest(&self, outputs: &Outputs<'_>, file_digests: &[String]) -> OutputDigest {
        let Self { spec, format_name, format, .. } = self;
        let name = format!("{format_name} {}", spec.name);
        let decides = format!("{format_name} {format:?} {spec:?}");
        let fields = file_digests.iter().map(String::as_bytes);
        outputs.digest_of(&name, std::iter::once(decides.as_bytes()).chain(fields))
    }

    /// The package, which was written or is up to date.
    fn made(&self, written: Written) -> MadePackage {
        let spec = &self.spec;
        let shipped = spec.files.iter().filter(|file| matches!(file.content, Content::File(_)));
        let needed = spec.relations.iter().filter(|it| it.kind == RelationKind::Depends);
        MadePackage {
            target: self.target.clone(),
            package: Package {
                format: self.format_name.to_owned(),
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
}

/// The contents of a package's bill of material, without its archives: those of
/// earlier runs are known only when the directory's manifest is written.
pub(crate) struct BillOfMaterial {
    /// The target of the package; `None` for a family's.
    pub(crate) target: Option<Target>,
    pub(crate) spec: Arc<PackageSpec>,
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
    pub tuning: Vec<(Target, Written)>,
    /// The directory with files that were merged for families' packages, of which bills tell.
    pub(crate) _merged_files: Option<ScratchDir>,
}

/// Writes all packages into the directory of `outputs`, except for those that are up to date
/// according to it.
pub(crate) fn write(
    packages: &[PackageToWrite<'_>],
    signer: Option<&Signer>,
    outputs: &Outputs<'_>,
    progress: &dyn Progress,
) -> Result<MadePackages> {
    let out = &*outputs.given;
    let file_digests = packages.iter().map(|package| file_digests(&package.spec, &outputs.records));
    let file_digests: Vec<Vec<String>> = file_digests.collect::<Result<_>>()?;
    let all = || packages.iter().zip(&file_digests);
    let up_to_date = |(package, file_digests): (&PackageToWrite<'_>, &Vec<String>)| {
        // A signature contains the time.
        let lasting = signer.is_none().then(|| package.digest(outputs, file_digests));
        lasting.and_then(|digest| outputs.unchanged(&digest))
    };
    let known: Vec<Option<Written>> = all().map(up_to_date).collect();
    warn(packages, signer, progress);
    let to_do = all().zip(&known).filter(|(_, known)| known.is_none());
    let to_do: Vec<(&PackageToWrite<'_>, &Vec<String>)> = to_do.map(|(job, _)| job).collect();
    // Compressors may take half of what is free.
    let memory = gfxpack_process::available_memory().map_or(512 << 20, |free| free / 2);
    let (at_once, threads) = share(&to_do, memory);
    let write = |(package, file_digests): &(&PackageToWrite<'_>, &Vec<String>)| {
        if progress.cancel().is_cancelled() {
            return Err(interrupted());
        }
        let sign = signer.map(|signer| signer as &dyn Sign);
        let written = package.format.write(&package.spec, out, threads, sign)?;
        if signer.is_none() {
            outputs.remember(&package.digest(outputs, file_digests), &written);
        }
        Ok(written)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(at_once).build();
    let pool = pool.expect("threads can be started");
    let mut bills: BTreeMap<usize, BillOfMaterial> = BTreeMap::new();
    for (package, file_digests) in all() {
        bills.entry(package.bill).or_insert_with(|| BillOfMaterial {
            target: package.target.clone(),
            spec: Arc::clone(&package.spec),
            making: package.kdb.map(|kdb| kdb.inputs.making()).unwrap_or_default(),
            file_digests: file_digests.clone(),
            checksums: None,
        });
    }
    // Computed while packages are compressed, which leaves processors idle at times.
    let (written, summed) = rayon::join(
        || pool.install(|| to_do.par_iter().with_max_len(1).map(write).collect::<Result<Vec<_>>>()),
        || {
            let wanted: BTreeSet<usize> = to_do.iter().map(|(package, _)| package.bill).collect();
            let sums = wanted.into_iter().take_while(|_| !progress.cancel().is_cancelled());
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
    for (package, known) in packages.iter().zip(known) {
        let verb = if known.is_some() { "unchanged" } else { "packaged" };
        let Some(written) = known.or_else(|| written.next()) else { continue };
        progress.info(&format!("{verb} {} ({})", written.file_name, size(written.size)));
        made.packages.push(package.made(written));
    }
    if let Some(signer) = signer {
        sign(&mut made.packages, signer, out)?;
    }
    made.bills = bills.into_values().collect();
    Ok(made)
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
fn warn(packages: &[PackageToWrite<'_>], signer: Option<&Signer>, progress: &dyn Progress) {
    let is_rpm = |package: &PackageToWrite<'_>| matches!(package.format, Format::Rpm { .. });
    let rpms = packages.iter().any(is_rpm);
    if let Some(signer) = signer {
        if let Some(why) = signer.weakness() {
            progress.warning(&why);
        }
        if let Some(why) = signer.unknown_to_rpm().filter(|_| rpms) {
            progress.warning(why);
        }
    }
    let mut sorted =
        packages.iter().filter(|it| is_rpm(it) || matches!(it.format, Format::Deb { .. }));
    let version = sorted.find_map(|package| {
        let version = &package.spec.version;
        Some((version, before_release(version)?))
    });
    if let Some((version, before)) = version {
        progress.warning(&format!(
            "dpkg and rpm hold the version `{version}` for newer than the release that it comes \
             before: say --package-version '{before}'"
        ));
    }
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

/// How many packages are written at once, and with how many threads each.
fn share(to_do: &[(&PackageToWrite<'_>, &Vec<String>)], memory: u64) -> (usize, usize) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let compressions = || to_do.iter().map(|(package, _)| package.format.compression());
    let largest = |threads| compressions().map(|one| one.memory(threads)).max().unwrap_or(1);
    // A single package ends with one thread compressing its last block, so
    // several packages with few threads each are faster.
    let at_once = (1..=processors.min(to_do.len()).max(1))
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
pub(crate) fn check(packages: &[PackageToWrite<'_>]) -> Result<()> {
    packages.iter().try_for_each(|package| package.format.check(&package.spec))
}
