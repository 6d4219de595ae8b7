//! Rules for single files: length, first lines, forbidden words.

use std::path::Path;

use super::finding::Finding;
use super::tree::TextFile;

/// Maximum number of lines in a file.
const MAX_LINES: usize = 800;

/// Forbidden words, the reason, and in which files they are forbidden.
///
/// They are written in halves, so that this file does not contain them.
const WORDS: &[(&str, &str, &str, Scope)] = &[
    ("TO", "DO", "is unfinished work: do it, or say what holds today", Scope::Text),
    ("FIX", "ME", "is unfinished work: do it, or say what holds today", Scope::Text),
    ("XX", "X", "is unfinished work: do it, or say what holds today", Scope::Text),
    ("todo", "!(", "is unfinished work", Scope::Rust),
    ("unimplemented", "!(", "is unfinished work", Scope::Rust),
    ("dbg", "!(", "is left over from debugging", Scope::Rust),
    ("/ho", "me/", "is a path of one machine", Scope::Text),
    ("/ro", "ot/", "is a path of one machine", Scope::Text),
    ("/Us", "ers/", "is a path of one machine", Scope::Text),
    ("lorem ", "ipsum", "says nothing", Scope::Text),
    ("<<<<", "<<<", "is left over from a merge", Scope::Text),
    (">>>>", ">>>", "is left over from a merge", Scope::Text),
];

/// Crates of pure values and decisions: they do not access the machine, and start
/// no threads. Their tests may.
const PURE: [&str; 2] = ["crates/model/src", "crates/plan/src"];

/// Paths of items that access the machine.
const MACHINE: [&str; 8] = [
    "std::env::",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "available_parallelism",
    "SystemTime",
    "Instant",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Rust sources.
    Rust,
    /// Every file that is written by people.
    Text,
}

/// All findings in one file.
pub(super) fn check(root: &Path, file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, what: String| findings.push(Finding::new(&file.path, line, what));
    let rust = file.extension() == "rs";
    // cargo writes lock files; recorded keys and fixtures are exact copies of what others
    // wrote.
    let written = file.extension() != "lock"
        && file.extension() != "jsonl"
        && !file.path.components().any(|part| part.as_os_str() == "fixtures");

    if rust && file.text.lines().count() > MAX_LINES {
        found(0, format!("has more than {MAX_LINES} lines"));
    }
    if rust && is_source(&file.path) && !file.text.starts_with("//!") {
        found(1, "does not begin with `//!`, what the module knows".into());
    }
    if !written {
        return findings;
    }
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        found(0, "does not end with one end of line".into());
    }
    if rust && PURE.iter().any(|pure| file.is_below(pure)) {
        findings.extend(machine_asked(file));
    }
    let mut found = |line, what: String| findings.push(Finding::new(&file.path, line, what));
    let checkout = root.to_str().filter(|root| root.matches('/').count() > 1);
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.ends_with([' ', '\t', '\r']) {
            found(number, "ends with a blank".into());
        }
        for (head, tail, why, scope) in WORDS {
            if (rust || *scope == Scope::Text) && has_word(line, &format!("{head}{tail}")) {
                found(number, format!("`{head}{tail}` {why}"));
            }
        }
        let runs = ["child", "on purpose"].iter().any(|who| line.contains(who));
        if rust && line.trim_start().starts_with("#[ignore") && !runs {
            found(number, "hides a test that neither another one nor anybody runs".into());
        }
        if checkout.is_some_and(|checkout| line.contains(checkout)) {
            found(number, "names the directory of this checkout".into());
        }
    }
    findings
}

