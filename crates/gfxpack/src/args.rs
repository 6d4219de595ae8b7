//! The command line as clap reads it.

mod distribute;
mod harvest;
mod kdb;
mod remote;
mod repository;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use gfxpack_compile::{Shortcut, Shortcuts};
use gfxpack_package::Compression;
use gfxpack_plan::Target;
use gfxpack_plan::kernel_package::{DEFAULT_NAME_TEMPLATE, Family};
use gfxpack_plan::license::Allowed;

use crate::commands::{Caches, Perfdb};
use crate::quantity::{parse_age, parse_size};
pub(crate) use distribute::{
    ExecJob, Export, FromPlan, KdbForm, Merge, Missing, Ninja, ShardsIn, SlurmArgs, Status, Submit,
    Wait,
};
pub(crate) use harvest::{
    Harvest, HarvestCommand, HarvestCommands, HarvestKeys, Sources, Tune, TuneCollect, TunePlan,
};
pub(crate) use kdb::{ConflictArg, Copy, Kdb, KdbLayout, SelectObject};
#[cfg(feature = "remote-cache")]
pub(crate) use remote::CacheUpload;
#[cfg(feature = "remote")]
pub(crate) use remote::RemoteToolchain;
pub(crate) use remote::{RemoteArgs, SharedCacheArgs};
pub(crate) use repository::{Install, Manager, Repo, Verify};

/// A week, in seconds: whoever wants more means none.
const MAX_TIMEOUT: u64 = 7 * 24 * 3600;

/// Builds GPU kernel packages for ROCm from source, on machines without a GPU.
#[derive(Debug, Parser)]
#[command(name = "gfxpack", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 internal or environment error, 2 wrong usage or input, \
    3 kernel not found (lookup) or no package (install), 42 a shard is done and has refused kernels, 100 kernels that could not be compiled, \
    101 verification failed, rows were lost to `kdb repair`, \
    `kdb diff --exit-code` found differences, or `doctor` found something wrong, 130 interrupted.\n\
    Environment: GFXPACK_CACHE_DIR, GFXPACK_CACHE_SIZE, GFXPACK_LOG, HIPCC, SOURCE_DATE_EPOCH, DEBFULLNAME, DEBEMAIL."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "General")]
