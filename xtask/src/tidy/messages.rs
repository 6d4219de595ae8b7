//! Checks that every message type that the command line writes has a row in
//! docs/messages.md, and vice versa.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::{TextFile, Tree};

const PAGE: &str = "docs/messages.md";
/// Directories of sources that write messages.
const SOURCES: &[&str] = &["crates/gfxpack/src", "crates/pipeline/src/build_status"];
/// Calls whose first argument is a message's type.
const CALLS: &[&str] = &["message!(output, ", "output.message(", "self.message(", "send("];
/// An argument of calls that only forward messages; their types are found
/// elsewhere.
const PASSED_ON: &str = "kind,";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut written = BTreeSet::new();
    let is_source =
        |file: &&TextFile| file.extension() == "rs" && SOURCES.iter().any(|dir| file.is_below(dir));
    for file in tree.files().iter().filter(is_source) {
        for argument in types(&file.text) {
            match argument.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                Some((name, _)) => {
                    written.insert(name);
                }
                None if argument.starts_with(PASSED_ON) => {}
                None => {
                    let what = "writes a message whose type is no literal";
                    findings.push(Finding::new(&file.path, 0, what));
                }
            }
        }
    }
    let described: BTreeSet<&str> = described(tree.text(PAGE).unwrap_or_default()).collect();
    let page = |what: String| Finding::new(PAGE.as_ref(), 0, what);
    let without = written.difference(&described);
    findings.extend(without.map(|name| page(format!("does not describe the message `{name}`"))));
    let gone = described.difference(&written);
    findings.extend(gone.map(|name| page(format!("describes `{name}`, which nothing writes"))));
    findings
}

/// The text that follows each of these calls, which begins with the message's type.
fn types(text: &str) -> impl Iterator<Item = &str> {
    CALLS.iter().flat_map(|call| text.split(call).skip(1)).map(str::trim_start)
}

/// The first cells of tables of messages.
fn described(page: &str) -> impl Iterator<Item = &str> {
    let mut is_table = false;
    page.lines()
        .filter(move |line| {
            let is_head = line.starts_with("| type |");
            is_table = line.starts_with('|') && (is_table || is_head);
            is_table && !is_head
        })
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str, page: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.to_owned() };
        let files = vec![file("crates/gfxpack/src/a.rs", code), file(PAGE, page)];
        check(&Tree::from_files(files)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn messages_and_their_page_name_the_same_types() {
        let page =
            "| type | when |\n| --- | --- |\n| `a`, `b` | `c` |\n\n| d |\n| --- |\n| `e` |\n";
        let code = "output.message(\"a\", &body);\noutput.message(\n    \"b\",\n    &body,\n);\n";
        assert_eq!(found(code, page), [""; 0]);
        let other = code.replace("\"b\"", "\"c\"");
        assert_eq!(
            found(&other, page),
            [
                "docs/messages.md: does not describe the message `c`",
                "docs/messages.md: describes `b`, which nothing writes"
            ]
        );
        let computed = code.to_owned() + "self.message(name, &body);";
        assert_eq!(
            found(&computed, page),
            ["crates/gfxpack/src/a.rs: writes a message whose type is no literal"]
        );
    }
}
