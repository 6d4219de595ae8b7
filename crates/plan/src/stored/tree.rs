//! What lies below the directories that sources come from, so that whoever
//! runs a plan elsewhere can answer what no source's text names.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

/// What lies below a directory, by paths relative to it; the directory itself
/// is `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree {
    /// In the order of their paths.
    pub entries: BTreeMap<String, TreeEntry>,
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// Its number among the files and directories of a plan's trees: equal
    /// ones are one under several names.
    pub number: u64,
    /// What it is.
    pub kind: TreeKind,
    /// Whether its name is a symbolic link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_link: bool,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeKind {
    /// A directory with all that is in it.
    Directory,
    /// The same, where a name with small letters for capitals is the same name.
    IgnoresCase,
    /// A directory of which not all names are listed.
    Partial,
    /// A link to a directory above it, which is found by its number.
    Above,
    /// A file with the SHA-256 of its content, which comes with the plan.
    File(Digest),
    /// A file whose content does not, or what is no file.
    Unknown,
}

/// Where the files of a source come from: places in the list of trees, and
/// numbers as they stand there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTrees {
    /// The directory that the staged one stands for.
    pub root: usize,
    /// Those that `gfxpack-include-0`, `gfxpack-include-1`, … stand for.
    pub include_dirs: Vec<usize>,
    /// Those of the source's own files, in their order: a tree may lack them, or
    /// have another file at their paths.
    pub files: Vec<u64>,
    /// Paths above the root that the source's text names, without `.`, and at
    /// which nothing is: an assembler looks there first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// What a tree says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeLookup<'a> {
    /// That nothing is there.
    Absent,
    /// What is there.
    Found(&'a TreeEntry),
    /// Nothing: it is not known whether something is there.
    Unknown,
}

impl TreeKind {
    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(self) -> bool {
        !matches!(self, Self::File(_) | Self::Unknown)
    }
}

impl<'a> TreeLookup<'a> {
    /// What is there, if the tree lists it.
    #[must_use]
    pub fn entry(self) -> Option<&'a TreeEntry> {
        match self {
            TreeLookup::Found(entry) => Some(entry),
            TreeLookup::Absent | TreeLookup::Unknown => None,
        }
    }
}

