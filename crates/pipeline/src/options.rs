//! What a run is asked to do, as plain values: paths are given, defaults are
//! applied, the environment has been read.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_compile::{FileDigests, Shortcuts};
use gfxpack_debian::Proxies;
use gfxpack_kdb::{Blob, Layout};
use gfxpack_miopen::{LibrarySource, Uses};
use gfxpack_model::Target;
use gfxpack_package::Compression;
use gfxpack_plan::kernel_package::{Family, SourceLicense};
use gfxpack_plan::license::Allowed;
use gfxpack_plan::shard::Shard;
use gfxpack_toolchain::Search;

use crate::error::{self, Result};

/// Everything that a plan is made of.
#[derive(Debug, Clone)]
pub struct PrepareOptions {
    /// Kernels and targets.
    pub inputs: InputOptions,
    /// Where toolchains are looked for.
    pub search: Search,
    /// The cache of objects.
    pub cache: CacheOptions,
    /// Whether the cache may be written.
    pub purpose: Purpose,
    /// Processes that ask libMIOpen at once.
    pub jobs: usize,
    /// `SOURCE_DATE_EPOCH`: seconds since 1970 of every time stamp.
    pub source_date_epoch: u64,
}

/// Whether anything will be built, or only looked at: looking makes and
/// changes nothing outside the temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Objects will be built.
    Build,
    /// Nothing is kept.
    Look,
}

/// Which kernels, from which sources, for which GPUs.
#[derive(Debug, Clone, Default)]
pub struct InputOptions {
    /// Kernel manifests.
    pub manifests: Vec<PathBuf>,
    /// Lists of kernel keys; `-` is standard input.
    pub keys: Vec<PathBuf>,
    /// Whether a list without any key is accepted, such as one that a program
    /// wrote.
    pub allow_empty_keys: bool,
    /// kdbs whose keys are not built again.
    pub missing_from: Vec<PathBuf>,
    /// Lists of kernels that are not built, as a build writes those that were
    /// refused.
    pub skip_refused: Vec<PathBuf>,
    /// Bytes of the largest code object taken from a kdb.
    pub max_object_bytes: u64,
    /// Lists of problems, for which libMIOpen is asked; `-` is standard input.
    pub problems: Vec<PathBuf>,
    /// The library that is asked.
    pub library: LibraryOptions,
    /// Lists of FFT plans, for which librocfft is asked in place of libMIOpen; `-`
    /// is standard input.
    pub fft_plans: Vec<PathBuf>,
    /// Where sources of keys are looked up by name.
    pub source_dirs: Vec<PathBuf>,
    /// GPUs.
    pub targets: Vec<Target>,
    /// Whether only sources that Debian accepts are compiled.
    pub dfsg: bool,
    /// Only sources under these licences are compiled; empty for all.
    pub license_allow: Vec<Allowed>,
    /// The licence of sources whose inputs name none.
    pub stated_license: Option<SourceLicense>,
    /// Go on without kernels that cannot be built.
    pub allow_partial: bool,
}

/// The library that is asked, libMIOpen or librocfft, and how.
#[derive(Debug, Clone, Default)]
pub struct LibraryOptions {
    /// Which library; the installed one if `None`.
    pub source: Option<LibrarySource>,
    /// `ROCM_PATH`, where the installed one may lie.
    pub rocm_path: Option<PathBuf>,
    /// Directories of performance and find databases; those of the library's
    /// packages if empty.
    pub databases: Vec<PathBuf>,
    /// Debian's archive; the one that apt uses if `None`.
    pub debian_mirror: Option<String>,
    /// Proxies of downloads.
    pub proxies: Proxies,
    /// Whose kernels are asked for; all if `None`.
    pub uses: Option<Uses>,
}

/// The cache of compiled objects.
#[derive(Debug, Clone, Default)]
pub struct CacheOptions {
    /// The directory, which need not exist; `None` if the environment names
    /// none.
    pub dir: Option<PathBuf>,
    /// Bytes that it may have after a build; no limit if `None`.
    pub size: Option<u64>,
    /// Read every file again, whatever earlier runs noted of it.
    pub verify_all: bool,
}

/// How jobs are run and kdbs written.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Where outputs go; kdbs to `kdb` below.
    pub out: PathBuf,
    /// Compilers at once; one for each processor if `None`.
    pub jobs: Option<u16>,
    /// How long one kernel may take.
    pub timeout: Duration,
    /// Go on although kernels could not be compiled.
    pub allow_partial: bool,
    /// The form of kdbs.
    pub form: KdbForm,
    /// Where the build report goes, an HTML page.
    pub report: Option<PathBuf>,
    /// Where the kernels go as test results, in JUnit's XML.
    pub junit: Option<PathBuf>,
    /// Whether failures are printed as annotations for GitHub Actions.
    pub annotations: bool,
    /// The shortcuts that may be taken.
    pub shortcuts: Shortcuts,
    /// Directories besides the sources that compilers may read.
    pub allow_read: Vec<PathBuf>,
    /// Whether kernels are compiled again that were refused before.
    pub retry_refused: bool,
    /// Where the list of kernels goes that the compilers refused.
    pub write_refused: Option<PathBuf>,
    /// The service that runs jobs.
    pub remote: Option<RemoteOptions>,
    /// The cache that is shared with other machines.
    pub shared_cache: Option<SharedCacheOptions>,
}

