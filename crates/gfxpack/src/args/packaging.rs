//! How packages are made: formats, names, places, signatures.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use gfxpack_package::Compression;
use gfxpack_plan::kernel_package::Family;
use gfxpack_plan::license;

use super::{CacheArgs, MaxObject};
use crate::quantity::parse_size;

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
    pub(crate) max_object: MaxObject,
    #[command(flatten)]
    pub(crate) packaging: Packaging,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
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
    /// (/opt/rocm/core-VERSION); it goes into the packages' names, and for each
    /// a metapackage without it in its name is made, which depends on the newest
    #[arg(long, value_name = "VERSION")]
    pub(crate) rocm_version: Option<String>,
    /// Version of the packages [default: the manifest's, or MIOpen's where it is
    /// asked or its source tree is built]
    #[arg(long, value_name = "VERSION")]
    pub(crate) package_version: Option<String>,
    /// Debian revision and rpm release
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) revision: String,
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
    /// SPDX licence of kernels whose manifest or source states none
    #[arg(long, visible_alias = "licence", value_name = "SPDX", value_parser = parse_license)]
    pub(crate) license: Option<String>,
    /// Whose copyright those kernels are
    #[arg(long, value_name = "WHO")]
    pub(crate) copyright: Option<String>,
    /// What the packages say of the kernels, a sentence or more [default: the
    /// manifest's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Home page of the kernels [default: the manifest's]
    #[arg(long, value_name = "URL")]
    pub(crate) homepage: Option<String>,
    /// Ship performance and find databases, and heuristic models, in the package
    /// of their device: these files, or those in a directory; repeatable
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) with_perfdb: Vec<PathBuf>,
    /// Compression of .deb contents: xz, gz or zst, with :LEVEL if wanted
    #[arg(long, value_name = "CODEC", default_value = "xz:1", value_parser = parse_compression)]
    pub(crate) deb_compression: Compression,
    /// Leave the list of MD5 digests out of .debs: making it takes longer than
    /// compressing with zst, and dpkg makes its own when it unpacks
    #[arg(long)]
    pub(crate) no_md5sums: bool,
    /// Compression of .rpm contents: xz, gz or zst, with :LEVEL if wanted
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
    /// For the MIOpen that PyTorch's wheels bring; it has no --layout.
    Wheel,
    /// An image for containers with nothing but the kernels.
    Oci,
    /// For pacman: .pkg.tar.zst.
    Arch,
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
    /// bin in ROCm's directory on Windows, in tarballs; kernels have the names
    /// that MIOpen asks for there.
    Windows,
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

fn parse_license(text: &str) -> Result<String, String> {
    license::check(text).map_err(|reason| format!("{reason}\nhint: {}", license::HINT))?;
    Ok(text.to_owned())
}

pub(super) fn parse_template(text: &str) -> Result<String, String> {
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