pub(crate) struct Common {
    /// How to report: text for people, or one JSON object a line on stdout
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) message_format: MessageFormat,
    /// Say only what went wrong
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more; twice for diagnostics
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Progress bars
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) progress: When,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    #[default]
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile kernels, assemble and verify kdbs, and package them
    Dist(Box<Dist>),
    /// Say what `dist` would do
    Plan(Box<PlanCommand>),
    /// Compile kernels and assemble kdbs, without packages
    Build(Box<Build>),
    /// Package kdbs that exist
    Package(Box<Package>),
    /// Put the shards of a stored plan together: assemble and verify kdbs
    Merge(Box<Merge>),
    /// Say which shards of a plan are done, and which to run again
    Status(Status),
    /// Have a cluster run the shards of a stored plan that are missing
    #[command(subcommand)]
    Submit(Submit),
    /// Wait for the shards that were submitted
    Wait(Wait),
    /// Write a stored plan as another program's input
    #[command(subcommand)]
    Export(Export),
    /// Run one job of a stored plan
    #[command(hide = true)]
    ExecJob(Box<ExecJob>),
    /// Make a directory of packages a repository for apt, dnf and zypper
    Repo(Repo),
    /// Install the kernel packages for this machine's GPUs
    Install(Install),
    /// Check packages, repositories and directories of packages: archives,
    /// signatures, and every kernel of the kdbs in them
    Verify(Verify),
    /// Look into kdbs, combine, convert and repair them
    #[command(subcommand)]
    Kdb(Kdb),
    /// Gather kernel keys from MIOpen's logs, kdbs and earlier harvests, as a
    /// list for --keys
    Harvest(Harvest),
    /// Have MIOpen tune for what programs computed
    #[command(subcommand)]
    Tune(Tune),
    /// Look after the cache of compiled objects
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Merge and check performance and find databases
    #[command(subcommand)]
    Perfdb(Perfdb),
    /// Find, measure, switch off and clear the caches of GPU compilers and
    /// libraries
    #[command(subcommand)]
    Caches(Caches),
    /// List the GPUs that are known, and what can be built for them here
    Targets(Targets),
    /// List the compilers that were found, and what each builds
    Toolchains(ToolchainsCommand),
    /// Print this machine's GPUs, or the kernel packages to install for them
    Detect(Detect),
    /// Look a kernel up as a program would: which file has it, or why each has not
    Lookup(Lookup),
    /// Say why a kernel is not found: the files asked, and the keys nearest to it
    Explain(Explain),
    /// Say what is wrong or suspicious on this machine, and what to do about it
    Doctor(Doctor),
    /// List the environment variables that count at run time, with their effect
    Env,
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command
    #[command(hide = true)]
    Manual {
        /// The directory, which is made
        dir: PathBuf,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Dist {
    #[command(flatten)]
    pub(crate) build: Build,
    #[command(flatten)]
    pub(crate) packaging: Packaging,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Print the command of every compile job
    #[arg(long)]
    pub(crate) commands: bool,
    /// Say what decides the object of every key that contains this, and why
    /// it would be compiled
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with = "commands")]
    pub(crate) explain: Option<String>,
    /// Lay the sources out below DIR as the compiler will see them, with the
    /// command of every compile job as a line of DIR/commands
    #[arg(long, value_name = "DIR", conflicts_with = "explain")]
    pub(crate) stage: Option<PathBuf>,
    /// Store the plan in DIR, for any machine with this toolchain to run with
    /// `build --plan DIR`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["explain", "stage", "commands"])]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) stored: FromPlan,
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(flatten)]
    pub(crate) shared: SharedCacheArgs,
    /// Where to put what is made; kdbs go to DIR/kdb
    #[arg(long, value_name = "DIR", help_heading = "Build")]
    pub(crate) out: PathBuf,
    /// Compilers at once [default: one per processor, as memory allows]
    #[arg(long, help_heading = "Build", short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// How long one kernel may take, in seconds
    #[arg(long, help_heading = "Build", value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT))]
    pub(crate) timeout: u64,
    /// Go on and exit with 0 although kernels could not be compiled or found;
    /// what is made says so
    #[arg(long, help_heading = "Build")]
    pub(crate) allow_partial: bool,
    #[command(flatten)]
    pub(crate) form: KdbForm,
    /// Write a page about the build: time, memory and size of every kernel,
    /// and what failed
    #[arg(long, help_heading = "Build", value_name = "FILE.html", conflicts_with = "dry_run")]
    pub(crate) report: Option<PathBuf>,
    /// What runs the jobs; the bytes are the same
    #[arg(long, value_enum, default_value_t, help_heading = "Build")]
    pub(crate) via: Via,
    /// A shortcut not to take: fork-server, precompiled-header,
    /// reduced-library or huge-pages; repeatable, or with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Build")]
    pub(crate) no_shortcut: Vec<Shortcut>,
    /// Say what would be done, and do nothing
    #[arg(long, short = 'n', help_heading = "Build")]
    pub(crate) dry_run: bool,
}

/// What runs the jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// The compiler itself, with every shortcut that gives the same bytes.
    #[default]
    Auto,
    /// The compiler itself, started for every job.
    Direct,
    /// hipcc, and clang's driver for the languages that are not hipcc's.
    Hipcc,
}

