//! Which packages are made from kdbs, and what they share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::package::PackageSpec;
use gfxpack_model::{InstallLayout, Target};
use gfxpack_package::signing::Signer;
use gfxpack_package::{Format, Written, sums};
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::{self, KdbToPackage, Release, SourceLicense};
use gfxpack_process::{ScratchDir, temporary_dir};

use crate::build::MadeKdb;
use crate::environment::ENVIRONMENT;
use crate::error::{self, Result};
use crate::kdb_inputs::KdbInputs;
use crate::kernel_library::{KernelLibrary, LibraryFacts};
use crate::ledger::{self, AbsentCounts, Reason};
use crate::options::PackageOptions;
use crate::outputs::Outputs;
use crate::progress::Progress;
use crate::shipped_databases::ShippedDatabases;
use crate::text::{counted, joined};
use crate::write_packages::{self, MadePackages, PackageToWrite};
use crate::{hidden_kdbs, kernel_files};

/// Directories that merged-/usr systems have as links.
///
/// Source: Debian, DEP 17.
const ALIASES: [&str; 6] = ["/bin/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/sbin/"];
/// Maintainer of packages if none is given: Debian's policy wants a mail address, and nobody ever
/// has one at this host.
///
/// Source: RFC 6761, 6.4.
const UNKNOWN_MAINTAINER: &str = "Unknown <unknown@unknown.invalid>";
/// gfxpack's version, which packages get if that of the kernels is not known.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
/// SPDX's expression for an unknown licence.
const UNKNOWN_LICENSE: &str = "LicenseRef-Unknown";

/// Where the library that was asked looks.
fn asked(library: &KernelLibrary) -> Option<InstallLayout> {
    library.prefix.as_deref().map(InstallLayout::of_prefix)
}

/// The options with the formats that fit the layout, unless the user chose some: wheels for
/// PyTorch's own MIOpen. Says where the packages install, and warns if that is not where the library
/// that was asked looks, or if none was asked.
pub(crate) fn with_formats(
    options: &PackageOptions,
    release: &Release,
    library: &KernelLibrary,
    progress: &dyn Progress,
) -> PackageOptions {
    let is_chosen = options.layout.is_some();
    let mut options = options.clone();
    if options.format.is_empty() {
        options.format = if release.layout.is_pythons() && !is_chosen {
            vec![Format::Wheel]
        } else {
            vec![Format::DEB, Format::RPM, Format::TAR]
        };
    }
    if options.format.contains(&Format::Wheel)
        && let Some(facts) = &library.miopen
        && !asked(library).is_some_and(|layout| layout.is_pythons())
    {
        progress.warning(&format!(
            "wheels are for the MIOpen that PyTorch brings, which asks for other kernels than {}: \
             ask it with --miopen torch",
            facts.in_words()
        ));
    }
    if options.format == [Format::Wheel] {
        return options;
    }
    let dir = release.kdb_dir();
    if let Some(link) = ALIASES.iter().find(|link| dir.starts_with(*link)) {
        let link = link.trim_end_matches('/');
        progress.warning(&format!(
            "the packages install into {dir}, but {link} is a link to /usr{link} on current \
             systems, where package managers can lose such files: begin the prefix of --layout with /usr{link}"
        ));
    }
    let name = release.consumer.properties().name;
    // AMD's packages make /opt/rocm a link to the newest version.
    let is_link = |asked: &InstallLayout| {
        asked.is_amds() && release.layout == InstallLayout::Rocm { version: None }
    };
    let looks = |layout: InstallLayout| Release { layout, ..release.clone() }.kdb_dir();
    match asked(library).map(|layout| (is_link(&layout), looks(layout))) {
        Some((is_link, looks)) if is_link || looks == dir => {
            progress.note(&format!(
                "the packages install into {dir}, where the {name} that was asked looks"
            ));
        }
        Some((_, looks)) => {
            progress.warning(&format!(
                "the packages install into {dir}, but the {name} that was asked looks in {looks}: \
                 leave --layout out if they are for it"
            ));
        }
        None if release.consumer == Consumer::Miopen && !is_chosen => {
            progress.warning(&format!(
                "the packages install into {dir}, and it is not known whether the {name} that is \
                 to find them looks there: say where with --layout"
            ));
        }
        None => {}
    }
    options
}

