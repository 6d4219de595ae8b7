//! Finds circular uses among files: within a crate, no two files may use each
//! other, not even through other files. A child module that uses its parent's
//! items and is used by the parent is one; what both use belongs in a separate
//! file.
//!
//! Sources are read as tokens, without name resolution. A file uses another one
//! if it names a path that leads there by `crate::`, `super::`, `self::` or a
//! submodule. A path through a file that only re-exports a name (`pub use`) leads
//! to the definition, and a file with only `mod` and `use` lines uses nothing.
//! Methods and the output of macros are not seen. Tests are left out.

mod paths;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::tree::{TextFile, Tree};
use paths::Scope;

/// A module's path from the crate's root.
type Module = Vec<String>;
/// By file: the files that it uses.
type Uses<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

/// The files of one crate.
#[derive(Default)]
struct Crate<'a> {
    modules: BTreeMap<Module, (&'a Path, Scope)>,
}

/// All circles in the checkout's crates.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<PathBuf, Crate<'_>> = BTreeMap::new();
    for file in tree.files() {
        if let Some((root, module)) = place(file, tree) {
            let scope = Scope::read(&tokens::tokens(&file.text));
            crates.entry(root).or_default().modules.insert(module, (&file.path, scope));
        }
    }
    let mut uses = Uses::new();
    crates.values().for_each(|of_crate| of_crate.add_uses(&mut uses));
    circles(&uses)
}

/// A source's crate and its module; `None` for tests and other files.
fn place(file: &TextFile, tree: &Tree) -> Option<(PathBuf, Module)> {
    let mut parts = file.path.iter().map(|part| part.to_str());
    let mut root = PathBuf::new();
    loop {
        let part = parts.next()??;
        root.push(part);
        if part == "src" {
            break;
        }
    }
    let mut module: Module = parts.map(|part| part.map(str::to_owned)).collect::<Option<_>>()?;
    let last = module.pop()?;
    let name = last.strip_suffix(".rs")?;
    let is_root = module.is_empty() && ["lib", "main"].contains(&name);
    if !is_root && name != "mod" {
        module.push(name.to_owned());
    }
    // A library never uses the program in the same package.
    let beside = name == "main" && tree.text(root.join("lib.rs").to_str()?).is_some();
    if module.is_empty() && beside {
        return None;
    }
    let is_test = module.iter().any(|part| part == "tests");
    (!is_test).then_some((root, module))
}

impl<'a> Crate<'a> {
    fn add_uses(&self, uses: &mut Uses<'a>) {
        for (module, (file, scope)) in &self.modules {
            if scope.is_facade() {
                continue;
            }
            let used = scope.paths.iter().filter_map(|path| {
                let is_glob = path.name.as_deref() == Some("*");
                self.file_of(module, &path.segments, is_glob, MAX_STEPS)
            });
            let used: BTreeSet<&Path> = used.filter(|used| used != file).collect();
            uses.insert(file, used);
        }
        // If nothing names a submodule, it adds methods to its parent's types,
        // which the parent calls.
        let named: BTreeSet<&Path> = uses.values().flatten().copied().collect();
        for (module, (file, scope)) in &self.modules {
            for child in scope.children.iter().filter(|_| !scope.is_facade()) {
                let child = [&module[..], std::slice::from_ref(child)].concat();
                let child = self.modules.get(&child).map(|(child, _)| *child);
                if let Some(child) = child.filter(|child| !named.contains(child)) {
                    uses.entry(file).or_default().insert(child);
                }
            }
        }
    }

    /// The file that a path leads to; `None` for a file that only re-exports names.
    fn file_of(
        &self,
        from: &Module,
        path: &[String],
        is_glob: bool,
        steps: usize,
    ) -> Option<&'a Path> {
        let steps = steps.checked_sub(1)?;
        let mut module = from.clone();
        let mut rest = path;
        while let Some((first, more)) = rest.split_first() {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                name => {
                    let mut child = module.clone();
                    child.push(name.to_owned());
                    if !self.modules.contains_key(&child) {
                        break;
                    }
                    module = child;
                }
            }
            rest = more;
        }
        let (file, scope) = self.modules.get(&module)?;
        let Some((item, more)) = rest.split_first() else {
            // The module itself, or all of its items.
            return (!is_glob || !scope.is_facade()).then_some(*file);
        };
        if scope.items.contains(item) {
            return Some(file);
        }
        if let Some(target) = scope.imports.get(item) {
            let target = [target, more].concat();
            return self.file_of(&module, &target, is_glob, steps);
        }
        let from_glob = scope.globs.iter().find_map(|glob| {
            let target = [glob, rest].concat();
            self.file_of(&module, &target, is_glob, steps)
        });
        from_glob.or((!scope.is_facade()).then_some(*file))
    }
}

