//! Packages kdbs in every format asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, CompileError};
use gfxpack_package::deb::DebOptions;
use gfxpack_package::rpm::RpmOptions;
use gfxpack_package::tar::TarOptions;
use gfxpack_package::{Compression, Written, deb, rpm, sums, tar};
use gfxpack_plan::Target;
use gfxpack_plan::kernel_package::{self, Contents, Layout, Release, SourceLicense};
use gfxpack_plan::package::PackageSpec;

use crate::args::{Format, LayoutArg, Packaging};
use crate::environment::Environment;
use crate::fail;
use crate::output::Output;
use crate::outputs::Outputs;
use crate::prepare::Library;

/// Maintainer of packages whose maker does not say who he is.
const UNKNOWN_MAINTAINER: &str = "Unknown <unknown@example.org>";
/// SPDX's word for a licence that nobody stated.
const UNKNOWN_LICENSE: &str = "LicenseRef-Unknown";

/// One package, written.
pub(crate) struct MadePackage {
    pub(crate) target: Target,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) format: &'static str,
    pub(crate) written: Written,
}

/// What all packages of this run have in common.
pub(crate) fn release(
    args: &Packaging,
    library: &Library,
    environment: &Environment,
    output: &Output,
) -> anyhow::Result<Release> {
    let layout = match (&args.prefix, args.layout) {
        (Some(prefix), _) => Layout::Prefix(prefix.clone()),
        (None, LayoutArg::Rocm) => Layout::Rocm { version: args.rocm_version.clone() },
        (None, LayoutArg::Fhs) => Layout::Fhs,
        (None, LayoutArg::Debian) => Layout::Debian,
    };
    if args.rocm_version.is_some() && !matches!(layout, Layout::Rocm { .. }) {
        return Err(fail::usage(
            "failed to use --rocm-version: the kdb is not installed below /opt/rocm-VERSION",
            "leave it out, or use --layout rocm",
        ));
    }
    let stated = SourceLicense {
        license: args.license.clone().unwrap_or_else(|| UNKNOWN_LICENSE.to_owned()),
        copyright: args
            .copyright
            .clone()
            .unwrap_or_else(|| "the authors of the kernels".to_owned()),
    };
    let licenses = library
        .licenses
        .iter()
        .flat_map(|(source, known)| {
            let unknown = known.is_empty().then_some(&stated);
            known.iter().chain(unknown).map(move |license| (source.clone(), license.clone()))
        })
        .collect();
    if args.license.is_none() && library.licenses.values().any(BTreeSet::is_empty) {
        output.warn(
            "the licence of the kernels is not known: say it with --license, as --license MIT",
        );
    }
    let maintainer = [&args.maintainer, &environment.maintainer, &library.maintainer];
    let maintainer = maintainer.into_iter().flatten().next().cloned().unwrap_or_else(|| {
        output.warn(
            "nobody is named as maintainer of the packages: say it with --maintainer 'NAME <MAIL>'",
        );
        UNKNOWN_MAINTAINER.to_owned()
    });
    Ok(Release {
        library: library.name.clone().unwrap_or_else(|| "MIOpen kernels".to_owned()),
        description: library.description.clone().unwrap_or_default(),
        homepage: library.homepage.clone().unwrap_or_default(),
        version: args
            .package_version
            .clone()
            .or_else(|| library.version.clone())
            .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        revision: args.revision.clone(),
        maintainer,
        licenses,
        layout,
        name_template: args.name_template.clone(),
        source_date_epoch: environment.epoch()?,
    })
}

