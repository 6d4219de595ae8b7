//! Finds the paths in a Rust source, and its imports.

use std::collections::BTreeMap;

use super::tokens::Token;

/// A path as written: `crate::a::B`, `super::*`, `child::f`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) segments: Vec<String>,
    /// The name under which a `use` imports it; `*` for a glob.
    pub(super) name: Option<String>,
}

/// The contents of a module's file.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Submodules that are separate files.
    pub(super) children: Vec<String>,
    /// All paths in the file.
    pub(super) paths: Vec<Path>,
    /// Imports, by their names in this module.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Glob imports.
    pub(super) globs: Vec<Vec<String>>,
    /// The names of items that are defined here.
    pub(super) items: Vec<String>,
}

const KEYWORDS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

impl Scope {
    pub(super) fn read(tokens: &[Token]) -> Self {
        let mut scope = Self::default();
        for three in tokens.windows(3) {
            if let [Token::Name(keyword), Token::Name(name), end] = three {
                if keyword == "mod" && end.is(';') {
                    scope.children.push(name.clone());
                } else if KEYWORDS.contains(&keyword.as_str()) {
                    scope.items.push(name.clone());
                }
            }
        }
        let mut at = 0;
        while at < tokens.len() {
            let taken_in = tokens[at].name() == Some("use");
            let start = if taken_in { at + 1 } else { at };
            let after_separator = at > 0 && tokens[at - 1] == Token::PathSeparator;
            let begins_here = !after_separator && scope.begins_path(&tokens[start..]);
            if begins_here {
                let mut paths = Vec::new();
                at = read_tree(tokens, start, &[], taken_in, &mut paths);
                paths.into_iter().for_each(|path| scope.add(path));
            } else {
                at = start.max(at + 1);
            }
        }
        scope
    }

    /// Whether the file has only submodules and imports.
    pub(super) fn is_facade(&self) -> bool {
        self.items.is_empty()
    }

    fn begins_path(&self, tokens: &[Token]) -> bool {
        let [Token::Name(first), Token::PathSeparator, ..] = tokens else { return false };
        ["crate", "super", "self"].contains(&first.as_str()) || self.children.contains(first)
    }

    fn add(&mut self, path: Path) {
        match path.name.as_deref() {
            Some("*") => self.globs.push(path.segments.clone()),
            Some(name) => drop(self.imports.insert(name.to_owned(), path.segments.clone())),
            None => {}
        }
        self.paths.push(path);
    }
}

/// Reads a path or a `use` tree, and returns the position after it.
fn read_tree(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    taken_in: bool,
    paths: &mut Vec<Path>,
) -> usize {
    let mut segments = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(Token::Name(name)) => segments.push(name.clone()),
            Some(Token::Other('*')) if taken_in => {
                paths.push(Path { segments, name: Some("*".to_owned()) });
                return at + 1;
            }
            Some(Token::Other('{')) if taken_in => {
                at += 1;
                while tokens.get(at).is_some_and(|token| !token.is('}')) {
                    at = read_tree(tokens, at, &segments, true, paths);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.is(',')));
                }
                return at + 1;
            }
            // A path ends at `::<T>`, and at anything unexpected.
            _ => {
                paths.push(Path { segments, name: None });
                return at + 1;
            }
        }
        at += 1;
        if tokens.get(at) != Some(&Token::PathSeparator) {
            break;
        }
        at += 1;
    }
    // `a::{self, b}` names `a`.
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let mut name = taken_in.then(|| segments.last().cloned().unwrap_or_default());
    if taken_in && tokens.get(at).and_then(Token::name) == Some("as") {
        name = tokens.get(at + 1).and_then(Token::name).map(str::to_owned);
        at += 2;
    }
    paths.push(Path { segments, name });
    at
}
