//! Text that is read in pieces: a log, a list of commands, or a database.

use std::collections::BTreeSet;

use gfxpack_harvest::log::{DriverCommand, LogError};
use memchr::memmem;

use super::error::{BadLine, LineError, MAX_PROBLEMS, ProblemsError};
use super::keys;
use super::problem_file::ProblemFile;
use crate::problem::{Convolution, Problem, ProblemError, read_unchecked};

/// The beginning of a message in MIOpen's log, which other text may precede.
const MESSAGE: &[u8] = b"MIOpen(";

/// The problems read so far from one text, line by line, or from one database.
pub(super) struct TextProblems<'a> {
    file: ProblemFile,
    problems: &'a mut BTreeSet<Problem>,
    /// Whether the file's name is that of a database.
    is_database: bool,
    /// Whether the text contains more than problems.
    is_log: bool,
    /// The first line that is no problem.
    first_other: Option<u64>,
    /// The first line that should be a problem but is none.
    first_bad: Option<(u64, LineError)>,
    bad: u64,
    too_many: bool,
}

impl<'a> TextProblems<'a> {
    pub(super) fn new(name: String, problems: &'a mut BTreeSet<Problem>) -> Self {
        // Records of databases have keys of any form.
        let unpacked = [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end));
        let unpacked = unpacked.unwrap_or(&name);
        let is_database = unpacked.ends_with(".db.txt") || unpacked.ends_with(".udb.txt");
        Self {
            file: ProblemFile { name, ..ProblemFile::default() },
            problems,
            is_database,
            is_log: false,
            first_other: None,
            first_bad: None,
            bad: 0,
            too_many: false,
        }
    }

    /// Reads a line; `cut` means that it is longer than given.
    pub(super) fn line(&mut self, number: u64, line: &[u8], cut: bool) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || self.too_many {
            return;
        }
        let is_message = memmem::find(line, MESSAGE).is_some();
        if is_message || memmem::find(line, DriverCommand::PROGRAM.as_bytes()).is_some() {
            self.is_log = true;
            match DriverCommand::in_line(without_comment(line), cut) {
                Ok(Some(command)) => self.command(number, command.as_str(), is_message),
                Ok(None) => {}
                Err(error) => self.bad(number, LineError::Log(error)),
            }
        } else if let Some(key) = self.record(line) {
            self.key(number, key);
        } else if is_bare(line) {
            match str::from_utf8(without_comment(line)) {
                _ if cut => self.bad(number, LineError::Log(LogError::TooLong)),
                Ok(command) => self.command(number, command, false),
                Err(_) => self.bad(number, LineError::Log(LogError::NotUtf8)),
            }
        } else {
            self.first_other.get_or_insert(number);
        }
    }

    /// Reads a row of an SQLite database.
    pub(super) fn row(&mut self, key: &str) {
        self.file.lines += 1;
        self.key(self.file.lines, key);
    }

    /// The key of a database's record: `2x64x…=…`, `64-56-…=…`. Keys of convolutions begin with a
    /// number.
    fn record<'l>(&self, line: &'l [u8]) -> Option<&'l str> {
        let end = memchr::memchr(b'=', line)?;
        let key = str::from_utf8(&line[..end]).ok()?;
        let one_word = !key.is_empty() && !key.contains(|c: char| c.is_ascii_whitespace());
        let begins = key.starts_with(|c: char| c.is_ascii_digit()) || self.is_database;
        (one_word && begins).then_some(key)
    }

    fn command(&mut self, number: u64, command: &str, logged: bool) {
        match problems(command, logged) {
            Ok(problems) => {
                self.file.used += 1;
                problems.into_iter().for_each(|problem| self.add(problem));
            }
            Err(error) => self.bad(number, LineError::Problem(error)),
        }
    }

    fn key(&mut self, number: u64, key: &str) {
        if self.too_many {
            return;
        }
        match keys::convolutions(key) {
            Ok(convolutions) => {
                self.file.used += 1;
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

    fn bad(&mut self, number: u64, error: LineError) {
        self.bad += 1;
        self.first_bad.get_or_insert((number, error));
    }

    /// The statistics of a text with this many lines, or of a database.
    pub(super) fn finish(mut self, lines: Option<u64>) -> Result<ProblemFile, ProblemsError> {
        self.file.lines = lines.unwrap_or(self.file.lines);
        let name = self.file.name.clone();
        if self.too_many {
            return Err(ProblemsError::TooMany { name });
        }
        // A log may contain anything besides commands, a list may not.
        if let Some(line) = self.first_other
            && !self.is_log
            && (self.file.used > 0 || self.bad > 0)
        {
            self.bad += 1;
            if self.first_bad.as_ref().is_none_or(|(bad, _)| line < *bad) {
                self.first_bad = Some((line, LineError::Other));
            }
        }
        match self.first_bad {
            Some((line, source)) => {
                let first = BadLine { name, line };
                Err(ProblemsError::Lines { first, more: self.bad - 1, source })
            }
            None => Ok(self.file),
        }
    }
}

/// A line without a comment that begins with ` #`.
fn without_comment(line: &[u8]) -> &[u8] {
    let end = memmem::find(line, b" #").unwrap_or(line.len());
    line[..end].trim_ascii_end()
}

/// Whether a line is a command without the program's name.
fn is_bare(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let operation = words.next().and_then(|word| str::from_utf8(word).ok());
    // `cat` has the options `-1` to `-8` for tensors.
    let is_option = |word: &[u8]| match word {
        [b'-', b'-', rest @ ..] | [b'-', rest @ ..] => {
            rest.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        }
        _ => false,
    };
    operation.is_some_and(Problem::is_operation) && words.next().is_none_or(is_option)
}

/// The problems of a command: one, except for transposed convolutions with groups. MIOpen logs the
/// output channels of one group for these, while MIOpenDriver expects those of all.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ConvArgsForMIOpenDriver` in
/// driver_arguments.cpp; `GetWeightTensorLengthsFromCmdLine` in
/// driver/conv_driver.hpp.
fn problems(command: &str, logged: bool) -> Result<Vec<Problem>, ProblemError> {
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
        (Err(ProblemError::Groups { .. }), Some(of_all)) => vec![of_all],
        (Err(error), _) => return Err(error),
    };
    Ok(found.into_iter().map(Problem::Convolution).collect())
}