impl Tree {
    /// What the tree says about a relative path without `..`.
    #[must_use]
    pub fn find(&self, path: &Path) -> TreeLookup<'_> {
        let Some(mut entry) = self.entries.get("") else { return TreeLookup::Unknown };
        let mut at = String::new();
        for part in path.components() {
            match (part, entry.kind) {
                (Component::CurDir, _) => continue,
                (_, TreeKind::File(_)) => return TreeLookup::Absent,
                (_, TreeKind::Unknown) => return TreeLookup::Unknown,
                (Component::Normal(name), kind) => {
                    let Some(name) = name.to_str() else { return TreeLookup::Unknown };
                    if !at.is_empty() {
                        at.push('/');
                    }
                    at.push_str(name);
                    if !self.entries.contains_key(&at) {
                        let is_absent = match kind {
                            // Names besides ASCII may be alike in other ways.
                            TreeKind::IgnoresCase => name.is_ascii() && !self.has_alike(&at),
                            _ => kind == TreeKind::Directory,
                        };
                        return if is_absent { TreeLookup::Absent } else { TreeLookup::Unknown };
                    }
                }
                _ => return TreeLookup::Unknown,
            }
            entry = &self.entries[&at];
            if entry.kind == TreeKind::Above {
                let mut above = Path::new(&at).ancestors().skip(1).filter_map(Path::to_str);
                let is_same = |dir: &&str| self.entries[*dir].number == entry.number;
                let Some(dir) = above.find(is_same) else { return TreeLookup::Unknown };
                at = dir.to_owned();
                entry = &self.entries[&at];
            }
        }
        TreeLookup::Found(entry)
    }

    /// Whether a path is listed that differs only in upper and lower case.
    fn has_alike(&self, path: &str) -> bool {
        self.entries.keys().any(|key| key.eq_ignore_ascii_case(path))
    }

    /// The path of a directory, by its number: the only one that passes no link,
    /// else one that is no link itself, so that its parent is what `..` leads to.
    #[must_use]
    pub fn path_of(&self, number: u64) -> Option<&str> {
        let has_link = |path: &str| {
            let ancestors = Path::new(path).ancestors().filter_map(Path::to_str);
            ancestors.filter_map(|path| self.entries.get(path)).any(|entry| entry.is_link)
        };
        let mut named = self.entries.iter().filter(|(_, it)| it.number == number && !it.is_link);
        let mut plain = named.clone().filter(|(path, _)| !has_link(path));
        let found = match (plain.next(), plain.next()) {
            // Mounted at two places, it has two directories above it.
            (Some(_), Some(_)) => None,
            (one, _) => one.or_else(|| named.next()),
        };
        found.map(|(path, _)| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_never_taken_for_absent() {
        let file = TreeKind::File(Digest::of(b""));
        // `link` leads to `sub/deep`, and `out` out of the tree.
        let entries = [
            ("", 1, TreeKind::Directory, false),
            ("a.h", 2, file, false),
            ("big", 3, TreeKind::Unknown, false),
            ("link", 4, TreeKind::Directory, true),
            ("out", 5, TreeKind::Directory, true),
            ("out/in", 8, TreeKind::Directory, false),
            ("sub", 6, TreeKind::Partial, false),
            ("sub/b.h", 7, file, false),
            ("sub/self", 6, TreeKind::Above, true),
            ("sub/top", 1, TreeKind::Above, true),
            ("sub/deep", 4, TreeKind::Directory, false),
        ];
        let entries = entries.map(|(path, number, kind, is_link)| {
            (path.to_owned(), TreeEntry { number, kind, is_link })
        });
        let tree = Tree { entries: entries.into() };
        let path_of = [4, 5, 8].map(|number| tree.path_of(number));
        assert_eq!(path_of, [Some("sub/deep"), None, Some("out/in")]);
        let mounted = tree.entries.iter().map(|(path, entry)| match path.as_str() {
            "out" => (path.clone(), TreeEntry { number: 4, is_link: false, ..entry.clone() }),
            _ => (path.clone(), entry.clone()),
        });
        let mounted = Tree { entries: mounted.collect() };
        assert_eq!([4, 6].map(|number| mounted.path_of(number)), [None, Some("sub")]);
        let find = |path: &str| tree.find(Path::new(path));
        for path in ["a.h", "./a.h", "sub/b.h", "big", ""] {
            assert!(matches!(find(path), TreeLookup::Found(_)), "{path}");
        }
        assert_eq!(find("sub/self/self/b.h"), find("sub/b.h"));
        assert_eq!((find("sub/self/top"), find("sub/top/a.h")), (find(""), find("a.h")));
        for path in ["x.h", "link/x.h", "x/y/z.h", "sub/top/x.h", "a.h/x"] {
            assert_eq!(find(path), TreeLookup::Absent, "{path}");
        }
        let mut folded = tree.clone();
        for entry in folded.entries.values_mut().filter(|it| it.kind == TreeKind::Directory) {
            entry.kind = TreeKind::IgnoresCase;
        }
        let find_folded = |path: &str| folded.find(Path::new(path));
        assert_eq!((find("A.h"), find_folded("A.h")), (TreeLookup::Absent, TreeLookup::Unknown));
        assert_eq!(
            (find_folded("x.h"), find_folded("\u{e9}.h")),
            (TreeLookup::Absent, TreeLookup::Unknown)
        );
        assert_eq!(
            (find("Out/x.h"), find_folded("Out/x.h")),
            (TreeLookup::Absent, TreeLookup::Unknown)
        );
        for path in ["../x.h", "sub/x.h", "sub/self/x.h", "sub/../a.h", "big/x.h"] {
            assert_eq!(find(path), TreeLookup::Unknown, "{path}");
        }
    }
}
