//! Finds the includes of a kernel source by its text alone.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gfxpack_model::Language;
use memchr::{memchr, memchr_iter, memchr2_iter, memmem};

/// One `#include` or `.include`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Include {
    /// The path between the quotes or angle brackets.
    pub path: String,
    /// `"…"` rather than `<…>`: searched beside the includer first.
    pub quoted: bool,
}

/// The files that a text names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Includes {
    /// Every name, in order and once, also in inactive branches and comments.
    pub named: Vec<Include>,
    /// Whether it asks for files whose names are made while it is compiled: `#include MACRO`,
    /// `__has_include(MACRO)`, `.incbin` of anything but a literal.
    pub is_unclear: bool,
}

/// The files that the text asks for: `#include` and its kin, `__has_include` and `__has_embed`, and
/// the assembler's `.include` and `.incbin`, also within `asm("…")`.
pub fn scan(text: &[u8], language: Language) -> Includes {
    let mut found = Includes::default();
    found.scan(&spliced(text), language);
    // As compilers see it, comments may hide the beginning of a line, and a name in one may not be
    // meant for them: both count.
    if let Some(plain) = plain(text) {
        found.scan(&plain, language);
    }
    found
}

impl Includes {
    /// Adds what the lines of a text ask for.
    fn scan(&mut self, text: &[u8], language: Language) {
        // Most texts have none of these.
        let asks = memmem::find(text, b"__has_").is_some();
        let assembles = memchr_iter(b'.', text)
            .any(|at| text[at..].get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b".inc")));
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if let Some((word, rest)) = directive(line) {
                self.add_operand(word, rest);
            }
            if asks {
                for (word, rest) in asking_words(line) {
                    // A part of such a word may be made a whole one.
                    if ASKING.contains(&word) {
                        self.add_asked(line, rest);
                    } else {
                        self.is_unclear = true;
                    }
                }
            }
            if assembles {
                for rest in assembler_directives(line, language) {
                    match quoted(rest) {
                        Some(path) => self.add(Include { path, quoted: true }),
                        None => self.is_unclear = true,
                    }
                }
            }
            // The name of a directive, or its operand, may be an argument of a macro.
            self.is_unclear |= language == Language::Assembly && is_made_by_macro(line);
        }
    }

    /// Adds every word of a text that may be a name which a macro passes on: `HAS(hip/hip_fp16.h)`.
    pub fn add_words(&mut self, text: &[u8]) {
        let is_of_name = |byte: &u8| is_of_word(*byte) || b"./+-".contains(byte);
        let words = text.split(|byte| !is_of_name(byte)).filter(|word| is_name(word));
        let words = words.filter_map(|word| str::from_utf8(word).ok());
        let words: BTreeSet<&str> = words.collect();
        let known: BTreeSet<String> = self.named.iter().map(|it| it.path.clone()).collect();
        let new = words.into_iter().filter(|word| !known.contains(*word));
        self.named.extend(new.map(|word| Include { path: word.to_owned(), quoted: true }));
    }

    fn add(&mut self, include: Include) {
        if !self.named.contains(&include) {
            self.named.push(include);
        }
    }

    /// Adds the operand of a directive.
    fn add_operand(&mut self, word: &[u8], rest: &[u8]) {
        match operand(rest) {
            Some(include) => self.add(include),
            None => self.is_unclear |= word == b"embed" || is_macro(skip_blanks(rest)),
        }
    }

    /// Adds what an operator asks for; `rest` follows it in the line.
    fn add_asked(&mut self, line: &[u8], rest: &[u8]) {
        match skip_blanks(rest).strip_prefix(b"(") {
            Some(_) if defines_function(line) => self.is_unclear = true,
            Some(rest) => match operand(rest) {
                Some(include) => self.add(include),
                None => self.is_unclear = true,
            },
            // `#ifdef` and `defined` ask for the operator itself; it may get another name.
            None => {
                self.is_unclear |= directive_word(line).is_some_and(|(word, _)| word == b"define")
            }
        }
    }
}

/// Directives of the preprocessor that read a file.
const READING: [&[u8]; 5] = [b"include", b"include_next", b"import", b"embed", b"__include_macros"];
/// Operators that ask whether there is a file.
const ASKING: [&[u8]; 3] = [b"__has_include", b"__has_include_next", b"__has_embed"];
/// The shortest part of one that counts: `__has_`.
const PART: usize = 6;
/// Directives of the assembler that read a file.
const ASSEMBLER: [&[u8]; 2] = [b".include", b".incbin"];