/// How often a name may be re-exported.
const MAX_STEPS: usize = 10;

/// Whether following uses leads from one file to another.
fn leads(uses: &Uses<'_>, from: &Path, to: &Path) -> bool {
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(file) = open.pop() {
        if file == to {
            return true;
        }
        if seen.insert(file) {
            open.extend(uses.get(file).into_iter().flatten());
        }
    }
    false
}

/// A finding for each use that is part of a circle, in the order of the files.
fn circles(uses: &Uses<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, used) in uses {
        for to in used {
            if leads(uses, to, from) {
                let what = format!("uses `{}`, which leads back to it", to.display());
                findings.push(Finding::new(from, 0, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings for a crate with these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| Path::new("crates/a/src").join(name);
        let files = files
            .iter()
            .map(|(name, text)| TextFile { path: path(name), text: (*text).to_owned() });
        let findings = check(&Tree::from_files(files.collect()));
        findings.iter().map(|it| it.to_string().replace("crates/a/src/", "")).collect()
    }

    #[track_caller]
    fn expect(files: &[(&str, &str)], expected: &[(&str, &str)]) {
        let expected = expected
            .iter()
            .map(|(from, to)| format!("{from}: uses `{to}`, which leads back to it"));
        assert_eq!(found(files), expected.collect::<Vec<_>>());
    }

    const PARENT: (&str, &str) = ("p.rs", "mod c;\npub struct P;\nfn f() { c::g() }\n");
    const BOTH: [(&str, &str); 2] = [("p/c.rs", "p.rs"), ("p.rs", "p/c.rs")];

    #[test]
    fn a_child_that_uses_its_parents_items_is_a_circle() {
        expect(&[PARENT, ("p/c.rs", "use super::P;\npub fn g() {}\n")], &BOTH);
        expect(&[PARENT, ("p/c.rs", "pub fn g() -> crate::p::P { todo() }\n")], &BOTH);
        expect(&[PARENT, ("p/c.rs", "pub fn g() {}\n")], &[]);
    }

    #[test]
    fn a_child_with_methods_for_its_parent_is_a_circle() {
        let parent = ("p.rs", "mod c;\npub struct P;\n");
        expect(&[parent, ("p/c.rs", "use super::P;\nimpl P { fn g(&self) {} }\n")], &BOTH);
    }

    #[test]
    fn circles_may_lead_through_others() {
        let files = [
            ("a.rs", "use crate::b::{self, B};\npub struct A;\n"),
            ("b.rs", "pub struct B(crate::c::inner::C);\n"),
            ("c/mod.rs", "pub mod inner;\n"),
            ("c/inner.rs", "pub struct C(Box<super::super::a::A>);\n"),
        ];
        expect(&files, &[("a.rs", "b.rs"), ("b.rs", "c/inner.rs"), ("c/inner.rs", "a.rs")]);
    }

    #[test]
    fn a_file_that_reexports_a_name_is_not_used() {
        let files = [
            ("lib.rs", "//! A.\nmod p;\nmod q;\npub use p::P;\n"),
            ("p.rs", "use crate::q::Q;\npub struct P(Q);\n"),
            ("q.rs", "pub struct Q;\n#[cfg(test)]\nmod tests { use crate::P; }\n"),
        ];
        expect(&files, &[]);
        let through = ("q.rs", "use crate::P;\npub struct Q;\n");
        expect(&[files[0], files[1], through], &[("p.rs", "q.rs"), ("q.rs", "p.rs")]);
    }

    #[test]
    fn comments_strings_and_tests_use_nothing() {
        let child = "// super::P\n/* super::P /* */ super::P */\npub fn g<'a>() -> char {\n\
            f(\"super::P \\\" super::P\", r#\"super::P\"#, b'\\'', 'x')\n}\n\
            #[cfg(test)]\nuse super::P;\n#[cfg(test)]\nfn t() { super::P; }\n";
        expect(&[PARENT, ("p/c.rs", child)], &[]);
        expect(&[PARENT, ("p/c.rs", "pub fn g() {}\n"), ("p/tests.rs", "use super::P;\n")], &[]);
    }
}
