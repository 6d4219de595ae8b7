//! A process for each problem, so that its crash does not affect others.

use std::env;
use std::fs;
use std::io;
use std::os::fd::RawFd;

use gfxpack_standin::KernelDatabases;

use crate::arena::Arena;
use crate::convolution::Convolution;
use crate::load::Loaded;
use crate::notes;
use crate::process::{ChildEnd, close, fork};
use crate::protocol::number;
use crate::steps::{self, Step};

/// The directory that the library takes for the user's.
const DIRECTORY: &str = "problem";

/// A request: a problem and how to compute it.
#[derive(Debug)]
pub(crate) struct Task {
    /// The process to fork from: 0, or the number of a stem.
    pub(crate) stem: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) problem: Convolution,
    pub(crate) answers: Answers,
}

impl Task {
    pub(crate) fn parse(fields: &[Vec<u8>]) -> Option<Self> {
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let [b"ask", stem, answers, steps, problem] = fields[..] else { return None };
        Some(Self {
            stem: number(stem)?,
            steps: Step::parse_list(steps)?,
            problem: Convolution::parse(problem)?,
            answers: match answers {
                b"all" => Answers::All,
                b"compilable" => Answers::Compilable,
                b"none" => Answers::None,
                _ => return None,
            },
        })
    }
}

/// The kernels that the stand-in has, besides those in real databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    All,
    /// All but those that are withheld.
    Compilable,
    None,
}

/// Computes a problem in a process of its own, which leaves its notes in the arena.
///
/// # Errors
/// The system's error.
pub(crate) fn run(
    loaded: &Loaded,
    arena: &'static Arena,
    task: &Task,
    client: RawFd,
) -> io::Result<ChildEnd> {
    arena.clear();
    loaded.make_directory(DIRECTORY)?;
    let child = fork(|| {
        close(client);
        notes::begin(Box::new(|notes| arena.append(notes)));
        if let Err(error) = env::set_current_dir(DIRECTORY) {
            notes::note(&[b"unanswered", error.to_string().as_bytes()]);
            return;
        }
        if loaded.real_kernels && task.answers != Answers::None {
            gfxpack_standin::kernel_databases(KernelDatabases::RealThenAnswered);
        }
        if task.answers == Answers::Compilable {
            let withheld = loaded.withheld;
            gfxpack_standin::withhold(move |key| withheld.has(key));
        }
        steps::run(loaded, &task.problem, &task.steps);
    });
    let end = child.and_then(|child| child.wait(loaded.limit, client));
    fs::remove_dir_all(DIRECTORY)?;
    end
}
