//! Names that a header's macros build with `##`. They do not appear in its text, but a command's
//! macro with such a name changes the header.
//!
//! To find them, the header is preprocessed with each name defined as a unique marker, which
//! appears in the output wherever the name is expanded. If a macro can test by `defined` whether
//! such a name is a macro, any name may be built.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use gfxpack_process::FileError;
use gfxpack_toolchain::ToolchainError;
use tempfile::TempDir;

use super::recipe::HeaderRecipe;
use crate::template::Define;

/// The beginning of each marker.
const MARK: &str = "gfxpack_built_name_";
/// The most names tried at once: the length of a command line is limited.
const MAX_NAMES: usize = 1000;
/// The most times that a header is preprocessed for the names of a group's commands. Once is enough
/// unless the header builds some of them.
const MAX_RUNS: usize = 32;

/// The numbers of the names whose markers appear; `None` if the header can't be preprocessed with
/// these macros.
type VisibleNames = Result<Option<BTreeSet<usize>>, ToolchainError>;

/// Runs a command line in a directory of its own. Returns whether it succeeded.
type RunIn<'r> = &'r mut dyn FnMut(Vec<OsString>, &Path) -> Result<bool, ToolchainError>;

/// Whether the headers of a recipe build each of the names; without names for which this could not
/// be found out.
pub(super) fn built_names(
    recipe: &HeaderRecipe,
    names: &[String],
    scratch: &dyn Fn() -> Result<TempDir, FileError>,
    run: RunIn<'_>,
) -> Result<BTreeMap<String, bool>, ToolchainError> {
    find_built(names, &mut |names| {
        let scratch = scratch()?;
        let file = scratch.path().join("i");
        let macros: Vec<Define> = names
            .iter()
            .enumerate()
            .map(|(number, name)| ["-D".to_owned(), format!("{name}={}", value(number))])
            .collect();
        let Some(args) =
            recipe.preprocess(recipe.text(), scratch.path(), macros, ("-dD", &file))?
        else {
            return Ok(None);
        };
        let text = run(args, scratch.path())?.then(|| fs::read(&file).ok()).flatten();
        Ok(text.filter(|text| !text.is_empty()).map(|text| {
            let text = String::from_utf8_lossy(&text);
            let (macros, text): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| line.starts_with("#define "));
            if macros.iter().any(|line| tests_built_names(line)) {
                (0..names.len()).collect()
            } else {
                marks(&text.join("\n"))
            }
        }))
    })
}

/// Whether a macro may use `defined` with a name that it builds, which expands nothing.
fn tests_built_names(macro_definition: &str) -> bool {
    macro_definition.contains("defined") && macro_definition.contains("##")
}

/// A marker that is no valid expression, so that a name expanded in a condition causes an error.
fn value(number: usize) -> String {
    format!("{MARK}{number}_ {MARK}{number}_")
}

/// The numbers of the markers in a text, whatever they are joined with.
fn marks(text: &str) -> BTreeSet<usize> {
    let numbers = text.split(MARK).skip(1);
    numbers.filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

/// Finds out for each name whether the headers build it. `visible` returns the numbers of the names
/// whose markers appear if all are defined; some may hide others.
fn find_built(
    names: &[String],
    visible: &mut dyn FnMut(&[String]) -> VisibleNames,
) -> Result<BTreeMap<String, bool>, ToolchainError> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<Vec<String>> = names.chunks(MAX_NAMES).map(<[_]>::to_vec).collect();
    for _ in 0..MAX_RUNS {
        let Some(mut some) = waiting.pop() else { break };
        match visible(&some)? {
            Some(numbers) if numbers.is_empty() => {
                found.extend(some.into_iter().map(|name| (name, false)));
            }
            Some(numbers) => {
                let (built, others): (Vec<_>, Vec<_>) =
                    some.into_iter().enumerate().partition(|(number, _)| numbers.contains(number));
                found.extend(built.into_iter().map(|(_, name)| (name, true)));
                if !others.is_empty() {
                    waiting.push(others.into_iter().map(|(_, name)| name).collect());
                }
            }
            None if some.len() <= 1 => found.extend(some.into_iter().map(|name| (name, true))),
            None => {
                let half = some.split_off(some.len() / 2);
                waiting.extend([some, half]);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_that_tests_a_built_name_is_recognised() {
        assert!(tests_built_names("#define HAS(x) defined(FEATURE_##x)"));
        assert!(!tests_built_names("#define JOIN(a,b) a ##b"));
        assert!(!tests_built_names("#define HAS defined(X)"));
    }

    #[test]
    fn markers_are_found_whatever_they_are_joined_with() {
        let text = format!("int {} ; x{} \"{}5\"", value(7), value(0), value(12));
        assert_eq!(marks(&text), BTreeSet::from([0, 7, 12]));
        assert_eq!(marks("int x;"), BTreeSet::new());
    }

    #[test]
    fn built_names_are_found_within_a_limited_number_of_runs() {
        let names =
            |from: &[&str]| -> Vec<String> { from.iter().map(|&name| name.to_owned()).collect() };
        // `a` hides `b`; with `if`, preprocessing fails.
        let mut runs = 0;
        let mut visible = |names: &[String]| {
            runs += 1;
            let at = |name: &str| names.iter().position(|other| other == name);
            let one = |number: usize| Some(BTreeSet::from([number]));
            Ok(match (at("if"), at("a"), at("b")) {
                (Some(_), ..) => None,
                (_, Some(number), _) | (_, None, Some(number)) => one(number),
                _ => Some(BTreeSet::new()),
            })
        };
        let found = find_built(&names(&["a", "b", "c", "if", "d"]), &mut visible).unwrap();
        let found: Vec<(&str, bool)> =
            found.iter().map(|(name, is)| (name.as_str(), *is)).collect();
        assert_eq!(found, [("a", true), ("b", true), ("c", false), ("d", false), ("if", true)]);
        assert!(runs > 1);

        let mut runs = 0;
        let mut broken = |_: &[String]| {
            runs += 1;
            Ok(None)
        };
        let many: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
        assert!(find_built(&many, &mut broken).unwrap().len() < many.len());
        assert_eq!(runs, MAX_RUNS);
    }
}
