//! A tool's cache: its places, and how to recognise the tool's entries.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::location_variable::LocationVariable;
use crate::switch::{Switch, SwitchedOff};
use crate::user_environment::UserEnvironment;

/// A tool's cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Cache {
    /// `pocl`.
    pub name: &'static str,
    /// Its content; completes "holds …".
    pub about: &'static str,
    /// Its places for this user, the usual one first. They may not exist; empty
    /// if the tool keeps nothing.
    pub directories: Vec<CacheDirectory>,
    /// Variables that switch it off.
    pub switches: Vec<Switch>,
    /// The limits of these variables, as text; may be empty.
    pub disable_note: &'static str,
    /// Variables that move it.
    pub location_variables: Vec<LocationVariable>,
    /// Further effects of these variables, as text; may be empty.
    pub location_note: &'static str,
}

impl Cache {
    /// The variables that now switch it, or a part of it, off; empty if it is
    /// in use.
    #[must_use]
    pub fn switched_off(&self, environment: &UserEnvironment) -> Vec<SwitchedOff> {
        self.switches.iter().filter_map(|switch| switch.in_effect(environment)).collect()
    }
}

/// A directory in which a tool keeps entries, perhaps among others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CacheDirectory {
    /// Absolute.
    pub dir: PathBuf,
    /// The rule that names it: `XDG_CACHE_HOME`.
    pub rule: &'static str,
    /// Whether its entries are results of tuning, which take long to recreate.
    pub tuning: bool,
    /// Whether many users share the directory.
    pub(crate) shared: bool,
    /// Whether an entry belongs to the tool, judging by itself.
    pub(super) filter: fn(&Item<'_>) -> bool,
    /// The only name of entries, if users choose it.
    pub(super) only: Option<String>,
    /// A further condition on the entry's surroundings, if users choose the
    /// directory: some names could belong to anybody.
    pub(super) beside: Option<fn(&Item<'_>) -> bool>,
}

/// An entry of a directory.
pub(crate) struct Item<'a> {
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) is_dir: bool,
}

impl CacheDirectory {
    pub(super) fn new(dir: PathBuf, rule: &'static str, filter: fn(&Item<'_>) -> bool) -> Self {
        Self { dir, rule, tuning: false, shared: false, filter, only: None, beside: None }
    }

    pub(super) fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    pub(super) fn tuning(mut self) -> Self {
        self.tuning = true;
        self
    }

    /// Whether an entry of the directory belongs to the tool, judging by its
    /// surroundings too. Must not be called after any of these were removed.
    pub(crate) fn finds(&self, item: &Item<'_>) -> bool {
        self.owns(item) && self.beside.is_none_or(|holds| holds(item))
    }

    /// Whether an entry of the directory belongs to the tool, judging by
    /// itself.
    pub(crate) fn owns(&self, item: &Item<'_>) -> bool {
        self.only.as_ref().is_none_or(|only| item.name == only) && (self.filter)(item)
    }
}

/// Whether the file begins like an SQLite database.
pub(crate) fn is_sqlite(path: &Path) -> bool {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let regular = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut first = [0; 16];
    regular
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == *MAGIC
}

/// The names in a directory; empty if it can't be read.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    // Names that are not UTF-8, or can't be read, become empty, which no tool
    // uses.
    entries
        .map(|entry| entry.map(|entry| entry.file_name().into_string().unwrap_or_default()))
        .map(Result::unwrap_or_default)
        .collect()
}

/// Whether the directory is not empty, and all its names match.
pub(super) fn holds_only(dir: &Path, named: impl Fn(&str) -> bool) -> bool {
    let names = names(dir);
    !names.is_empty() && names.iter().all(|name| named(name))
}

/// Whether a text has a length in `count` and consists of matching bytes.
pub(super) fn is_made_of(
    text: &str,
    count: std::ops::RangeInclusive<usize>,
    of: fn(u8) -> bool,
) -> bool {
    count.contains(&text.len()) && text.bytes().all(of)
}

pub(super) fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
