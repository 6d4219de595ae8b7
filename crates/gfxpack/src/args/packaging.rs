//! Arguments of the commands that make, index, install, verify and slim packages, and files with
//! device code that others built.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use gfxpack_model::TargetId;
use gfxpack_model::package::RelationKind;
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_package::PackageManager;
use gfxpack_pipeline::options::{
    Choice, TargetList, checked, one_of, parse_target, parse_targets, parse_template,
};

use super::Hardware;

#[derive(Debug, Subcommand)]
pub(crate) enum Recipe {
    /// In a Debian source package, before dh_gencontrol: write each package's
    /// fields about its kernels into debian/PACKAGE.substvars, as
    /// ${gfxpack:Provides}
    Debhelper,
    /// Print dependencies of an .rpm with the files that stdin names, for rpm's generators
    Rpm {
        /// The kind of dependency
        #[arg(value_parser = one_of(&RPM_KINDS))]
        kind: RelationKind,
        /// The build root, below which the files lie
        #[arg(long, value_name = "DIR")]
        root: PathBuf,
        /// The package's name
        #[arg(long, value_name = "NAME")]
        package: String,
        /// The package's version and release, as 1.0-1
        #[arg(long, value_name = "VERSION")]
        package_version: String,
    },
}

/// The kinds of dependencies of an .rpm with kernels, named as in rpm's generators.
const RPM_KINDS: [Choice<RelationKind>; 5] = [
    ("provides", "", RelationKind::Provides),
    ("enhances", "", RelationKind::Enhances),
    ("supplements", "", RelationKind::Supplements),
    ("conflicts", "", RelationKind::Conflicts),
    ("obsoletes", "", RelationKind::Obsoletes),
];

#[derive(Debug, ClapArgs)]
pub(crate) struct Repo {
    /// The directory; packages in directories below are found too
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Sign the indexes with this key of gpg's
    #[arg(long, value_name = "KEY")]
    pub(crate) sign_key: Option<String>,
    /// Name of the repository: apt's Origin field, and the names of its .sources
    /// and .repo files
    #[arg(long, value_name = "NAME", default_value = "gfxpack", value_parser = parse_line)]
    pub(crate) origin: String,
    /// Where the repository will be fetched from, as `https://example.org/kernels`,
    /// for the .sources and .repo files [default: the directory]
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) url: Option<String>,
    /// Name of the suite, for apt
    #[arg(long, value_name = "NAME", default_value = "stable", value_parser = parse_word)]
    pub(crate) suite: String,
    /// Name of the component, for apt
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = parse_word)]
    pub(crate) component: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Install {
    /// GPU to install for, as in an image for other machines, repeatable [default: this machine's]
    #[arg(long, short, value_name = "TARGET", value_parser = parse_targets)]
    pub(crate) target: Vec<TargetList>,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Print what would be installed, and do nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Install from this directory of packages instead of repositories, after
    /// checking what SHA256SUMS and indexes there say of them
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Public keys: with --from, packages must be signed by one of them [default:
    /// the directory's archive-key.asc, which must not have made a bad signature]
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) keyring: Option<PathBuf>,
    /// The package manager [default: the one on this machine]
    #[arg(long, value_parser = one_of(&MANAGERS), value_name = "NAME")]
    pub(crate) with: Option<PackageManager>,
    /// Package name, {gfx} standing for the target
    #[arg(long, value_name = "TEMPLATE", default_value = DEFAULT_NAME_TEMPLATE, value_parser = parse_template)]
    pub(crate) name_template: String,
    /// More arguments for the package manager, after --
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
}

const MANAGERS: [Choice<PackageManager>; 3] = [
    ("apt", "", PackageManager::APT),
    ("dnf", "", PackageManager::DNF),
    ("zypper", "", PackageManager::ZYPPER),
];

#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// .deb, .rpm, pacman's or tar packages, wheels, images; repositories; directories that `dist`
    /// made; for device code, libraries and any directory
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Check that files that others built have code for this GPU: libraries, programs, Tensile's
    /// lists, kpack archives; repeatable, or with commas [default: this machine's, for what is no
    /// package]
    #[arg(long, short, value_name = "TARGET", value_delimiter = ',', value_parser = parse_gpu)]
    pub(crate) target: Vec<TargetId>,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Public keys: every file that can be signed must be signed by one of them
    #[arg(long, value_name = "FILE")]
    pub(crate) keyring: Option<PathBuf>,
}

fn parse_word(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-+.".contains(&b);
    let is_good = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(plain);
    checked(text, is_good, "it becomes a directory\nhint: write letters, digits, +, - and .")
}

fn parse_url(text: &str) -> Result<String, String> {
    let known = ["https://", "http://", "file:///"].iter().any(|scheme| text.starts_with(scheme));
    let plain = |b: u8| b.is_ascii_graphic() && !b"\"'<>\\".contains(&b);
    let wrong =
        "it is no address\nhint: write one as https://example.org/kernels or file:///srv/kernels";
    checked(text.trim_end_matches('/'), known && text.bytes().all(plain), wrong)
}

fn parse_line(text: &str) -> Result<String, String> {
    let is_line = !text.trim().is_empty() && !text.chars().any(char::is_control);
    checked(text, is_line, "it is no line of text\nhint: write a name")
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Slim {
    /// A library or program, or a directory of them; or packages: .debs, .rpms, wheels, images
    #[arg(required = true, value_name = "IN")]
    pub(crate) from: Vec<PathBuf>,
    /// GPUs whose code stays, as gfx1100 or gfx90a:xnack-; repeatable, or with commas
    #[arg(long, short, required = true, value_name = "TARGET", value_delimiter = ',', value_parser = parse_gpu)]
    pub(crate) target: Vec<TargetId>,
    /// Where the smaller one goes, a new name; a directory for packages
    #[arg(long, value_name = "OUT", required_unless_present = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// Print what would become of it, and write nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Take out code for GPUs of this machine too
    ///
    /// HIP up to July 2026 gives no code to any GPU of a machine if the first one has none.
    #[arg(long)]
    pub(crate) only: bool,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
}

/// A GPU without a number of compute units, which make no difference here.
fn parse_gpu(text: &str) -> Result<TargetId, String> {
    let target = parse_target(text)?;
    match target.compute_units() {
        None => Ok(target.id().clone()),
        Some(_) => Err(format!(
            "`{text}` has a number of compute units\nhint: leave it out, as in {}",
            target.id()
        )),
    }
}
