//! What a build reports while it runs.

use std::time::{Duration, Instant};

use gfxpack_model::JobId;
use gfxpack_process::Usage;

use crate::job::{Compiled, Failure};

/// Something that happened while a plan ran, in the order in which it happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The store was searched; the events of the other jobs follow.
    FoundInCache {
        /// Jobs whose objects the store has, with their sizes.
        cached: Vec<(JobId, u64)>,
        /// Jobs whose refusal the store keeps from an earlier run, with the compiler's output of
        /// that run.
        refused: Vec<(JobId, Failure)>,
    },
    /// A problem that does not end the build.
    Warning {
        /// The text.
        message: String,
    },
    /// The order in which the other jobs will start; not sent if there are none.
    Queued {
        /// The number of workers, which is also the most jobs that run at once.
        workers: usize,
        /// Jobs, with how long each is expected to run.
        jobs: Vec<(JobId, Duration)>,
    },
    /// Headers were precompiled for several of the jobs.
    HeadersPrecompiled {
        /// One of the jobs that the headers are for.
        job: JobId,
        /// Where and when; the worker ran nothing else meanwhile.
        run: JobRun,
        /// How long it took.
        duration: Duration,
        /// The resources that the compilers used.
        usage: Usage,
    },
    /// A compiler was started.
    Started {
        /// The job.
        job: JobId,
        /// Where and when.
        run: JobRun,
    },
    /// An object was made and stored.
    Finished {
        /// The job.
        job: JobId,
        /// Where and when.
        run: JobRun,
        /// The object, and the time and resources that it took.
        compiled: Compiled,
    },
    /// A job failed.
    Failed {
        /// The job.
        job: JobId,
        /// Where and when.
        run: JobRun,
        /// Why, with the compiler's output.
        failure: Failure,
    },
}

/// Where and when a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRun {
    /// The worker's number.
    pub worker: usize,
    /// When its compiler was started.
    pub started: Instant,
}