/// The text with continued lines joined.
fn spliced(text: &[u8]) -> Cow<'_, [u8]> {
    let is_continued = |at: usize| matches!(text.get(at + 1), Some(b'\n' | b'\r'));
    if !memchr_iter(b'\\', text).any(is_continued) {
        return text.into();
    }
    let mut joined = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr_iter(b'\\', text) {
        let ends = [&b"\n"[..], b"\r\n"];
        if let Some(end) = ends.into_iter().find(|end| text[at + 1..].starts_with(end)) {
            joined.extend_from_slice(&text[from..at]);
            from = at + 1 + end.len();
        }
    }
    joined.extend_from_slice(&text[from..]);
    joined.into()
}

/// The text as compilers see it: without a byte order mark, with trigraphs replaced, lines joined
/// although blanks follow the `\`, and a blank for each comment. `None` if that finds nothing more
/// than the text itself.
///
/// Source: ISO/IEC 9899:2018, 5.1.1.2; clang, lib/Lex/Lexer.cpp, `getEscapedNewLineSize`.
fn plain(text: &[u8]) -> Option<Vec<u8>> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let unmarked = text.strip_prefix(MARK).unwrap_or(text);
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let goes_on = |at: usize| {
        let rest = &text[at..];
        let end = rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
        !matches!(rest.get(end), None | Some(b'\n' | b'\r'))
    };
    let is_odd = unmarked.len() < text.len()
        || memchr2_iter(b'\r', b'\x0b', text).any(|at| text.get(at + 1) != Some(&b'\n'))
        || memmem::find(text, b"??").is_some()
        || memchr_iter(b'\\', text)
            .any(|at| text.get(at + 1).is_some_and(is_blank) && !goes_on(at + 1))
        || memmem::find_iter(text, b"*/").any(|at| goes_on(at + 2));
    is_odd.then(|| without_comments(&joined(unmarked)))
}

/// The text with `\n` for every end of a line, trigraphs replaced, and continued lines joined.
fn joined(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let (byte, length) = match rest {
            [b'\r', b'\n', ..] => (b'\n', 2),
            [b'\r', ..] => (b'\n', 1),
            [b'\x0b', ..] => (b' ', 1),
            [b'?', b'?', b'/', ..] => (b'\\', 3),
            [b'?', b'?', b'=', ..] => (b'#', 3),
            _ => (byte, 1),
        };
        if byte == b'\n' {
            let blanks = lines.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if lines[..lines.len() - blanks].ends_with(b"\\") {
                lines.truncate(lines.len() - blanks - 1);
                rest = &rest[length..];
                continue;
            }
        }
        lines.push(byte);
        rest = &rest[length..];
    }
    lines
}

/// The text with a blank for each comment outside of strings.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = match rest {
            [b'/', b'*', comment @ ..] => {
                plain.push(b' ');
                rest = memmem::find(comment, b"*/").map_or(b"", |end| &comment[end + 2..]);
                continue;
            }
            [b'/', b'/', ..] => {
                rest = memchr(b'\n', rest).map_or(b"", |end| &rest[end..]);
                continue;
            }
            [b'R', b'"', raw @ ..] => raw_string(raw).map_or(1, |length| 2 + length),
            [b'"', string @ ..] => 1 + string_length(string),
            [b'\'', b'\\', _, b'\'', ..] => 4,
            // Elsewhere it may separate digits, or stand in words.
            [b'\'', _, b'\'', ..] => 3,
            _ => 1,
        };
        let (own, after) = rest.split_at(length);
        plain.extend_from_slice(own);
        rest = after;
    }
    plain
}

/// The length of a string after its quote, to the end of its line at most.
fn string_length(string: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = string.get(at) {
        match byte {
            b'\n' => return at,
            b'"' => return at + 1,
            b'\\' if string.get(at + 1).is_some_and(|next| *next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// The length of a raw string after its quote, if it is one.
fn raw_string(text: &[u8]) -> Option<usize> {
    let open = text.iter().take(17).position(|&byte| byte == b'(')?;
    let close = [b")", &text[..open], b"\""].concat();
    Some(memmem::find(&text[open..], &close)? + open + close.len())
}

/// The text after blanks and comments.
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let Some(comment) = text.strip_prefix(b"/*") else { return text };
        let Some(end) = comment.windows(2).position(|two| two == b"*/") else { return b"" };
        text = &comment[end + 2..];
    }
}

/// Whether a word may be the name of a file, below a directory that is searched.
fn is_name(word: &[u8]) -> bool {
    const LONGEST: usize = 255;
    word.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && word.len() <= LONGEST
        && !word.ends_with(b"/")
        && memmem::find(word, b"..").is_none()
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The word at the beginning of a text, and the rest.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !is_of_word(*byte)).unwrap_or(text.len()))
}

