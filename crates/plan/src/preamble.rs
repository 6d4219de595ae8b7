//! Which of the system's headers a C++ source includes before it says
//! anything else, told by its text: what a precompiled header may stand for.

use std::collections::BTreeSet;

/// How deep includes may be nested; deeper ones end the preamble.
const MAX_DEPTH: usize = 32;

/// The beginning of a source, up to the first line that is neither an
/// include, a macro, a conditional on macros that are known, nor a comment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preamble {
    /// Headers that are none of the source's own files, in order, as
    /// spelled.
    pub headers: Vec<String>,
    /// Macros that the source defines, undefines or asks for before the last
    /// of them. What the answer says holds if no header knows any of these.
    pub macros: BTreeSet<String>,
}

/// Reads the preamble of `main`. `file` gives the text of a staged file by
/// its path relative to the staged directory, `resolve` the staged path that
/// an include means: the spelling, whether it is quoted, and the includer.
/// `defined` are the macros that the command line defines.
///
/// The reading is strict: whatever is not understood ends the preamble, so
/// every header in the answer is surely included, in this order, with
/// nothing declared before.
pub fn read<'a>(
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

/// Calls `found` with every name in a header that a macro of its includer's
/// could change: each identifier outside of comments, without the parameters
/// of the header's own macros, which hide macros of their name. Of text that
/// can't be read so, each word.
pub fn exposed_names(bytes: &[u8], found: &mut dyn FnMut(&str)) {
    // A raw string may hold what looks like a comment.
    let raw = bytes.windows(2).any(|pair| pair == b"R\"");
    let Some(lines) = logical_lines(bytes).filter(|_| !raw) else {
        return words(&String::from_utf8_lossy(bytes)).for_each(found);
    };
    for line in lines {
        let Some((before, parameters, body)) = function_like(&line) else {
            words(&line).for_each(&mut *found);
            continue;
        };
        words(before).for_each(&mut *found);
        let hidden: BTreeSet<&str> = words(parameters).collect();
        words(body).filter(|word| !hidden.contains(word)).for_each(&mut *found);
    }
}

/// The identifiers of a text, and parts of numbers that look like one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

/// `#define NAME(PARAMETERS) BODY` in its three parts.
fn function_like(line: &str) -> Option<(&str, &str, &str)> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = directive.strip_prefix("define")?;
    let name = identifier(rest.trim_start()).filter(|_| rest.starts_with([' ', '\t']))?;
    let (parameters, body) = rest.trim_start()[name.len()..].strip_prefix('(')?.split_once(')')?;
    Some((name, parameters, body))
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
            let line = line.trim();
            let reading = open.iter().all(|(now, _)| *now);
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
            let rest = rest.trim();
            match name {
                "if" | "ifdef" | "ifndef" if !reading => open.push((false, true)),
                "ifdef" | "ifndef" => {
                    let Some(is) = self.is_defined(rest) else { return false };
                    let taken = is == (name == "ifdef");
                    open.push((taken, taken));
                }
                "if" => {
                    let (text, wanted) = match rest.strip_prefix('!') {
                        Some(text) => (text.trim_start(), false),
                        None => (rest, true),
                    };
                    let Some(is) = defined_operand(text).and_then(|name| self.is_defined(name))
                    else {
                        return false;
                    };
                    open.push((is == wanted, is == wanted));
                }
                "else" => {
                    let Some((now, any)) = open.last_mut() else { return false };
                    *now = !*any;
                    *any = true;
                }
                "elif" | "elifdef" | "elifndef" => {
                    let Some((now, any)) = open.last_mut() else { return false };
                    if !*any {
                        return false;
                    }
                    *now = false;
                }
                "endif" => {
                    if open.pop().is_none() {
                        return false;
                    }
                }
                _ if !reading => {}
                "define" => {
                    let Some(name) = identifier(rest) else { return false };
                    self.defined.insert(name.to_owned());
                    self.macros.insert(name.to_owned());
                }
                "undef" => {
                    let Some(name) = identifier(rest) else { return false };
                    self.defined.remove(name);
                    self.macros.insert(name.to_owned());
                }
                "pragma" if rest == "once" => {
                    self.once.insert(path.to_owned());
                }
                "include" => {
                    if !self.include(rest, path, depth) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        open.is_empty()
    }

    fn include(&mut self, operand: &str, includer: &str, depth: usize) -> Goes {
        let (close, quoted) = match operand.chars().next() {
            Some('"') => ('"', true),
            Some('<') => ('>', false),
            _ => return false,
        };
        let Some((path, after)) = operand[1..].split_once(close) else { return false };
        if !after.trim().is_empty() {
            return false;
        }
        match (self.resolve)(path, quoted, includer) {
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
        let foreign = name.starts_with('_') || ["linux", "unix"].contains(&name);
        if foreign || !self.found.headers.is_empty() {
            return None;
        }
        self.macros.insert(name.to_owned());
        Some(self.defined.contains(name))
    }
}

/// `defined(X)` or `defined X`.
fn defined_operand(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("defined")?.trim_start();
    match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').map(str::trim),
        None => Some(rest),
    }
}

fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let name = &text[..end];
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// The lines with continuations joined and comments made blank; `None` for
/// text that can't be read so: no UTF-8, an unclosed comment, a raw string.
fn logical_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?.replace("\\\r\n", "").replace("\\\n", "");
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['/', '"', '\'']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let (inside, after) = comment.split_once("*/")?;
            plain.push(' ');
            // A directive ends with its line, also inside of a comment.
            plain.extend(inside.matches('\n').map(|_| ' '));
            rest = after;
        } else if rest.starts_with('/') {
            plain.push('/');
            rest = &rest[1..];
        } else {
            // A string or character ends on its line or the rest is not read.
            let quote = rest.chars().next()?;
            let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
            let mut escaped = false;
            let end = line.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == quote && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            // An apostrophe may separate digits: then the line is no directive.
            let end = end.map_or(line.len(), |(at, c)| at + c.len_utf8());
            plain.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    plain.push_str(rest);
    Some(plain.lines().map(str::to_owned).collect())
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

    #[track_caller]
    fn check_names(text: &str, expected: &[&str]) {
        let mut names = Vec::new();
        exposed_names(text.as_bytes(), &mut |name| names.push(name.to_owned()));
        assert_eq!(names, expected);
    }

    #[test]
    fn names_that_a_macro_could_change_are_those_the_compiler_sees() {
        check_names("// OP\n/* OP\n OP */ int x = 1u; // y", &["int", "x"]);
        check_names("#if WG > 0x10\n\"s\"\n#endif", &["if", "WG", "s", "endif"]);
        check_names("# define F(NAME, OP) f##NAME(a OP b)\nOP", &["F", "f", "a", "b", "OP"]);
        check_names("#define F(A, \\\n B) A B \\\n C\n", &["F", "C"]);
        check_names("#define V(...) f(__VA_ARGS__)", &["V", "f", "__VA_ARGS__"]);
        // Not like a function.
        check_names("#define N (A) A", &["define", "N", "A", "A"]);
        check_names("auto s = R\"(/*)\"; int WG;", &["auto", "s", "R", "int", "WG"]);
        check_names("/* open WG", &["open", "WG"]);
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