/// How many sources without a licence are named.
const NAMED_SOURCES: usize = 4;

/// The licences of all sources. What they lack is what the user says.
fn licenses(
    options: &PackageOptions,
    library: &KernelLibrary,
) -> BTreeSet<(String, SourceLicense)> {
    let unknown = || SourceLicense {
        license: UNKNOWN_LICENSE.to_owned(),
        copyright: options.copyright_holders(),
    };
    let stated = options.stated_license().unwrap_or_else(unknown);
    let holders = || match (&options.copyright, &library.name) {
        (None, Some(name)) => format!("the authors of {name}"),
        _ => options.copyright_holders(),
    };
    let mut all = BTreeSet::new();
    for (source, known) in &library.licenses {
        let unknown = known.is_empty().then_some(&stated);
        for license in known.iter().chain(unknown) {
            let mut license = license.clone();
            if license.copyright.is_empty() {
                license.copyright = holders();
            }
            all.insert((source.clone(), license));
        }
    }
    all
}

/// Who maintains the packages, if anybody says.
fn maintainer<'a>(options: &'a PackageOptions, library: &'a KernelLibrary) -> Option<&'a String> {
    let user = options.maintainer.as_ref().or(ENVIRONMENT.maintainer.as_ref());
    user.or(library.maintainer.as_ref())
}

/// Says in one line what packages of these kernels lack, and the options that give it.
pub(crate) fn report_gaps(
    options: &PackageOptions,
    library: &KernelLibrary,
    progress: &dyn Progress,
) {
    let silent = |of_license: fn(&SourceLicense) -> bool| -> Vec<&str> {
        let silent = library.licenses.iter().filter(|(_, known)| !known.iter().any(of_license));
        silent.map(|(source, _)| source.as_str()).collect()
    };
    let of_sources = |what: &str, silent: &[&str]| {
        let named = silent.iter().take(NAMED_SOURCES).copied();
        let more = (silent.len() > NAMED_SOURCES).then_some("…");
        let sources = counted(library.licenses.len(), "source");
        format!("the {what} of {} of {sources} ({})", silent.len(), joined(named.chain(more)))
    };
    let unlicensed = if options.license.is_some() { Vec::new() } else { silent(|_| true) };
    let unheld = match options.copyright {
        Some(_) => Vec::new(),
        None => silent(|license| !license.copyright.is_empty()),
    };
    let (no_license, no_holder) = (!unlicensed.is_empty(), !unheld.is_empty());
    let are_same = unlicensed == unheld;
    let version = options.version().or(library.version.as_ref());
    let maintainer = maintainer(options, library);
    let is_unsigned = options.sign_key.is_none() && options.format.contains(&Format::RPM);
    let gaps = [
        (
            (no_license && are_same)
                .then(|| of_sources("licence and copyright holder", &unlicensed)),
            "--license SPDX, --copyright WHO",
        ),
        ((no_license && !are_same).then(|| of_sources("licence", &unlicensed)), "--license SPDX"),
        (
            (no_holder && !are_same).then(|| of_sources("copyright holder", &unheld)),
            "--copyright WHO",
        ),
        (
            version.is_none().then(|| format!("a version (they get gfxpack's, {OWN_VERSION})")),
            "--package-version VERSION",
        ),
        (maintainer.is_none().then(|| "a maintainer".to_owned()), "--maintainer 'NAME <MAIL>'"),
        (
            is_unsigned.then(|| "a signature (Fedora 45 refuses an .rpm without)".to_owned()),
            "--sign-key KEY",
        ),
    ];
    let gaps = gaps.into_iter().filter_map(|(gap, option)| gap.zip(Some(option)));
    let (gaps, options): (Vec<String>, Vec<&str>) = gaps.unzip();
    let text = || format!("the packages lack {}: give {}", joined(&gaps), joined(&options));
    match gaps.len() {
        0 => {}
        1 if is_unsigned => progress.note(&text()),
        _ => progress.warning(&text()),
    }
}

/// The signer, if packages are to be signed.
pub(crate) fn signer(options: &PackageOptions) -> Result<Option<Signer>> {
    let key = options.sign_key.as_deref();
    let epoch = ENVIRONMENT.epoch()?;
    key.map(|key| Signer::new(key, epoch)).transpose()
}

