//! What is known of a tool's cache, and how its places are found.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::user_environment::UserEnvironment;

/// A tool's cache.
#[derive(Debug)]
pub struct Cache {
    /// `pocl`.
    pub name: &'static str,
    /// Its content; completes "holds …".
    pub about: &'static str,
    /// Its places, the usual one first, each with the rules by which the tool finds
    /// it: the first that applies counts.
    pub(crate) places: &'static [&'static [Place]],
    /// Variables that switch it off.
    pub switches: &'static [Switch],
    /// The limits of these variables, as text; may be empty.
    pub disable_note: &'static str,
    /// Variables that move it or a part of it, each with its value below the directory
    /// that the user chose; a file if it has an extension.
    pub location_variables: &'static [(&'static str, &'static str)],
    /// Further effects of these variables, as text; may be empty.
    pub location_note: &'static str,
}

impl Cache {
    /// Its places for this user, the usual one first. They may not exist; empty if
    /// the tool keeps nothing.
    pub fn directories(&self, user: &UserEnvironment) -> Vec<CacheDirectory> {
        let first = |rules: &&'static [Place]| rules.iter().find(|place| place.applies(user));
        self.places.iter().filter_map(first).filter_map(|place| place.directory(user)).collect()
    }

    /// The variables that now switch it, or a part of it, off, with their values; empty
    /// if it is in use.
    pub fn switched_off(&self, user: &UserEnvironment) -> Vec<(&'static Switch, String)> {
        let in_effect = |switch: &'static Switch| {
            let value = user.raw(switch.name).filter(|value| switch.values.hold(value))?;
            Some((switch, value.to_string_lossy().into_owned()))
        };
        self.switches.iter().filter_map(in_effect).collect()
    }
}

