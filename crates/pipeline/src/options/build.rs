//! What is built, and how.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gfxpack_kdb::Blob;
use gfxpack_model::Target;
use gfxpack_plan::license::Allowed;

use super::{
    CacheArgs, Choice, CompilerArgs, ProblemOptions, RemoteOptions, SharedCacheOptions, TargetList,
    one_of, parse_targets,
};
use crate::error::{self, Result};

/// How jobs are run and kdbs written.
#[derive(Debug, Args)]
pub struct BuildOptions {
    /// Kernels and targets.
    #[command(flatten)]
    pub inputs: InputOptions,
    /// Run the plan that `gfxpack plan --out DIR` stored, in place of all
    /// options under Input, MIOpen and rocFFT
    #[arg(long, value_name = "DIR", conflicts_with_all = INPUTS, help_heading = "Stored plan")]
    pub plan: Option<PathBuf>,
    /// Toolchains and the cache.
    #[command(flatten)]
    pub compilers: CompilerArgs,
    /// The remote execution service.
    #[command(flatten)]
    pub remote: RemoteOptions,
    /// The cache that is shared with other machines.
    #[command(flatten)]
    pub shared: SharedCacheOptions,
    /// Output directory; kdbs go to DIR/kdb
    #[arg(long, value_name = "DIR", help_heading = "Build")]
    pub out: PathBuf,
    /// Compilers at once [default: one per processor, as memory allows]
    #[arg(long, help_heading = "Build", short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// How long one kernel may take, in seconds
    #[arg(long, help_heading = "Build", value_name = "SECONDS", default_value_t = 900, value_parser = parse_timeout)]
    pub timeout: u64,
    /// Continue and exit with 0 if kernels are missing or can't be compiled;
    /// kernels.jsonl lists them
    #[arg(long, help_heading = "Build")]
    pub allow_partial: bool,
    /// How code objects are stored in a kdb
    #[arg(long, value_parser = one_of(&BLOBS), default_value = "auto", help_heading = "Build")]
    pub blob: Blob,
    /// Write a page about the build (time, memory and size of every kernel, and
    /// what failed), or, to FILE.xml, its kernels as JUnit's test results;
    /// repeatable
    #[arg(
        long,
        alias = "junit",
        help_heading = "Build",
        value_name = "FILE.html|xml",
        conflicts_with = "dry_run"
    )]
    pub report: Vec<PathBuf>,
    /// How compilers are started; all ways give the same objects, so this is
    /// for debugging
    #[arg(long, value_enum, default_value_t, help_heading = "Build")]
    pub via: Via,
    /// Another directory that compilers may read; objects of kernels that name
    /// a file there depend on all of it; repeatable
    #[arg(long, value_name = "DIR", help_heading = "Build")]
    pub allow_read: Vec<PathBuf>,
    /// Compile kernels again that compilers refused in an earlier run
    #[arg(long, help_heading = "Build")]
    pub retry_refused: bool,
    /// Print what would be done, and do nothing
    #[arg(long, short = 'n', help_heading = "Build")]
    pub dry_run: bool,
}

impl BuildOptions {
    /// The pages about the build, or the files with its kernels in JUnit XML.
    pub(crate) fn reports(&self, are_xml: bool) -> impl Iterator<Item = &Path> {
        let is_xml = |path: &Path| path.extension().is_some_and(|kind| kind == "xml");
        self.report.iter().map(PathBuf::as_path).filter(move |path| is_xml(path) == are_xml)
    }

    /// Fails if two reports are of one kind.
    pub(crate) fn check(&self) -> Result {
        for are_xml in [false, true] {
            let mut reports = self.reports(are_xml);
            if let (Some(first), Some(second)) = (reports.next(), reports.next()) {
                return Err(error::usage(
                    format!(
                        "failed to write both `{}` and `{}`",
                        first.display(),
                        second.display()
                    ),
                    "give --report one page and one FILE.xml at most",
                ));
            }
        }
        Ok(())
    }
}

/// Which shards are merged, and how.
#[derive(Debug, Args)]
pub struct MergeOptions {
    /// Directories that shards were built into
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Their plan
    #[arg(long, value_name = "DIR")]
    pub plan: PathBuf,
    /// Output directory; kdbs go to DIR/kdb
    #[arg(long, value_name = "DIR", required_unless_present = "missing")]
    pub out: Option<PathBuf>,
    /// Merge nothing; print the shards that are to run, or to run again, as a
    /// scheduler takes them for an array: 1,4-6; nothing if all are done
    #[arg(long, conflicts_with_all = ["out", "allow_partial"])]
    pub missing: bool,
    /// How many shards there are, for --missing [default: as a shard that is
    /// done says]
    #[arg(long, value_name = "N", requires = "missing")]
    pub shards: Option<NonZeroU32>,
    /// Merge even if shards or kernels are missing; kernels.jsonl lists
    /// them, and `package` needs --allow-partial for these kdbs
    #[arg(long)]
    pub allow_partial: bool,
    /// How code objects are stored in a kdb
    #[arg(long, value_parser = one_of(&BLOBS), default_value = "auto", help_heading = "Build")]
    pub blob: Blob,
    /// The cache, which records what outputs were made from.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// How compilers are started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// The compiler itself, with every shortcut that gives the same bytes.
    #[default]
    Auto,
    /// hipcc, and clang's driver for the languages that are not hipcc's.
    Hipcc,
}

