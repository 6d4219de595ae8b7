//! Which of the system's headers a C++ source includes before it says
//! anything else, told by its text: what a precompiled header may stand for.

use std::collections::BTreeSet;

use super::source_text::{BLANKS, identifier, is_plain, logical_lines};

/// Macros that compilers define whose names begin with no underscore.
///
/// Source: llvm-project, clang/lib/Frontend/InitPreprocessor.cpp and
/// clang/lib/Basic/Targets.
const PREDEFINED: [&str; 6] =
    ["linux", "unix", "i386", "FP_FAST_FMA", "FP_FAST_FMAF", "HIP_API_PER_THREAD_DEFAULT_STREAM"];
/// How deep includes may be nested; deeper ones end the preamble.
const MAX_DEPTH: usize = 32;

/// The beginning of a source, up to the first line that is neither an
/// include, a macro, a conditional on macros that are known, nor a comment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Preamble {
    /// Headers that are none of the source's own files, in order, as
    /// spelled.
    pub(crate) headers: Vec<String>,
    /// Macros that the source defines, undefines or asks for before the last
    /// of them. What the answer says holds if no header knows any of these.
    pub(crate) macros: BTreeSet<String>,
}

/// Reads the preamble of `main`. `file` gives the text of a staged file by
/// its path relative to the staged directory, `resolve` the staged path that
/// an include means: the spelling, whether it is quoted, and the includer.
/// `defined` are the macros that the command line defines.
///
/// The reading is strict: whatever is not understood ends the preamble, so
/// every header in the answer is surely included, in this order, with
/// nothing declared before.
pub(crate) fn read<'a>(
    main: &str,
    file: &dyn Fn(&str) -> Option<&'a [u8]>,
    resolve: &dyn Fn(&str, bool, &str) -> Option<String>,
    defined: &BTreeSet<String>,
) -> Preamble {
    let mut reader = Reader {
        file,
        resolve,
        defined: defined.clone(),
        once: BTreeSet::new(),
        macros: BTreeSet::new(),
        found: Preamble::default(),
    };
    reader.file(main, 0);
    reader.found
}

struct Reader<'a, 'f> {
    file: &'f dyn Fn(&str) -> Option<&'a [u8]>,
    resolve: &'f dyn Fn(&str, bool, &str) -> Option<String>,
    defined: BTreeSet<String>,
    /// Files with `#pragma once` that were read.
    once: BTreeSet<String>,
    /// Macros touched so far.
    macros: BTreeSet<String>,
    found: Preamble,
}

/// Whether reading goes on.
type Goes = bool;

