//! Summarizes MIOpen's log while a program runs: which kernels MIOpen found and
//! compiled, how long compiling and tuning took, and which kdbs it opened. Only
//! lines that the user would have seen anyway are passed on.

mod filter;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gfxpack_model::KernelKey;
use gfxpack_model::key_record::Counts;
use memchr::memmem;

use self::filter::Filter;
use crate::log::{BEGIN, DriverCommand, Event, Lines, Message};

/// The log level that reports every kernel. More important messages have lower
/// levels.
///
/// Source: ROCm/MIOpen 2d1fd997a, `LoggingLevel` in logger.hpp, and
/// `LoadBinary` in binary_cache.cpp.
pub const LEVEL: u8 = 6;
/// The level of MIOpen's release builds if none is set.
///
/// Source: as above, `IsLogging` in logger.cpp.
const DEFAULT_LEVEL: u8 = 4;
/// The text before the name of a database, which is in quotes.
///
/// Source: as above, `SQLiteBase` in sqlite_db.hpp.
const OPENED: [&[u8]; 2] =
    [b"Initializing user database file ", b"Initializing system database file "];
/// Source: as above, `FindSolutionImpl` in find_solution.hpp, and
/// `GenericSearch` in generic_search.hpp.
const SEARCH: &[u8] = b"] Starting search: ";
const SEARCHED: [&[u8]; 2] = [b"] Done: ", b"] Search failed for: "];

/// The text before the name of a GPU whose library of grouped convolutions is missing or does not
/// fit.
///
/// Source: ROCm/rocm-libraries, `OpenRuntimeLibraryForDevice` in MIOpen 3.6.
const NO_CK_LIBRARY: [&[u8]; 3] = [
    b"CK grouped conv library not found for device ",
    b"Failed to resolve symbols in CK grouped conv library for device ",
    b"CK grouped conv API version mismatch for device ",
];
/// The end of the directory of MIOpen's own databases.
const DATABASES: &[u8] = b"/share/miopen/db/";
/// Options of driver commands that say how large the input is, and not which layer computes it.
const SIZES: [&str; 8] = ["-n", "--batchsize", "-H", "--in_h", "-W", "--in_w", "-!", "--in_d"];

/// A running program's log, read in pieces of any size. Memory is bounded by
/// the longest line and by the number of kernels.
#[derive(Debug)]
pub struct RunLog {
    filter: Filter,
    lines: Lines,
    in_progress: InProgress,
    summary: RunSummary,
}

/// Operations in progress.
#[derive(Debug, Default)]
struct InProgress {
    /// Kernels that are being compiled, with the start time.
    compiling: HashMap<KernelKey, Instant>,
    /// Start and end time of compiling each stored kernel.
    compiled: Vec<(Instant, Instant)>,
    /// Start time of the current search.
    searching: Option<Instant>,
    /// By layer: the inputs that it was given, as hashes.
    shapes: HashMap<u64, HashSet<u64>>,
}

/// The summary of a run.
#[derive(Debug, Clone, Default)]
pub struct RunSummary {
    /// All requested kernels, with counts of their events.
    pub kernels: BTreeMap<KernelKey, Counts>,
    /// The kdbs and users' kdbs that were opened; users' first.
    pub kdbs: Vec<PathBuf>,
    /// Time for compiling kernels that were then stored; parallel compilations
    /// count once.
    pub compiled: Duration,
    /// Number of finished searches for the fastest parameters.
    pub searches: u64,
    /// Time of these searches, including the compilation of their kernels.
    pub searched: Duration,
    /// Number of lines that MIOpen wrote.
    pub lines: u64,
    /// The directory of MIOpen's own databases, if a line has it.
    pub databases: Option<PathBuf>,
    /// The GPUs for which MIOpen's library of grouped convolutions is missing or does not fit.
    pub without_ck: BTreeSet<String>,
    /// The largest number of different inputs of one layer.
    pub shapes: usize,
}

impl RunLog {
    /// A log for a user who has set `MIOPEN_LOG_LEVEL` to `level`; 0 is the
    /// default. `commands` says whether the user wants driver commands.
    pub fn new(level: u8, commands: bool) -> Self {
        Self {
            filter: Filter::new(if level == 0 { DEFAULT_LEVEL } else { level }, commands),
            lines: Lines::with(BEGIN),
            in_progress: InProgress::default(),
            summary: RunSummary::default(),
        }
    }

    /// Reads what the program wrote at time `now`, and adds what the user
    /// should see to `shown`. Text other than MIOpen's messages is passed on at
    /// once, even incomplete lines.
    pub fn push(&mut self, piece: &[u8], now: Instant, shown: &mut Vec<u8>) {
        let Self { filter, lines, in_progress, summary } = self;
        filter.push(piece, &mut |text| shown.extend_from_slice(text));
        lines.push(piece, &mut |_, line, cut| in_progress.line(line, cut, now, summary));
    }

    /// Adds the remaining text to `shown`, and returns the summary.
    #[must_use]
    pub fn finish(self, now: Instant, shown: &mut Vec<u8>) -> RunSummary {
        let Self { filter, lines, mut in_progress, mut summary } = self;
        filter.finish(&mut |text| shown.extend_from_slice(text));
        lines.finish(&mut |_, line, cut| in_progress.line(line, cut, now, &mut summary));
        summary.compiled = together(in_progress.compiled);
        summary.shapes = in_progress.shapes.values().map(HashSet::len).max().unwrap_or_default();
        summary
    }
}

