//! The options of a run as plain values: paths are final, defaults are applied,
//! the environment has been read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_compile::FileDigests;
use gfxpack_debian::Proxies;
use gfxpack_kdb::Blob;
use gfxpack_miopen::{LibrarySource, Uses};
use gfxpack_model::{InstallLayout, Target};
use gfxpack_package::{Compression, Format};
use gfxpack_plan::kernel_package::{Family, SourceLicense};
use gfxpack_plan::license::Allowed;
use gfxpack_toolchain::Search;

use crate::error::{self, Result};

/// What a plan is made from.
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
    /// Number of processes that ask libMIOpen at once.
    pub jobs: usize,
    /// `SOURCE_DATE_EPOCH`: seconds since 1970 of every time stamp.
    pub source_date_epoch: u64,
}

/// Whether objects will be built. If not, nothing outside the temporary directory
/// is made or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Objects will be built.
    Build,
    /// Nothing is built or kept.
    Look,
}

/// Which kernels, from which sources, for which GPUs.
#[derive(Debug, Clone, Default)]
pub struct InputOptions {
    /// Kernel manifests.
    pub manifests: Vec<PathBuf>,
    /// Lists of kernel keys; `-` is standard input.
    pub keys: Vec<PathBuf>,
    /// kdbs whose keys are not built again.
    pub missing_from: Vec<PathBuf>,
    /// Ledgers of earlier builds; kernels that compilers refused there are not built.
    pub skip_refused: Vec<PathBuf>,
    /// Lists of problems for libMIOpen; `-` is standard input.
    pub problems: Vec<PathBuf>,
    /// The library that is asked.
    pub library: LibraryOptions,
    /// Lists of FFT plans for librocfft, which is then asked instead of libMIOpen;
    /// `-` is standard input.
    pub fft_plans: Vec<PathBuf>,
    /// Whether a line of these lists that can't be read is an error.
    pub strict: bool,
    /// Directories in which the sources of keys are looked up by name.
    pub source_dirs: Vec<PathBuf>,
    /// GPUs.
    pub targets: Vec<Target>,
    /// Only sources that these allow are compiled; all if empty.
    pub license_allow: Vec<Allowed>,
    /// The licence of sources whose inputs name none.
    pub stated_license: Option<SourceLicense>,
    /// Continue without kernels that cannot be built.
    pub allow_partial: bool,
}

impl InputOptions {
    /// Whether only what Debian can ship is compiled.
    pub fn dfsg(&self) -> bool {
        self.license_allow.contains(&Allowed::Dfsg)
    }
}

/// The library to ask, libMIOpen or librocfft, and how.
#[derive(Debug, Clone, Default)]
pub struct LibraryOptions {
    /// Which library; the installed one if `None`.
    pub source: Option<LibrarySource>,
    /// `ROCM_PATH`, where the installed library may be.
    pub rocm_path: Option<PathBuf>,
    /// Directories of performance and find databases; those of the library's
    /// packages if empty.
    pub databases: Vec<PathBuf>,
    /// The Debian mirror; the one that apt uses if `None`.
    pub debian_mirror: Option<String>,
    /// Proxies for downloads.
    pub proxies: Proxies,
    /// Which uses of MIOpen the kernels are for; all if `None`.
    pub uses: Option<Uses>,
}

/// The cache of compiled objects.
#[derive(Debug, Clone, Default)]
pub struct CacheOptions {
    /// The directory, which need not exist; `None` if the environment names
    /// none.
    pub dir: Option<PathBuf>,
    /// Size to which it is reduced after a build, in bytes; no limit if `None`.
    pub size: Option<u64>,
    /// Hash every file again, whatever earlier runs recorded.
    pub verify_all: bool,
}

/// How jobs are run and kdbs written.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Output directory; kdbs go to its subdirectory `kdb`.
    pub out: PathBuf,
    /// Number of compilers that run at once; one for each processor if `None`.
    pub jobs: Option<u16>,
    /// Time limit for one kernel.
    pub timeout: Duration,
    /// Continue although kernels could not be compiled.
    pub allow_partial: bool,
    /// The form of kdbs.
    pub form: KdbForm,
    /// File for the build report, an HTML page.
    pub report: Option<PathBuf>,
    /// Date of the report, in seconds since 1970; when the build began if `None`.
    pub date: Option<u64>,
    /// File for the kernels as test results, in JUnit XML.
    pub junit: Option<PathBuf>,
    /// Whether failures are printed as annotations for GitHub Actions.
    pub annotations: bool,
    /// Whether compilers may be started by shortcuts.
    pub shortcuts: bool,
    /// Directories besides the sources that compilers may read.
    pub allow_read: Vec<PathBuf>,
    /// Whether kernels that were refused before are compiled again.
    pub retry_refused: bool,
    /// The remote execution service.
    pub remote: Option<RemoteOptions>,
    /// The cache that is shared with other machines.
    pub shared_cache: Option<SharedCacheOptions>,
}

