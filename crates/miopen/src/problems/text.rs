//! Text that is read in pieces: a log, a list of commands, or a database.

use std::collections::BTreeSet;

use gfxpack_harvest::log::{DriverCommand, Seen};
use gfxpack_harvest::{LineError, Skips};
use gfxpack_model::{Error, Result};
use memchr::memmem;

use super::{MAX_PROBLEMS, ProblemFile, keys};
use crate::problem::{Convolution, Problem, read_unchecked};

/// The beginning of a message in MIOpen's log, which other text may precede.
const MESSAGE: &[u8] = b"MIOpen(";
const LINT: &str = "`gfxpack perfdb lint FILE` lists what is wrong with it";
/// The file is a database, and the line is no record.
const DAMAGED: LineError = LineError::new("failed to read the record: it is damaged", LINT);
/// Two records are in one line, and where the second begins can't be told.
const TORN: LineError =
    LineError::new("failed to read the second of two records in one line: they were torn", LINT);
/// The file is a list, and the line is neither a command nor a comment.
const OTHER: LineError = LineError::new(
    "failed to find a command of MIOpenDriver in the line",
    "in a list, every line is a command, a comment (#) or empty",
);
/// How many words log tools may write before a command.
const MAX_WORDS_BEFORE: usize = 16;

/// The problems read so far from one text, line by line, or from one database.
pub(super) struct TextProblems<'a> {
    file: ProblemFile,
    problems: &'a mut BTreeSet<Problem>,
    /// Whether the file's name is that of a database.
    is_database: bool,
    /// Whether the text contains more than problems.
    is_log: bool,
    /// Whether it is a database, by its name or because it has records.
    has_records: bool,
    /// Lines that are no problems, which matter unless it is a log.
    others: Skips,
    too_many: bool,
}

impl<'a> TextProblems<'a> {
    pub(super) fn new(name: String, problems: &'a mut BTreeSet<Problem>) -> Self {
        // Records of databases have keys of any form.
        let unpacked = [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end));
        let unpacked = unpacked.unwrap_or(&name);
        let is_database =
            [".db.txt", "fdb.txt", ".udb.txt"].iter().any(|end| unpacked.ends_with(end));
        Self {
            file: ProblemFile { name, ..ProblemFile::default() },
            problems,
            is_database,
            has_records: is_database,
            is_log: false,
            others: Skips::default(),
            too_many: false,
        }
    }

    /// Reads a line; `cut` means that it is longer than given.
    pub(super) fn line(&mut self, number: u64, line: &[u8], cut: bool) {
        let line = line.trim_ascii();
        if line.starts_with(b"#") {
            self.file.comments += u64::from(has_command(line));
        }
        if line.is_empty() || line.starts_with(b"#") || self.too_many {
            return;
        }
        let is_message = memmem::find(line, MESSAGE).is_some();
        if is_message || has_command(line) {
            self.is_log = true;
            for command in DriverCommand::in_line(line, cut) {
                match command {
                    Ok(command) => self.command((number, line), command.as_str(), is_message),
                    Err(error) => self.file.skipped.add(number, line, error),
                }
            }
        } else if let Some((key, after)) = self.record(line) {
            self.key(number, key);
            self.torn((number, line), after);
        } else if let Some(bare) = bare(line) {
            let end = memmem::find(bare, b" #").unwrap_or(bare.len());
            self.bare((number, line), bare[..end].trim_ascii_end(), cut);
        } else if quoted(line).next().is_some() {
            quoted(line).for_each(|bare| self.bare((number, line), bare, cut));
        } else {
            let why = if self.has_records { DAMAGED } else { OTHER };
            self.others.add(number, line, why);
        }
    }

    /// Reads a row of an SQLite database.
    pub(super) fn row(&mut self, key: &str) {
        self.file.lines += 1;
        self.key(self.file.lines, key);
    }

    /// The key of a database's record, `2x64x…=…`, `64-56-…=…`, and what is after it. Keys of
    /// convolutions begin with a number. Log tools may have written before.
    fn record<'l>(&self, line: &'l [u8]) -> Option<(&'l str, &'l [u8])> {
        let line = memmem::find(line, b".txt:").map_or(line, |at| &line[at + 5..]);
        let line = line.strip_prefix(b"+").unwrap_or(line);
        let end = memchr::memchr(b'=', line)?;
        // A comment behind a command.
        if memmem::find(&line[..end], b" #").is_some() {
            return None;
        }
        let begin = line[..end].iter().rposition(|b| b.is_ascii_whitespace() || b">]|".contains(b));
        let key = str::from_utf8(&line[begin.map_or(0, |at| at + 1)..end]).ok()?;
        let begins = key.starts_with(|c: char| c.is_ascii_digit()) || self.is_database;
        let is_text = !key.is_empty() && !key.contains(char::is_control);
        (is_text && begins).then_some((key, &line[end + 1..]))
    }

    /// Reads the further records of a line in which newlines are missing. A key is taken if it is
    /// told from a number before it.
    fn torn(&mut self, (number, line): (u64, &[u8]), after: &[u8]) {
        let mut rest = after;
        while let Some(end) = memchr::memchr(b'=', rest) {
            let is_of_key = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
            let begin = rest[..end].iter().rposition(|b| !is_of_key(b));
            let words =
                str::from_utf8(&rest[begin.map_or(0, |at| at + 1)..end]).unwrap_or_default();
            // `…,miopenConvolutionFwdAlgoDirect128-16-…`: other names may end in digits.
            let digit = words.find(|c: char| c.is_ascii_digit()).unwrap_or(words.len());
            let (algorithm, key) = words.split_at(digit);
            let is_told = match begin.map(|at| rest[at]) {
                Some(b',') => "miopen".starts_with(&algorithm[..digit.min(6)]) && digit > 0,
                // `<unused>`
                last => last == Some(b'>') && digit == 0,
            };
            match Some(key).filter(|_| is_told).filter(|key| keys::convolutions(key).is_ok()) {
                Some(key) => self.key(number, key),
                None => self.file.skipped.add(number, line, TORN),
            }
            rest = &rest[end + 1..];
        }
    }

    /// Reads a command without the program's name.
    fn bare(&mut self, (number, line): (u64, &[u8]), command: &[u8], cut: bool) {
        match str::from_utf8(command) {
            _ if cut => self.file.skipped.add(number, line, LineError::too_long()),
            Ok(command) => self.command((number, line), command, false),
            Err(_) => self.file.skipped.add(number, line, LineError::NOT_UTF8),
        }
    }

    fn command(&mut self, (number, line): (u64, &[u8]), command: &str, logged: bool) {
        match problems(command, logged) {
            Ok(problems) => {
                self.file.used += 1;
                problems.into_iter().for_each(|problem| self.add(problem));
            }
            Err(error) => self.file.skipped.add(number, line, error),
        }
    }

    fn key(&mut self, number: u64, key: &str) {
        if self.too_many {
            return;
        }
        match keys::convolutions(key) {
            Ok(convolutions) => {
                self.file.used += 1;
                self.has_records = true;
                convolutions.into_iter().for_each(|one| self.add(Problem::Convolution(one)));
            }
            Err(error) => {
                self.file.passed_over += 1;
                self.file.first_passed_over.get_or_insert((number, error));
            }
        }
    }

    fn add(&mut self, problem: Problem) {
        if self.problems.len() >= MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.too_many = true;
        } else if self.problems.insert(problem) {
            self.file.added += 1;
        }
    }

    /// The statistics of a text with this many lines, or of a database.
    pub(super) fn finish(mut self, lines: Option<u64>, seen: Seen) -> Result<ProblemFile> {
        self.file.lines = lines.unwrap_or(self.file.lines);
        self.file.seen = seen;
        if self.too_many {
            let name = &self.file.name;
            return Err(Error::usage(
                format!(
                    "failed to take all problems of `{name}`: there are more than {MAX_PROBLEMS}"
                ),
                "ask for the files in several runs",
            ));
        }
        // A log may contain anything besides commands, a list may not.
        let is_list = self.file.used > 0 || self.file.skipped.lines() > 0 || self.has_records;
        if is_list && !self.is_log {
            self.file.skipped.extend(self.others);
        }
        Ok(self.file)
    }
}