impl Build {
    /// The shortcuts that are left.
    pub(crate) fn shortcuts(&self) -> Shortcuts {
        let all = match self.via {
            Via::Auto => Shortcuts::default(),
            Via::Direct => Shortcuts { direct: true, ..Shortcuts::NONE },
            Via::Hipcc => Shortcuts::NONE,
        };
        self.no_shortcut.iter().fold(all, |left, &shortcut| left.without(shortcut))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlobArg {
    /// Raw: packages compress many kernels at once better than bzip2 each.
    #[default]
    Auto,
    /// bzip2 where that is smaller, as MIOpen does it.
    Bz2,
    /// Uncompressed: larger files that MIOpen reads faster.
    Raw,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Input")]
pub(crate) struct Inputs {
    /// A kernel manifest (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,
    /// Kernel keys, one JSON object with kernel_name and kernel_args a line;
    /// their sources are looked up by name below --source-dir
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// Build only what this kdb lacks; repeatable
    #[arg(long, value_name = "KDB")]
    pub(crate) missing_from: Vec<PathBuf>,
    /// Where sources and includes of keys are looked up, sub-directories too
    #[arg(long, value_name = "DIR")]
    pub(crate) source_dir: Vec<PathBuf>,
    /// GPU to build for, as gfx906_60, gfx90a@104, gfx90a:xnack+@104, or
    /// gfx1030 for every compute-unit count; repeatable, or with commas
    #[arg(long, short, value_name = "TARGET", value_delimiter = ',', value_parser = parse_target)]
    pub(crate) target: Vec<Target>,
    /// Compile only sources that Debian takes: free licences, and no source
    /// that a program wrote; the rest is left out and listed
    #[arg(long)]
    pub(crate) dfsg: bool,
    /// Compile only sources under these SPDX licences
    #[arg(long, visible_alias = "licence-allow", value_name = "SPDX", value_delimiter = ',')]
    pub(crate) license_allow: Vec<Allowed>,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Toolchain")]
pub(crate) struct ToolchainArgs {
    /// A hipcc to use, and no other toolchain than those named; repeatable, and
    /// each target is built by the first that can [default: what is found in
    /// HIPCC, /opt/rocm*, and PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) hipcc: Vec<PathBuf>,
    /// A clang to use without hipcc, likewise
    #[arg(long, value_name = "PATH")]
    pub(crate) clang: Vec<PathBuf>,
    /// The directory of the device libraries' bitcode; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) device_libs: Vec<PathBuf>,
    /// The prefix of a ROCm installation to use, and no other; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) rocm_path: Vec<PathBuf>,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Cache")]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    pub(crate) dir: CacheDir,
    /// How large the cache may be after the build: what was not used for
    /// longest goes, as 20GB [default: GFXPACK_CACHE_SIZE, or no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache_size: Option<u64>,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct CacheDir {
    /// Where compiled objects are kept [default: the user's cache directory]
    #[arg(long, value_name = "DIR", help_heading = "Cache")]
    pub(crate) cache_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Say what the cache holds
    Stats {
        #[command(flatten)]
        dir: CacheDir,
    },
    /// Remove what was not used for longest, until the limits hold
    Gc {
        #[command(flatten)]
        dir: CacheDir,
        /// How large the cache may be, as 20GB [default: GFXPACK_CACHE_SIZE]
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        max_size: Option<u64>,
        /// For how long a file may lie unused, as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        max_age: Option<Duration>,
        /// Say what would be removed, and remove nothing
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Hash every object; those that are damaged are named and removed
    Verify {
        #[command(flatten)]
        dir: CacheDir,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Package {
    /// kdbs, whose names say their target: gfx906_60.kdb
    #[arg(required = true, value_name = "KDB")]
    pub(crate) kdbs: Vec<PathBuf>,
    /// Where to put the packages
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Package kdbs although their build says that kernels are missing
    #[arg(long)]
    pub(crate) allow_partial: bool,
    #[command(flatten)]
    pub(crate) packaging: Packaging,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Packages")]
pub(crate) struct Packaging {
    /// Package formats
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT",
          default_values_t = [Format::Deb, Format::Rpm, Format::TarGz])]
    pub(crate) format: Vec<Format>,
    /// Where the kdb is installed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) layout: LayoutArg,
    /// Install below this absolute prefix instead: PREFIX/share/miopen/db
    #[arg(long, value_name = "PREFIX", conflicts_with = "layout", value_parser = parse_prefix)]
    pub(crate) prefix: Option<String>,
    /// ROCm's version, for the layouts rocm (/opt/rocm-VERSION) and therock
    /// (/opt/rocm/core-VERSION); it goes into the packages' names, and another
    /// package without it brings the newest
    #[arg(long, value_name = "VERSION")]
    pub(crate) rocm_version: Option<String>,
    /// Version of the packages [default: the manifest's, or gfxpack's own]
    #[arg(long, value_name = "VERSION")]
    pub(crate) package_version: Option<String>,
    /// Debian revision and rpm release
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) revision: String,
    /// Package name, {gfx} standing for the target and {rocm} for ROCm's
    /// version, which else goes to the end
    #[arg(long, value_name = "TEMPLATE", default_value = DEFAULT_NAME_TEMPLATE, value_parser = parse_template)]
    pub(crate) name_template: String,
    /// Make a package that brings those of a family of GPUs too: gfx9,
    /// gfx103, all
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) meta: Vec<Family>,
    /// Who maintains the packages [default: DEBFULLNAME and
    /// DEBEMAIL, or the manifest's]
    #[arg(long, value_name = "NAME <MAIL>")]
    pub(crate) maintainer: Option<String>,
    /// SPDX licence of kernels whose manifest names none
    #[arg(long, visible_alias = "licence", value_name = "SPDX")]
    pub(crate) license: Option<String>,
    /// Whose copyright those kernels are
    #[arg(long, value_name = "WHO")]
    pub(crate) copyright: Option<String>,
    /// Ship performance and find databases in the package of their device:
    /// these files, or those in a directory; repeatable
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) with_perfdb: Vec<PathBuf>,
    /// Compression of .deb contents: xz, gz or zst, with :LEVEL if wanted
    #[arg(long, value_name = "CODEC", default_value = "xz:1", value_parser = parse_compression)]
    pub(crate) deb_compression: Compression,
    /// Leave the list of MD5 digests out of .debs, which takes longer than
    /// zst does; dpkg then makes its own as it unpacks
    #[arg(long)]
    pub(crate) no_md5sums: bool,
    /// Compression of .rpm contents, likewise
    #[arg(long, value_name = "CODEC", default_value = "zst:3", value_parser = parse_compression)]
    pub(crate) rpm_compression: Compression,
    /// How much memory packaging may take: several packages are written at
    /// once where they fit
    #[arg(long, value_name = "SIZE", default_value = "512MB", value_parser = parse_size)]
    pub(crate) memory: u64,
    /// Sign packages and SHA256SUMS with this key of gpg's
    #[arg(long, value_name = "KEY")]
    pub(crate) sign_key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Format {
    Deb,
    Rpm,
    #[value(name = "tar.gz", alias = "tgz")]
    TarGz,
    #[value(name = "tar.zst")]
    TarZst,
    #[value(name = "tar.xz")]
    TarXz,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArg {
    /// /opt/rocm/share/miopen/db, or /opt/rocm-VERSION with --rocm-version.
    #[default]
    Rocm,
    /// /opt/rocm/core-VERSION/share/miopen/db, of --rocm-version.
    #[value(name = "therock")]
    TheRock,
    /// /usr/share/miopen/db.
    Fhs,
    /// /usr/lib/share/miopen/db, where Debian's libMIOpen looks.
    Debian,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ToolchainsCommand {
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Targets {
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Only those that can be built here
    #[arg(long)]
    pub(crate) buildable: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Detect {
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Print the names of the packages to install, one a line: those for exactly
    /// the GPU's compute units, those for all of its kind, or both
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true,
          default_missing_value = "both")]
    pub(crate) packages: Option<Which>,
    /// Package name, {gfx} standing for the target
    #[arg(long, value_name = "TEMPLATE", default_value = DEFAULT_NAME_TEMPLATE, value_parser = parse_template)]
    pub(crate) name_template: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// First the exact one, which MIOpen prefers, then the device-wide one.
    Both,
    /// For exactly the compute units.
    Exact,
    /// For every compute-unit count.
    DeviceWide,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Hardware {
    /// Do not load the HIP runtime library; ask the kernel driver and the PCI bus
    #[arg(long)]
    pub(crate) no_hip: bool,
    /// Where sysfs is; a copy of another machine's tells of that one, with --no-hip
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub(crate) sysfs: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Asked {
    /// The GPU, as gfx906_60 or gfx90a@104 [default: this machine's first]
    #[arg(long, short, value_name = "TARGET", value_parser = parse_target)]
    pub(crate) target: Option<Target>,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Where installed kdbs are, instead of the usual places; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) system_dir: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Lookup {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The kernel's name: MIOpenConvDirUni.cl.o
    pub(crate) name: String,
    /// Its arguments, byte for byte, with ` -mcpu=` at the end
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: String,
    /// Ask the user's kdb before the installed ones, as MIOpen's code does it
    #[arg(long)]
    pub(crate) user_first: bool,
    /// Write the code object to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The kernel's name: MIOpenConvDirUni.cl.o
    pub(crate) name: String,
    /// Its arguments, byte for byte, with ` -mcpu=` at the end
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: String,
    /// How many of the nearest keys are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) nearest: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Decode and hash every kernel of this GPU's kdbs, as `kdb verify` does
    #[arg(long)]
    pub(crate) deep: bool,
}

pub(crate) fn parse_target(text: &str) -> Result<Target, String> {
    text.parse::<Target>().map_err(|error| format!("{error}\nhint: {}", error.hint()))
}

fn parse_prefix(text: &str) -> Result<String, String> {
    let plain = text.starts_with('/')
        && text.len() > 1
        && !text.split('/').any(|part| matches!(part, "." | ".."));
    if plain {
        Ok(text.to_owned())
    } else {
        Err("it is no absolute path\nhint: write it from the root, without . and ..".to_owned())
    }
}

fn parse_template(text: &str) -> Result<String, String> {
    if text.contains("{gfx}") {
        Ok(text.to_owned())
    } else {
        Err("all targets' packages would have one name\nhint: {gfx} stands for the target: kernels-{gfx}".to_owned())
    }
}

fn parse_compression(text: &str) -> Result<Compression, String> {
    let (codec, level) = text.split_once(':').map_or((text, None), |(c, l)| (c, Some(l)));
    let level = |default: u32| match level {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("`{text}` is no level\nhint: write a number, as zst:3")),
    };
    match codec {
        "xz" => Ok(Compression::Xz { level: level(1)? }),
        "gz" | "gzip" => Ok(Compression::Gz { level: level(6)? }),
        "zst" | "zstd" => Ok(Compression::Zst { level: level(3)? }),
        _ => Err("no such codec\nhint: write xz, gz or zst, with :LEVEL if wanted".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Args::command().debug_assert();
    }
}
