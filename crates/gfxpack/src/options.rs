//! Translates the command line and the environment into the pipeline's options.

use std::path::PathBuf;
use std::time::Duration;

use gfxpack_miopen::LibrarySource;
use gfxpack_pipeline::options::{
    BuildOptions, CacheOptions, InputOptions, KdbForm, LibraryOptions, PackageOptions,
    PrepareOptions, Purpose, RemoteOptions, SharedCacheOptions, processes,
};
use gfxpack_toolchain::Search;

use crate::args::{
    self, Build, CacheArgs, CacheDir, CompilerArgs, InputArgs, LibraryArgs, Packaging, ProblemArgs,
    RemoteArgs, SharedCacheArgs, TargetList, ToolchainArgs, Via,
};
use crate::environment::Environment;
use crate::fail::{self, Result};

/// The options of a plan, with the purpose of looking only.
pub(crate) fn prepare_options(
    inputs: &InputArgs,
    compilers: &CompilerArgs,
    environment: &Environment,
) -> Result<PrepareOptions> {
    let (search, cache) = compiler_options(compilers, environment)?;
    let ProblemArgs { problems, strict, library, rocfft } = &inputs.asking;
    Ok(PrepareOptions {
        inputs: InputOptions {
            manifests: inputs.manifest.clone(),
            keys: inputs.keys.clone(),
            missing_from: inputs.missing_from.clone(),
            skip_refused: inputs.skip_refused.clone(),
            problems: problems.clone(),
            library: if rocfft.plans.is_empty() {
                library_options(library, environment)
            } else {
                rocfft_options(library, rocfft.rocfft.as_ref(), environment)
            },
            fft_plans: rocfft.plans.clone(),
            strict: *strict,
            source_dirs: inputs.source_dir.clone(),
            targets: TargetList::of(&inputs.target),
            license_allow: inputs.license_allow.clone(),
            stated_license: None,
            allow_partial: false,
        },
        search,
        cache,
        purpose: Purpose::Look,
        jobs: processes(None),
        source_date_epoch: environment.epoch()?,
    })
}

/// The libMIOpen to ask.
pub(crate) fn library_options(args: &LibraryArgs, environment: &Environment) -> LibraryOptions {
    LibraryOptions {
        source: args.miopen.clone(),
        rocm_path: environment.rocm_path.clone(),
        databases: args.miopen_db.clone(),
        debian_mirror: args.debian_mirror.clone().or_else(|| environment.debian_mirror.clone()),
        proxies: environment.proxies.clone(),
        uses: args.uses,
    }
}

/// The librocfft to ask.
pub(crate) fn rocfft_options(
    args: &LibraryArgs,
    rocfft: Option<&LibrarySource>,
    environment: &Environment,
) -> LibraryOptions {
    LibraryOptions { source: rocfft.cloned(), ..library_options(args, environment) }
}

/// Where to look for toolchains, and the cache.
pub(crate) fn compiler_options(
    args: &CompilerArgs,
    environment: &Environment,
) -> Result<(Search, CacheOptions)> {
    Ok((search(&args.toolchain, environment), cache_options(&args.cache, environment)?))
}

/// Where to look for toolchains.
pub(crate) fn search(args: &ToolchainArgs, environment: &Environment) -> Search {
    Search {
        hipcc: args.hipcc.clone(),
        clang: args.clang.clone(),
        device_libs: args.device_libs.clone(),
        rocm_path: args.rocm_path.clone(),
        preferred_hipcc: environment.hipcc.clone(),
        environment: environment.compiler.clone(),
    }
}

/// The cache, with its limit.
pub(crate) fn cache_options(args: &CacheArgs, environment: &Environment) -> Result<CacheOptions> {
    let (size, verify_all) = (environment.cache_size()?, args.verify_all);
    Ok(CacheOptions { size, verify_all, ..cache_dir(&args.dir, environment) })
}

/// The cache's directory without other options.
pub(crate) fn cache_dir(args: &CacheDir, environment: &Environment) -> CacheOptions {
    let dir = args.cache_dir.clone().or_else(|| environment.cache_dir.clone());
    CacheOptions { dir, size: None, verify_all: false }
}

/// How jobs are run and kdbs written.
///
/// # Errors
/// If two reports are of one kind.
pub(crate) fn build_options(args: &Build, environment: &Environment) -> Result<BuildOptions> {
    let is_xml = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "xml");
    let (xml, pages): (Vec<&PathBuf>, Vec<&PathBuf>) = args.report.iter().partition(is_xml);
    let one = |files: Vec<&PathBuf>| match files[..] {
        [first, second, ..] => Err(fail::usage(
            format!("failed to write both `{}` and `{}`", first.display(), second.display()),
            "give --report one page and one FILE.xml at most",
        )),
        _ => Ok(files.first().map(|file| (*file).clone())),
    };
    let (report, junit) = (one(pages)?, one(xml)?);
    Ok(BuildOptions {
        out: args.out.clone(),
        jobs: args.jobs,
        timeout: Duration::from_secs(args.timeout),
        allow_partial: args.allow_partial,
        form: kdb_form(args.form),
        report,
        junit,
        date: environment.stated_epoch(),
        annotations: environment.github_actions,
        shortcuts: args.via == Via::Auto,
        allow_read: args.allow_read.clone(),
        retry_refused: args.retry_refused,
        remote: remote_options(&args.remote),
        shared_cache: shared_cache_options(&args.shared),
    })
}

/// The form of kdbs.
pub(crate) fn kdb_form(form: args::KdbForm) -> KdbForm {
    KdbForm { blob: form.blob }
}

fn remote_options(args: &RemoteArgs) -> Option<RemoteOptions> {
    Some(RemoteOptions {
        address: args.remote.clone()?,
        jobs: args.remote_jobs,
        headers: args.remote_header.clone(),
        platform: args.remote_platform.clone(),
        cache_only: args.remote_cache_only,
        ca: args.remote_ca.clone(),
        identity: args.remote_client_cert.clone().zip(args.remote_client_key.clone()),
        deadline: Duration::from_secs(args.remote_patience),
    })
}

fn shared_cache_options(args: &SharedCacheArgs) -> Option<SharedCacheOptions> {
    Some(SharedCacheOptions { url: args.cache_remote.clone()?, upload: args.cache_upload })
}

/// How packages are made.
pub(crate) fn package_options(
    args: &Packaging,
    environment: &Environment,
) -> Result<PackageOptions> {
    let (version, revision) = args.package_version.clone().unzip();
    Ok(PackageOptions {
        formats: args.format.clone(),
        layout: args.layout.clone(),
        version,
        revision: revision.flatten().unwrap_or_else(|| "1".to_owned()),
        name_template: args.name_template.clone(),
        families: args.meta.clone(),
        maintainer: args.maintainer.clone().or_else(|| environment.maintainer.clone()),
        license: args.license.clone(),
        copyright: args.copyright.clone(),
        description: args.description.clone(),
        homepage: args.homepage.clone(),
        tuning: args.with_perfdb.clone(),
        compression: args.compression,
        sign_key: args.sign_key.clone(),
        source_date_epoch: environment.epoch()?,
    })
}
