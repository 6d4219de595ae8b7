//! Precompiled headers: the header that clang's HIP driver includes before every source, and HIP's
//! own for sources that include them first, parsed once for all commands of a target.
//!
//! A command may use one only if nothing in it, or in what it includes, depends on macros that are
//! defined before it or on the command's own include directories.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use crate::template::{CommandTemplate, Define, TemplateArg};

/// The header that clang's HIP driver includes before the source.
pub(crate) const WRAPPER: &str = "__clang_hip_runtime_wrapper.h";

/// Macros whose value depends on the includer, or on what came before.
const BY_INCLUDER: [&str; 3] = ["__INCLUDE_LEVEL__", "__BASE_FILE__", "__COUNTER__"];

/// A precompiled header that exists and is up to date.
#[derive(Debug)]
pub(crate) struct PrecompiledHeader {
    pub(crate) file: PathBuf,
    /// The source of the precompiled header, which compilers expect at its old path.
    pub(crate) source: PathBuf,
    /// By name of a macro: whether the headers use it. Others are not known.
    pub(super) used: BTreeMap<String, bool>,
    /// Every name by which a header may be included in it.
    pub(super) names: BTreeSet<PathBuf>,
}

/// The name of a macro: `A` of `A=1`.
pub(crate) fn macro_name(define: &Define) -> &str {
    define[1].split(|c| !is_of_name(c)).next().unwrap_or_default()
}

/// Whether a character may be part of a macro's name.
pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a command's macros work the same with a precompiled header. With one, compilers compare
/// macros by name as spelled, and define them in another order; so each macro must have a plain
/// name, one definition, and a line of its own.
///
/// Source: llvm-project, clang/lib/Serialization/ASTReader.cpp,
/// `collectMacroDefinitions` and `checkPreprocessorOptions`.
pub(crate) fn are_plain(defines: &[Define]) -> bool {
    let mut meanings: HashMap<&str, &Define> = HashMap::new();
    defines.iter().all(|define| {
        let [option, text] = define;
        let name = macro_name(define);
        let after = &text[name.len()..];
        let named = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        let ended = after.is_empty() || (option == "-D" && after.starts_with(['=', '(']));
        // Other macros could become part of a value that begins one of these.
        let lone = !text.contains(['\n', '\r', '\0'])
            && !["/*", "??", "R\""].iter().any(|part| text.contains(part))
            && !text.trim_end().ends_with('\\');
        named && ended && lone && *meanings.entry(name).or_insert(define) == define
    })
}

impl PrecompiledHeader {
    /// The names for which it is not known whether the headers use them.
    pub(crate) fn unknown<'a>(&self, macros: impl Iterator<Item = &'a str>) -> Vec<String> {
        let names: BTreeSet<&str> = macros.chain(BY_INCLUDER).collect();
        let unknown = names.into_iter().filter(|&name| !self.used.contains_key(name));
        unknown.map(str::to_owned).collect()
    }

    /// Whether commands with these macros may use the precompiled header.
    pub(crate) fn serves(&self, macros: &BTreeSet<String>) -> bool {
        let mut names = macros.iter().map(String::as_str).chain(BY_INCLUDER);
        names.all(|name| self.used.get(name) == Some(&false))
    }

    /// Paths that would hide one of the headers if they existed, for a command that searches these
    /// directories of its sources first.
    pub(crate) fn hiding<'a>(&'a self, dirs: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
        // The compiler looks for the header that the driver includes in its working directory
        // first.
        let beside = [PathBuf::new()].into_iter().map(|dir| dir.join(WRAPPER));
        beside.chain(dirs.iter().flat_map(|dir| self.names.iter().map(|name| dir.join(name))))
    }

    /// The command with the precompiled header instead of the one that the driver includes.
    pub(crate) fn apply(&self, command: &CommandTemplate) -> Option<CommandTemplate> {
        let at = command.position("-include", WRAPPER)?;
        let mut args = command.args.clone();
        let instead = [
            "-include-pch".into(),
            self.file.to_string_lossy().into_owned(),
            "-fno-validate-pch".into(),
        ];
        args.splice(at..at + 2, instead.map(TemplateArg::Text));
        Some(CommandTemplate { args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_whose_order_matters_are_not_plain() {
        let plain = |defines: &[&str]| {
            let define = |text: &&str| {
                let (option, text) = text.split_at(2);
                [option.to_owned(), text.to_owned()]
            };
            are_plain(&defines.iter().map(define).collect::<Vec<_>>())
        };
        assert!(plain(&["-DA", "-DB=1", "-UC", "-DF(x)=x / 2", "-DS=\"a\"", "-DB=1", "-D_1=\\n"]));
        for odd in [
            &["-D__ocml_exp_f32 =__ocml_exp2_f32"][..],
            &["-DF(x)=1", "-UF", "-DF(x)=2"],
            &["-DA=1", "-DA=2"],
            &["-DA", "-DA=1"],
            &["-DA", "-UA"],
            &["-DF(x)=1", "-DF(y)=1"],
            &["-Da$=1"],
            &["-Da\u{e4}=1"],
            &["-D1=1"],
            &["-D=1"],
            &["-UF(x)"],
            &["-DA=1\n#define B"],
            &["-DA=1\\ "],
            &["-DA=1??/"],
            &["-DA=/*"],
            &["-DA=R\"("],
        ] {
            assert!(!plain(odd), "{odd:?}");
        }
    }
}
