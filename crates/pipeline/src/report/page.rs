//! The report as one HTML page, which needs no script and no other file.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use gfxpack_model::date::Date;
use gfxpack_model::{JobId, KernelKey, TargetId, processors};
use gfxpack_plan::kernel_package::escaped;
use gfxpack_plan::plan::Plan;
use serde_json::Value;

use super::facts::{BuildFacts, cut};
use crate::kernel_library::{KernelLibrary, LibraryFacts};
use crate::text::{brief, counted, grouped, if_any, joined, size, word};

/// The table has at most this many kernels, which a browser still shows at once.
const MAX_ROWS: usize = 10_000;

const STYLE: &str = include_str!("page.css");

/// The page. `summary` is that of [`BuildFacts::summary`], with the keys that can't be built.
pub(super) fn page(
    facts: &BuildFacts,
    plan: &Plan,
    library: &KernelLibrary,
    summary: &Value,
) -> String {
    let title = format!("Build report: {}", escaped(&title_of(library)));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    if let Some(error) = summary["error"].as_str() {
        let error = escaped(error);
        page += &format!("<p class=\"error\">The build ended early: {error}</p>\n");
    }
    table(&mut page, &[], about(facts, plan, library, summary).into_iter());
    failures(&mut page, facts, plan);
    unbuildable(&mut page, &summary["unbuildable"]);
    groups(&mut page, &summary["groups"]);
    kernels(&mut page, facts, plan);
    page.push_str("</body>\n</html>\n");
    page
}

/// The name and version of what was built, and the lists that it was built for.
fn title_of(library: &KernelLibrary) -> String {
    let (name, version) = match (&library.name, library.asked().map(LibraryFacts::name)) {
        (None, Some((name, version))) => (name, Some(version)),
        (name, _) => (name.as_deref().unwrap_or("kernels"), library.version.as_deref()),
    };
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    let lists = library.lists();
    let lists =
        if_any(lists.len(), |_| format!(" for {}", joined(lists.iter().map(|it| it.name()))));
    format!("{name}{version}{lists}")
}