/// A place by one of its tool's rules.
#[derive(Debug)]
pub struct Place {
    pub(crate) base: Base,
    /// The place below it.
    pub(crate) below: &'static str,
    /// The rule that names it: `XDG_CACHE_HOME`.
    pub rule: &'static str,
    /// Whether an entry belongs to the tool, judging by itself.
    pub(crate) filter: fn(&Item<'_>) -> bool,
    /// A further condition on the entry's surroundings, if users choose the
    /// directory: some names could belong to anybody.
    pub(crate) beside: Option<fn(&Item<'_>) -> bool>,
    /// Whether its entries are results of tuning, which take long to recreate.
    pub tuning: bool,
    /// Whether many users share the directory.
    pub(crate) shared: bool,
}

/// Where a place begins.
#[derive(Debug)]
pub(crate) enum Base {
    /// The value of a variable that is set, even if it is empty.
    Set(&'static str),
    /// The value of a variable that is not empty.
    NotEmpty(&'static str),
    /// The value of a variable that is an absolute path.
    Absolute(&'static str),
    /// As `NotEmpty`, with `~` as MIOpen reads it.
    Miopen(&'static str),
    /// The file that a variable names, in its directory.
    File(&'static str),
    /// Nowhere, if this variable is not empty.
    NotIf(&'static str),
    /// The home directory as MIOpen finds it.
    Tilde,
    /// The directory for temporary files.
    Temp,
    /// Inductor's own in Python's directory for temporary files.
    Torch,
    /// This directory.
    Fixed(&'static str),
}

impl Place {
    pub(crate) const fn of(base: Base, below: &'static str, filter: fn(&Item<'_>) -> bool) -> Self {
        let rule = match base {
            Base::Set(name)
            | Base::NotEmpty(name)
            | Base::Absolute(name)
            | Base::Miopen(name)
            | Base::File(name)
            | Base::NotIf(name) => name,
            Base::Tilde => "HOME",
            Base::Temp | Base::Torch => "the temporary directory",
            Base::Fixed(_) => "there is no HOME",
        };
        Self { base, below, rule, filter, beside: None, tuning: false, shared: false }
    }

    fn applies(&self, user: &UserEnvironment) -> bool {
        match self.base {
            Base::Set(name) => user.raw(name).is_some(),
            Base::NotEmpty(name) | Base::Miopen(name) | Base::File(name) | Base::NotIf(name) => {
                user.value(name).is_some()
            }
            Base::Absolute(name) => user.absolute(name).is_some(),
            Base::Tilde | Base::Temp | Base::Torch | Base::Fixed(_) => true,
        }
    }

    /// `None` if there is no such place. Relative paths depend on the directory in
    /// which the tool was started, so they are none.
    fn directory(&'static self, user: &UserEnvironment) -> Option<CacheDirectory> {
        let base = match self.base {
            Base::Set(name) | Base::NotEmpty(name) | Base::Absolute(name) => user.absolute(name)?,
            Base::Miopen(name) => {
                let path = user.expanded(Path::new(user.value(name)?));
                path.is_absolute().then_some(path)?
            }
            Base::File(name) => {
                let file = user.absolute(name)?;
                let only = Some(file.file_name()?.to_str()?.to_owned());
                return Some(CacheDirectory { dir: file.parent()?.to_owned(), place: self, only });
            }
            Base::NotIf(_) => return None,
            Base::Tilde => user.expanded("~"),
            Base::Temp => user.temp_dir(),
            Base::Torch => {
                let plain = |c: char| if r#"\/:*?"<>|"#.contains(c) { '_' } else { c };
                let name: String = user.python_user()?.chars().map(plain).collect();
                user.python_temp_dir().join(format!("torchinductor_{name}"))
            }
            Base::Fixed(dir) => PathBuf::from(dir),
        };
        // Joining nothing would add a slash.
        let dir = if self.below.is_empty() { base } else { base.join(self.below) };
        Some(CacheDirectory { dir, place: self, only: None })
    }
}

/// A directory in which a tool keeps entries, perhaps among others.
#[derive(Debug, Clone)]
pub struct CacheDirectory {
    /// Absolute.
    pub dir: PathBuf,
    /// What is known of it.
    pub place: &'static Place,
    /// The only name of entries, if users choose it.
    only: Option<String>,
}

/// An entry of a directory.
pub(crate) struct Item<'a> {
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) is_dir: bool,
}

impl CacheDirectory {
    /// Whether an entry of the directory belongs to the tool, judging by its
    /// surroundings too. Must not be called after any of these were removed.
    pub(crate) fn finds(&self, item: &Item<'_>) -> bool {
        self.owns(item) && self.place.beside.is_none_or(|holds| holds(item))
    }

    /// Whether an entry of the directory belongs to the tool, judging by
    /// itself.
    pub(crate) fn owns(&self, item: &Item<'_>) -> bool {
        self.only.as_ref().is_none_or(|only| item.name == only) && (self.place.filter)(item)
    }
}

/// A variable that switches a cache, or a part of it, off.
#[derive(Debug)]
pub struct Switch {
    /// `POCL_KERNEL_CACHE`.
    pub name: &'static str,
    /// A value that switches it off: `0`.
    pub value: &'static str,
    /// The values that do, by the tool's own rules.
    pub(crate) values: Values,
    /// The effect of this value; completes "off: …".
    pub effect: &'static str,
    /// Whether this is the recommended variable. The others have an older name,
    /// or only prevent reading the cache.
    pub usual: bool,
}

/// Which values count.
#[derive(Debug)]
pub(crate) enum Values {
    /// One of these, ignoring case.
    Words(&'static [&'static str]),
    /// Anything but the empty text, even `0`.
    NotEmpty,
    /// Anything that does not begin with `1`.
    NotOne,
}

impl Values {
    fn hold(&self, value: &OsStr) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            Self::NotEmpty => !value.is_empty(),
            Self::NotOne => !value.as_encoded_bytes().starts_with(b"1"),
        }
    }
}
