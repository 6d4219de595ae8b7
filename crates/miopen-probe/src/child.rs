//! A process for each problem: whatever happens to it, the others go on.

use std::env;
use std::fs;
use std::io;
use std::os::fd::RawFd;

use gfxpack_standin::KernelDatabases;

use crate::arena::Arena;
use crate::convolution::Convolution;
use crate::library::Loaded;
use crate::notes;
use crate::process::{End, close, fork};
use crate::step::Step;
use crate::steps;

/// The directory that the library takes for the user's.
const DIRECTORY: &str = "problem";

/// What to do with a problem.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) steps: Vec<Step>,
    pub(crate) problem: Convolution,
    /// Whether kernels that no database has are answered all the same.
    pub(crate) go_on: bool,
}

/// Works on a problem in a process of its own, which leaves its notes in the
/// arena.
///
/// # Errors
/// The system's.
pub(crate) fn run(
    loaded: &Loaded,
    arena: &'static Arena,
    task: &Task,
    asker: RawFd,
) -> io::Result<End> {
    arena.clear();
    loaded.make_directory(DIRECTORY)?;
    let child = fork(|| {
        close(asker);
        notes::begin(arena);
        if let Err(error) = env::set_current_dir(DIRECTORY) {
            notes::note(&[b"unanswered", error.to_string().as_bytes()]);
            return;
        }
        if task.go_on {
            gfxpack_standin::kernel_databases(KernelDatabases::RealThenAnswered);
        }
        steps::run(loaded, &task.problem, &task.steps);
    });
    let end = child.and_then(|child| child.wait(loaded.limit, asker));
    fs::remove_dir_all(DIRECTORY)?;
    end
}
