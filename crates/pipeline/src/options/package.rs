//! How packages are made.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use gfxpack_model::InstallLayout;
use gfxpack_package::{Compression, FORMATS, Format};
use gfxpack_plan::kernel_package::{Family, SourceLicense};
use gfxpack_plan::license;

use super::CacheArgs;
use super::parsers::{checked, one_of, parse_template};

/// Which kdbs are packaged, and how.
#[derive(Debug, Args)]
pub struct PackageKdbs {
    /// kdbs, whose names say their target: gfx906_60.kdb
    #[arg(required = true, value_name = "KDB")]
    pub kdbs: Vec<PathBuf>,
    /// Where to put the packages
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Package kdbs even if their build says that kernels are missing
    #[arg(long)]
    pub allow_partial: bool,
    /// How packages are made.
    #[command(flatten)]
    pub packaging: PackageOptions,
    /// The cache, which records what was verified and what outputs were made from.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// How packages are made.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Packages")]
pub struct PackageOptions {
    /// Package formats [default: wheel for PyTorch's own MIOpen, else deb, rpm and tar.gz]
    #[arg(long, value_parser = one_of(&FORMATS), value_delimiter = ',', value_name = "FORMAT")]
    pub format: Vec<Format>,
    /// Where the kdb is installed [default: where the library looks]
    ///
    /// rocm-6.4.1 is /opt/rocm-6.4.1/share/miopen/db, therock-7.11 is
    /// /opt/rocm/core-7.11/share/miopen/db, and an absolute path a prefix:
    /// PREFIX/share/miopen/db. A version goes into the packages' names, and for
    /// each a metapackage without it in its name is made, which depends on the
    /// newest.
    #[arg(long, alias = "prefix", value_name = "LAYOUT", value_parser = LayoutParser)]
    pub layout: Option<InstallLayout>,
    /// Version of the packages [default: the manifest's, or MIOpen's where it is
    /// asked or its source tree is built], and after a hyphen Debian's revision
    /// and rpm's release, if not 1: 3.4.0-2
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub package_version: Option<(String, Option<String>)>,
    /// Package name, {gfx} standing for the target and {rocm} for ROCm's
    /// version, which is appended if the template lacks {rocm} [default:
    /// miopen-hip-{gfx}kdb, or the library's name and {gfx} for kernels that
    /// MIOpen does not ask for]
    #[arg(long, value_name = "TEMPLATE", value_parser = parse_template)]
    pub name_template: Option<String>,
    /// Also make a metapackage that depends on the packages for a family of
    /// GPUs: gfx9, gfx103, all
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub meta: Vec<Family>,
    /// Who maintains the packages [default: DEBFULLNAME and
    /// DEBEMAIL, or the manifest's]
    #[arg(long, value_name = "NAME <MAIL>")]
    pub maintainer: Option<String>,
    /// SPDX licence of kernels that state none
    ///
    /// Neither in a manifest nor in the source.
    #[arg(long, value_name = "SPDX", value_parser = parse_license)]
    pub license: Option<String>,
    /// Copyright holder of those kernels
    #[arg(long, value_name = "WHO")]
    pub copyright: Option<String>,
    /// Description of the kernels in the packages, a sentence or more [default:
    /// the manifest's]
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Home page of the kernels [default: the manifest's]
    #[arg(long, value_name = "URL")]
    pub homepage: Option<String>,
    /// Ship performance and find databases, and heuristic models, in the package
    /// of their device: these files, or those in a directory; repeatable
    #[arg(long, value_name = "FILE|DIR")]
    pub with_perfdb: Vec<PathBuf>,
    /// Compression of .deb and .rpm contents: xz, gz or zst, with :LEVEL if wanted
    /// [default: xz:1 in a .deb, zst:3 in an .rpm]
    #[arg(long, value_name = "CODEC", value_parser = parse_compression)]
    pub compression: Option<Compression>,
    /// Sign packages and SHA256SUMS with this key of gpg's
    #[arg(long, value_name = "KEY")]
    pub sign_key: Option<String>,
}

impl PackageOptions {
    pub(crate) fn version(&self) -> Option<&String> {
        self.package_version.as_ref().map(|(version, _)| version)
    }

    /// Debian revision and rpm release.
    pub(crate) fn revision(&self) -> String {
        let revision = self.package_version.as_ref().and_then(|(_, revision)| revision.clone());
        revision.unwrap_or_else(|| "1".to_owned())
    }

    /// The licence that the user gave for sources whose inputs name none.
    pub(crate) fn stated_license(&self) -> Option<SourceLicense> {
        let license = self.license.clone()?;
        Some(SourceLicense { license, copyright: self.copyright_holders() })
    }

    /// Copyright holder of sources whose inputs do not name one.
    pub(crate) fn copyright_holders(&self) -> String {
        self.copyright.clone().unwrap_or_else(|| "the authors of the kernels".to_owned())
    }
}

/// The layouts that have a name, and what follows it.
pub const LAYOUTS: [(&str, &str); 5] = [
    ("rocm", "/opt/rocm/share/miopen/db"),
    ("rocm-VERSION", "/opt/rocm-VERSION/share/miopen/db, as rocm-6.4.1"),
    ("therock-VERSION", "/opt/rocm/core-VERSION/share/miopen/db, as therock-7.11"),
    ("fhs", "/usr/share/miopen/db"),
    ("debian", "/usr/lib/share/miopen/db, where Debian's libMIOpen looks"),
];

/// The layout that a name or a prefix stands for.
fn parse_layout(text: &str) -> Result<InstallLayout, String> {
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
