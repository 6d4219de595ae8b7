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
    /// A directory of which not all names are told.
    Partial,
    /// A file with the SHA-256 of its content, which comes with the plan.
    File(Digest),
    /// A file whose content does not, or what is no file.
    Unknown,
}

/// Where the files of a source come from: places in the list of trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTrees {
    /// The directory that the staged one stands for.
    pub root: usize,
    /// Those that `i0`, `i1`, … stand for.
    pub include_dirs: Vec<usize>,
}

/// What a tree says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told<'a> {
    /// That nothing is there.
    Absent,
    /// What is there.
    Found(&'a TreeEntry),
    /// Nothing.
    Nothing,
}

impl Tree {
    /// What is told of a relative path.
    #[must_use]
    pub fn find(&self, path: &Path) -> Told<'_> {
        let Some(mut entry) = self.entries.get("") else { return Told::Nothing };
        let mut at = String::new();
        for part in path.components() {
            match (part, entry.kind) {
                (Component::CurDir, _) => continue,
                (_, TreeKind::File(_) | TreeKind::Unknown) => return Told::Nothing,
                // Above a link lies what is above what it leads to.
                (Component::ParentDir, _) if !at.is_empty() && !entry.is_link => {
                    at.truncate(at.rfind('/').unwrap_or(0));
                }
                (Component::Normal(name), kind) => {
                    let Some(name) = name.to_str() else { return Told::Nothing };
                    if !at.is_empty() {
                        at.push('/');
                    }
                    at.push_str(name);
                    if !self.entries.contains_key(&at) {
                        let complete = kind == TreeKind::Directory;
                        return if complete { Told::Absent } else { Told::Nothing };
                    }
                }
                _ => return Told::Nothing,
            }
            entry = &self.entries[&at];
        }
        Told::Found(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_never_taken_for_absent() {
        let entry = |kind, is_link| TreeEntry { number: 0, kind, is_link };
        let file = TreeKind::File(Digest::of(b""));
        let entries = [
            ("", TreeKind::Directory, false),
            ("a.h", file, false),
            ("big", TreeKind::Unknown, false),
            ("link", TreeKind::Directory, true),
            ("sub", TreeKind::Partial, false),
            ("sub/b.h", file, false),
        ];
        let entries = entries.map(|(path, kind, is_link)| (path.to_owned(), entry(kind, is_link)));
        let tree = Tree { entries: entries.into() };
        let find = |path: &str| tree.find(Path::new(path));
        for path in ["a.h", "./a.h", "sub/../a.h", "sub/b.h", "big", ""] {
            assert!(matches!(find(path), Told::Found(_)), "{path}");
        }
        for path in ["x.h", "link/x.h", "sub/../x.h", "x/y/z.h"] {
            assert_eq!(find(path), Told::Absent, "{path}");
        }
        for path in ["../x.h", "sub/x.h", "link/../a.h", "big/x.h", "a.h/x", "sub/../../x.h"] {
            assert_eq!(find(path), Told::Nothing, "{path}");
        }
    }
}