/// What all packages of this run share.
pub(crate) fn release(options: &PackageOptions, library: &KernelLibrary) -> Result<Release> {
    let layout = options.layout.clone().or_else(|| asked(library));
    let licenses = licenses(options, library);
    let maintainer = maintainer(options, library);
    let maintainer = maintainer.cloned().unwrap_or_else(|| UNKNOWN_MAINTAINER.to_owned());
    let version = options.version().or(library.version.as_ref());
    let version = version.cloned().unwrap_or_else(|| OWN_VERSION.to_owned());
    let name = library.name.clone().unwrap_or_else(|| "MIOpen kernels".to_owned());
    let name_template = options
        .name_template
        .clone()
        .unwrap_or_else(|| library.consumer.default_name_template(&name));
    Ok(Release {
        library: name,
        description: description(options, library, 0),
        homepage: options
            .homepage
            .as_ref()
            .or(library.homepage.as_ref())
            .cloned()
            .unwrap_or_default(),
        version,
        revision: options.revision(),
        maintainer,
        licenses,
        layout: layout.unwrap_or(InstallLayout::Rocm { version: None }),
        consumer: library.consumer,
        shares_file: library.asked().is_some_and(LibraryFacts::shares_file),
        exact_package: library.asked().and_then(LibraryFacts::exact_package),
        name_template,
        source_date_epoch: ENVIRONMENT.epoch()?,
    })
}

/// The release for one kdb's package, which describes only its own kernels.
pub(crate) fn of_kdb(
    release: &Release,
    options: &PackageOptions,
    library: &KernelLibrary,
    kdb: &MadeKdb,
) -> Release {
    let skipped = kdb.absent.get(&Reason::Skipped);
    let skipped = skipped.map(|skipped| match skipped {
        1 => "1 kernel is left out: the compiler refused it for this GPU.".to_owned(),
        _ => format!("{skipped} kernels are left out: the compiler refused them for this GPU."),
    });
    let without = kdb.absent.iter().filter(|(reason, _)| reason.is_without_source());
    let without = without.map(|(_, count)| count).sum();
    let paragraphs = [description(options, library, without)].into_iter().chain(skipped);
    let paragraphs: Vec<String> = paragraphs.filter(|text| !text.is_empty()).collect();
    Release { description: paragraphs.join("\n\n"), ..release.clone() }
}

