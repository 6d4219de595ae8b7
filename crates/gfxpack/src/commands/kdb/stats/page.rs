//! The sums of a kdb as one page of HTML: plots are inline SVG, colours follow
//! the reader's light or dark setting, nothing is loaded from elsewhere.

use std::fmt::Write as _;

use gfxpack_kdb::{Stats, Sums};

use super::{parts, ratio};
use crate::output::{counted, size};

/// Bars of the plot of kernels.
const MAX_BARS: usize = 25;

const STYLE: &str = "\
:root { color-scheme: light dark; --bar: #2a78d6; --back: #e3e7ee; --text: #1a1d21; --soft: #5c6470; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --bar: #4d9bf0; --back: #2b3038; --text: #e8eaed; --soft: #9aa2ad; --page: #16181c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--text); font-size: 12px; } svg .soft { fill: var(--soft); }
.bar { fill: var(--bar); } .back { fill: var(--back); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid var(--back); }
th { color: var(--soft); font-weight: 500; }
td:last-child, th:last-child { text-align: left; overflow-wrap: anywhere; }
p { color: var(--soft); }
";

/// The page. `kernels` come largest first.
pub(super) fn render(file: &str, stats: &Stats, kernels: &[(&str, &Sums)]) -> String {
    let title = escape(file);
    let layout = stats.layout.name();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{}, {} of {}, layout {layout}</p>\n",
        size(stats.file_bytes),
        counted(stats.all.rows, "kernel"),
        counted(stats.kernels.len(), "source"),
    );
    section(&mut page, "What the file's bytes are", "");
    let parts: Vec<Bar> = parts(stats)
        .into_iter()
        .map(|(name, value, note)| Bar { name: name.to_owned(), value, note })
        .collect();
    bars(&mut page, &parts, size);
    section(&mut page, "Kernels that take most", "bytes as stored, all variants of a source");
    let largest: Vec<Bar> = kernels
        .iter()
        .take(MAX_BARS)
        .map(|(name, sums)| Bar {
            name: (*name).to_owned(),
            value: sums.stored_bytes,
            note: format!("{} variants, {} of their size", sums.rows, ratio(sums)),
        })
        .collect();
    bars(&mut page, &largest, size);
    section(&mut page, "Sizes of code objects", "kernels by their size before compression");
    columns(&mut page, &sizes(stats));
    section(&mut page, "Compression", "kernels by what is left of their size");
    let ratios: Vec<(String, u64)> = stats
        .ratios
        .iter()
        .enumerate()
        .map(|(index, count)| (format!("{} %", 5 * index), *count))
        .collect();
    columns(&mut page, &ratios);
    section(&mut page, "All kernels", "");
    page.push_str(
        "<div class=\"scroll\"><table>\n<tr><th>variants</th><th>stored</th><th>objects</th>\
         <th>ratio</th><th>duplicates</th><th>kernel</th></tr>\n",
    );
    for (name, sums) in kernels {
        let row = format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            sums.rows,
            size(sums.stored_bytes),
            size(sums.object_bytes),
            ratio(sums),
            sums.repeated_rows,
            escape(name)
        );
        page.push_str(&row);
    }
    page.push_str("</table></div>\n</body>\n</html>\n");
    page
}

/// Powers of two between the smallest and the largest size.
fn sizes(stats: &Stats) -> Vec<(String, u64)> {
    let used = |count: &u64| *count > 0;
    let first = stats.sizes.iter().position(used).unwrap_or(0);
    let last = stats.sizes.iter().rposition(used).unwrap_or(0);
    let label = |power: usize| match power {
        0..10 => format!("{} B", 1_u64 << power),
        10..20 => format!("{} KiB", 1_u64 << (power - 10)),
        _ => format!("{} MiB", 1_u64 << (power - 20)),
    };
    (first..=last).map(|power| (label(power), stats.sizes[power])).collect()
}

struct Bar {
    name: String,
    value: u64,
    note: String,
}

fn section(page: &mut String, title: &str, note: &str) {
    writeln!(page, "<h2>{title}</h2>").expect("a String takes all");
    if !note.is_empty() {
        writeln!(page, "<p>{note}</p>").expect("a String takes all");
    }
}

/// Horizontal bars, each with its name above and its value beside it.
fn bars(page: &mut String, bars: &[Bar], unit: fn(u64) -> String) {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let height = 34 * bars.len();
    writeln!(page, "<svg viewBox=\"0 0 800 {height}\" role=\"img\">").expect("a String takes all");
    for (index, Bar { name, value, note }) in bars.iter().enumerate() {
        let top = 34 * index;
        let width = 640.0 * *value as f64 / most as f64;
        writeln!(
            page,
            "<g><title>{0}: {1}; {2}</title><text x=\"0\" y=\"{3}\">{0}</text>\
             <text class=\"soft\" x=\"640\" y=\"{3}\" text-anchor=\"end\">{2}</text>\
             <rect class=\"back\" x=\"0\" y=\"{4}\" width=\"640\" height=\"10\" rx=\"2\"/>\
             <rect class=\"bar\" x=\"0\" y=\"{4}\" width=\"{width:.1}\" height=\"10\" rx=\"2\"/>\
             <text x=\"650\" y=\"{5}\">{1}</text></g>",
            escape(&shortened(name)),
            unit(*value),
            escape(note),
            top + 13,
            top + 18,
            top + 27,
        )
        .expect("a String takes all");
    }
    page.push_str("</svg>\n");
}

/// Upright columns with their counts above and their labels below.
fn columns(page: &mut String, columns: &[(String, u64)]) {
    let most = columns.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let step = 800.0 / columns.len().max(1) as f64;
    page.push_str("<svg viewBox=\"0 0 800 190\" role=\"img\">\n");
    for (index, (label, count)) in columns.iter().enumerate() {
        let height = 140.0 * *count as f64 / most as f64;
        let left = step * index as f64;
        let middle = left + step / 2.0;
        writeln!(
            page,
            "<g><title>{label}: {count}</title>\
             <rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"2\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"soft\" x=\"{middle:.1}\" y=\"180\" text-anchor=\"middle\">{label}</text></g>",
            left + 2.0,
            160.0 - height,
            (step - 4.0).max(1.0),
            155.0 - height,
            if *count == 0 { String::new() } else { count.to_string() },
        )
        .expect("a String takes all");
    }
    page.push_str("</svg>\n");
}

/// A name that leaves room for what stands beside it.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 60 {
        return name.to_owned();
    }
    name.chars().take(59).chain(['…']).collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
