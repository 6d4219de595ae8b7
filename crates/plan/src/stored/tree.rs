//! The files below the directories of sources, so that another machine that runs the plan can
//! answer lookups of files that no source's text names.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

/// The files below a directory, by relative path; the directory itself is `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree {
    /// Ordered by path.
    pub entries: BTreeMap<String, TreeEntry>,
}

/// A file or directory in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// Its number among the files and directories of a plan's trees. Entries with the same number
    /// are one file or directory under several names.
    pub number: u64,
    /// The kind of entry.
    pub kind: TreeKind,
    /// Whether its name is a symbolic link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_link: bool,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeKind {
    /// A directory with all its entries listed.
    Directory,
    /// The same, in which names are not case-sensitive.
    IgnoresCase,
    /// A directory with only some of its entries listed.
    Partial,
    /// A link to a directory above it, which has the same number.
    Above,
    /// A file with the SHA-256 of its content, which comes with the plan.
    File(Digest),
    /// A file whose content is not stored with the plan, or another kind of file.
    Unknown,
}

/// The trees of a source, as indices into the list of trees, and the numbers of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTrees {
    /// The directory that becomes the staged one.
    pub root: usize,
    /// The directories that become `gfxpack-include-0`, `gfxpack-include-1`, ….
    pub include_dirs: Vec<usize>,
    /// The numbers of the source's own files, in their order. A tree may lack them, or have other
    /// files at their paths.
    pub files: Vec<u64>,
    /// Paths above the root, without `.`, that the source's text names and that do not exist: an
    /// assembler looks there first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// The result of looking up a path in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeLookup<'a> {
    /// Nothing exists there.
    Absent,
    /// The entry.
    Found(&'a TreeEntry),
    /// It is not known whether something exists there.
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
    /// The entry, if the tree lists it.
    #[must_use]
    pub fn entry(self) -> Option<&'a TreeEntry> {
        match self {
            TreeLookup::Found(entry) => Some(entry),
            TreeLookup::Absent | TreeLookup::Unknown => None,
        }
    }
}

impl Tree {
    /// Looks up a relative path without `..`.
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
                            // Names that are not ASCII may be equal in other ways.
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

    /// The path of the directory with this number: the only path without links, else one whose last
    /// part is no link, so that `..` leads to its parent.
    #[must_use]
    pub fn path_of(&self, number: u64) -> Option<&str> {
        let has_link = |path: &str| {
            let ancestors = Path::new(path).ancestors().filter_map(Path::to_str);
            ancestors.filter_map(|path| self.entries.get(path)).any(|entry| entry.is_link)
        };
        let mut named = self.entries.iter().filter(|(_, it)| it.number == number && !it.is_link);
        let mut plain = named.clone().filter(|(path, _)| !has_link(path));
        let found = match (plain.next(), plain.next()) {
            // A directory that is mounted at two paths has two parents.
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
    fn unlisted_paths_are_never_taken_for_absent() {
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
