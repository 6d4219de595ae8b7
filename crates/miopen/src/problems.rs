//! Reads problems from files: MIOpenDriver's lines in logs and lists, performance and find
//! databases in text and in SQLite.

mod keys;
mod problem_file;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_harvest::log::Seen;
use gfxpack_harvest::{Input, Options, list, packed_kdb, read_lines};
use gfxpack_model::{ErrorKind, Result};
use gfxpack_tuning::sqlite_keys;

use crate::problem::Problem;
use text::{TextProblems, begins_command};

pub use self::problem_file::ProblemFile;

/// The most distinct problems: MIOpen's databases of all devices together have about 700,000.
pub const MAX_PROBLEMS: usize = 1 << 21;

/// The problems of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problems {
    /// The problems, sorted, each once; the order of the files does not matter.
    pub problems: BTreeSet<Problem>,
    /// The files, in the order in which they were given.
    pub files: Vec<ProblemFile>,
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