/// The form of a kdb.
#[derive(Debug, Clone, Copy, Default)]
pub struct KdbForm {
    /// How code objects are stored.
    pub blob: Blob,
    /// How rows are laid out.
    pub layout: Layout,
    /// Whether the kdb records what each object was made of.
    pub provenance: bool,
    /// Whether kernels have the names that MIOpen asks for on Windows.
    pub windows_names: bool,
}

/// A service of the Remote Execution API.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `grpc://HOST:PORT/INSTANCE`, or `grpcs://`.
    pub address: String,
    /// Jobs there at once.
    pub jobs: u16,
    /// Sent with every call, by name; a value `@FILE` is read from that file.
    pub headers: Vec<(String, String)>,
    /// What workers must have, by name.
    pub platform: Vec<(String, String)>,
    /// Whether the toolchain is in the workers' image, and not sent.
    pub toolchain_in_image: bool,
    /// Whether only what the service already has is taken from it.
    pub cache_only: bool,
    /// Certificates that are trusted, in PEM; the system's if `None`.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// How long a service is waited for that does not answer.
    pub deadline: Duration,
}

/// A cache that is shared with other machines.
#[derive(Debug, Clone)]
pub struct SharedCacheOptions {
    /// Where it is: `file:///DIR`, `s3://BUCKET/PREFIX` and the like.
    pub url: String,
    /// What is given to it.
    pub upload: gfxpack_compile::Upload,
}

/// A shard of a stored plan.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// The stored plan.
    pub plan: PathBuf,
    /// Which part of it.
    pub shard: Shard,
    /// Costs by which the jobs are divided.
    pub costs: Option<PathBuf>,
}

/// Shards that were built, or should be.
#[derive(Debug, Clone)]
pub struct ShardDirs {
    /// Directories that shards are built into.
    pub dirs: Vec<PathBuf>,
    /// The plan that they are of; that of the first one found if `None`.
    pub plan: Option<PathBuf>,
    /// How many there are; what the shards found say if `None`.
    pub count: Option<NonZeroU32>,
}

/// How packages are made.
#[derive(Debug, Clone)]
pub struct PackageOptions {
    /// Formats.
    pub formats: Vec<PackageFormat>,
    /// Where the kdb is installed.
    pub layout: LayoutChoice,
    /// ROCm's version.
    pub rocm_version: Option<String>,
    /// Version of the packages.
    pub version: Option<String>,
    /// Debian revision and rpm release.
    pub revision: String,
    /// Template of names.
    pub name_template: Option<String>,
    /// Families that get a package which brings those of their GPUs.
    pub families: Vec<Family>,
    /// `NAME <MAIL>`, if it is another than the inputs say.
    pub maintainer: Option<String>,
    /// SPDX licence of kernels whose inputs name none.
    pub license: Option<String>,
    /// Who holds their copyright.
    pub copyright: Option<String>,
    /// What packages say of the kernels, in place of what the inputs say.
    pub description: Option<String>,
    /// Their home page, likewise.
    pub homepage: Option<String>,
    /// Performance and find databases to ship, or directories of them.
    pub tuning: Vec<PathBuf>,
    /// Compression of .deb contents.
    pub deb_compression: Compression,
    /// Whether .debs list MD5 digests of their files.
    pub md5sums: bool,
    /// Compression of .rpm contents.
    pub rpm_compression: Compression,
    /// Bytes of memory that packaging may take.
    pub memory: u64,
    /// The gpg key that signs.
    pub sign_key: Option<String>,
    /// `SOURCE_DATE_EPOCH`: seconds since 1970 of every time stamp.
    pub source_date_epoch: u64,
}

/// Where packages install kdbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutChoice {
    /// `/opt/rocm`, or `/opt/rocm-VERSION`.
    Rocm,
    /// `/opt/rocm/core-VERSION`.
    TheRock,
    /// `/usr/share/miopen/db`.
    Fhs,
    /// `/usr/lib/share/miopen/db`.
    Debian,
    /// `bin` in ROCm's directory on Windows.
    Windows,
    /// Below this prefix.
    Prefix(String),
}

/// A package format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageFormat {
    /// Debian's.
    Deb,
    /// RPM.
    Rpm,
    /// A tarball, gzip.
    TarGz,
    /// A tarball, Zstandard.
    TarZst,
    /// A tarball, xz.
    TarXz,
    /// Python's.
    Wheel,
    /// An image for containers.
    Oci,
    /// pacman's, of Arch Linux.
    Arch,
}

impl CacheOptions {
    /// The directory, absolute.
    ///
    /// # Errors
    /// Where none is named.
    pub fn directory(&self) -> Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            error::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
        std::path::absolute(dir).map_err(error::io("find", dir))
    }

    /// The files' digests that are kept in that directory.
    pub(crate) fn file_digests(&self, dir: &Path) -> FileDigests {
        let file = dir.join("file-digests.json");
        if self.verify_all { FileDigests::open_anew(&file) } else { FileDigests::open(&file) }
    }
}

/// As many processes as are wanted, or one for each processor.
pub fn processes(wanted: Option<u16>) -> usize {
    wanted.map_or_else(gfxpack_compile::default_jobs, usize::from)
}

impl PackageOptions {
    /// The licence of sources whose inputs name none, if the user says it.
    pub fn stated_license(&self) -> Option<SourceLicense> {
        let license = self.license.clone()?;
        Some(SourceLicense { license, copyright: self.copyright_holders() })
    }

    /// Who holds the copyright of sources whose inputs do not say.
    pub fn copyright_holders(&self) -> String {
        self.copyright.clone().unwrap_or_else(|| "the authors of the kernels".to_owned())
    }
}
