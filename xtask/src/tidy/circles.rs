//! Circles of files: within a crate, no two files use each other, not by way of
//! others either. A child module that uses what its parent has, and is used by
//! it, is one: what both use belongs in a file of its own.
//!
//! Sources are read as tokens, not as a compiler reads them. A file uses
//! another where it names a path that leads there by `crate::`, `super::`,
//! `self::` or a submodule. A path through a file that only passes a name on
//! (`pub use`) leads to where the name is defined, and a file that has nothing
//! but `mod` and `use` lines uses nobody. Methods are not seen, nor what a
//! macro writes. Tests are left out.

mod paths;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Finding;
use super::tree::{TextFile, Tree};
use paths::Scope;

/// Uses that close a circle and have not been mended: the file, and what it
/// uses. An entry that closes none any more is a finding too.
const KNOWN: &[(&str, &str)] = &[];

/// A module by the names that lead to it from the crate's root.
type Module = Vec<String>;
/// Which files a file uses.
type Uses<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

/// The files of one crate.
#[derive(Default)]
struct Crate<'a> {
    modules: BTreeMap<Module, (&'a Path, Scope)>,
}

/// All circles of the checkout's crates.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_except(tree, KNOWN)
}

fn check_except(tree: &Tree, known: &[(&str, &str)]) -> Vec<Finding> {
    let mut crates: BTreeMap<PathBuf, Crate<'_>> = BTreeMap::new();
    for file in tree.files() {
        if let Some((root, module)) = place(file, tree) {
            let scope = Scope::read(&tokens::tokens(&file.text));
            crates.entry(root).or_default().modules.insert(module, (&file.path, scope));
        }
    }
    let mut uses = Uses::new();
    crates.values().for_each(|of_crate| of_crate.add_uses(&mut uses));
    let mut findings = Vec::new();
    let known: Vec<_> = known.iter().map(|(from, to)| (Path::new(*from), Path::new(*to))).collect();
    for (from, to) in &known {
        if let Some(used) = uses.get_mut(from) {
            used.remove(to);
        }
    }
    for (from, to) in &known {
        if !leads(&uses, to, from) {
            let what = format!(
                "closes no circle with `{}`: take this out of the list in the check",
                to.display()
            );
            findings.push(Finding::new(from, 0, what));
        }
    }
    findings.extend(circles(&uses));
    findings
}

/// A source's crate and its module there; none for tests and other files.
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
    // Nothing of a library uses the program beside it.
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
    }

    /// The file that a path leads to; none for one that only passes names on.
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
            // The module itself, or all that it has.
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

/// How often a name may be passed on.
const MAX_STEPS: usize = 10;

/// Whether following the uses from one file leads to another.
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

/// A finding for each use that leads back, in the order of the files.
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
