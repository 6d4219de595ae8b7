//! A build as JUnit XML, which CI services read: one suite per target, one test
//! case per kernel.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use gfxpack_model::{JobId, KernelKey, Target};
use gfxpack_plan::plan::{KdbPlan, Plan};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::facts::BuildFacts;
use crate::failures::{Excerpt, FailureGroup};
use crate::ledger::{Absences, Absent};
use crate::text::word;

/// Writes all kernels of a build that has ended.
pub(super) fn write(
    facts: &BuildFacts,
    plan: &Plan,
    absent: &Absences,
    out: &mut dyn Write,
) -> io::Result<()> {
    let groups = facts.failures.list.iter();
    let failed = groups.flat_map(|group| group.jobs.iter().map(move |job| (*job, group)));
    let failed: HashMap<JobId, &FailureGroup> = failed.collect();
    // Whether the build ended before this job.
    let is_skipped = |job: &JobId| {
        !failed.contains_key(job)
            && !facts.cached.contains_key(job)
            && !facts.jobs.contains_key(job)
    };
    let milliseconds =
        |job: &JobId| facts.jobs.get(job).map_or(0, |fact| fact.duration.as_millis() as u64);
    let write_suite = |Suite { target, kernels, unbuilt }: Suite<'_>, xml: &mut Xml<'_>| {
        let jobs = || kernels.iter().map(|(_, job)| job);
        let failures = jobs().filter(|job| failed.contains_key(job)).count() + unbuilt.len();
        let suite = xml.create_element("testsuite").with_attributes([
            ("name", target.as_str()),
            ("tests", (kernels.len() + unbuilt.len()).to_string().as_str()),
            ("failures", failures.to_string().as_str()),
            ("errors", "0"),
            ("skipped", jobs().filter(|job| is_skipped(job)).count().to_string().as_str()),
            ("time", seconds(jobs().map(milliseconds).sum()).as_str()),
        ]);
        suite.write_inner_content(|xml| {
            for (key, job) in &kernels {
                let (key, time) = (&key.to_string(), milliseconds(job));
                let Some(group) = failed.get(job) else {
                    let outcome = if is_skipped(job) { Outcome::Skipped } else { Outcome::Passed };
                    case(&target, key, time, outcome, xml)?;
                    continue;
                };
                let (kind, reason) = (&group.example.kind, &group.title());
                let text = &format!("{kind}\n{}", Excerpt::new(&group.example.output).text());
                case(&target, key, time, Outcome::Failed { kind: kind.name(), reason, text }, xml)?;
            }
            for Absent { key, reason, why } in &unbuilt {
                let outcome = Outcome::Failed { kind: &word(reason), reason: why, text: why };
                case(&target, &key.to_string(), 0, outcome, xml)?;
            }
            Ok(())
        })?;
        Ok(())
    };
    let mut xml: Xml<'_> = Writer::new_with_indent(out, b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attribute(("name", "gfxpack")).write_inner_content(
        |xml| suites(plan, absent).into_iter().try_for_each(|suite| write_suite(suite, xml)),
    )?;
    xml.get_mut().write_all(b"\n")
}

/// The kernels of one target.
struct Suite<'a> {
    target: String,
    kernels: Vec<(&'a KernelKey, JobId)>,
    unbuilt: Vec<&'a Absent>,
}

type Xml<'a> = Writer<&'a mut dyn Write>;

/// The kernels of each kdb; for a shard, which has no kdbs, those of its jobs
/// by target.
fn suites<'a>(plan: &'a Plan, absent: &'a Absences) -> Vec<Suite<'a>> {
    if plan.kdbs.is_empty() {
        let mut by_target: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (job, number) in plan.jobs.iter().zip(0..) {
            by_target.entry(&job.target_id).or_default().push((&*job.key, JobId(number)));
        }
        let suite = |(target, kernels)| Suite { target, kernels, unbuilt: Vec::new() };
        let named = by_target.into_iter().map(|(target, jobs)| (target.to_string(), jobs));
        return named.map(suite).collect();
    }
    let unbuilt =
        |target: &Target| absent.of(target).iter().filter(|one| one.reason.is_missing()).collect();
    let suite = |kdb: &'a KdbPlan| Suite {
        target: kdb.target.to_string(),
        kernels: kdb.rows.iter().map(|row| (&*row.key, row.job)).collect(),
        unbuilt: unbuilt(&kdb.target),
    };
    plan.kdbs.iter().map(suite).collect()
}

enum Outcome<'a> {
    Passed,
    Skipped,
    Failed { kind: &'a str, reason: &'a str, text: &'a str },
}

fn case(
    target: &str,
    key: &str,
    milliseconds: u64,
    outcome: Outcome<'_>,
    xml: &mut Xml<'_>,
) -> io::Result<()> {
    let (key, time) = (plain(key), seconds(milliseconds));
    let case = xml.create_element("testcase").with_attributes([
        ("classname", target),
        ("name", key.as_str()),
        ("time", time.as_str()),
    ]);
    let written = match outcome {
        Outcome::Passed => case.write_empty(),
        Outcome::Skipped => {
            case.write_inner_content(|xml| xml.create_element("skipped").write_empty().map(drop))
        }
        Outcome::Failed { kind, reason, text } => case.write_inner_content(|xml| {
            let reason = plain(reason);
            let failure = xml.create_element("failure");
            let failure = failure.with_attributes([("type", kind), ("message", reason.as_str())]);
            failure.write_text_content(BytesText::new(&plain(text))).map(drop)
        }),
    };
    written.map(drop)
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// A text without the characters that XML can't contain.
fn plain(text: &str) -> String {
    let is_allowed = |c: &char| match c {
        '\t' | '\n' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    };
    text.chars().filter(is_allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_cannot_hold_are_dropped() {
        assert_eq!(plain("a\tß\n\u{1b}[1mb\u{0}\u{ffff}"), "a\tß\n[1mb");
        assert_eq!(seconds(61_005), "61.005");
    }
}
