//! Names in a header that a macro of its includer's could change.

use std::collections::BTreeSet;

use super::source_text::{identifier, logical_lines};

/// Calls `found` with every name in a header that a macro of its includer's
/// could change: each identifier outside of comments, without the parameters
/// of the header's own macros, which hide macros of their name. Of text that
/// can't be read so, each word.
pub(crate) fn exposed_names(bytes: &[u8], found: &mut dyn FnMut(&str)) {
    let Some(lines) = plain_lines(bytes) else {
        let text = String::from_utf8_lossy(bytes);
        words(&text).for_each(&mut *found);
        // A name may also lie on both sides of a line's end.
        let joined = Some(joined(&text)).filter(|joined| *joined != text);
        return joined.iter().flat_map(|text| words(text)).for_each(found);
    };
    for line in lines {
        let parts = function_like(&line).filter(|_| !line.contains(['$', '\\']));
        let Some((before, parameters, body)) = parts else {
            words(&line).for_each(&mut *found);
            continue;
        };
        words(before).for_each(&mut *found);
        let hidden: BTreeSet<&str> = words(parameters).collect();
        words(body).filter(|word| !hidden.contains(word)).for_each(&mut *found);
    }
}

/// The logical lines of a header, if they can be told.
fn plain_lines(bytes: &[u8]) -> Option<Vec<String>> {
    // A raw string may hold what looks like a comment.
    let raw = bytes.windows(2).any(|pair| pair == b"R\"");
    logical_lines(bytes).filter(|_| !raw)
}

/// A text with every line joined that some compiler, told to know trigraphs
/// or not, may join.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let text = text.replace("\r\n", "\n").replace("??/", "\\");
    for line in text.split_inclusive(['\n', '\r']) {
        match line.trim_end().strip_suffix('\\') {
            Some(before) => joined.push_str(before),
            None => joined.push_str(line),
        }
    }
    joined
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut names = Vec::new();
        exposed_names(text.as_bytes(), &mut |name| names.push(name.to_owned()));
        assert_eq!(names, expected);
    }

    #[test]
    fn names_that_a_macro_could_change_are_those_the_compiler_sees() {
        check("// OP\n/* OP\n OP */ int x = 1u; // y", &["int", "x"]);
        check("#if WG > 0x10\n\"s\"\n#endif", &["if", "WG", "s", "endif"]);
        check("# define F(NAME, OP) f##NAME(a OP b)\nOP", &["F", "f", "a", "b", "OP"]);
        check("#define F(A, \\\n B) A B \\\n C\n", &["F", "C"]);
        check("#define V(...) f(__VA_ARGS__)", &["V", "f", "__VA_ARGS__"]);
        // Not like a function.
        check("#define N (A) A", &["define", "N", "A", "A"]);
        check("auto s = R\"(/*)\"; int WG;", &["auto", "s", "R", "int", "WG"]);
        check("/* open WG", &["open", "WG"]);
        check("f\\ \noo", &["f", "oo", "foo"]);
        check("f??/\r\noo\rb", &["f", "oo", "b", "foo", "b"]);
        check("#define F(a$, b) a b", &["define", "F", "a", "b", "a", "b"]);
    }
}
