//! Writes planned packages in every format asked for, several at once as
//! memory allows, with the signatures beside them.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gfxpack_compile::{Cancel, CompileError};
use gfxpack_model::Target;
use gfxpack_model::package::{Content, PackageSpec, RelationKind};
use gfxpack_package::deb::DebOptions;
use gfxpack_package::rpm::RpmOptions;
use gfxpack_package::sbom::Making;
use gfxpack_package::signing::Signer;
use gfxpack_package::tar::TarOptions;
use gfxpack_package::{Compression, Written, deb, rpm, sums, tar};

use crate::destination;
use crate::error::{self, Result};
use crate::options::{PackageFormat, PackageOptions};
use crate::outputs::{Outputs, Recipe};
use crate::packages::Planned;
use crate::progress::{Event, Progress};

/// One package, written.
pub struct MadePackage {
    /// The target it is for; none for a family's.
    pub target: Option<Target>,
    /// The package's name.
    pub name: String,
    /// Its version and revision.
    pub version: String,
    /// Its format, as file names end.
    pub format: &'static str,
    /// The file.
    pub written: Written,
    /// Where it installs the kdb and what is shipped with it.
    pub installs: Vec<String>,
    /// The names of packages that it can't be installed without.
    pub depends: Vec<String>,
}

/// What the bill of material of a package says, but for its archives: those
/// of earlier runs are known only when the directory's manifest is written.
pub(crate) struct Bill {
    /// The target of the package; none for a family's.
    pub target: Option<Target>,
    pub spec: PackageSpec,
    pub making: Making,
}

/// What was written.
#[derive(Default)]
pub struct MadePackages {
    /// The packages.
    pub packages: Vec<MadePackage>,
    /// Signatures, by the target of their package.
    pub signatures: Vec<(Option<Target>, Written)>,
    /// Bills of material that are still to be written.
    pub(crate) bills: Vec<Bill>,
    /// Performance and find databases, by the target of the package that holds
    /// them.
    pub tuning: Vec<(Option<Target>, Written)>,
}

/// A package, and whether it is new.
type Done = Result<(Written, bool)>;

/// Writes all packages into `out`, but for those that `outputs` knows to lie
/// there already.
pub(crate) fn write(
    planned: &[Planned<'_>],
    options: &PackageOptions,
    signer: Option<&Signer>,
    out: &Path,
    outputs: Option<&Outputs>,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<MadePackages> {
    let jobs: Vec<(&Planned<'_>, Writer)> = planned
        .iter()
        .flat_map(|planned| writers(&planned.spec, options).into_iter().map(move |w| (planned, w)))
        .collect();
    let rpms = jobs.iter().any(|(_, writer)| writer.kind == Kind::Rpm);
    if let Some(why) = signer.filter(|_| rpms).and_then(Signer::unknown_to_rpm) {
        progress.warning(why);
    }
    // A signature has the time in it.
    let outputs = outputs.filter(|_| signer.is_none());
    let mut recipes = Vec::with_capacity(jobs.len());
    for (planned, writer) in &jobs {
        recipes.push(match outputs {
            Some(outputs) => Some((outputs, recipe(outputs, planned, writer)?)),
            None => None,
        });
    }
    let (at_once, threads) = share(&jobs, options.memory);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Done>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some((planned, writer)) = jobs.get(position) else { break };
                    let known = recipes[position].as_ref();
                    let lies_there = known.and_then(|(outputs, recipe)| outputs.unchanged(recipe));
                    let written = if cancel.is_cancelled() {
                        Err(CompileError::Interrupted.into())
                    } else if let Some(written) = lies_there {
                        Ok((written, false))
                    } else {
                        let written = writer.write(&planned.spec, out, threads, signer);
                        if let (Ok(written), Some((outputs, recipe))) = (&written, known) {
                            outputs.remember(recipe, written);
                        }
                        written.map(|written| (written, true)).map_err(Into::into)
                    };
                    // What can't be written ends the rest, which would be in vain.
                    if written.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    done.lock().expect("no panic inside")[position] = Some(written);
                }
            });
        }
    });
    let done = done.into_inner().expect("no panic inside");
    let mut made = MadePackages::default();
    let mut first_error = None;
    for ((planned, writer), written) in jobs.iter().zip(done) {
        match written {
            Some(Ok((written, new))) => {
                let (file_name, size) = (&*written.file_name, written.size);
                progress.event(Event::Package { file_name, size, new });
                let spec = &planned.spec;
                let shipped =
                    spec.files.iter().filter(|file| matches!(file.content, Content::File(_)));
                let needed = spec.relations.iter().filter(|it| it.kind == RelationKind::Depends);
                made.packages.push(MadePackage {
                    target: planned.target.clone(),
                    name: spec.name.clone(),
                    version: format!("{}-{}", spec.version, spec.revision),
                    format: writer.format,
                    written,
                    installs: shipped.map(|file| file.path.clone()).collect(),
                    depends: needed.map(|it| it.name.clone()).collect(),
                });
            }
            Some(Err(error)) => {
                first_error.get_or_insert(error);
            }
            None => {}
        }
    }
    if let Some(error) = first_error {
        return Err(error);
    }
    for planned in planned {
        if let Some(signer) = signer {
            sign(planned, &mut made, signer, out)?;
        }
        made.bills.push(Bill {
            target: planned.target.clone(),
            spec: planned.spec.clone(),
            making: planned.kdb.map(|kdb| kdb.origin.making()).unwrap_or_default(),
        });
        for (name, path) in &planned.tuning {
            let written = Written { file_name: name.clone(), ..sums::digest_file(path)? };
            made.tuning.push((planned.target.clone(), written));
        }
    }
    Ok(made)
}

