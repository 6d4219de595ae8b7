//! What takes the space in a kdb: its parts as text, and an HTML page. Plots are
//! inline SVG, colours follow the reader's light or dark setting, nothing is
//! loaded from other files.

use gfxpack_kdb::{Layout, Stats, Sums};
use gfxpack_package::escaped;

use super::charts::{Bar, bars, columns};
use crate::text::{counted, size};

/// Maximum number of kernels in the plot.
const MAX_BARS: usize = 25;

const STYLE: &str = include_str!("kdb_stats.css");

/// A part of a kdb's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The contents, as one word.
    pub name: &'static str,
    /// Number of bytes in the file.
    pub bytes: u64,
    /// Remarks.
    pub note: String,
}

/// The file's parts. Duplicates, which come last, are a part of the objects.
pub fn parts(stats: &Stats) -> Vec<Part> {
    let all = &stats.all;
    let dense = stats.layout == Layout::Dense;
    let stored_once = if dense { all.repeated_bytes.min(all.stored_bytes) } else { 0 };
    let objects = all.stored_bytes - stored_once;
    let keys = all.key_bytes * if dense { 1 } else { 2 };
    let rest = stats.file_bytes.saturating_sub(objects + keys);
    let raw = format!("{} of {} raw", all.raw_rows, all.rows);
    let in_keys = if dense { "once each" } else { "in the table and in its index" };
    let in_rest = "hashes, page headers, unused ends of pages";
    let part = |name, bytes, note| Part { name, bytes, note };
    let mut parts = vec![
        part("objects", objects, format!("{} uncompressed, {raw}", size(all.object_bytes))),
        part("keys", keys, in_keys.to_owned()),
        part("rest", rest, in_rest.to_owned()),
    ];
    if all.repeated_rows > 0 {
        let what = if dense { ", stored once" } else { "; --layout dense stores them once" };
        let rows = format!("{} rows with the code object of another{what}", all.repeated_rows);
        parts.push(part("duplicates", all.repeated_bytes, rows));
    }
    parts
}

/// Stored size relative to uncompressed size, as `31 %`; `-` if there are no
/// objects.
pub fn ratio(sums: &Sums) -> String {
    match sums.object_bytes {
        0 => "-".to_owned(),
        bytes => format!("{:.0} %", 100.0 * sums.stored_bytes as f64 / bytes as f64),
    }
}

/// The page of the kdb called `file`.
pub fn page(file: &str, stats: &Stats) -> String {
    let title = escaped(file);
    let layout = stats.layout.name();
    let kernels = stats.largest_first();
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
        .map(|Part { name, bytes, note }| Bar { name: name.to_owned(), value: bytes, note })
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
    let ratios = stats.ratios.iter().enumerate();
    let ratios: Vec<(String, u64)> =
        ratios.map(|(index, count)| (format!("{} %", 5 * index), *count)).collect();
    columns(&mut page, &ratios);
    section(&mut page, "All kernels", "");
    table(&mut page, &kernels);
    page.push_str("</body>\n</html>\n");
    page
}

fn table(page: &mut String, kernels: &[(&str, &Sums)]) {
    page.push_str(
        "<div class=\"scroll\"><table>\n<tr><th>variants</th><th>stored</th><th>objects</th>\
         <th>ratio</th><th>duplicates</th><th>kernel</th></tr>\n",
    );
    for (name, sums) in kernels {
        *page += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            sums.rows,
            size(sums.stored_bytes),
            size(sums.object_bytes),
            ratio(sums),
            sums.repeated_rows,
            escaped(name)
        );
    }
    page.push_str("</table></div>\n");
}

/// Number of objects by powers of two between the smallest and the largest size.
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

fn section(page: &mut String, title: &str, note: &str) {
    *page += &format!("<h2>{title}</h2>\n");
    if !note.is_empty() {
        *page += &format!("<p>{note}</p>\n");
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_kdb::{Reader, Row, WriteOptions, write};
    use gfxpack_model::KernelKey;

    use super::*;

    /// The sums of a kdb with two kernels that have the same object.
    fn stats(layout: Layout) -> Stats {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gfx906_60.kdb");
        let key = |name: &str| KernelKey {
            kernel_name: name.to_owned(),
            kernel_args: " -mcpu=gfx906".to_owned(),
        };
        let keys = [key("<b>.cl.o"), key("conv.s.o")];
        let rows = [0, 1].map(|at| Row { key: &keys[at], size: 5000 });
        let mut options = WriteOptions::default();
        options.layout = layout;
        let object = |_| Ok::<_, std::io::Error>(vec![7; 5000]);
        write(&file, &rows, &options, object).unwrap();
        Reader::open(&file).unwrap().stats(None).unwrap()
    }

    #[test]
    fn the_parts_add_up_to_the_file() {
        for (layout, hint) in [(Layout::Miopen, "--layout dense"), (Layout::Dense, "stored once")] {
            let stats = stats(layout);
            let parts = parts(&stats);
            let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
            assert_eq!(names, ["objects", "keys", "rest", "duplicates"]);
            let sum: u64 = parts[..3].iter().map(|part| part.bytes).sum();
            assert_eq!(sum, stats.file_bytes);
            assert!(parts[3].note.contains(hint), "{parts:?}");
        }
    }

    #[test]
    fn names_of_kernels_are_escaped() {
        let page = page("<i>.kdb", &stats(Layout::Miopen));
        assert!(page.contains("<h1>&lt;i&gt;.kdb</h1>"));
        assert!(page.contains("&lt;b&gt;.cl.o") && !page.contains("<b>"));
        assert!(page.contains("2 kernels of 2 sources"));
        assert!(page.ends_with("</table></div>\n</body>\n</html>\n"));
    }
}
