//! Parses sizes and ages.

use std::time::Duration;

/// A size: `20G`, `500 MB`, `1.5GiB`, `100B`; powers of ten, or of two with `i`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let unit = |unit: &str| {
        let unit = unit.strip_suffix(['b', 'B']).unwrap_or(unit);
        let (letter, base) = match unit.strip_suffix('i') {
            Some(letter) => (letter, 1024_f64),
            None => (unit, 1000.0),
        };
        let power = ["", "k", "m", "g", "t"].iter().position(|known| {
            known.eq_ignore_ascii_case(letter) && (base < 1024.0 || !known.is_empty())
        })?;
        Some(base.powi(power as i32))
    };
    let bytes = quantity(text, unit).filter(|bytes| *bytes < 2_f64.powi(63));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| {
        "it is no size with its unit\nhint: write a number with B, kB, MB, GB or TB after it: 20GB"
            .to_owned()
    })
}

/// An age: `30d`, `12h`, `90 min`, `10s`.
pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    let unit = |unit: &str| {
        Some(match unit {
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        })
    };
    quantity(text, unit).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(
        || {
            "it is no length of time with its unit\nhint: write a number with s, min, h, d or w after \
             it: 30d"
                .to_owned()
        },
    )
}

/// A number needs a unit unless it is 0: if bytes or seconds were the default,
/// who means gigabytes or days would lose the cache.
fn quantity(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    match text[end..].trim() {
        "" => (number == 0.0).then_some(0.0),
        word => Some(number * unit(word)?),
    }
}
