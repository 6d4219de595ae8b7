//! Arguments of the commands that make, index, install and verify packages.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args as ClapArgs, Command, Subcommand};
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_model::{InstallLayout, TargetId};
use gfxpack_package::{Compression, FORMATS, Format, PackageManager};
use gfxpack_plan::kernel_package::Family;
use gfxpack_plan::license;

use super::parsers::{Choice, TargetList, checked, one_of, parse_targets, parse_template};
use super::{CacheArgs, Hardware, parse_gpu};
use crate::commands::RPM_KINDS;

#[derive(Debug, ClapArgs)]
pub(crate) struct Package {
    /// kdbs, whose names say their target: gfx906_60.kdb
    #[arg(required = true, value_name = "KDB")]
    pub(crate) kdbs: Vec<PathBuf>,
    /// Where to put the packages
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Package kdbs even if their build says that kernels are missing
    #[arg(long)]
    pub(crate) allow_partial: bool,
    #[command(flatten)]
    pub(crate) packaging: Packaging,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Packages")]
pub(crate) struct Packaging {
    /// Package formats [default: wheel for PyTorch's own MIOpen, else deb, rpm and tar.gz]
    #[arg(long, value_parser = one_of(&FORMATS), value_delimiter = ',', value_name = "FORMAT")]
    pub(crate) format: Vec<Format>,
    /// Where the kdb is installed [default: where the library looks]
    ///
    /// rocm-6.4.1 is /opt/rocm-6.4.1/share/miopen/db, therock-7.11 is
    /// /opt/rocm/core-7.11/share/miopen/db, and an absolute path a prefix:
    /// PREFIX/share/miopen/db. A version goes into the packages' names, and for
    /// each a metapackage without it in its name is made, which depends on the
    /// newest.
    #[arg(long, alias = "prefix", value_name = "LAYOUT", value_parser = LayoutParser)]
    pub(crate) layout: Option<InstallLayout>,
    /// Version of the packages [default: the manifest's, or MIOpen's where it is
    /// asked or its source tree is built], and after a hyphen Debian's revision
    /// and rpm's release, if not 1: 3.4.0-2
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) package_version: Option<(String, Option<String>)>,
    /// Package name, {gfx} standing for the target and {rocm} for ROCm's
    /// version, which is appended if the template lacks {rocm} [default:
    /// miopen-hip-{gfx}kdb, or the library's name and {gfx} for kernels that
    /// MIOpen does not ask for]
    #[arg(long, value_name = "TEMPLATE", value_parser = parse_template)]
    pub(crate) name_template: Option<String>,
    /// Also make a metapackage that depends on the packages for a family of
    /// GPUs: gfx9, gfx103, all
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) meta: Vec<Family>,
    /// Who maintains the packages [default: DEBFULLNAME and
    /// DEBEMAIL, or the manifest's]
    #[arg(long, value_name = "NAME <MAIL>")]
    pub(crate) maintainer: Option<String>,
    /// SPDX licence of kernels that state none
    ///
    /// Neither in a manifest nor in the source.
    #[arg(long, value_name = "SPDX", value_parser = parse_license)]
    pub(crate) license: Option<String>,
    /// Copyright holder of those kernels
    #[arg(long, value_name = "WHO")]
    pub(crate) copyright: Option<String>,
    /// Description of the kernels in the packages, a sentence or more [default:
    /// the manifest's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Home page of the kernels [default: the manifest's]
    #[arg(long, value_name = "URL")]
    pub(crate) homepage: Option<String>,
    /// Ship performance and find databases, and heuristic models, in the package
    /// of their device: these files, or those in a directory; repeatable
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) with_perfdb: Vec<PathBuf>,
    /// Compression of .deb and .rpm contents: xz, gz or zst, with :LEVEL if wanted
    /// [default: xz:1 in a .deb, zst:3 in an .rpm]
    #[arg(long, value_name = "CODEC", value_parser = parse_compression)]
    pub(crate) compression: Option<Compression>,
    /// Sign packages and SHA256SUMS with this key of gpg's
    #[arg(long, value_name = "KEY")]
    pub(crate) sign_key: Option<String>,
}

