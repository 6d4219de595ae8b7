//! Finds the version of MIOpen that an entry belongs to, and selects versions
//! to clear.

use std::fmt;
use std::str::FromStr;

use crate::clear::KeepReason;
use crate::entry::{CacheEntry, Scan};

/// A version of MIOpen, as spelled in its directories and files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MiopenVersion {
    numbers: [u32; 3],
    /// The part after the numbers: a count of commits, or empty. `None`, in
    /// user input, means all of them.
    tweak: Option<String>,
}

impl FromStr for MiopenVersion {
    type Err = &'static str;

    /// Parses `3.4.0`, which covers `3.4.0.` and `3.4.0.5b2d` too, and
    /// `3.4.0.5b2d`, which covers only itself.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, '.').ok_or("it is no version\nhint: write it as MIOpen does: 3.4.0")
    }
}

impl fmt::Display for MiopenVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        self.tweak.as_ref().map_or(Ok(()), |tweak| write!(f, ".{tweak}"))
    }
}

impl MiopenVersion {
    /// The version of an entry of MIOpen's cache: `3.4.0.`, or
    /// `gfx906_60.HIP.3_4_0_.ufdb.txt` and its lock. `None` if its name has
    /// none.
    pub fn of_entry(entry: &CacheEntry) -> Option<Self> {
        let name = entry.path.file_name()?.to_str()?;
        if entry.is_dir {
            return parse(name, '.');
        }
        let (_, rest) = name.split_once(".HIP.")?;
        parse(rest.split('.').next()?, '_')
    }

    fn covers(&self, other: &Self) -> bool {
        self.numbers == other.numbers && (self.tweak.is_none() || self.tweak == other.tweak)
    }
}

fn parse(text: &str, separator: char) -> Option<MiopenVersion> {
    let mut parts = text.splitn(4, separator);
    let mut number = || {
        let part = parts.next()?;
        (!part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse().ok())
            .flatten()
    };
    let numbers = [number()?, number()?, number()?];
    Some(MiopenVersion { numbers, tweak: parts.next().map(str::to_owned) })
}

/// Which versions' entries to clear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Versions {
    /// All, and entries without a version.
    #[default]
    All,
    /// Only this version.
    Only(MiopenVersion),
    /// In each place, all but the newest version.
    AllButNewest,
}

impl Versions {
    /// Why an entry of this scan must be kept; `None` if it may be removed.
    pub fn keep(&self, scan: &Scan, entry: &CacheEntry) -> Option<KeepReason> {
        if *self == Self::All {
            return None;
        }
        let Some(version) = MiopenVersion::of_entry(entry) else {
            return Some(KeepReason::new("no-version", "its name does not tell a version"));
        };
        match self {
            Self::All => None,
            Self::Only(wanted) => (!wanted.covers(&version))
                .then(|| KeepReason::new("other-version", "it belongs to another version")),
            Self::AllButNewest => {
                let all = scan.entries.iter().filter_map(MiopenVersion::of_entry);
                let newest = all.map(|version| version.numbers).max();
                (newest == Some(version.numbers))
                    .then(|| KeepReason::new("newest-version", "it belongs to the newest version"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_compared() {
        let read = |text: &str| text.parse::<MiopenVersion>();
        for text in ["3.4.0", "3.4.0.", "3.5.1.5b2d-dirty"] {
            assert_eq!(read(text).expect(text).to_string(), text);
        }
        for text in ["", "3", "3.4", "3.x.0", "latest", "3..0"] {
            assert!(read(text).is_err(), "{text}");
        }
        let covers = |one: &str, other: &str| read(one).unwrap().covers(&read(other).unwrap());
        assert!(covers("3.4.0", "3.4.0.") && covers("3.4.0", "3.4.0.5b2d"));
        assert!(!covers("3.4.0.", "3.4.0.5b2d") && !covers("3.4.0", "3.4.1."));
    }
}
