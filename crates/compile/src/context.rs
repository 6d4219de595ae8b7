//! The state that all jobs of a build share.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use gfxpack_launch::{Command, Session};
use gfxpack_model::{Error, JobId};
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_process::Cancel;

use crate::declare::Declarer;
use crate::source::SourceSet;

/// The parts of a build that its jobs share.
pub(crate) struct BuildContext<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sources: &'a SourceSet,
    pub(crate) cancel: &'a Cancel,
    pub(crate) time_limit: Duration,
    /// What jobs may see, and their keys.
    pub(crate) declarer: &'a Declarer<'a>,
    /// Shortcuts are tried first. The failures of drivers are those that are reported.
    pub(crate) session: Session<'a>,
    /// Number of jobs whose compilers could not be bound, and the reason for the first.
    pub(crate) unwatched: Mutex<(usize, Option<String>)>,
}

impl BuildContext<'_> {
    /// Groups of these jobs for which headers are precompiled together, the largest group first.
    pub(crate) fn header_groups(&self, jobs: &[JobId]) -> Vec<Vec<JobId>> {
        let groups = self.session.groups(&self.commands(jobs)).into_iter();
        groups.map(|group| group.into_iter().map(|place| jobs[place]).collect()).collect()
    }

    pub(crate) fn commands(&self, jobs: &[JobId]) -> Vec<Command<'_>> {
        jobs.iter().map(|job| command_of(&self.plan[*job])).collect()
    }

    /// Records that a job's compiler could not be bound.
    pub(crate) fn unwatched(&self, job: &Job, reason: &str) {
        tracing::debug!(key = %job.key, reason, "what it read is not known");
        let mut unwatched = self.unwatched.lock().expect("no panic inside");
        unwatched.0 += 1;
        unwatched.1.get_or_insert_with(|| reason.to_owned());
    }

    /// A warning about compilers that could not be bound, if there were any.
    pub(crate) fn unwatched_warning(&self) -> Option<String> {
        let (count, reason) = &*self.unwatched.lock().expect("no panic inside");
        let (kernels_depend, them) = match count {
            1 => ("1 kernel depends".to_owned(), "it"),
            _ => (format!("{count} kernels depend"), "them"),
        };
        reason.as_ref().map(|reason| {
            format!(
                "failed to find out what {kernels_depend} on, so the next build compiles {them} \
                 again: {reason}"
            )
        })
    }
}

/// The value of `slot`, made by the first caller; `None` if there is none. If `make` fails, the
/// first caller gets the error, and all others get `None`.
pub(crate) fn get_or_make<T>(
    slot: &OnceLock<Option<T>>,
    make: impl FnOnce() -> Result<Option<T>, Error>,
) -> Result<Option<&T>, Error> {
    let mut error = None;
    let value = slot.get_or_init(|| {
        make().unwrap_or_else(|fatal| {
            error = Some(fatal);
            None
        })
    });
    error.map_or(Ok(value.as_ref()), Err)
}

/// A job as launchers and drivers take it.
pub(crate) fn command_of(job: &Job) -> Command<'_> {
    let Job { digest, toolchain, program, language, source, .. } = *job;
    let (target, arguments) = (&job.target_id, &job.arguments);
    Command { job: digest, toolchain, program, language, target, source, arguments }
}
