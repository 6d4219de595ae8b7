//! Rules for README.md, ARCHITECTURE.md and CONTRIBUTING.md: the code map is
//! correct, the two most important commands are named, and the functions in walks
//! through the code exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::finding::Finding;
use super::tree::Tree;

/// Commands that the README must name.
const COMMANDS: &[&str] = &["cargo xtask dist --setup", "cargo xtask test --setup"];
/// Directories besides `crates/` that the code map must explain.
const DIRECTORIES: &[&str] = &["xtask", "packaging", "ci", "docs", "tests"];

/// All findings in these documents.
pub(super) fn check(root: &Path, tree: &Tree) -> Vec<Finding> {
    let crates: BTreeSet<&str> = tree
        .files()
        .iter()
        .filter_map(|file| file.path.to_str()?.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
        .collect();
    let mut findings = Vec::new();
    for (path, check) in [
        ("README.md", check_readme as fn(&str, &BTreeSet<&str>) -> Vec<String>),
        ("ARCHITECTURE.md", check_architecture),
        ("CONTRIBUTING.md", |_, _| Vec::new()),
    ] {
        let Some(text) = tree.text(path) else {
            findings.push(Finding::new(path.as_ref(), 0, "is missing"));
            continue;
        };
        findings.extend(
            check(text, &crates).into_iter().map(|what| Finding::new(path.as_ref(), 0, what)),
        );
        for named in paths(text) {
            if !root.join(named).exists() {
                let what = format!("names `{named}`, which is not there");
                findings.push(Finding::new(path.as_ref(), 0, what));
            }
        }
    }
    let walks = tree.text("CONTRIBUTING.md").unwrap_or_default();
    for (file, function) in stops(walks) {
        let names_it = |text: &str| {
            let name = function.rsplit("::").next().unwrap_or(function);
            text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
        };
        if !tree.text(file).is_some_and(names_it) {
            let what = format!("`{file}` has no function `{function}`, a stop of a walk");
            findings.push(Finding::new("CONTRIBUTING.md".as_ref(), 0, what));
        }
    }
    findings
}

/// The rows of walks through the code, with a source file and its functions:
/// `` | `crates/a/src/b.rs` | `f`, `T::g` | … | ``.
fn stops(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().flat_map(|line| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let file = cells.next().and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
        let file = file.filter(|file| file.ends_with(".rs"));
        let functions = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
        file.into_iter().flat_map(move |file| functions.clone().map(move |name| (file, name)))
    })
}

fn check_readme(text: &str, _: &BTreeSet<&str>) -> Vec<String> {
    let missing = COMMANDS.iter().filter(|command| !text.contains(**command));
    missing.map(|command| format!("does not name `{command}`")).collect()
}

fn check_architecture(text: &str, crates: &BTreeSet<&str>) -> Vec<String> {
    let named = |path: &str| {
        paths(text).any(|named| {
            named.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    crates
        .iter()
        .map(|name| format!("crates/{name}"))
        .chain(DIRECTORIES.iter().map(|dir| (*dir).to_owned()))
        .filter(|dir| !named(dir))
        .map(|dir| format!("does not name `{dir}` in its code map"))
        .collect()
}

/// The paths of this checkout that are in backticks in a text.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(|word| {
        let top = word.split('/').next().unwrap_or_default();
        (top == "crates" || DIRECTORIES.contains(&top)) && !word.contains(['*', '{', ' ', '<'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stops_of_a_walk_are_files_with_functions() {
        let text = "| file | function | what |\n| --- | --- | --- |\n\
                    | `crates/a/src/b.rs` | `read`, then `T::keys` | reads `x` |\n| `a` | `b` | c |\n";
        let stops: Vec<_> = super::stops(text).collect();
        assert_eq!(stops, [("crates/a/src/b.rs", "read"), ("crates/a/src/b.rs", "T::keys")]);
    }

    #[test]
    fn the_code_map_names_every_crate() {
        let crates = BTreeSet::from(["kdb", "plan"]);
        let text = "`crates/plan` plans, `crates/kdb/` writes, `xtask`, `packaging/rpm`, `ci`, `docs`, \
                    `tests`";
        assert_eq!(check_architecture(text, &crates), [""; 0]);
        let without = text.replace("`crates/kdb/`", "kdb");
        assert_eq!(
            check_architecture(&without, &crates),
            ["does not name `crates/kdb` in its code map"]
        );
    }

    #[test]
    fn the_readme_names_the_commands() {
        let crates = BTreeSet::new();
        assert_eq!(
            check_readme("cargo xtask dist --setup\n", &crates),
            ["does not name `cargo xtask test --setup`"]
        );
    }

    #[test]
    fn paths_are_found_in_backticks() {
        let text = "crates/a `crates/b/src/c.rs` and `cargo xtask ci`, `crates/*`\n`tests`";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/b/src/c.rs", "tests"]);
    }
}