/// Where a file accesses the machine, except in its tests.
fn machine_asked(file: &TextFile) -> Vec<Finding> {
    if file.path.ends_with("tests.rs") {
        return Vec::new();
    }
    let code = (1..).zip(file.text.lines()).take_while(|(_, line)| *line != "#[cfg(test)]");
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let asked = code.filter_map(|(number, line)| {
        let what = MACHINE.iter().find(|what| line.contains(**what))?;
        Some((number, what.trim_end_matches(':')))
    });
    let finding = |(number, what): (usize, &str)| {
        let why = "asks the machine, which whoever calls this crate does";
        Finding::new(&file.path, number, format!("`{what}` {why}"))
    };
    asked.map(finding).collect()
}

/// Whether the file is a module of a crate, not a test or a fixture.
fn is_source(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "src")
}

/// Whether the line has the word, not only as part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (first, last) = (word.chars().next(), word.chars().last());
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        // A path within another path is not that of a machine.
        let starts = !(is_letter(first) || first == Some('/')) || !is_letter(before);
        let ends = !is_letter(last) || !is_letter(after);
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(path: &str, text: &str, expected: &[&str]) {
        let file = TextFile { path: path.into(), text: text.to_owned() };
        let findings: Vec<_> = check(Path::new("/srv/checkout"), &file)
            .iter()
            .map(|finding| finding.to_string().replace(path, ""))
            .collect();
        assert_eq!(findings, expected, "{path}: {text:?}");
    }

    #[test]
    fn sources_begin_with_a_module_comment() {
        let missing = ":1: does not begin with `//!`, what the module knows";
        expect("crates/kdb/src/a.rs", "//! Knows a.\nfn a() {}\n", &[]);
        expect("crates/kdb/src/a.rs", "fn a() {}\n", &[missing]);
        expect("tests/tests/a.rs", "fn a() {}\n", &[]);
        let long = format!("//! Long.\n{}", "\n// line".repeat(MAX_LINES)) + "\n";
        expect("crates/kdb/src/a.rs", &long, &[": has more than 800 lines"]);
    }

    #[test]
    fn pure_crates_do_not_access_the_machine() {
        let text = "//! A.\nuse std::fs::File;\n// std::env::var\n\n#[cfg(test)]\nuse std::fs;\n";
        let asked = ":2: `std::fs` asks the machine, which whoever calls this crate does";
        expect("crates/plan/src/a.rs", text, &[asked]);
        expect("crates/model/src/sub/a.rs", text, &[asked]);
        expect("crates/plan/src/a/tests.rs", text, &[]);
        expect("crates/kdb/src/a.rs", text, &[]);
    }

    #[test]
    fn forbidden_words_are_found() {
        for (head, tail, why, _) in WORDS {
            let word = format!("{head}{tail}");
            expect("tests/tests/a.rs", &format!("{word} x\n"), &[&format!(":1: `{word}` {why}")]);
        }
        expect(
            "docs/a.md",
            "XX\u{58}L is a size, /srv/homeless and /srv/ho\u{6d}e/x are elsewhere.\n",
            &[],
        );
        expect(
            "docs/a.md",
            "See /srv/checkout/x.\n",
            &[":1: names the directory of this checkout"],
        );
    }

    #[test]
    fn ignored_tests_that_nothing_runs_are_found() {
        let hidden = ":2: hides a test that neither another one nor anybody runs";
        expect("tests/tests/a.rs", "#[test]\n#[ignore]\nfn a() {}\n", &[hidden]);
        expect("tests/tests/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n", &[hidden]);
        let child = "#[test]\n#[ignore = \"the child of b\"]\nfn a() {}\n";
        expect("tests/tests/a.rs", child, &[]);
    }

    #[test]
    fn lines_and_files_end_properly() {
        expect("docs/a.md", "a \nb\t\nc\r\n", &[":1: ends with a blank", ":2: ends with a blank"]);
        expect("docs/a.md", "a", &[": does not end with one end of line"]);
        expect("docs/a.md", "a\n\n", &[": does not end with one end of line"]);
        expect("tests/fixtures/a.txt", "a ", &[]);
        expect("tests/keys.jsonl", "{\"kernel_args\":\" a \"} ", &[]);
    }
}
