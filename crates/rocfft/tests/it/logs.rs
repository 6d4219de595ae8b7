use std::io::{BufReader, Read, repeat};

use gfxpack_rocfft::{LogEntry, LogError, LogSummary, read_log};

#[track_caller]
fn read(log: &str) -> (Vec<(String, Option<String>)>, LogSummary) {
    let mut entries = Vec::new();
    let summary = read_log("log", log.as_bytes(), |entry| {
        entries.push(match entry {
            LogEntry::Source { name, source } => (name, Some(source)),
            LogEntry::Hit { name } => (name, None),
        });
        Ok::<_, LogError>(())
    });
    (entries, summary.unwrap())
}

/// As rocFFT writes one kernel.
fn kernel(name: &str, source: &str) -> String {
    format!(
        "// ROCFFT_RTC_BEGIN {name}\n{source}\n// ROCFFT_RTC_END {name}\n\
         // {name} generate duration: 0 ms\n// {name} compile duration: 7 ms\n\n"
    )
}

fn counts(summary: LogSummary) -> [u64; 4] {
    [summary.sources, summary.hits, summary.repeated, summary.damaged]
}

#[test]
fn sources_are_as_the_compiler_got_them_and_each_there_once() {
    let (first, second) = ("void fft_a() {}\n\n", "// no end of line\nvoid fft_b()");
    let log = [
        "rocfft_version 1.0.32\n",
        &kernel("fft_a", first),
        "// cache hit for fft_c\n",
        &kernel("fft_b", second),
        &kernel("fft_a", first),
    ];
    let (entries, summary) = read(&log.concat());
    let expected = [("fft_a", Some(first)), ("fft_c", None), ("fft_b", Some(second))];
    let own = |(name, source): (&str, Option<&str>)| (name.to_owned(), source.map(str::to_owned));
    assert_eq!(entries, expected.map(own));
    assert_eq!(counts(summary), [2, 1, 1, 0]);
}

#[test]
fn damaged_sources_are_counted_and_cost_no_other() {
    let good = kernel("fft_a", "fft_a");
    for (damage, damaged) in [
        // Another thread wrote in between, or the program was killed and started again.
        ("// ROCFFT_RTC_BEGIN fft_b\nfft_b\n", 1),
        ("// ROCFFT_RTC_BEGIN fft_b\nfft_b\n// ROCFFT_RTC_END fft_c\n", 1),
        ("// ROCFFT_RTC_END fft_b\n", 1),
        ("// ROCFFT_RTC_BEGIN fft_b\n// ROCFFT_RTC_END fft_b\n", 1),
        ("// ROCFFT_RTC_BEGIN fft_b\nsomething else\n// ROCFFT_RTC_END fft_b\n", 1),
        ("// ROCFFT_RTC_BEGIN fft_b\nfft_b // cache hit for x\n// ROCFFT_RTC_END fft_b\n", 1),
        ("// ROCFFT_RTC_BEGIN a b\na b\n// ROCFFT_RTC_END a b\n", 1),
        ("// cache hit for \n", 0),
        ("// cache hit for a b\n", 0),
    ] {
        let (entries, summary) = read(&[damage, &good].concat());
        assert_eq!(entries.len(), 1, "{damage}");
        assert_eq!(counts(summary), [1, 0, 0, damaged], "{damage}");
        let (_, summary) = read(&[good.as_str(), "// ROCFFT_RTC_BEGIN fft_b\nfft"].concat());
        assert_eq!(counts(summary), [1, 0, 0, 1]);
    }
    let error = [kernel("fft_a", "fft_a 1"), kernel("fft_a", "fft_a 2")].concat();
    let error = read_log("log", error.as_bytes(), |_| Ok::<_, LogError>(())).unwrap_err();
    assert_eq!(error.to_string(), "`log` has different sources for `fft_a`");
}

/// A line or a source without an end is not held.
#[test]
fn what_has_no_end_takes_no_memory() {
    let begin = "// ROCFFT_RTC_BEGIN fft_b\n";
    let endless = begin.as_bytes().chain(repeat(b'x').take(1 << 28));
    let log = BufReader::new(endless.chain(&b"\n// cache hit for fft_a\n"[..]));
    let summary = read_log("log", log, |_| Ok::<_, LogError>(())).unwrap();
    assert_eq!(counts(summary), [0, 1, 0, 1]);
}