/// Writes the packages of one kdb into `out`, but for those that `outputs`
/// knows to lie there already.
pub(crate) fn write(
    release: &Release,
    contents: &Contents,
    args: &Packaging,
    out: &Path,
    outputs: Option<&Outputs>,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Vec<MadePackage>> {
    let spec = kernel_package::spec(release, contents);
    let kdb = sums::digest_file(&contents.kdb)?.sha256;
    let mut made = Vec::new();
    for (format, writer) in writers(args) {
        if cancel.is_cancelled() {
            return Err(CompileError::Interrupted.into());
        }
        // The spec names the kdb by its path, so its content stands beside it.
        let known = outputs.map(|outputs| {
            let slot = format!("{format} {}", contents.target.kdb_file_name());
            let decides = format!("{writer:?} {spec:?}");
            (outputs, outputs.recipe(&slot, [decides.as_bytes(), kdb.as_bytes()]))
        });
        let unchanged = known.as_ref().and_then(|(outputs, recipe)| outputs.unchanged(recipe));
        let verb = if unchanged.is_some() { "unchanged" } else { "packaged" };
        let written = match unchanged {
            Some(written) => written,
            None => {
                let written = writer.write(&spec, out)?;
                known.iter().for_each(|(outputs, recipe)| outputs.remember(recipe, &written));
                written
            }
        };
        let size = crate::output::size(written.size);
        output.say(&format!("{verb} {} ({size})", written.file_name));
        made.push(MadePackage {
            target: contents.target.clone(),
            name: spec.name.clone(),
            version: format!("{}-{}", spec.version, spec.revision),
            format,
            written,
        });
    }
    Ok(made)
}

/// Whether packages for these targets could be written: what is wrong with
/// their names or versions is worth knowing before hours of compiling.
pub(crate) fn check<'a>(
    release: &Release,
    targets: impl Iterator<Item = &'a Target>,
    args: &Packaging,
) -> anyhow::Result<()> {
    for target in targets {
        let contents = Contents {
            target: target.clone(),
            kdb: PathBuf::new(),
            kernels: 0,
            missing: 0,
            compiler: String::new(),
        };
        let spec = kernel_package::spec(release, &contents);
        for (_, writer) in writers(args) {
            writer.check(&spec)?;
        }
    }
    Ok(())
}

/// A format with its options.
#[derive(Debug)]
enum Writer {
    Deb(DebOptions),
    Rpm(RpmOptions),
    Tar(TarOptions),
}

/// The writers asked for, by their formats' names, each once.
fn writers(args: &Packaging) -> Vec<(&'static str, Writer)> {
    let mut formats = args.format.clone();
    formats.sort();
    formats.dedup();
    let tarball = |compression| Writer::Tar(TarOptions { compression, ..TarOptions::default() });
    let writer = |format| match format {
        Format::Deb => {
            let compression = args.deb_compression;
            ("deb", Writer::Deb(DebOptions { compression, ..DebOptions::default() }))
        }
        Format::Rpm => {
            let compression = args.rpm_compression;
            ("rpm", Writer::Rpm(RpmOptions { compression, ..RpmOptions::default() }))
        }
        Format::TarGz => ("tar.gz", tarball(Compression::Gz { level: 6 })),
        Format::TarZst => ("tar.zst", tarball(Compression::Zst { level: 3 })),
        Format::TarXz => ("tar.xz", tarball(Compression::Xz { level: 6 })),
    };
    formats.into_iter().map(writer).collect()
}

impl Writer {
    fn check(&self, spec: &PackageSpec) -> Result<(), gfxpack_package::Error> {
        match self {
            Self::Deb(options) => deb::check(spec, options),
            Self::Rpm(options) => rpm::check(spec, options),
            Self::Tar(options) => tar::check(spec, options),
        }
    }

    fn write(&self, spec: &PackageSpec, out: &Path) -> Result<Written, gfxpack_package::Error> {
        match self {
            Self::Deb(options) => deb::write(spec, out, options),
            Self::Rpm(options) => rpm::write(spec, out, options),
            Self::Tar(options) => tar::write(spec, out, options),
        }
    }
}

/// The target that a kdb's file name says.
pub(crate) fn target_of(path: &Path) -> anyhow::Result<Target> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let named = path.extension().is_some_and(|extension| extension == "kdb");
    stem.parse::<Target>().ok().filter(|_| named).ok_or_else(|| {
        fail::usage(
            format!("failed to tell the target of `{}` by its name", path.display()),
            "name it as MIOpen looks for it, as gfx906_60.kdb or gfx90a.kdb",
        )
    })
}