/// What the inputs say about the kernels, and which library asks for them, and for how many more
/// `without` a source.
fn description(options: &PackageOptions, library: &KernelLibrary, without: u64) -> String {
    let own = options.description.as_ref().or(library.description.as_ref()).cloned();
    let asked = library.asked().map(|facts| facts.kernels_in_words(without));
    [own, asked].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// The checked settings that all packages share.
pub struct PackageSettings {
    pub(crate) options: PackageOptions,
    pub(crate) shipped: ShippedDatabases,
}

impl PackageSettings {
    /// Writes the packages of these kdbs. They lack kernels that the kdbs `known` have.
    pub(crate) fn write(
        &self,
        kdbs: &[MadeKdb],
        releases: &[Release],
        known: &[PathBuf],
        signer: Option<&Signer>,
        outputs: &Outputs<'_>,
        progress: &dyn Progress,
    ) -> Result<MadePackages> {
        let kdbs: Vec<(&MadeKdb, &Release)> = kdbs.iter().zip(releases).collect();
        hidden_kdbs::warn(&kdbs, known, progress);
        let is_merged = kdbs.iter().any(|(_, release)| release.shares_file);
        let is_merged = is_merged && !self.options.meta.is_empty();
        let _merged_files = is_merged.then(temporary_dir).transpose()?;
        let merged = _merged_files.as_ref().map(ScratchDir::path);
        let packages = to_write(&kdbs, &self.shipped, &self.options, merged)?;
        let made = write_packages::write(&packages, signer, outputs, progress)?;
        let mut tuning = Vec::new();
        for (kdb, _) in &kdbs {
            for (file_name, path) in self.shipped.files_for(&kdb.target) {
                let written = Written { file_name, ..sums::digest_file(&path)? };
                tuning.push((kdb.target.clone(), written));
            }
        }
        Ok(MadePackages { tuning, _merged_files, ..made })
    }
}

/// The packages for these kdbs, with the databases to ship. Each kdb gets one,
/// and, if the layout has ROCm's version in it, another without it. Families get
/// theirs too; files that are merged for these go into the directory `merged`, if there is one.
fn to_write<'a>(
    kdbs: &[(&'a MadeKdb, &Release)],
    shipped: &ShippedDatabases,
    options: &PackageOptions,
    merged: Option<&Path>,
) -> Result<Vec<PackageToWrite<'a>>> {
    let (mut packages, mut names) = (Vec::new(), BTreeSet::new());
    let mut add = |spec: PackageSpec, wheel_spec, kdb, target| {
        // One would overwrite the other.
        if !names.insert(spec.name.clone()) {
            return Err(error::usage(
                format!("failed to name the packages: two would be `{}`", spec.name),
                "a family of one device has that device's name: leave it out of --meta; \
                 or choose another --name-template",
            ));
        }
        write_packages::add(&mut packages, options, spec, wheel_spec, kdb, target);
        Ok(())
    };
    for (kdb, release) in kdbs {
        let contents = KdbToPackage {
            target: kdb.target.clone(),
            kdb: kdb.path.clone(),
            kernels: kdb.kernels,
            missing: ledger::missing(&kdb.absent),
            compiler: kdb.inputs.compiler().unwrap_or_default().to_owned(),
            tuning: shipped.files_for(&kdb.target),
        };
        // The package describes only what is compiled into this kdb.
        let release = with_own_licenses(release, kdb);
        let spec = kernel_package::spec(&release, &contents);
        let wheel_spec = kernel_package::wheel_spec(&release, &contents);
        add(spec, wheel_spec, Some(*kdb), Some(&kdb.target))?;
        if let Some(spec) = kernel_package::unversioned(&release, &kdb.target) {
            add(spec, None, None, Some(&kdb.target))?;
        }
    }
    let targets: Vec<Target> = kdbs.iter().map(|(kdb, _)| kdb.target.clone()).collect();
    for family in options.meta.iter().collect::<BTreeSet<_>>() {
        let Some((_, release)) = kdbs.first() else { break };
        let spec = if release.shares_file {
            let members = kdbs.iter().map(|(kdb, _)| *kdb).filter(|kdb| family.has(&kdb.target));
            let files: Vec<PathBuf> = members.map(|kdb| kdb.path.clone()).collect();
            let path = merged.unwrap_or(Path::new("")).join(family.to_string());
            if merged.is_some() && !files.is_empty() {
                kernel_files::merge(release.consumer.properties().format, &files, &path)?;
            }
            kernel_package::merged(release, family, &targets, &path)
        } else {
            kernel_package::family(release, family, &targets)
        };
        let spec = spec.ok_or_else(|| {
            error::usage(
                format!("failed to make a package of the family `{family}`: no target is of it"),
                format!("the targets are {}", joined(&targets)),
            )
        })?;
        add(spec, None, None, None)?;
    }
    Ok(packages)
}

fn with_own_licenses(release: &Release, kdb: &MadeKdb) -> Release {
    let used = kdb.inputs.licenses();
    let mut release = release.clone();
    if release.licenses.iter().any(|(source, _)| used.contains_key(source)) {
        release.licenses.retain(|(source, _)| used.contains_key(source));
    }
    release.licenses.extend(kdb.inputs.included_licenses());
    release
}

/// Checks that packages for these targets can be written, so that wrong names or
/// versions are reported before hours of compiling.
pub(crate) fn check(release: &Release, targets: &[Target], options: &PackageOptions) -> Result<()> {
    if options.format.contains(&Format::Wheel) && !release.consumer.properties().supports_wheels {
        return Err(error::usage(
            "failed to make wheels of these kernels: MIOpen does not read them",
            "choose other formats with --format",
        ));
    }
    let unbuilt = |target: &Target| MadeKdb {
        target: target.clone(),
        path: PathBuf::new(),
        kernels: 0,
        absent: AbsentCounts::new(),
        inputs: KdbInputs::default(),
    };
    let kdbs: Vec<MadeKdb> = targets.iter().map(unbuilt).collect();
    let kdbs: Vec<_> = kdbs.iter().map(|kdb| (kdb, release)).collect();
    let packages = to_write(&kdbs, &ShippedDatabases::default(), options, None)?;
    write_packages::check(&packages)
}
