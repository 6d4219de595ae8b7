//! Failures as annotations for GitHub Actions, one for each reason.
//!
//! Source: docs.github.com, "Workflow commands for GitHub Actions";
//! `packages/core/src/command.ts` of actions/toolkit for what is escaped.

use gfxpack_plan::plan::Plan;

use crate::failures::{Excerpt, FailureGroup, FailureGroups};
use crate::text::counted;

/// GitHub shows at most this many per step.
const SHOWN: usize = 10;

/// One line for each reason, for a step's output.
pub(super) fn github(groups: &FailureGroups, plan: &Plan) -> Vec<String> {
    groups.list().iter().take(SHOWN).map(|group| annotation(group, plan)).collect()
}

fn annotation(group: &FailureGroup, plan: &Plan) -> String {
    let title = format!("{} failed: {}", counted(group.jobs.len(), "kernel"), group.message);
    let first = group.jobs.first().map(|job| &plan[*job]);
    let first = first.map(|job| format!("{} for {}\n", job.key, job.target_id));
    let text = Excerpt::new(&group.example.output).text();
    let text = format!("{}{text}", first.unwrap_or_default());
    format!("::error title={}::{}", property(&title), data(&text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_an_annotation() {
        assert_eq!(data("50 %\r\n::error::x"), "50 %25%0D%0A::error::x");
        assert_eq!(property("a: b, c\n%"), "a%3A b%2C c%0A%25");
    }
}