/// The directive of the preprocessor in a line, and what follows it.
fn directive_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = skip_blanks(line);
    let rest = line.strip_prefix(b"#").or_else(|| line.strip_prefix(b"%:"))?;
    Some(split_word(skip_blanks(rest)))
}

/// A directive that reads a file, and what follows it.
fn directive(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = directive_word(line)?;
    if word == b"pragma" {
        // Asks how old another file is.
        let rest = skip_blanks(rest).strip_prefix(b"GCC")?;
        return Some((word, skip_blanks(rest).strip_prefix(b"dependency")?));
    }
    READING.contains(&word).then_some((word, rest))
}

/// Whether an operand is a macro, rather than words of a comment.
fn is_macro(operand: &[u8]) -> bool {
    let (word, rest) = split_word(operand);
    let rest = skip_blanks(rest);
    !word.is_empty() && (rest.is_empty() || rest.starts_with(b"(") || rest.starts_with(b"//"))
}

/// Whether a line defines a macro with parameters, which may stand in what it asks for.
fn defines_function(line: &[u8]) -> bool {
    directive_word(line).is_some_and(|(word, rest)| {
        word == b"define" && split_word(skip_blanks(rest)).1.starts_with(b"(")
    })
}

/// The words in a line that ask for files, or begin like these, and what follows each.
fn asking_words(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let starts = |at: usize| at == 0 || !is_of_word(line[at - 1]);
    let candidates = (0..line.len()).filter(move |&at| line[at] == b'_' && starts(at));
    candidates.filter_map(|at| {
        let (word, rest) = split_word(&line[at..]);
        let is = |asking: &&[u8]| word.len() >= PART && asking.starts_with(word);
        ASKING.iter().any(is).then_some((word, rest))
    })
}

/// The text after each directive of the assembler in a line that reads a file: after a label, as an
/// argument of a macro, in upper or lower case. In C they are in strings.
fn assembler_directives(line: &[u8], language: Language) -> impl Iterator<Item = &[u8]> {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$@".contains(byte);
    let begins = move |at: usize| {
        language == Language::Assembly
            || match &line[..at] {
                [.., b'\\', b'n' | b't'] => true,
                [.., last] => !(is_of_word(*last) || b")]>".contains(last)),
                [] => true,
            }
    };
    let dots = line.iter().enumerate().filter(|(_, byte)| **byte == b'.');
    dots.filter_map(move |(at, _)| {
        let text = &line[at..];
        let is = |directive: &&&[u8]| {
            text.get(..directive.len()).is_some_and(|text| text.eq_ignore_ascii_case(directive))
        };
        let rest = &text[ASSEMBLER.iter().find(is)?.len()..];
        (begins(at) && !rest.first().is_some_and(of_name)).then_some(rest)
    })
}

/// Whether the first word of a statement is made of an argument of a macro, and a string follows.
fn is_made_by_macro(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let word = line.iter().position(u8::is_ascii_whitespace).map_or(line, |end| &line[..end]);
    word.contains(&b'\\') && line.contains(&b'"')
}

/// The first quoted string of a line, whose quotes are escaped in a string of C. `None` also if it
/// has escaped characters, or arguments of a macro.
fn quoted(rest: &[u8]) -> Option<String> {
    let from = rest.iter().position(|&byte| byte == b'"')? + 1;
    let end = rest[from..].iter().position(|&byte| byte == b'"')?;
    let path = &rest[from..from + end];
    let path = std::str::from_utf8(path.strip_suffix(b"\\").unwrap_or(path)).ok()?;
    (!path.is_empty() && !path.contains('\\')).then(|| path.to_owned())
}