impl Reader<'_, '_> {
    fn file(&mut self, path: &str, depth: usize) -> Goes {
        let Some(bytes) = (self.file)(path) else { return false };
        if depth > MAX_DEPTH {
            return false;
        }
        if self.once.contains(path) {
            return true;
        }
        let Some(lines) = logical_lines(bytes) else { return false };
        // For each open conditional: whether its present branch is read, and
        // whether one of its branches was.
        let mut open: Vec<(bool, bool)> = Vec::new();
        for line in lines {
            let line = line.trim_matches(BLANKS);
            let reading = open.iter().all(|(now, _)| *now);
            if !is_plain(line) {
                return false;
            }
            let Some(directive) = line.strip_prefix('#') else {
                if reading && !line.is_empty() {
                    return false;
                }
                continue;
            };
            let directive = directive.trim_start();
            let (name, rest) = directive
                .split_once(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map_or((directive, ""), |(name, _)| (name, &directive[name.len()..]));
            if rest.starts_with(['$', '\\']) {
                return false;
            }
            let rest = rest.trim();
            let goes_on = match self.conditional(name, rest, &mut open, reading) {
                Some(goes_on) => goes_on,
                None if reading => self.directive(name, rest, path, depth),
                None => true,
            };
            if !goes_on {
                return false;
            }
        }
        open.is_empty()
    }

    /// A directive that begins, parts or ends a conditional; `None` for others.
    fn conditional(
        &mut self,
        name: &str,
        rest: &str,
        open: &mut Vec<(bool, bool)>,
        reading: bool,
    ) -> Option<Goes> {
        let goes_on = match name {
            "if" | "ifdef" | "ifndef" if !reading => {
                open.push((false, true));
                true
            }
            "if" | "ifdef" | "ifndef" => {
                let (is, wanted) = match (name, rest.strip_prefix('!')) {
                    ("if", not) => {
                        let operand = defined_operand(not.map_or(rest, str::trim_start));
                        (operand.and_then(|name| self.is_defined(name)), not.is_none())
                    }
                    _ => (self.is_defined(rest), name == "ifdef"),
                };
                let taken = is.map(|is| is == wanted);
                open.extend(taken.map(|taken| (taken, taken)));
                taken.is_some()
            }
            "else" => open.last_mut().is_some_and(|(now, any)| {
                *now = !*any;
                *any = true;
                true
            }),
            // Not every compiler knows them.
            "elifdef" | "elifndef" => false,
            "elif" => open.last_mut().is_some_and(|(now, any)| {
                *now = false;
                *any
            }),
            "endif" => open.pop().is_some(),
            _ => return None,
        };
        Some(goes_on)
    }

    /// Any other directive.
    fn directive(&mut self, name: &str, rest: &str, path: &str, depth: usize) -> Goes {
        match (name, identifier(rest)) {
            ("define", Some(name)) => {
                self.defined.insert(name.to_owned());
                self.macros.insert(name.to_owned());
            }
            ("undef", Some(name)) => {
                self.defined.remove(name);
                self.macros.insert(name.to_owned());
            }
            ("pragma", _) if rest == "once" => {
                // Of no effect in the main file.
                if depth > 0 {
                    self.once.insert(path.to_owned());
                }
            }
            ("include", _) => return self.include(rest, path, depth),
            _ => return false,
        }
        true
    }

    fn include(&mut self, operand: &str, includer: &str, depth: usize) -> Goes {
        let (close, quoted) = match operand.chars().next() {
            Some('"') => ('"', true),
            Some('<') => ('>', false),
            _ => return false,
        };
        let Some((path, after)) = operand[1..].split_once(close) else { return false };
        // Where these lead depends on the directory that it is compiled in.
        let elsewhere = path.starts_with('/') || path.split('/').any(|part| part == "..");
        let staged = (self.resolve)(path, quoted, includer).filter(|_| !path.starts_with('/'));
        if !after.trim().is_empty() || (elsewhere && staged.is_none()) {
            return false;
        }
        match staged {
            Some(staged) => self.file(&staged, depth + 1),
            None => {
                self.found.headers.push(path.to_owned());
                self.found.macros = self.macros.clone();
                true
            }
        }
    }

    /// Whether a macro is defined; `None` where that can't be told: the
    /// compiler's own and, after the first header, every other.
    fn is_defined(&mut self, text: &str) -> Option<bool> {
        let name = identifier(text).filter(|name| name.len() == text.len())?;
        let foreign = name.starts_with('_') || PREDEFINED.contains(&name);
        if foreign || !self.found.headers.is_empty() {
            return None;
        }
        self.macros.insert(name.to_owned());
        Some(self.defined.contains(name))
    }
}

/// `defined(X)` or `defined X`.
fn defined_operand(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("defined")?;
    let rest =
        Some(rest.trim_start()).filter(|name| name.len() < rest.len() || name.starts_with('('))?;
    match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').map(str::trim),
        None => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], defined: &[&str], headers: &[&str]) {
        let found = preamble(files, defined);
        assert_eq!(found.headers, headers, "{found:?}");
    }

    fn preamble(files: &[(&str, &str)], defined: &[&str]) -> Preamble {
        let text = |path: &str| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.as_bytes())
        };
        let resolve = |path: &str, _: bool, _: &str| text(path).map(|_| path.to_owned());
        let defined = defined.iter().map(|&name| name.to_owned()).collect();
        read("k.cpp", &text, &resolve, &defined)
    }

    #[test]
    fn leading_headers_are_found_through_the_sources_own_files() {
        check(
            &[
                (
                    "k.cpp",
                    "// c\n/* two\nlines */\n#include \"common.hpp\"\nint x;\n#include <z>\n",
                ),
                ("common.hpp", "#ifndef COMMON\n#define COMMON\n#include \"config.hpp\"\n#endif\n"),
                (
                    "config.hpp",
                    "#pragma once\n#ifndef NO_HEADERS\n#include \"hip/hip_runtime.h\"\n#include <hip/hip_fp16.h>\n#endif\n#define A 1\n",
                ),
            ],
            &["B"],
            &["hip/hip_runtime.h", "hip/hip_fp16.h"],
        );
    }

    #[test]
    fn conditionals_are_followed_where_they_are_known() {
        let source = "#ifndef NO\n#include <a>\n#else\n#include <b>\n#endif\n";
        check(&[("k.cpp", source)], &[], &["a"]);
        check(&[("k.cpp", source)], &["NO"], &["b"]);
        check(&[("k.cpp", "#if !defined(NO)\n#include <a>\n#endif\n")], &["NO"], &[]);
        check(&[("k.cpp", "#if defined X\n#elif Y\n#include <b>\n#endif\n")], &[], &[]);
        check(&[("k.cpp", "#ifdef __AMDGCN__\n#include <a>\n#endif\n")], &[], &[]);
        check(&[("k.cpp", "#if A > 1\n#endif\n#include <a>\n")], &["A"], &[]);
    }

    #[test]
    fn whatever_is_not_understood_ends_it() {
        for end in ["int x;", "#pragma clang x", "#include MACRO", "#error", "#include <b> x"] {
            check(&[("k.cpp", &format!("#include <a>\n{end}\n#include <c>\n"))], &[], &["a"]);
        }
        // A header may define the macro that is asked for next.
        check(&[("k.cpp", "#include <a>\n#ifndef X\n#include <b>\n#endif\n")], &[], &["a"]);
        check(&[("k.cpp", "/* open\n#include <a>\n")], &[], &[]);
        check(&[("k.cpp", "#include \"k.cpp\"\n#include <a>\n")], &[], &[]);
    }

    #[test]
    fn what_compilers_read_otherwise_ends_it() {
        for before in [
            // Lines that go on, or end, where they do not seem to.
            "// c \\ \n",
            "// c \\\t\r\n",
            "// c ??/\n",
            "// c\r#define A\n",
            // Names that go on.
            "#define a$ 1\n",
            "#define a\u{e4} 1\n",
            "#define a\\u00e4 1\n",
            "#ifdef a$\n#endif\n",
            "#if defined(a\u{e4})\n#endif\n",
            "#ifdef a\n#endif$\n#else\n",
            // Directives that do not look like ones, and the other way round.
            "#ifdef a\n%:else\n#define b\n#endif\n",
            "#ifdef a\n??=else\n#define b\n#endif\n",
            "#ifdef a\n\u{a0}#else\n#define b\n#endif\n",
            "#ifdef a\n\0#else\n#define b\n#endif\n",
            "#define a R\"(\n#define b\n",
            "#define a 1'000 /*\n*/\n",
            "#define a 1'0 /* ' */\n",
            "#if definedX\n#endif\n",
            "#ifdef FP_FAST_FMA\n#endif\n",
            "#ifndef a\n#elifdef b\n#endif\n",
        ] {
            check(&[("k.cpp", &format!("{before}#include <x>\n"))], &["definedX"], &[]);
        }
        check(&[("k.cpp", "#define a 1'000 // '\n#include <x>\n// c\\d\n")], &[], &["x"]);
        check(&[("k.cpp", "#if defined(a) \n#else\n#include <x>\n#endif")], &[], &["x"]);
    }

    #[test]
    fn only_what_the_search_path_finds_is_a_header() {
        check(&[("k.cpp", "#include \"/a/x.h\"\n"), ("a/x.h", "#include <x>\n")], &[], &[]);
        check(&[("k.cpp", "#include </a/x.h>\n")], &[], &[]);
        check(&[("k.cpp", "#include <b/../x.h>\n")], &[], &[]);
    }

    #[test]
    fn a_main_file_is_read_as_often_as_it_is_included() {
        let text = "#pragma once\n#ifndef A\n#define A\n#include \"k.cpp\"\n#else\nint x;\n#endif\n#include <x>\n";
        check(&[("k.cpp", text)], &[], &[]);
    }

    #[test]
    fn comments_and_continued_lines_hide_nothing() {
        check(&[("k.cpp", "/*\n#include <a>\n*/\n#inc\\\nlude <b> // c\n")], &[], &["b"]);
        check(&[("k.cpp", "#define A \"/*\"\n#include <a>\n// */\n")], &[], &["a"]);
    }

    #[test]
    fn macros_are_told_that_were_touched_before_the_last_header() {
        let text = "#define A\n#undef B\n#ifndef C\n#endif\n#include <a>\n#define D\n";
        let macros: Vec<String> = preamble(&[("k.cpp", text)], &[]).macros.into_iter().collect();
        assert_eq!(macros, ["A", "B", "C"]);
    }
}