/// Rows about the build as a whole.
fn about(
    facts: &BuildFacts,
    plan: &Plan,
    library: &KernelLibrary,
    summary: &Value,
) -> Vec<Vec<String>> {
    let number = |name: &str| summary[name].as_u64().unwrap_or(0);
    let time = |name: &str| brief(Duration::from_millis(number(name)));
    let date = Date::at(facts.date.0);
    let Date { year, month, day, .. } = date;
    let done = number("cached") + number("compiled") + number("failed");
    let compilers = plan.toolchains.iter().map(|toolchain| escaped(&toolchain.identity));
    let lists = library.lists().iter();
    let lists = lists.map(|it| format!("{} ({})", it.name(), counted(it.problems, "line")));
    let rows = [
        ("library", escaped(&library.asked().map(LibraryFacts::in_words).unwrap_or_default())),
        ("lists", escaped(&joined(lists))),
        ("GPUs", joined(gpus(plan))),
        ("date", format!("{year}-{month:02}-{day:02} {} UTC", date.time())),
        ("by", format!("gfxpack {}, {}", env!("CARGO_PKG_VERSION"), joined(compilers))),
        ("took", format!("{} with {}", time("milliseconds"), counted(number("workers"), "worker"))),
        ("kernels", grouped(plan.jobs.len())),
        ("compiled", grouped(number("compiled") as usize)),
        ("from the cache", grouped(number("cached") as usize)),
        ("failed", grouped(number("failed") as usize)),
        ("not done", if_any(plan.jobs.len() as u64 - done, |left| grouped(left as usize))),
        ("CPU time", time("cpu_milliseconds")),
        ("most memory", size(number("peak_memory"))),
        ("code objects", size(number("size"))),
    ];
    let shown = rows.into_iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// The GPUs with the names of products; a shard has no kdbs, only jobs.
fn gpus(plan: &Plan) -> Vec<String> {
    let mut ids: BTreeMap<String, &TargetId> = BTreeMap::new();
    ids.extend(plan.kdbs.iter().map(|kdb| (kdb.target.to_string(), kdb.target.id())));
    if ids.is_empty() {
        ids.extend(plan.jobs.iter().map(|job| (job.target_id.to_string(), &job.target_id)));
    }
    let named = |(name, id): (String, &TargetId)| {
        let products = processors::by_name(id.processor()).map_or(&[][..], |known| known.products);
        name + &if_any(products.len(), |_| format!(" ({})", joined(products)))
    };
    ids.into_iter().map(named).collect()
}

fn failures(page: &mut String, facts: &BuildFacts, plan: &Plan) {
    if facts.failures.list.is_empty() {
        return;
    }
    page.push_str("<h2>Failures</h2>\n");
    for group in &facts.failures.list {
        let keys = group.jobs.iter().map(|job| {
            let job = &plan[*job];
            format!("{} for {}", job.key, job.target_id)
        });
        let title = format!("{} × {}", group.jobs.len(), group.title());
        let text = format!("{}\n{}", group.example.kind, cut(&group.example.output));
        details(page, &title, &text, keys);
    }
}

/// Keys that no compiler was asked for, by reason.
fn unbuildable(page: &mut String, groups: &Value) {
    let groups = groups.as_array().map(Vec::as_slice).unwrap_or_default();
    if groups.is_empty() {
        return;
    }
    page.push_str("<h2>Keys that no compiler was asked for</h2>\n");
    for group in groups {
        let text = |name: &str| group[name].as_str().unwrap_or_default();
        let keys: Vec<KernelKey> =
            serde_json::from_value(group["keys"].clone()).unwrap_or_default();
        let title = format!("{} × {}, for {}", keys.len(), text("reason"), text("target"));
        details(page, &title, "", keys.iter().map(KernelKey::to_string));
    }
}

/// A title that opens to a text and a list of keys.
fn details(page: &mut String, title: &str, text: &str, keys: impl Iterator<Item = String>) {
    *page += &format!("<details><summary>{}</summary>\n<pre>", escaped(title));
    *page += &escaped(text);
    page.push_str("</pre>\n<pre>");
    keys.for_each(|key| *page += &format!("{}\n", escaped(&key)));
    page.push_str("</pre></details>\n");
}

/// What was made by target and language.
fn groups(page: &mut String, groups: &Value) {
    page.push_str("<h2>Targets and languages</h2>\n");
    let head = ["target", "language", "compiled", "from the cache", "failed", "size", "CPU time"];
    let row = |group: &Value| {
        let number = |name: &str| group[name].as_u64().unwrap_or(0);
        let text = |name: &str| escaped(group[name].as_str().unwrap_or_default());
        let count = |name: &str| grouped(number(name) as usize);
        let cpu = brief(Duration::from_millis(number("cpu_milliseconds")));
        let counts = [count("compiled"), count("cached"), count("failed")];
        let [compiled, cached, failed] = counts;
        let size = size(number("size"));
        vec![text("target"), text("language"), compiled, cached, failed, size, cpu]
    };
    table(page, &head, groups.as_array().into_iter().flatten().map(row));
}

/// Every kernel, whether it was compiled or came from the cache.
fn kernels(page: &mut String, facts: &BuildFacts, plan: &Plan) {
    page.push_str("<h2>Kernels</h2>\n");
    let failed: HashMap<JobId, &str> = facts
        .failures
        .list
        .iter()
        .flat_map(|group| group.jobs.iter().map(|job| (*job, group.example.kind.name())))
        .collect();
    let head = ["kernel", "arguments", "target", "language", "", "seconds", "memory", "size"];
    let row = |id: JobId| {
        let job = &plan[id];
        let ran = facts.jobs.get(&id);
        let (result, bytes) = match (failed.get(&id), ran, facts.cached.get(&id)) {
            (Some(kind), ..) => (format!("<span class=\"failed\">failed: {kind}</span>"), 0),
            (_, Some(fact), _) => ("compiled".to_owned(), fact.size),
            (.., Some(bytes)) => ("from the cache".to_owned(), *bytes),
            _ => ("not done".to_owned(), 0),
        };
        vec![
            escaped(&job.key.kernel_name),
            escaped(&job.key.kernel_args),
            escaped(&job.target_id.to_string()),
            word(job.language),
            result,
            ran.map_or_else(String::new, |fact| format!("{:.2}", fact.duration.as_secs_f64())),
            ran.map_or_else(String::new, |fact| if_any(fact.usage.peak_memory, size)),
            if_any(bytes, size),
        ]
    };
    table(page, &head, plan.job_ids().take(MAX_ROWS).map(row));
    let more = plan.jobs.len().saturating_sub(MAX_ROWS);
    *page += &if_any(more, |more| {
        format!("<p>{} more are not shown; `--json FILE` lists all.</p>\n", grouped(more))
    });
}

fn table(page: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<div><table>\n");
    if !head.is_empty() {
        *page += &format!("<tr><th>{}</th></tr>\n", head.join("</th><th>"));
    }
    rows.for_each(|cells| *page += &format!("<tr><td>{}</td></tr>\n", cells.join("</td><td>")));
    page.push_str("</table></div>\n");
}
