//! What docs/messages.md says of the fields of messages, to hold them against what tests see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

const PAGE: &str = include_str!("../../docs/messages.md");
/// What every message has.
const ALWAYS: [&str; 2] = ["format", "type"];
/// What rows say instead of names that several of them would repeat: the paragraph or the section
/// that has them.
const ELSEWHERE: [(&str, &str); 4] = [
    ("the job,", "\nThe job: "),
    ("where and when", "\nWhere and when: "),
    ("what it used", "\nWhat it used: "),
    ("](#the-report)", "\n## The report\n"),
];
/// A row that names another page, where tests of that page look.
const OTHER_PAGE: &str = "those of a line in [harvest.md]";
/// A row with what another message has too.
const LIKE: &str = "as `caches-entry`";

/// Names by type of message; none for a type whose fields another page has.
static DESCRIBED: LazyLock<BTreeMap<&str, Option<BTreeSet<&str>>>> = LazyLock::new(described);

/// Makes sure that a message has no field that the page does not describe.
///
/// # Panics
/// Where it has.
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

/// The names in a cell, and those that stand elsewhere.
fn all_names(fields: &'static str) -> Vec<&'static str> {
    let mut all = names(fields);
    for (_, place) in ELSEWHERE.iter().filter(|(said, _)| fields.contains(said)) {
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

/// What stands in backticks.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
