//! Formats text: wrapping, Debian's extended description, RFC 2822 dates, sizes.

use gfxpack_model::date::{Date, MONTHS};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Maximum length of lines in control data.
///
/// Source: lintian, `extended-description-line-too-long`; rpmlint,
/// `description-line-too-long`.
pub(crate) const COLUMNS: usize = 79;

/// Breaks one paragraph into lines of at most `width` characters.
///
/// White space of any kind separates words. A word longer than a line is split,
/// since a longer line makes the package fail its checks. A word that begins with
/// a full stop stays with the previous word if both fit.
pub(crate) fn wrap(paragraph: &str, width: usize) -> Vec<String> {
    assert!(width > 0, "lines need room");
    let mut words: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match words.last_mut() {
            Some(last) if word.starts_with('.') && columns(last) + 1 + columns(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.extend(cut(word, width)),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The paragraphs of a text, which are separated by empty lines.
pub(crate) fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        if line.trim().is_empty() {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push_str(line);
            last.push(' ');
        }
    }
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found
}

/// A description as continuation lines of a control field, each with its newline.
///
/// Every line begins with a space, an empty line is ` .`, and no line of text
/// begins with a full stop: a second space is put before it.
///
/// Source: Debian Policy 4.7.0, 5.6.13.
pub(crate) fn debian_description(text: &str) -> String {
    let mut out = String::new();
    for (index, paragraph) in paragraphs(text).iter().enumerate() {
        if index > 0 {
            out.push_str(" .\n");
        }
        for line in wrap(paragraph, COLUMNS - 2) {
            out.push_str(if line.starts_with('.') { "  " } else { " " });
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// A description for rpm: wrapped paragraphs, separated by empty lines.
pub(crate) fn rpm_description(text: &str) -> String {
    let wrapped = paragraphs(text);
    let wrapped = wrapped.iter().map(|paragraph| wrap(paragraph, COLUMNS).join("\n"));
    wrapped.collect::<Vec<_>>().join("\n\n")
}

/// One item of a list; its later lines are indented like its text.
pub(crate) fn list_item(bullet: &str, text: &str) -> String {
    let lines = wrap(text, COLUMNS - bullet.len());
    let indent = format!("\n{}", " ".repeat(bullet.len()));
    format!("{bullet}{}", lines.join(&indent))
}

/// Seconds since 1970 as a date for SPDX: `1970-01-01T00:00:00Z`.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let date = Date::at(seconds);
    format!("{:04}-{:02}-{:02}T{}Z", date.year, date.month, date.day, date.time())
}

/// Seconds since 1970 as a date in UTC: `Thu, 01 Jan 1970 00:00:00 +0000`.
///
/// Source: RFC 2822, 3.3, as dpkg's changelogs use it.
pub(crate) fn rfc2822(seconds: u64) -> String {
    let date = Date::at(seconds);
    let (weekday, month, time) = (date.weekday(), date.month_name(), date.time());
    format!("{weekday}, {:02} {month} {:04} {time} +0000", date.day, date.year)
}

/// Seconds since 1970 of a date such as `Fri, 06 Nov 2026 08:08:01 UTC`.
///
/// Source: RFC 5322, section 3.3; archives write UTC.
pub fn seconds_of(date: &str) -> Option<u64> {
    let mut fields = date.split_once(',').map_or(date, |(_, rest)| rest).split_ascii_whitespace();
    let day: u64 = fields.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = fields.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = fields.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut time = fields.next()?.split(':').map(|number| number.parse::<u64>().ok());
    let (hours, minutes, rest) = (time.next()??, time.next()??, time.next()??);
    if !matches!(fields.next()?, "UTC" | "GMT" | "+0000" | "Z") || hours > 23 || minutes > 59 {
        return None;
    }
    // Count years from March, so that a leap day is the last day of a year.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + rest)
}

/// Debian's operator of a relation in the common spelling: `<` for `<<`.
pub(crate) fn plain_operator(operator: &str) -> &str {
    match operator {
        "<<" => "<",
        ">>" => ">",
        same => same,
    }
}

/// Width of a text, counting every character as one column.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

fn cut(word: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

/// A number of bytes as `1.2 MB`, in powers of ten.
pub fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// Characters that have to be encoded in the path of a URL, and in a package URL.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path with all special characters encoded, such as `%2B`.
pub(crate) fn url_encoded(path: &str) -> PercentEncode<'_> {
    utf8_percent_encode(path, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_gnu_date() {
        // `date -u -R -d @N`
        let check = |seconds, expected| assert_eq!(rfc2822(seconds), expected);
        check(0, "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599), "2024-12-31T23:59:59Z");
        check(951_782_399, "Mon, 28 Feb 2000 23:59:59 +0000");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000");
        check(1_709_210_096, "Thu, 29 Feb 2024 12:34:56 +0000");
        check(1_735_689_599, "Tue, 31 Dec 2024 23:59:59 +0000");
        check(4_107_542_400, "Mon, 01 Mar 2100 00:00:00 +0000");
    }

    #[test]
    fn dates_are_read_as_archives_write_them() {
        let check =
            |date: &str, expected: Option<u64>| assert_eq!(seconds_of(date), expected, "{date}");
        check("Fri, 06 Nov 2026 08:08:01 UTC", Some(1_793_952_481));
        check("Thu, 01 Jan 1970 00:00:00 UTC", Some(0));
        check("Sat, 29 Feb 2020 23:59:59 +0000", Some(1_583_020_799));
        check("Sun, 1 Mar 2020 00:00:00 GMT", Some(1_583_020_800));
        for none in [
            "",
            "Fri, 06 Nov 2026",
            "Fri, 06 Foo 2026 08:08:01 UTC",
            "Fri, 06 Nov 2026 08:08:01 CET",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn a_description_follows_debian_conventions() {
        let text = "First paragraph,\n  over two lines.\n\n\n.kdb files begin this one.\n";
        let expected = " First paragraph, over two lines.\n .\n  .kdb files begin this one.\n";
        assert_eq!(debian_description(text), expected);
        assert_eq!(debian_description(""), "");
    }

    #[test]
    fn a_full_stop_moves_with_the_word_before_it() {
        let text = format!("{} read .kdb files", "x".repeat(72));
        assert_eq!(debian_description(&text), format!(" {}\n read .kdb files\n", "x".repeat(72)));
    }

    #[test]
    fn list_items_hang() {
        let text = "word ".repeat(20);
        let item = list_item("  * ", &text);
        let lines: Vec<&str> = item.lines().collect();
        assert!(lines[0].starts_with("  * word") && lines[1].starts_with("    word"));
        assert!(lines.iter().all(|line| columns(line) <= COLUMNS));
    }

    /// A random text of words, full stops, long words and odd white space.
    fn random_text(state: &mut u64) -> String {
        let mut next = |bound: u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*state >> 33) % bound
        };
        let mut text = String::new();
        for _ in 0..next(60) {
            match next(8) {
                0 => text.push_str("\n\n"),
                1 => text.push_str(" . "),
                2 => text.push('\t'),
                3 => text.push_str(".so "),
                4 => text.push_str(&"ü".repeat(next(200) as usize)),
                5 => text.push_str(" \n"),
                _ => {
                    text.push_str(&"w".repeat(next(12) as usize));
                    text.push(' ');
                }
            }
        }
        text
    }

    #[test]
    fn no_line_passes_the_limit_and_no_letter_is_lost() {
        let mut state = 1;
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for _ in 0..5_000 {
            let text = random_text(&mut state);
            let debian = debian_description(&text);
            for line in debian.lines() {
                assert!(columns(line) <= COLUMNS, "{line:?} of {text:?}");
                assert!(line.starts_with(' '), "{line:?} ends the field");
                let body = &line[1..];
                assert!(body == "." || !body.starts_with('.'), "{line:?} is reserved");
                assert!(!body.trim().is_empty(), "{text:?} gives an empty line");
            }
            let kept: String =
                debian.lines().filter(|line| *line != " .").collect::<Vec<_>>().concat();
            assert_eq!(letters(&kept), letters(&text));
            let rpm = rpm_description(&text);
            assert!(rpm.lines().all(|line| columns(line) <= COLUMNS));
            assert_eq!(letters(&rpm), letters(&text));
        }
    }

    #[test]
    fn sizes_have_one_decimal_place_and_the_largest_unit_that_fits() {
        let sizes = [0, 999, 1000, 999_949, 999_999, 2_500_000_000].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "2.5 GB"]);
    }
}