/// Whether a line that the next one continues may be the beginning of a command.
pub(super) fn begins_command(line: &[u8]) -> bool {
    !line.starts_with(b"#") && (has_command(line) || bare(line).is_some())
}

fn has_command(line: &[u8]) -> bool {
    memmem::find(line, DriverCommand::PROGRAM.as_bytes()).is_some()
}

/// The command in a line without the program's name. Log tools may have written before it.
fn bare(line: &[u8]) -> Option<&[u8]> {
    let is_begin = |at: usize| at == 0 || b" \t>]|:".contains(&line[at - 1]);
    let mut begins = (0..line.len()).filter(|at| is_begin(*at)).take(MAX_WORDS_BEFORE);
    begins.find(|at| is_bare(&line[*at..], *at == 0)).map(|at| &line[at..])
}

/// The commands without the program's name in a line of a list in Python, JSON, YAML or CSV: each in
/// quotes, both of which are there.
fn quoted(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let quote = line.iter().find(|b| b"\"'`".contains(b)).copied().unwrap_or(b'"');
    let mut parts = line.split(move |b| *b == quote).skip(1);
    std::iter::from_fn(move || {
        let within = parts.next()?;
        // The text after the last quote, or before the next.
        parts.next().map(|_| within)
    })
    .filter(|within| is_bare(within, false))
}

/// Whether a text is a command without the program's name, and maybe without options.
fn is_bare(line: &[u8], alone: bool) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    let operation = words.next().and_then(|word| str::from_utf8(word).ok());
    // `cat` has the options `-1` to `-8` for tensors.
    let is_option = |word: &[u8]| match word {
        [b'-', b'-', rest @ ..] | [b'-', rest @ ..] => {
            rest.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        }
        _ => false,
    };
    operation.is_some_and(Problem::is_operation)
        && words.find(|word| !word.is_empty()).map_or(alone, is_option)
}

/// The problems of a command: one, except for transposed convolutions with groups. MIOpen logs the
/// output channels of one group for these, while MIOpenDriver expects those of all.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ConvArgsForMIOpenDriver` in
/// driver_arguments.cpp; `GetWeightTensorLengthsFromCmdLine` in
/// driver/conv_driver.hpp.
fn problems(command: &str, logged: bool) -> Result<Vec<Problem>, LineError> {
    let convolution = match read_unchecked(command)? {
        Problem::Convolution(convolution) => convolution,
        other => return Ok(vec![other]),
    };
    let all = convolution.out_channels.checked_mul(convolution.groups);
    let of_all = all.filter(|_| convolution.transposed && convolution.groups > 1);
    let of_all = of_all.map(|out_channels| Convolution { out_channels, ..convolution.clone() });
    let of_all = of_all.filter(|of_all| of_all.check().is_ok());
    let found: Vec<Convolution> = match (convolution.check(), of_all) {
        (Ok(()), Some(of_all)) if logged => vec![convolution, of_all],
        (Ok(()), _) => vec![convolution],
        // Of the two, only the groups can be wrong.
        (Err(_), Some(of_all)) => vec![of_all],
        (Err(error), None) => return Err(error),
    };
    Ok(found.into_iter().map(Problem::Convolution).collect())
}
