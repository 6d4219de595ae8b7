//! The arguments of `repo`, `install` and `verify`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_package::PackageManager;

use super::packaging::parse_template;
use super::parsers::{Choice, one_of};
use super::{Hardware, MaxObject};

#[derive(Debug, ClapArgs)]
pub(crate) struct Repo {
    /// The directory; packages in directories below are found too
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Sign the indexes with this key of gpg's
    #[arg(long, value_name = "KEY")]
    pub(crate) sign_key: Option<String>,
    /// Who the repository is of, for apt
    #[arg(long, value_name = "NAME", default_value = "gfxpack", value_parser = parse_line)]
    pub(crate) origin: String,
    /// Where the repository will be fetched from, as `https://example.org/kernels`;
    /// stands in the files and the page for its users [default: the directory]
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
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Say what would be installed, and do nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Install from this directory of packages instead of repositories
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// The package manager [default: the one that is there]
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
    /// .deb, .rpm, pacman's or tar packages, wheels, images; repositories; directories that `dist` made
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Public keys, one of which must have signed what can be signed
    #[arg(long, value_name = "FILE")]
    pub(crate) keyring: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) max_object: MaxObject,
}

fn parse_word(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-+.".contains(&b);
    if text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("it becomes a directory\nhint: write letters, digits, +, - and .".to_owned())
    }
}

fn parse_url(text: &str) -> Result<String, String> {
    let known = ["https://", "http://", "file:///"].iter().any(|scheme| text.starts_with(scheme));
    if known && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"'<>\\".contains(&b)) {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("it is no address\nhint: write one as https://example.org/kernels or file:///srv/kernels".to_owned())
    }
}

fn parse_line(text: &str) -> Result<String, String> {
    if !text.trim().is_empty() && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err("it is no line of text\nhint: write a name".to_owned())
    }
}
