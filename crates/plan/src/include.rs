//! Finds the includes of a kernel source by its text alone.

use gfxpack_model::Language;

/// One `#include` or `.include`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Include {
    /// The path between the quotes or angle brackets.
    pub path: String,
    /// `"…"` rather than `<…>`: searched beside the includer first.
    pub quoted: bool,
}

/// Every include in the text, in order, also in inactive branches and comments. It is a first guess
/// at what a compiler will look for; other files are noticed when it runs, which costs a second
/// run.
#[must_use]
pub fn scan(text: &[u8], language: Language) -> Vec<Include> {
    let mut found = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let trimmed = line.trim_ascii_start();
        let after = trimmed.strip_prefix(b"#").and_then(|directive| {
            let directive = directive.trim_ascii_start();
            directive.strip_prefix(b"include_next").or_else(|| directive.strip_prefix(b"include"))
        });
        let mut add = |include: Include| {
            if !found.contains(&include) {
                found.push(include);
            }
        };
        after.and_then(operand).into_iter().for_each(&mut add);
        if language == Language::Assembly {
            let named = directives(line).filter_map(quoted);
            named.for_each(|path| add(Include { path, quoted: true }));
        }
    }
    found
}

const DIRECTIVES: [&[u8]; 2] = [b".include", b".incbin"];

/// The text after each directive in a line that reads a file, anywhere in the line: after a label,
/// as an argument of a macro, in upper or lower case.
fn directives(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$@".contains(byte);
    line.iter().enumerate().filter(|(_, byte)| **byte == b'.').filter_map(move |(at, _)| {
        let text = &line[at..];
        let is = |directive: &&&[u8]| {
            text.get(..directive.len()).is_some_and(|text| text.eq_ignore_ascii_case(directive))
        };
        let rest = &text[DIRECTIVES.iter().find(is)?.len()..];
        (!rest.first().is_some_and(of_name)).then_some(rest)
    })
}

/// The first quoted string of a line.
fn quoted(rest: &[u8]) -> Option<String> {
    let from = rest.iter().position(|&byte| byte == b'"')? + 1;
    let end = rest[from..].iter().position(|&byte| byte == b'"')?;
    let path = std::str::from_utf8(&rest[from..from + end]).ok()?;
    (!path.is_empty()).then(|| path.to_owned())
}

fn operand(after: &[u8]) -> Option<Include> {
    let after = after.trim_ascii_start();
    let (close, quoted) = match after.first()? {
        b'"' => (b'"', true),
        b'<' => (b'>', false),
        _ => return None,
    };
    let end = after[1..].iter().position(|&byte| byte == close)?;
    let path = std::str::from_utf8(&after[1..=end]).ok()?;
    (!path.is_empty()).then(|| Include { path: path.to_owned(), quoted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_of_each_language_are_found() {
        let text = b"#include \"a.h\"\n  #  include <b/c.hpp> // x\n.include \"d.inc\"\n#include MACRO\n#define include\n#include \"a.h\"\n";
        let paths = |language| -> Vec<(String, bool)> {
            scan(text, language).into_iter().map(|i| (i.path, i.quoted)).collect()
        };
        let a = ("a.h".to_owned(), true);
        let b = ("b/c.hpp".to_owned(), false);
        assert_eq!(paths(Language::Hip), [a.clone(), b.clone()]);
        assert_eq!(paths(Language::Assembly), [a, b, ("d.inc".to_owned(), true)]);
    }

    #[test]
    fn assembly_names_files_anywhere_in_a_line_and_in_any_case() {
        let text = b"lab: .incbin \"/a\"\n.INCBIN \"b\", 4\n m .Include, \"c\"\nx.included \"d\"\n";
        let found = scan(text, Language::Assembly);
        let paths: Vec<&str> = found.iter().map(|include| include.path.as_str()).collect();
        assert_eq!(paths, ["/a", "b", "c"]);
        assert!(scan(text, Language::OpenclC).is_empty());
    }
}
