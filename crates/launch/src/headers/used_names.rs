//! Which macros a header depends on, asked from the preprocessor: a source defines macros and includes
//! the header, and the preprocessor warns of those that were neither expanded nor tested.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use gfxpack_model::{Error, ToolchainId};

use super::beginning::{listed_name, words};
use super::prepare::{HeaderMaker, scratch};
use super::recipe::HeaderRecipe;

/// The most times that a header is preprocessed for the names of a group's commands. Once is enough
/// unless the header uses some of them.
const MAX_RUNS: usize = 16;
/// The most names tried at once, since the warnings of a program are kept up to a limit.
const MAX_NAMES: usize = 1000;
const WARNING: &str = "macro is not used";
/// Options that show all definitions, and of warnings only those that count. Predefined macros are
/// defined like others, since a use of theirs counts too.
const OPTIONS: [&str; 5] = [
    "-dD",
    "-Wunused-macros",
    "-Wno-error=unused-macros",
    "-Wno-builtin-macro-redefined",
    "-fno-caret-diagnostics",
];

impl HeaderMaker<'_> {
    /// Whether the headers of a recipe use macros with these names; without names for which this could
    /// not be found out.
    pub(super) fn used_names(
        &mut self,
        toolchain: ToolchainId,
        recipe: &HeaderRecipe,
        names: &[String],
    ) -> Result<BTreeMap<String, bool>, Error> {
        let mut found = BTreeMap::new();
        let mut waiting: Vec<Vec<String>> = names.chunks(MAX_NAMES).map(<[_]>::to_vec).collect();
        for _ in 0..MAX_RUNS {
            let Some(mut names) = waiting.pop() else { break };
            let scratch = scratch(self.options.scratch, "names-")?;
            let file = scratch.path().join("i");
            let defines: String = names.iter().map(|name| format!("#define {name} 0\n")).collect();
            let args =
                recipe.preprocess(scratch.path(), (&defines, &recipe.text), &OPTIONS, &file)?;
            let Some(mut args) = args else { break };
            args.retain(|arg| arg != "-w");
            let (output, _) = self.run_for(toolchain, recipe, args, scratch.path())?;
            let text = fs::read(&file).ok().filter(|_| output.ok());
            let text = text.as_deref().map(String::from_utf8_lossy);
            if text.is_none() && names.len() > 1 && !output.stderr.contains(WARNING) {
                // A fatal error suppresses all warnings.
                let half = names.split_off(names.len() / 2);
                waiting.extend([names, half]);
                continue;
            }
            let used = used_among(&names, &output.stderr, text.as_deref());
            if !used.is_empty() {
                // A macro that is not used if another one is defined may be used without that.
                names.retain(|name| !used.contains(name));
                waiting.extend(Some(names).filter(|names| !names.is_empty()));
                found.extend(used.into_iter().map(|name| (name, true)));
            } else if text.is_some() {
                found.extend(names.into_iter().map(|name| (name, false)));
            }
        }
        Ok(found)
    }
}

/// The names that are used, by the preprocessor's warnings and, if there was no error, by the text
/// with all definitions. The macros are defined in its first lines.
fn used_among(names: &[String], warnings: &str, text: Option<&str>) -> BTreeSet<String> {
    let unused: HashSet<usize> = warnings.lines().filter_map(unused_line).collect();
    let mut used: BTreeSet<String> = (1..)
        .zip(names)
        .filter(|(line, _)| !unused.contains(line))
        .map(|(_, name)| name.clone())
        .collect();
    // The compiler does not count a macro as used that is defined again or undefined.
    let mut listed: HashMap<&str, usize> = HashMap::new();
    let text = text.unwrap_or_default();
    text.lines().filter_map(listed_name).for_each(|name| *listed.entry(name).or_default() += 1);
    // In pragmas, macros are expanded by the compiler only.
    let pragmas = text.lines().filter(|line| line.trim_start().starts_with("#pragma"));
    let in_pragmas: HashSet<&str> = pragmas.flat_map(words).collect();
    let tried: HashSet<&str> = names.iter().map(String::as_str).collect();
    let expand_later =
        in_pragmas.iter().any(|word| listed.contains_key(word) && !tried.contains(word));
    let is_used = |name: &&String| {
        let name = name.as_str();
        let is_defined_again = listed.get(name).is_some_and(|&times| times > 1);
        expand_later || is_defined_again || in_pragmas.contains(name)
    };
    used.extend(names.iter().filter(is_used).cloned());
    used
}

/// The number of the line whose macro a warning calls unused.
fn unused_line(warning: &str) -> Option<usize> {
    let place = warning.split_once(WARNING)?.0.strip_suffix(": warning: ")?;
    let (place, _column) = place.rsplit_once(':')?;
    place.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(warnings: &str, text: &str, expected: &[&str]) {
        let names = ["A", "B"].map(str::to_owned);
        let text = format!("#define A 0\n#define B 0\n{text}");
        let used = used_among(&names, warnings, Some(&text));
        assert_eq!(used.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn macros_are_used_unless_the_preprocessor_warns() {
        let warning =
            |line: usize| format!("/a:1/k.hip:{line}:9: warning: macro is not used [-Wu]\n");
        let both = warning(2) + &warning(1);
        check("", "", &["A", "B"]);
        check(&warning(2), "", &["A"]);
        check(&both, "int A;\n#define C B\n", &[]);
        check(&both, "#undef B\n", &["B"]);
        check(&both, "#define A 1\n", &["A"]);
        check(&both, "#pragma unroll A\n", &["A"]);
        check(&both, "#define JOIN(a, b) a##b\n#pragma unroll JOIN(A, B)\n", &["A", "B"]);
        check(&both, "#pragma GCC visibility push(default)\n", &[]);
        assert!(used_among(&["A".to_owned()], &both, None).is_empty());
    }
}
