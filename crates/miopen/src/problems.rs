//! Reads problems from files: MIOpenDriver's lines in logs and lists, performance and find
//! databases in text and in SQLite.

mod keys;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_harvest::log::Seen;
use gfxpack_harvest::{Input, Options, Skips, list, packed_kdb, read_lines};
use gfxpack_model::{Error, ErrorKind, Result};
use gfxpack_tuning::sqlite_keys;

use crate::problem::Problem;
use text::{TextProblems, begins_command};

/// The most distinct problems: MIOpen's databases of all devices together have about 700,000.
pub const MAX_PROBLEMS: usize = 1 << 21;

/// The problems of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The problems, sorted, each once; the order of the files does not matter.
    pub problems: BTreeSet<Problem>,
    /// The files, in the order in which they were given.
    pub files: Vec<ProblemFile>,
}

/// Statistics of reading one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProblemFile {
    /// The file as the user named it; `-` for the standard input.
    pub name: String,
    /// Lines of a text, rows of an SQLite database.
    pub lines: u64,
    /// Lines or rows with a problem.
    pub used: u64,
    /// Problems that no earlier file contained.
    pub added: u64,
    /// Records of a database without a problem.
    pub passed_over: u64,
    /// The first skipped record, and why.
    pub first_passed_over: Option<(u64, String)>,
    /// Commands of MIOpenDriver in comments.
    pub comments: u64,
    /// Lines that should be problems or records but can't be read.
    pub skipped: Skips,
    /// What the file has.
    pub seen: Seen,
}

impl ProblemFile {
    /// Fails for the first line that can't be read, or if there is nothing to read.
    fn check(&self) -> Result {
        let name = &self.name;
        if let Some(first) = self.skipped.iter().next() {
            let more = match self.skipped.lines() - 1 {
                0 => String::new(),
                1 => " and 1 further line".to_owned(),
                lines => format!(" and {lines} further lines"),
            };
            let message = format!("failed to read `{name}:{}`{more}: {}", first.first, first.why);
            return Err(Error::usage(message, first.hint));
        }
        if self.used > 0 {
            return Ok(());
        }
        let hint = match (&self.first_passed_over, self.seen) {
            (Some((line, why)), _) => {
                format!("the first record that was skipped is in line {line}: {why}")
            }
            (None, Seen::Nothing) => {
                "the file is empty, or has nothing but NUL bytes: get it again, or look where its \
                 program writes"
                    .to_owned()
            }
            (None, Seen::Messages) => {
                "MIOpen writes problems into its log where MIOPEN_ENABLE_LOGGING_CMD is 1"
                    .to_owned()
            }
            (None, Seen::Text) => {
                "no line is of MIOpen: give the log of a run with MIOPEN_ENABLE_LOGGING_CMD=1, a \
                 list of lines as `MIOpenDriver conv -n 1 -c 64 …`, or a database"
                    .to_owned()
            }
        };
        Err(Error::usage(format!("failed to find a problem in `{name}`"), hint))
    }
}

/// Reads problems from files, which may be packed by gzip, zstd or xz; `-` is the standard input,
/// and a directory means all files below it. Memory is used only for the problems, each of which is
/// stored once.
///
/// Records of databases that are for no convolution, or for one that can't be computed, are skipped
/// and counted: MIOpen never looks these up. Lines that can't be read are counted too, or with
/// `strict` are errors.
///
/// # Errors
/// A file that can't be read, a file of which no line can be read, a file without problems, or more
/// than [`MAX_PROBLEMS`].
pub fn read_problems(paths: &[PathBuf], options: &Options<'_>, strict: bool) -> Result<Problems> {
    let mut all = Problems::default();
    for input in list(paths)? {
        let file = read(&input, options, &mut all.problems)?;
        let named = matches!(input, Input::Stdin | Input::File { named: true, .. });
        if (named && file.used == 0) || strict {
            file.check()?;
        }
        all.files.push(file);
    }
    Ok(all)
}

fn read(
    input: &Input,
    options: &Options<'_>,
    problems: &mut BTreeSet<Problem>,
) -> Result<ProblemFile> {
    let mut text_problems = TextProblems::new(input.name(), problems);
    let each = |number, line: &[u8], cut| text_problems.line(number, line, cut);
    // An error in a problem is reported when the stream ends; no more problems are added.
    if let Some((lines, seen)) = read_lines(input, options, begins_command, each)? {
        return text_problems.finish(Some(lines), seen);
    }
    let Input::File { path, .. } = input else {
        return Err(packed_kdb(&input.name()));
    };
    sqlite_keys(path, |key| text_problems.row(key))
        .map_err(|error| error.of_kind(ErrorKind::Usage))?;
    text_problems.finish(None, Seen::Text)
}

#[cfg(test)]
mod tests;
