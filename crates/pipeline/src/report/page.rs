//! The report as one HTML page: a template, its style and script, and the facts
//! as JSON that the script shows.

use std::collections::HashMap;

use gfxpack_plan::plan::Plan;
use serde_json::{Value, json};

use super::facts::BuildFacts;
use crate::text::language_word;

/// The name of precompiled headers in messages and the report.
pub const PRECOMPILED_HEADERS: &str = "precompiled-headers";

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub(super) fn page(facts: &BuildFacts, plan: &Plan, summary: &Value) -> String {
    let data = json!({ "summary": summary, "detail": detail(facts, plan) });
    PAGE.replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", SCRIPT)
        // Last, so that the names of kernels are not taken for placeholders.
        .replace("/*FACTS*/", &in_html(&data))
}

/// JSON that cannot end the script element that contains it.
fn in_html(data: &Value) -> String {
    // These characters occur only in strings.
    let escape = |text: String, letter| text.replace(letter, &format!("\\u{:04x}", letter as u32));
    ['<', '>', '&', '\u{2028}', '\u{2029}'].into_iter().fold(data.to_string(), escape)
}

/// Every job that ran, as rows of numbers; strings are indices into lists. What
/// was cached is in the summary.
fn detail(facts: &BuildFacts, plan: &Plan) -> Value {
    let (mut names, mut arguments, mut targets) =
        (Interned::default(), Interned::default(), Interned::default());
    let (mut languages, mut outputs) = (Interned::default(), Interned::default());
    let mut places = Interned::default();
    let mut rows = Vec::new();
    for (job, fact) in &facts.jobs {
        let job = &plan[*job];
        let output = fact.output.as_ref();
        let output = output.map_or(-1, |text| outputs.number(text.to_string()) as i64);
        rows.push(json!([
            names.number(job.key.kernel_name.clone()),
            arguments.number(job.key.kernel_args.clone()),
            targets.number(job.target_id.to_string()),
            languages.number(language_word(job.language)),
            fact.worker,
            fact.start.as_millis() as u64,
            fact.duration.as_millis() as u64,
            fact.usage.cpu.as_millis() as u64,
            fact.usage.peak_memory >> 10,
            fact.size,
            fact.failed.map_or(-1, |group| group as i64),
            output,
            fact.remote.as_ref().map_or(-1, |place| places.number(place.to_string()) as i64),
        ]));
    }
    let shared: Vec<Value> = facts
        .shared
        .iter()
        .map(|(job, one)| {
            json!({
                "what": PRECOMPILED_HEADERS, "language": plan[*job].language,
                "target": plan[*job].target_id, "worker": one.worker,
                "start": one.start.as_millis() as u64, "time": one.duration.as_millis() as u64,
                "cpu": one.usage.cpu.as_millis() as u64, "memory": one.usage.peak_memory,
            })
        })
        .collect();
    json!({
        "shared": shared, "names": names.list, "arguments": arguments.list, "targets": targets.list,
        "languages": languages.list, "outputs": outputs.list, "places": places.list, "rows": rows,
    })
}

/// A list of strings without duplicates.
#[derive(Default)]
struct Interned {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Interned {
    fn number(&mut self, word: String) -> usize {
        if let Some(number) = self.numbers.get(&word) {
            return *number;
        }
        self.list.push(word.clone());
        self.numbers.insert(word, self.list.len() - 1);
        self.list.len() - 1
    }
}
