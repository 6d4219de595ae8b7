//! Formats numbers, sizes and paths for display, and reads files of text.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use gfxpack_model::KernelKey;
pub use gfxpack_package::size;
use serde::Serialize;

use crate::error::{self, Result};

/// How many options [`elided`] keeps between two differences.
const WORDS_LEFT: usize = 3;

/// `1 kernel`, `2 kernels`, `2 entries`.
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {what}"),
        number => match what.strip_suffix('y') {
            Some(stem) if !stem.ends_with('e') => format!("{number} {stem}ies"),
            _ => format!("{number} {what}s"),
        },
    }
}

/// Items separated by commas.
pub fn joined(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// A text about a number; empty if the number is 0.
pub fn if_any<N: Copy + Default + PartialEq>(number: N, text: impl FnOnce(N) -> String) -> String {
    if number == N::default() { String::new() } else { text(number) }
}

/// A number with thousands separators: `6,923`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

/// A duration: `1 h 5 min`, `3 min`, `12 s`.
pub fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Name and arguments of a kernel, each in backticks: `` `a.cl.o` with the
/// arguments ` -mcpu=gfx906` ``.
pub fn key_in_words(key: &KernelKey) -> String {
    let shown = |name: &str, args: &str| {
        KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() }.to_string()
    };
    let (name, args) = (shown(&key.kernel_name, ""), shown("", &key.kernel_args));
    format!("`{name}` with the arguments `{args}`")
}

/// Arguments in which differences are marked by braces, with `…` for all options
/// except those beside a difference: ` -DA=1 -DB=1 -DC=1 -DD=1 {-DN=2}` becomes
/// `… -DD=1 {-DN=2}`. Short runs of options stay.
pub fn elided(marked: &str) -> String {
    let words: Vec<&str> = marked.split(' ').collect();
    let mut depth = 0_usize;
    let differs: Vec<bool> = words
        .iter()
        .map(|word| {
            let open = word.matches('{').count();
            let inside = depth > 0 || open > 0;
            depth = (depth + open).saturating_sub(word.matches('}').count());
            inside
        })
        .collect();
    let stays =
        |at: usize| differs[at.saturating_sub(1)..(at + 2).min(differs.len())].contains(&true);
    let mut shown: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let run = (at..words.len()).take_while(|at| !stays(*at)).count();
        match run {
            0 => shown.push(words[at]),
            1..=WORDS_LEFT => shown.extend(&words[at..at + run]),
            _ => shown.push("…"),
        }
        at += run.max(1);
    }
    shown.join(" ")
}

/// An age in the largest unit that gives at least two: `119 s`, `3 min`, `5 h`,
/// `2 d`.
pub fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The name of a language or a reason in messages.
pub fn word(one: impl Serialize) -> String {
    serde_json::json!(one).as_str().unwrap_or_default().to_owned()
}

/// A path for a message, which is UTF-8: U+FFFD replaces invalid bytes.
pub fn display(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

/// The name of a file without its directory, which may be private.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| display(path), display)
}

/// Opens a file for reading; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(error::io("read", path))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(error::io("read", path))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        error::usage(
            format!("{}:{line}: failed to read text: it is not UTF-8", path.display()),
            "save the file as UTF-8",
        )
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_of_a_thing_is_singular() {
        let counts = [0_usize, 1, 2].map(|count| super::counted(count, "kernel"));
        assert_eq!(counts, ["0 kernels", "1 kernel", "2 kernels"]);
    }

    #[test]
    fn thousands_are_separated() {
        let numbers = [0, 999, 1000, 6923, 1_234_567].map(super::grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "6,923", "1,234,567"]);
    }

    #[test]
    fn ages_have_two_of_their_unit_at_least() {
        let ages = [0, 119, 120, 7199, 7200, 172_800]
            .map(|seconds| super::age(std::time::Duration::from_secs(seconds)));
        assert_eq!(ages, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }

    #[test]
    fn equal_options_are_left_out() {
        let check = |text: &str, expected: &str| assert_eq!(super::elided(text), expected);
        let many = " -DA=1 -DB=1 -DC=1 -DD=1 -DE=1 -DF=1";
        check(" {-DN=3} -DC=64 -mcpu=gfx906", " {-DN=3} -DC=64 -mcpu=gfx906");
        check(&format!("{many} {{-DN=2}} -DX -mcpu=gfx906"), "… -DF=1 {-DN=2} -DX -mcpu=gfx906");
        check(&format!(" {{-DN=2}}{many}{many} {{}}"), " {-DN=2} -DA=1 … -DF=1 {}");
        check(&format!("{{-DN=2 -DM=3 -DL}}{many}"), "{-DN=2 -DM=3 -DL} -DA=1 …");
    }

    #[test]
    fn times_read_well() {
        let times =
            [0, 59, 60, 3599, 3600, 7260].map(|s| super::brief(std::time::Duration::from_secs(s)));
        assert_eq!(times, ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "2 h 1 min"]);
    }
}