/// The form of a kdb.
#[derive(Debug, Clone, Copy, Default)]
pub struct KdbForm {
    /// How code objects are stored.
    pub blob: Blob,
}

/// A service of the Remote Execution API.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `grpc://HOST:PORT/INSTANCE`, or `grpcs://`.
    pub address: String,
    /// Number of jobs that run there at once.
    pub jobs: u16,
    /// Headers of every call, by name; a value `@FILE` is read from that file.
    pub headers: Vec<(String, String)>,
    /// Properties that workers must have, by name.
    pub platform: Vec<(String, String)>,
    /// Whether the service is only used as a cache.
    pub cache_only: bool,
    /// Trusted certificates, in PEM; the system's if `None`.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// How long to wait for a service that does not answer.
    pub deadline: Duration,
}

/// A cache that is shared with other machines.
#[derive(Debug, Clone)]
pub struct SharedCacheOptions {
    /// The address: `file:///DIR`, `s3://BUCKET/PREFIX` and the like.
    pub url: String,
    /// What is uploaded.
    pub upload: gfxpack_compile::Upload,
}

/// How packages are made.
#[derive(Debug, Clone)]
pub struct PackageOptions {
    /// Package formats; those that fit the layout if empty.
    pub formats: Vec<Format>,
    /// Where the kdb is installed; where the library that was asked looks if `None`.
    pub layout: Option<InstallLayout>,
    /// Version of the packages.
    pub version: Option<String>,
    /// Debian revision and rpm release.
    pub revision: String,
    /// Template for the packages' names.
    pub name_template: Option<String>,
    /// Families of GPUs that get a package for all of their GPUs.
    pub families: Vec<Family>,
    /// `NAME <MAIL>`, in place of the inputs' maintainer.
    pub maintainer: Option<String>,
    /// SPDX licence for kernels whose inputs name none.
    pub license: Option<String>,
    /// Copyright holder of these kernels.
    pub copyright: Option<String>,
    /// Description of the kernels, in place of the inputs'.
    pub description: Option<String>,
    /// Home page of the kernels, in place of the inputs'.
    pub homepage: Option<String>,
    /// Performance and find databases to ship, or directories of them.
    pub tuning: Vec<PathBuf>,
    /// Compression of .deb and .rpm contents, if not each format's own.
    pub compression: Option<Compression>,
    /// The gpg key that signs.
    pub sign_key: Option<String>,
    /// `SOURCE_DATE_EPOCH`: seconds since 1970 of every time stamp.
    pub source_date_epoch: u64,
}

impl CacheOptions {
    /// The directory, as an absolute path.
    ///
    /// # Errors
    /// If there is no directory.
    pub fn directory(&self) -> Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            error::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
        std::path::absolute(dir).map_err(error::io("find", dir))
    }

    /// The digests of files that are recorded in that directory.
    pub fn file_digests(&self, dir: &Path) -> FileDigests {
        let file = dir.join("file-digests.json");
        if self.verify_all { FileDigests::open_anew(&file) } else { FileDigests::open(&file) }
    }
}

/// The number of processes that is wanted, or else one for each processor.
pub fn processes(wanted: Option<u16>) -> usize {
    wanted.map_or_else(gfxpack_compile::default_jobs, usize::from)
}

impl PackageOptions {
    /// The licence that the user gave for sources whose inputs name none.
    pub fn stated_license(&self) -> Option<SourceLicense> {
        let license = self.license.clone()?;
        Some(SourceLicense { license, copyright: self.copyright_holders() })
    }

    /// Copyright holder of sources whose inputs do not name one.
    pub fn copyright_holders(&self) -> String {
        self.copyright.clone().unwrap_or_else(|| "the authors of the kernels".to_owned())
    }
}
