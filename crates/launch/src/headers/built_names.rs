//! Names that a header's macros build with `##`: they are not in its text, but a
//! command's macro of such a name changes what the header says.
//!
//! The header is preprocessed with macros of the names in question, each of
//! which shows wherever it is expanded.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use gfxpack_process::FileError;
use gfxpack_toolchain::ToolchainError;
use tempfile::TempDir;

use super::recipe::Recipe;
use crate::template::Define;

/// What the macros' values begin with.
const MARK: &str = "gfxpack_built_name_";
/// Most names asked for at once: a command line is limited.
const MAX_NAMES: usize = 1000;
/// Most times that a header is preprocessed for the names of a group's commands:
/// once is enough unless it builds some of them.
const MAX_RUNS: usize = 32;

/// The numbers of names that show; `None` where their header can't be
/// preprocessed with them.
type Shown = Result<Option<BTreeSet<usize>>, ToolchainError>;

/// Runs words in a directory of their own, and gives whether they succeeded.
type RunIn<'r> = &'r mut dyn FnMut(Vec<OsString>, &Path) -> Result<bool, ToolchainError>;

/// Whether the headers of a recipe build each of the names; without those
/// that it was not found out of.
pub(super) fn built_names(
    recipe: &Recipe,
    names: &[String],
    scratch: &dyn Fn() -> Result<TempDir, FileError>,
    run: RunIn<'_>,
) -> Result<BTreeMap<String, bool>, ToolchainError> {
    tell(names, &mut |names| {
        let scratch = scratch()?;
        let file = scratch.path().join("i");
        let macros: Vec<Define> = names
            .iter()
            .enumerate()
            .map(|(number, name)| ["-D".to_owned(), format!("{name}={}", value(number))])
            .collect();
        let Some(words) = recipe.preprocess(scratch.path(), macros, &file)? else {
            return Ok(None);
        };
        let text = run(words, scratch.path())?.then(|| fs::read(&file).ok()).flatten();
        Ok(text.filter(|text| !text.is_empty()).map(|text| marks(&String::from_utf8_lossy(&text))))
    })
}

/// What no expression can consist of: so a name that is expanded in a
/// condition makes it an error.
fn value(number: usize) -> String {
    format!("{MARK}{number}_ {MARK}{number}_")
}

/// The numbers of the values in a text, whatever they were joined with.
fn marks(text: &str) -> BTreeSet<usize> {
    let numbers = text.split(MARK).skip(1);
    numbers.filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

/// Tells of each name whether it shows. `shown` gives the numbers of those
/// that do when they are all defined, which may hide others.
fn tell(
    names: &[String],
    shown: &mut dyn FnMut(&[String]) -> Shown,
) -> Result<BTreeMap<String, bool>, ToolchainError> {
    let mut told = BTreeMap::new();
    let mut waiting: Vec<Vec<String>> = names.chunks(MAX_NAMES).map(<[_]>::to_vec).collect();
    for _ in 0..MAX_RUNS {
        let Some(mut some) = waiting.pop() else { break };
        match shown(&some)? {
            Some(numbers) if numbers.is_empty() => {
                told.extend(some.into_iter().map(|name| (name, false)));
            }
            Some(numbers) => {
                let (built, others): (Vec<_>, Vec<_>) =
                    some.into_iter().enumerate().partition(|(number, _)| numbers.contains(number));
                told.extend(built.into_iter().map(|(_, name)| (name, true)));
                if !others.is_empty() {
                    waiting.push(others.into_iter().map(|(_, name)| name).collect());
                }
            }
            None if some.len() <= 1 => told.extend(some.into_iter().map(|name| (name, true))),
            None => {
                let half = some.split_off(some.len() / 2);
                waiting.extend([some, half]);
            }
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_show_whatever_they_were_joined_with() {
        let text = format!("int {} ; x{} \"{}5\"", value(7), value(0), value(12));
        assert_eq!(marks(&text), BTreeSet::from([0, 7, 12]));
        assert_eq!(marks("int x;"), BTreeSet::new());
    }

    #[test]
    fn each_name_is_told_of_where_that_can_be_found_out() {
        let names =
            |from: &[&str]| -> Vec<String> { from.iter().map(|&name| name.to_owned()).collect() };
        // `a` hides `b`; `if` breaks whatever it stands in.
        let mut runs = 0;
        let mut shown = |names: &[String]| {
            runs += 1;
            let at = |name: &str| names.iter().position(|other| other == name);
            let one = |number: usize| Some(BTreeSet::from([number]));
            Ok(match (at("if"), at("a"), at("b")) {
                (Some(_), ..) => None,
                (_, Some(number), _) | (_, None, Some(number)) => one(number),
                _ => Some(BTreeSet::new()),
            })
        };
        let told = tell(&names(&["a", "b", "c", "if", "d"]), &mut shown).unwrap();
        let told: Vec<(&str, bool)> = told.iter().map(|(name, is)| (name.as_str(), *is)).collect();
        assert_eq!(told, [("a", true), ("b", true), ("c", false), ("d", false), ("if", true)]);
        assert!(runs > 1);

        let mut runs = 0;
        let mut broken = |_: &[String]| {
            runs += 1;
            Ok(None)
        };
        let many: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
        assert!(tell(&many, &mut broken).unwrap().len() < many.len());
        assert_eq!(runs, MAX_RUNS);
    }
}
