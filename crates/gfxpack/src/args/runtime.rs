//! Arguments of the commands for machines that run kernels.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use gfxpack_miopen::LibrarySource;
use gfxpack_model::Target;
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_pipeline::options::{checked, parse_miopen, parse_target, parse_template, whole_file};

#[derive(Debug, ClapArgs)]
pub(crate) struct Detect {
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Print the names of the packages to install, one a line; without a GPU it
    /// prints nothing, and the exit code is 3: `p=$(gfxpack detect --packages)
    /// && apt install $p`
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true,
          default_missing_value = "preferred")]
    pub(crate) packages: Option<Which>,
    /// Package name, {gfx} standing for the target
    #[arg(long, value_name = "TEMPLATE", default_value = DEFAULT_NAME_TEMPLATE, value_parser = parse_template)]
    pub(crate) name_template: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// One for each GPU: the exact one where the package manager knows it, else
    /// the one for any number of compute units.
    Preferred,
    /// For exactly the compute units.
    Exact,
    /// For every compute-unit count.
    DeviceWide,
    /// The exact one and the one for any number of compute units: a list to choose from, since MIOpen
    /// opens one of them.
    Both,
}

/// The default root of sysfs.
pub(crate) const SYSFS: &str = "/sys";

#[derive(Debug, ClapArgs)]
pub(crate) struct Hardware {
    /// Do not load the HIP runtime library; ask the kernel driver and the PCI bus
    #[arg(long)]
    pub(crate) no_hip: bool,
    /// Root of sysfs; with --no-hip, may be a copy from another machine
    #[arg(long, value_name = "DIR", default_value = SYSFS)]
    pub(crate) sysfs: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LookupArgs {
    /// The GPU, as gfx906_60, gfx90a@104 or MI210 [default: this machine's first]
    #[arg(long, short, value_name = "TARGET", value_parser = parse_target)]
    pub(crate) target: Option<Target>,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// The MIOpen whose user cache is read, by the name of its directory: 3.4.0
    /// [default: the newest that has one, else that of the MIOpen installed]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) miopen_version: Option<String>,
    /// The libMIOpen that looks, a file or a directory with one, or `torch`
    /// for the one that PyTorch brings [default: those installed]
    #[arg(long, value_name = "LIBRARY", value_parser = parse_installed_miopen)]
    pub(crate) miopen: Option<PathBuf>,
    /// Where installed kdbs are, instead of the usual places; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) system_dir: Vec<PathBuf>,
}

fn parse_installed_miopen(text: &str) -> Result<PathBuf, String> {
    match parse_miopen(text)? {
        LibrarySource::Path(path) => Ok(path),
        _ => Err("it is not installed here\nhint: name a file or a directory with one, or torch; \
                  `gfxpack kdb check KDB --problems FILE --miopen debian:sid` asks Debian's"
            .to_owned()),
    }
}

fn parse_version(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+".contains(&b);
    let is_good = text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(plain);
    checked(text, is_good, "it is no version\nhint: write it as MIOpen's directory has it: 3.4.0")
}

/// The kernel that is looked up, and where.
#[derive(Debug, ClapArgs)]
pub(crate) struct Lookup {
    #[command(flatten)]
    pub(crate) asked: LookupArgs,
    /// The librocfft that looks the kernel up: a file, a directory with one,
    /// debian:sid, or lock:FILE [default: the installed one]
    #[arg(long, value_name = "LIBRARY", conflicts_with = "args")]
    pub(crate) rocfft: Option<LibrarySource>,
    /// The kernel's name: MIOpenConvDirUni.cl.o
    pub(crate) name: String,
    /// Its arguments exactly as in a log or kdb: with the leading blank if there
    /// is one, and the ` -mcpu=gfx…` at the end; a kernel of rocFFT has none
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// Whose result counts for the exit code and --out: MIOpen's, or that of
    /// gfxpack's runtime; both are printed
    #[arg(long = "for", value_enum, default_value_t, value_name = "PROGRAM")]
    pub(crate) program: Program,
    /// Have gfxpack's runtime ask the user's kdb before the installed ones, as
    /// MIOpen does
    #[arg(long)]
    pub(crate) user_first: bool,
    /// Write the code object to this file
    #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
    pub(crate) out: Option<PathBuf>,
}

/// Who looks for kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// MIOpen, which opens one installed kdb.
    #[default]
    Miopen,
    /// Programs with gfxpack's runtime, which asks all that fit the device.
    Runtime,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) asked: LookupArgs,
    /// List the environment variables that count at run time, set or not, and
    /// the places of databases, in place of the checks
    #[arg(long, conflicts_with = "deep")]
    pub(crate) env: bool,
    /// Decode and hash every kernel of this GPU's kdbs, as `kdb verify` does
    #[arg(long)]
    pub(crate) deep: bool,
}