fn operand(after: &[u8]) -> Option<Include> {
    let after = skip_blanks(after);
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

    fn named(text: &[u8], language: Language) -> Vec<String> {
        scan(text, language).named.into_iter().map(|include| include.path).collect()
    }

    #[test]
    fn includes_of_each_language_are_found() {
        let text = b"#include \"a.h\"\n  #  include <b/c.hpp> // x\n.include \"d.inc\"\n#define include\n#include \"a.h\"\n";
        for language in [Language::Hip, Language::OpenclC, Language::Assembly] {
            assert_eq!(named(text, language), ["a.h", "b/c.hpp", "d.inc"]);
        }
        let found = scan(b"#include <a>\n#include \"a\"\n", Language::Hip).named;
        assert_eq!(found.iter().map(|include| include.quoted).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn odd_spellings_are_found() {
        for text in [
            "# /* x */ include /**/ <a.h>",
            "#include \\\n \"a.h\"",
            "#inc\\\r\nlude <a.h>",
            "%:include_next <a.h>",
            "/* x */ #import <a.h>",
            "#if defined(X) && __has_include ( <a.h> )",
            "#elif __has_include_next(\"a.h\") || Y",
            "constexpr bool x = __has_embed(<a.h> limit(3));",
            "#embed \"a.h\" limit(2)",
            "#pragma GCC dependency \"a.h\" text",
            "asm(\".incbin \\\"a.h\\\"\");",
            "asm(\"x:\\n\\t.INCLUDE \\\"a.h\\\"\\n\");",
            "\u{feff}#include \"a.h\"\n",
            "int x;\r#include \"a.h\"\rint y;",
            "/* one\n two */ #include \"a.h\"\n",
            "#include /* one\n two */ \"a.h\"\n",
            "#if __has_include /* one\n two */ (\"a.h\")\n",
            "\u{b}#include \"a.h\"\n",
            "#include \\ \t\n \"a.h\"\n",
            "??=include ??/\n \"a.h\"\n",
            "char c = '\"'; /* \" */ x\n/*\n*/#include \"a.h\"\n",
            "auto s = R\"x(/* \")x\";\n/*\n*/#include \"a.h\"\n",
        ] {
            let found = scan(text.as_bytes(), Language::Hip);
            let paths: Vec<&str> = found.named.iter().map(|include| &*include.path).collect();
            assert_eq!((paths, found.is_unclear), (vec!["a.h"], false), "{text}");
        }
    }

    #[test]
    fn names_that_are_made_later_are_unclear() {
        let is_unclear = |text: &str, language| scan(text.as_bytes(), language).is_unclear;
        for text in [
            "#include MACRO",
            "#include MACRO(x) // y",
            "#embed MACRO limit(2)",
            "#if __has_include(MACRO)",
            "#define ASK __has_include",
            "#define ASK(x) __has_include(<x>)",
            "#if CAT(__has_,include)(<a.h>)",
            "asm(\".incbin \" NAME);",
        ] {
            assert!(is_unclear(text, Language::Hip), "{text}");
        }
        for text in [
            "#ifdef __has_include",
            "#define HAS __has_include(<a>)",
            "#if __has_attribute(x) && __has_builtin(y)",
            "#if defined __has_include && __has_include(<a>)",
            "# include the header first",
            "list.include(x); it->x.incbin = 1;",
            "#includes X",
        ] {
            assert!(!is_unclear(text, Language::Hip), "{text}");
        }
        for text in [
            ".include \\name",
            ".incbin \"\\f\"",
            ".incbin \"\\141.bin\"",
            ".\\d\\e \"a.bin\"",
            " \\d \"a.bin\"",
        ] {
            assert!(is_unclear(text, Language::Assembly), "{text}");
        }
        for text in ["v_\\op\\()_f32 v0, \\a", ".incbin \"a.bin\"", ".ascii \"\\n\""] {
            assert!(!is_unclear(text, Language::Assembly), "{text}");
        }
    }

    #[test]
    fn words_may_be_names() {
        let text = b"#if HAS(hip/a-b.h) && HAS(<cmath>) && 3.5 > x/ && HAS(../up.h) // cmath";
        let mut found = Includes::default();
        found.add(Include { path: "HAS".to_owned(), quoted: false });
        found.add_words(text);
        let paths: Vec<&str> = found.named.iter().map(|it| &*it.path).collect();
        assert_eq!(paths, ["HAS", "cmath", "hip/a-b.h", "if"]);
    }

    #[test]
    fn assembly_names_files_anywhere_in_a_line_and_in_any_case() {
        let text = b"lab: .incbin \"/a\"\n.INCBIN \"b\", 4\n m .Include, \"c\"\nx.included \"d\"\n";
        assert_eq!(named(text, Language::Assembly), ["/a", "b", "c"]);
    }
}