/// The layouts that have a name, and what follows it.
pub(crate) const LAYOUTS: [(&str, &str); 5] = [
    ("rocm", "/opt/rocm/share/miopen/db"),
    ("rocm-VERSION", "/opt/rocm-VERSION/share/miopen/db, as rocm-6.4.1"),
    ("therock-VERSION", "/opt/rocm/core-VERSION/share/miopen/db, as therock-7.11"),
    ("fhs", "/usr/share/miopen/db"),
    ("debian", "/usr/lib/share/miopen/db, where Debian's libMIOpen looks"),
];

/// The layout that a name or a prefix stands for.
pub(crate) fn parse_layout(text: &str) -> Result<InstallLayout, String> {
    let rocm = text.strip_prefix("rocm-").filter(|version| !version.is_empty());
    match text {
        "rocm" => Ok(InstallLayout::Rocm { version: None }),
        "fhs" => Ok(InstallLayout::Fhs),
        "debian" => Ok(InstallLayout::Debian),
        _ if rocm.is_some() => Ok(InstallLayout::Rocm { version: rocm.map(str::to_owned) }),
        _ if text.starts_with("therock") => {
            let given = text.strip_prefix("therock-").unwrap_or_default();
            let parts: Vec<&str> = given.split('.').collect();
            let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            match parts.as_slice() {
                [major, minor, ..] if parts.iter().all(number) => {
                    Ok(InstallLayout::TheRock { version: format!("{major}.{minor}") })
                }
                _ => Err("it lacks ROCm's version\nhint: write it as therock-7.11".to_owned()),
            }
        }
        _ if text.starts_with('/') => parse_prefix(text).map(InstallLayout::Prefix),
        _ => {
            let names = LAYOUTS.map(|(name, _)| name).join(", ");
            Err(format!("it is no absolute path, and no layout\nhint: layouts are {names}"))
        }
    }
}

/// Parses a layout, and tells help and shells the names.
#[derive(Debug, Clone)]
struct LayoutParser;

impl TypedValueParser for LayoutParser {
    type Value = InstallLayout;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<InstallLayout, clap::Error> {
        TypedValueParser::parse_ref(&(parse_layout as fn(&str) -> _), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // The others go on with a version.
        let whole = LAYOUTS.iter().filter(|(name, _)| !name.ends_with("VERSION"));
        Some(Box::new(whole.map(|(name, help)| PossibleValue::new(*name).help(*help))))
    }
}

/// A version, and the revision after the last hyphen.
fn parse_version(text: &str) -> Result<(String, Option<String>), String> {
    let (version, revision) = match text.rsplit_once('-') {
        Some((version, revision)) => (version, Some(revision.to_owned())),
        None => (text, None),
    };
    let is_whole = !version.is_empty() && revision.as_deref() != Some("");
    let version =
        checked(version, is_whole, "a part is empty\nhint: write it as 3.4.0 or 3.4.0-2")?;
    Ok((version, revision))
}

/// The most bytes of a file's name on Linux.
const LONGEST_NAME: usize = 255;

fn parse_prefix(text: &str) -> Result<String, String> {
    let parts = text.strip_prefix('/').map(|rest| rest.trim_end_matches('/').split('/'));
    let plain = parts.is_some_and(|mut parts| !parts.any(|part| matches!(part, "" | "." | "..")))
        && !text.chars().any(char::is_control);
    let text = checked(
        text,
        plain,
        "it is no absolute path\nhint: write it from the root, without . and ..",
    )?;
    let short = text.split('/').all(|part| part.len() <= LONGEST_NAME);
    checked(&text, short, "a name in it is longer than 255 bytes\nhint: no file system takes that")
}

fn parse_license(text: &str) -> Result<String, String> {
    license::check(text).map_err(|reason| format!("{reason}\nhint: {}", license::HINT))?;
    Ok(text.to_owned())
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
        "gz" => Ok(Compression::Gz { level: level(6)? }),
        "zst" => Ok(Compression::Zst { level: level(3)? }),
        _ => Err("no such codec\nhint: write xz, gz or zst, with :LEVEL if wanted".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Recipe {
    /// In a Debian source package, before dh_gencontrol: write each package's
    /// fields about its kernels into debian/PACKAGE.substvars, as
    /// ${gfxpack:Provides}
    Debhelper,
    /// Print dependencies of an .rpm with the files that stdin names, for rpm's generators
    Rpm {
        /// The kind of dependency
        #[arg(value_parser = PossibleValuesParser::new(RPM_KINDS.map(|(name, _)| name)))]
        kind: String,
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