/// The options of [`InputOptions`], which can't be given with a stored plan. They are
/// listed since clap makes no group of a struct into which others are flattened.
const INPUTS: [&str; 14] = [
    "manifest",
    "keys",
    "missing_from",
    "skip_refused",
    "problems",
    "miopen",
    "miopen_db",
    "uses",
    "debian_mirror",
    "plans",
    "rocfft",
    "source_dir",
    "target",
    "license_allow",
];

/// Which kernels, from which sources, for which GPUs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct InputOptions {
    /// A kernel manifest (TOML)
    #[arg(long, value_name = "FILE")]
    pub manifest: Vec<PathBuf>,
    /// Kernel keys, one a line, as `gfxpack run` writes them
    ///
    /// JSON objects with kernel_name and kernel_args. Needs --source-dir, below
    /// which sources are looked up by name; - reads stdin; repeatable.
    #[arg(long, value_name = "FILE")]
    pub keys: Vec<PathBuf>,
    /// Build only keys that are not in this kdb; repeatable
    #[arg(long, value_name = "KDB")]
    pub missing_from: Vec<PathBuf>,
    /// The kernels.jsonl of an earlier build, reviewed: kernels that compilers refused there are
    /// not built; repeatable
    #[arg(long, value_name = "FILE")]
    pub skip_refused: Vec<PathBuf>,
    /// What a library is asked for.
    #[command(flatten)]
    pub asking: ProblemOptions,
    /// The sources of keys, with subdirectories
    ///
    /// Includes are looked up there too, and with --problems the sources that
    /// libMIOpen does not contain; repeatable.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    pub source_dir: Vec<PathBuf>,
    /// GPU to build for, as gfx90a@104 or gfx1030
    ///
    /// A processor and its compute units, as gfx90a@104, gfx90a:xnack+@104 or
    /// gfx906_60; or a processor alone, as gfx1030 or a product's name (MI210),
    /// for any number of them; `native` for this machine's GPUs; repeatable, or with
    /// commas or blanks between.
    #[arg(long, short, value_name = "TARGET", value_parser = parse_targets, help_heading = "Input")]
    pub target: Vec<TargetList>,
    /// Compile only sources under these SPDX licences; `dfsg` for what Debian can ship: under free
    /// licences, not written by a program, none of MIOpen's assembly
    #[arg(long, value_name = "SPDX", value_delimiter = ',', help_heading = "Input")]
    pub license_allow: Vec<Allowed>,
}

impl InputOptions {
    /// The GPUs, each once.
    ///
    /// # Errors
    /// If two differ only in features that the name of a kdb does not show: both would write the
    /// same file.
    pub fn targets(&self) -> Result<Vec<Target>> {
        let mut by_file: BTreeMap<String, &Target> = BTreeMap::new();
        let mut targets = Vec::new();
        for target in self.target.iter().flatten() {
            match by_file.insert(target.kdb_file_name(), target) {
                None => targets.push(target.clone()),
                Some(other) if other == target => {}
                Some(other) => {
                    return Err(error::usage(
                        format!(
                            "failed to build for both `{other}` and `{target}`: both are `{}`",
                            target.kdb_file_name()
                        ),
                        "build them in two runs with different --out",
                    ));
                }
            }
        }
        Ok(targets)
    }

    /// Whether only what Debian can ship is compiled.
    pub(crate) fn dfsg(&self) -> bool {
        self.license_allow.contains(&Allowed::Dfsg)
    }
}

/// How code objects are stored. Raw gives the smallest packages:
/// docs/packages.md, "Size", has the measurements.
pub const BLOBS: [Choice<Blob>; 3] = [
    ("auto", "Raw: packages compress many kernels at once better than bzip2 each", Blob::Raw),
    ("bz2", "bzip2 where that is smaller, as MIOpen does it", Blob::Smaller),
    ("raw", "Uncompressed: larger files that MIOpen reads faster", Blob::Raw),
];

/// A week, in seconds. Nobody needs a longer limit.
const MAX_TIMEOUT: u64 = 7 * 24 * 3600;

/// A time limit, in whole seconds.
fn parse_timeout(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=MAX_TIMEOUT).contains(seconds));
    seconds.ok_or_else(|| {
        format!(
            "it is no number of seconds\nhint: write whole seconds, from 1 to {MAX_TIMEOUT}: 900"
        )
    })
}