impl InProgress {
    fn kernel(&mut self, message: &Message<'_>, now: Instant, summary: &mut RunSummary) {
        let key = message.key();
        let counts = summary.kernels.entry(key.clone()).or_default();
        match message.event {
            Event::Asked => counts.seen += 1,
            Event::Found => counts.hits += 1,
            Event::Missed => {
                counts.misses += 1;
                self.compiling.insert(key, now);
            }
            Event::Saved => {
                counts.saved += 1;
                if let Some(begun) = self.compiling.remove(&key) {
                    self.compiled.push((begun, now));
                }
            }
        }
    }

    /// Takes a line with a message of MIOpen.
    fn line(&mut self, line: &[u8], cut: bool, now: Instant, summary: &mut RunSummary) {
        summary.lines += 1;
        for message in Message::in_line(line, cut).into_iter().filter_map(|(_, it)| it.ok()) {
            self.kernel(&message, now, summary);
        }
        let has = |mark: &&[u8]| memmem::find(line, mark).is_some();
        for (position, mark) in OPENED.iter().enumerate() {
            let Some(kdb) = memmem::find(line, mark).and_then(|at| kdb(&line[at + mark.len()..]))
            else {
                continue;
            };
            if !summary.kdbs.contains(&kdb) {
                let place = if position == 0 { 0 } else { summary.kdbs.len() };
                summary.kdbs.insert(place, kdb);
            }
        }
        if summary.databases.is_none() {
            summary.databases = databases(line);
        }
        for command in DriverCommand::in_line(line, false).into_iter().flatten() {
            let (layer, input) = layer_and_input(command.as_str());
            self.shapes.entry(layer).or_default().insert(input);
        }
        let without_ck = NO_CK_LIBRARY.iter().find_map(|mark| {
            let device = &line[memmem::find(line, mark)? + mark.len()..];
            let end = device.iter().position(|b| !b.is_ascii_alphanumeric());
            Some(String::from_utf8_lossy(&device[..end.unwrap_or(device.len())]).into_owned())
        });
        summary.without_ck.extend(without_ck);
        if has(&SEARCH) {
            self.searching.get_or_insert(now);
        } else if SEARCHED.iter().any(has)
            && let Some(begun) = self.searching.take()
        {
            summary.searches += 1;
            summary.searched += now.saturating_duration_since(begun);
        }
    }
}

/// The directory of MIOpen's own databases in a line that names a file of it in quotes.
fn databases(line: &[u8]) -> Option<PathBuf> {
    let end = memmem::find(line, DATABASES)? + DATABASES.len() - 1;
    let begin = line[..end].iter().rposition(|byte| b"\"' ".contains(byte))? + 1;
    let dir = Path::new(str::from_utf8(&line[begin..end]).ok()?);
    dir.is_absolute().then(|| dir.to_owned())
}

/// A driver command as hashes of the layer and of the size of its input.
fn layer_and_input(command: &str) -> (u64, u64) {
    let (mut layer, mut input) = (DefaultHasher::new(), DefaultHasher::new());
    let mut words = command.split(' ');
    while let Some(word) = words.next() {
        if SIZES.contains(&word) {
            (word, words.next()).hash(&mut input);
        } else {
            word.hash(&mut layer);
        }
    }
    (layer.finish(), input.finish())
}

/// The time that the spans cover together.
fn together(mut spans: Vec<(Instant, Instant)>) -> Duration {
    spans.sort_unstable();
    let mut covered: Option<Instant> = None;
    let mut sum = Duration::ZERO;
    for (from, to) in spans {
        let from = covered.map_or(from, |covered| covered.max(from));
        sum += to.saturating_duration_since(from);
        covered = covered.max(Some(to));
    }
    sum
}

/// The path of a kdb in quotes (without quotes before MIOpen 3); `None` for
/// other databases.
fn kdb(text: &[u8]) -> Option<PathBuf> {
    let text = str::from_utf8(text).ok()?.trim();
    let path = Path::new(text.trim_matches('"'));
    let ending = path.extension()?;
    (ending == "kdb" || ending == "ukdb").then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_parallel_compilations_counts_once() {
        let begun = Instant::now();
        let span = |from, to| (begun + Duration::from_secs(from), begun + Duration::from_secs(to));
        assert_eq!(together(vec![]), Duration::ZERO);
        let spans = vec![span(5, 6), span(0, 10), span(8, 12), span(20, 21), span(20, 21)];
        assert_eq!(together(spans), Duration::from_secs(13));
    }

    #[test]
    fn a_line_without_an_end_is_shown_at_once() {
        let (mut log, mut shown) = (RunLog::new(0, true), Vec::new());
        let now = Instant::now();
        log.push(b"\r 10 %", now, &mut shown);
        assert_eq!(shown, b"\r 10 %");
        log.push(b"\r 20 % MIOpen(HIP): Info2 [f] x\n17 MIO", now, &mut shown);
        assert_eq!(shown, b"\r 10 %\r 20 % 17 ");
        log.push(b"penDriver", now, &mut shown);
        let _ = log.finish(now, &mut shown);
        assert_eq!(shown, b"\r 10 %\r 20 % 17 MIOpenDriver");
    }
}
