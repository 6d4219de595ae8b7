//! Which files a kernel source asks for, told by its text alone.

use gfxpack_model::Language;

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

/// What makes it impossible to tell, by an assembly source's text, which
/// files it reads: a directive whose file or whose own name is a macro's, in
/// words that complete "the source ...".
#[must_use]
pub fn unclear(text: &[u8]) -> Option<String> {
    let code = without_comments(text);
    for line in code.split(|&byte| byte == b'\n') {
        for rest in directives(line) {
            match quoted(rest) {
                Some(path) if !path.contains('\\') => {}
                _ => return Some("reads a file whose name its text does not tell".to_owned()),
            }
        }
        let mut parts = line.split(|&byte| byte == b'.').skip(1);
        if parts.any(|part| {
            let name: Vec<u8> = part.iter().copied().take_while(u8::is_ascii_alphabetic).collect();
            let name = name.to_ascii_lowercase();
            part.get(name.len()) == Some(&b'\\')
                && DIRECTIVES.iter().any(|directive| directive[1..].starts_with(&name))
        }) {
            return Some("has a directive whose name its text does not tell".to_owned());
        }
    }
    None
}

const DIRECTIVES: [&[u8]; 2] = [b".include", b".incbin"];

/// What stands behind each directive of a line that reads a file, wherever in
/// the line it is: behind a label, as an argument of a macro, in any case.
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

/// The first string of a line.
fn quoted(rest: &[u8]) -> Option<String> {
    let from = rest.iter().position(|&byte| byte == b'"')? + 1;
    let end = rest[from..].iter().position(|&byte| byte == b'"')?;
    let path = std::str::from_utf8(&rest[from..from + end]).ok()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// Assembly with blanks for its comments.
///
/// Source: llvm-project, llvm/lib/MC/MCParser/AsmLexer.cpp, and
/// llvm/lib/Target/AMDGPU/MCTargetDesc/AMDGPUMCAsmInfo.cpp, `CommentString`.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut code = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut line_begins = true;
    while let Some(&byte) = rest.first() {
        let line = || rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let comment = if byte == b';' || rest.starts_with(b"//") || byte == b'#' && line_begins {
            line()
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            end.map_or(rest.len(), |end| end + 4)
        } else {
            0
        };
        if comment > 0 {
            code.push(b' ');
            rest = &rest[comment..];
            continue;
        }
        let mut long = 1;
        if byte == b'"' {
            let mut escaped = false;
            let ends = |byte: &u8| {
                let end = (*byte == b'"' && !escaped) || *byte == b'\n';
                escaped = *byte == b'\\' && !escaped;
                end
            };
            long = rest[1..].iter().position(ends).map_or(rest.len(), |end| end + 2);
        }
        line_begins = rest[long - 1] == b'\n' || (line_begins && byte.is_ascii_whitespace());
        code.extend(&rest[..long]);
        rest = &rest[long..];
    }
    code
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
    fn assembly_names_files_anywhere_in_a_line_and_in_any_case() {
        let text = b"lab: .incbin \"/a\"\n.INCBIN \"b\", 4\n m .Include, \"c\"\nx.included \"d\"\n";
        let found = scan(text, Language::Assembly);
        let paths: Vec<&str> = found.iter().map(|include| include.path.as_str()).collect();
        assert_eq!(paths, ["/a", "b", "c"]);
        assert!(scan(text, Language::OpenclC).is_empty());
        assert_eq!(unclear(text), None);
    }

    #[test]
    fn assembly_that_does_not_tell_what_it_reads_is_seen() {
        for text in [
            ".macro m f\n .incbin \\f\n.endm",
            ".macro m f\n .incbin \"\\f\"\n.endm",
            ".incbin \"\\057etc\"",
            ".macro m d\n .inc\\d \"/a\"\n.endm",
            ".macro m d\n .\\d \"/a\"\n.endm",
            "m .incbin",
        ] {
            assert!(unclear(text.as_bytes()).is_some(), "{text}");
        }
        for text in [
            "// .include what is needed\n; .incbin too\n/* and\n .include too */\n# .incbin",
            ".L\\name:\n.amdhsa_next_free_vgpr \\n\n.ascii \"a;\\\"b\" // .incbin",
            ".include \"a.inc\" // .include it",
        ] {
            assert_eq!(unclear(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn joins_within_the_root() {
        assert_eq!(join("a/b", "../c.h").as_deref(), Some("a/c.h"));
        assert_eq!(join("", "./c.h").as_deref(), Some("c.h"));
        assert_eq!(join("a", "../../c.h"), None);
    }
}
