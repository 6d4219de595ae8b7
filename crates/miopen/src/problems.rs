//! Problems out of files: MIOpenDriver's lines in logs and lists, performance
//! and find databases in text and in SQLite.

mod error;
mod keys;
mod problem_file;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_harvest::log::Lines;
use gfxpack_harvest::{HarvestError, Input, Options, list, read_text};
use gfxpack_tuning::sqlite_keys;

use crate::problem::Problem;
use text::Taken;

pub use self::problem_file::ProblemFile;
pub use error::{BadLine, KeyError, LineError, MAX_PROBLEMS, ProblemsError};

/// What was read of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problems {
    /// Each problem once, sorted: the same for files in any order.
    pub problems: BTreeSet<Problem>,
    /// The files, in the order in which they were given.
    pub files: Vec<ProblemFile>,
}

/// How files are read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Called with bytes that were read.
    pub read: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Asked often; reading ends where it says yes.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// Reads problems, `-` being the standard input, files packed by gzip, zstd
/// and xz too; of a directory all files below it. Memory is that of the
/// problems, each of which is held once.
///
/// Records of databases that are of no convolution, or of one that cannot be
/// computed, are passed over and counted: MIOpen never asks for those either.
///
/// # Errors
/// [`ProblemsError`]: a file that cannot be read, a line that should be a
/// problem and is none, a file without problems, or more than
/// [`MAX_PROBLEMS`].
pub fn read_problems(
    paths: &[PathBuf],
    options: ReadOptions<'_>,
) -> Result<Problems, ProblemsError> {
    let mut all = Problems::default();
    for input in list(paths)? {
        let file = read(&input, options, &mut all.problems)?;
        let named = matches!(input, Input::Stdin | Input::File { named: true, .. });
        if named && file.told == 0 {
            return Err(ProblemsError::Nothing {
                name: file.name,
                passed_over: file.first_passed_over,
            });
        }
        all.files.push(file);
    }
    Ok(all)
}

fn read(
    input: &Input,
    options: ReadOptions<'_>,
    problems: &mut BTreeSet<Problem>,
) -> Result<ProblemFile, ProblemsError> {
    let mut streams = Options::default();
    streams.read = options.read;
    streams.cancelled = options.cancelled;
    let mut taken = Taken::new(input.name(), problems);
    let mut lines = Lines::all();
    let mut each = |number, line: &[u8], cut| taken.line(number, line, cut);
    // A failure of what is taken is told once the stream ends: it takes no more.
    if read_text(input, &streams, |piece| lines.push(piece, &mut each))? {
        let lines = lines.finish(&mut each);
        return taken.finish(Some(lines));
    }
    let Input::File { path, .. } = input else {
        return Err(HarvestError::PackedKdb { name: input.name() }.into());
    };
    sqlite_keys(path, |key| taken.row(key))?;
    taken.finish(None)
}

#[cfg(test)]
mod tests;
