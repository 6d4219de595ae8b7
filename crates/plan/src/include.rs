//! Which files a kernel source asks for, told by its text alone.

use crate::key::Language;

/// One `#include` or `.include`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Include {
    /// The path between the quotes or angle brackets.
    pub path: String,
    /// `"…"` rather than `<…>`: looked up beside the includer first.
    pub quoted: bool,
}

/// Every include in the text, in order, those in inactive branches and
/// comments too: one more file in a closure costs nothing, one less is a
/// stale object. Includes through macros are not seen; the compiler then
/// says that the file is missing.
#[must_use]
pub fn scan(text: &[u8], language: Language) -> Vec<Include> {
    let mut found = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii_start();
        let after = if let Some(directive) = line.strip_prefix(b"#") {
            let directive = directive.trim_ascii_start();
            directive.strip_prefix(b"include_next").or_else(|| directive.strip_prefix(b"include"))
        } else if language == Language::Assembly {
            line.strip_prefix(b".include").or_else(|| line.strip_prefix(b".incbin"))
        } else {
            None
        };
        if let Some(include) = after.and_then(operand)
            && !found.contains(&include)
        {
            found.push(include);
        }
    }
    found
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

/// Joins `path` to `dir` and resolves `.` and `..` by text; `None` where it
/// would leave the root. Both use `/`.
#[must_use]
pub fn join(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_each_language_includes() {
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
    fn joins_within_the_root() {
        assert_eq!(join("a/b", "../c.h").as_deref(), Some("a/c.h"));
        assert_eq!(join("", "./c.h").as_deref(), Some("c.h"));
        assert_eq!(join("a", "../../c.h"), None);
    }
}
