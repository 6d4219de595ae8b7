//! Charts as inline SVG; the page's style sheet gives their colours.

use gfxpack_package::escaped;

/// One of several horizontal bars.
pub(super) struct Bar {
    /// The text above the bar.
    pub(super) name: String,
    /// Its length.
    pub(super) value: u64,
    /// The text above the end of the bar.
    pub(super) note: String,
}

/// Horizontal bars, each with its name above and its value beside it.
pub(super) fn bars(page: &mut String, bars: &[Bar], unit: fn(u64) -> String) {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let height = 34 * bars.len();
    *page += &format!("<svg viewBox=\"0 0 800 {height}\" role=\"img\">\n");
    for (index, Bar { name, value, note }) in bars.iter().enumerate() {
        let top = 34 * index;
        let width = 640.0 * *value as f64 / most as f64;
        *page += &format!(
            "<g><title>{0}: {1}; {2}</title><text x=\"0\" y=\"{3}\">{0}</text>\
             <text class=\"soft\" x=\"640\" y=\"{3}\" text-anchor=\"end\">{2}</text>\
             <rect class=\"back\" x=\"0\" y=\"{4}\" width=\"640\" height=\"10\" rx=\"2\"/>\
             <rect class=\"bar\" x=\"0\" y=\"{4}\" width=\"{width:.1}\" height=\"10\" rx=\"2\"/>\
             <text x=\"650\" y=\"{5}\">{1}</text></g>\n",
            escaped(&shortened(name)),
            unit(*value),
            escaped(note),
            top + 13,
            top + 18,
            top + 27,
        );
    }
    page.push_str("</svg>\n");
}

/// Upright columns with their counts above and their labels below.
pub(super) fn columns(page: &mut String, columns: &[(String, u64)]) {
    let most = columns.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let step = 800.0 / columns.len().max(1) as f64;
    page.push_str("<svg viewBox=\"0 0 800 190\" role=\"img\">\n");
    for (index, (label, count)) in columns.iter().enumerate() {
        let height = 140.0 * *count as f64 / most as f64;
        let left = step * index as f64;
        let middle = left + step / 2.0;
        *page += &format!(
            "<g><title>{label}: {count}</title>\
             <rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"2\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"soft\" x=\"{middle:.1}\" y=\"180\" text-anchor=\"middle\">{label}</text></g>\n",
            left + 2.0,
            160.0 - height,
            (step - 4.0).max(1.0),
            155.0 - height,
            if *count == 0 { String::new() } else { count.to_string() },
        );
    }
    page.push_str("</svg>\n");
}

/// Shortens a name to leave room for what is beside it.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 60 {
        return name.to_owned();
    }
    name.chars().take(59).chain(['…']).collect()
}
