//! The fields of messages that docs/messages.md describes, to compare with those of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

const PAGE: &str = include_str!("../../docs/messages.md");
/// Fields of every message.
const ALWAYS: [&str; 2] = ["format", "type"];
/// Phrases in rows that refer to names elsewhere, with the paragraph or section that has them.
const ELSEWHERE: [(&str, &str); 4] = [
    ("the job,", "\nThe job: "),
    ("where and when", "\nWhere and when: "),
    ("what it used", "\nWhat it used: "),
    ("](#the-report)", "\n## The report\n"),
];
/// A row that refers to another page, which other tests check.
const OTHER_PAGE: &str = "those of a line in [harvest.md]";
/// A row with the fields of another message.
const LIKE: &str = "as `caches-entry`";

/// Names by type of message; `None` for a type whose fields are on another page.
static DESCRIBED: LazyLock<BTreeMap<&str, Option<BTreeSet<&str>>>> = LazyLock::new(described);

/// Checks that a message has no field that the page does not describe.
///
/// # Panics
/// If it has one.
#[track_caller]
pub(crate) fn assert_described(message: &Value) {
    let kind = message["type"].as_str().expect("a type");
    let Some(described) = &DESCRIBED.get(kind).expect("a described type") else { return };
    for field in message.as_object().expect("an object").keys().map(String::as_str) {
        assert!(
            ALWAYS.contains(&field) || described.contains(field),
            "docs/messages.md does not describe `{field}` of `{kind}`: {message}"
        );
    }
}

fn described() -> BTreeMap<&'static str, Option<BTreeSet<&'static str>>> {
    let mut described: BTreeMap<&str, Option<BTreeSet<&str>>> = BTreeMap::new();
    for row in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [types, _, fields] = cells[..] else { continue };
        for kind in names(types) {
            let known = described.entry(kind).or_insert_with(|| Some(BTreeSet::new()));
            if fields.contains(OTHER_PAGE) {
                *known = None;
            } else if let Some(known) = known {
                known.extend(all_names(fields));
            }
        }
    }
    described
}

/// The names in a cell, and those that it refers to.
fn all_names(fields: &'static str) -> Vec<&'static str> {
    let mut all = names(fields);
    for (_, place) in ELSEWHERE.iter().filter(|(phrase, _)| fields.contains(phrase)) {
        let (_, text) = PAGE.split_once(place).expect("the page has it");
        let end = if place.contains('#') { "\n## " } else { "\n" };
        all.extend(names(text.split(end).next().unwrap_or_default()));
    }
    if fields.contains(LIKE) {
        let row = PAGE.lines().find(|line| line.starts_with("| `caches-entry`"));
        all.extend(names(row.expect("the page has it")));
    }
    all
}

/// The texts in backticks.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