/// Everything that decides a package's bytes. The spec names files by their
/// paths, so their contents stand beside it.
fn recipe(outputs: &Outputs, planned: &Planned<'_>, writer: &Writer) -> Result<Recipe> {
    let slot = format!("{} {}", writer.format, planned.spec.name);
    let decides = format!("{writer:?} {:?}", planned.spec);
    let mut contents = Vec::new();
    for file in &planned.spec.files {
        if let Content::File(path) = &file.content {
            contents.push(sums::digest_file(path)?.sha256);
        }
    }
    let fields = contents.iter().map(String::as_bytes);
    Ok(outputs.recipe(&slot, std::iter::once(decides.as_bytes()).chain(fields)))
}

/// How many packages are written at once, and with how many threads each.
fn share(jobs: &[(&Planned<'_>, Writer)], memory: u64) -> (usize, usize) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let largest = |threads| {
        jobs.iter().map(|(_, writer)| writer.compression.memory(threads)).max().unwrap_or(1)
    };
    // A package at a time ends with one thread at work on its last block, so
    // several packages of few threads each are faster.
    let at_once = (1..=processors.min(jobs.len()).max(1))
        .rev()
        .find(|count| largest(processors.div_ceil(*count)).saturating_mul(*count as u64) <= memory);
    let at_once = at_once.unwrap_or(1);
    let threads = processors.div_ceil(at_once);
    // The last resort of a small bound is one thread.
    let threads = (1..=threads).rev().find(|threads| largest(*threads) <= memory).unwrap_or(1);
    (at_once, threads)
}

/// The signatures that lie beside one package: of the formats that have no
/// place for one.
fn sign(planned: &Planned<'_>, made: &mut MadePackages, signer: &Signer, out: &Path) -> Result<()> {
    let own = |package: &&MadePackage| {
        package.name == planned.spec.name && package.target == planned.target
    };
    for package in made.packages.iter().filter(own).filter(|package| package.format != "rpm") {
        let signature = signer.armoured_file(&package.written.path)?;
        let path = out.join(format!("{}.asc", package.written.file_name));
        destination::replace(&path, &signature).map_err(error::io("write", &path))?;
        made.signatures.push((planned.target.clone(), sums::digest_file(&path)?));
    }
    Ok(())
}

/// Whether all formats could hold the package.
pub(crate) fn check(spec: &PackageSpec, options: &PackageOptions) -> Result<()> {
    Ok(writers(spec, options).into_iter().try_for_each(|writer| writer.check(spec))?)
}

/// A format with its compression.
#[derive(Debug)]
struct Writer {
    format: &'static str,
    kind: Kind,
    compression: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deb { md5sums: bool },
    Rpm,
    Tar,
}

/// The writers asked for, each once. A tarball of nothing but a dependency is
/// nothing.
fn writers(spec: &PackageSpec, options: &PackageOptions) -> Vec<Writer> {
    let mut formats = options.formats.clone();
    formats.sort();
    formats.dedup();
    let writer = |format: PackageFormat| {
        let (format, kind, compression) = match format {
            PackageFormat::Deb => {
                ("deb", Kind::Deb { md5sums: options.md5sums }, options.deb_compression)
            }
            PackageFormat::Rpm => ("rpm", Kind::Rpm, options.rpm_compression),
            PackageFormat::TarGz => ("tar.gz", Kind::Tar, Compression::Gz { level: 6 }),
            PackageFormat::TarZst => ("tar.zst", Kind::Tar, Compression::Zst { level: 3 }),
            PackageFormat::TarXz => ("tar.xz", Kind::Tar, Compression::Xz { level: 6 }),
        };
        Writer { format, kind, compression }
    };
    let meta = spec.section == "metapackages";
    let fits = |writer: &Writer| !meta || writer.kind != Kind::Tar;
    formats.into_iter().map(writer).filter(fits).collect()
}

impl Writer {
    fn check(&self, spec: &PackageSpec) -> Result<(), gfxpack_package::Error> {
        let (compression, threads) = (self.compression, 1);
        match self.kind {
            Kind::Deb { md5sums } => {
                deb::check(spec, &DebOptions { compression, threads, md5sums })
            }
            Kind::Rpm => rpm::check(spec, &RpmOptions { compression, threads }),
            Kind::Tar => tar::check(spec, &TarOptions { compression, threads }),
        }
    }

    fn write(
        &self,
        spec: &PackageSpec,
        out: &Path,
        threads: usize,
        signer: Option<&Signer>,
    ) -> Result<Written, gfxpack_package::Error> {
        let compression = self.compression;
        match self.kind {
            Kind::Deb { md5sums } => {
                deb::write(spec, out, &DebOptions { compression, threads, md5sums })
            }
            Kind::Rpm => {
                let signer = signer.map(|signer| signer as &dyn gfxpack_package::Sign);
                rpm::write_signed(spec, out, &RpmOptions { compression, threads }, signer)
            }
            Kind::Tar => tar::write(spec, out, &TarOptions { compression, threads }),
        }
    }
}
