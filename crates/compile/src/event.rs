//! What a build reports while it runs.

use std::time::{Duration, Instant};

use gfxpack_model::JobId;
use gfxpack_process::Usage;

use crate::job::{Compiled, Failure};

/// What happens while a plan runs, in the order it happens.
#[derive(Debug, Clone)]
pub enum Event {
    /// What the store has already; the other jobs follow.
    Looked {
        /// Jobs whose objects it has, with their sizes.
        cached: Vec<(JobId, u64)>,
        /// Jobs whose refusal by an earlier run is kept, with what was said
        /// then.
        refused: Vec<(JobId, Failure)>,
    },
    /// Something that the user should hear, and that ends nothing.
    Warning {
        /// The text.
        message: String,
    },
    /// In this order the others will start; not sent if there are none.
    Queued {
        /// Workers, numbered from 0: so many jobs run at once at most.
        workers: usize,
        /// Jobs, with how long each is expected to run.
        jobs: Vec<(JobId, Duration)>,
    },
    /// The header that the driver includes was precompiled for several of the jobs.
    HeadersPrecompiled {
        /// One of the jobs that it is for.
        job: JobId,
        /// Where and when; nothing else ran there meanwhile.
        run: JobRun,
        /// How long it took.
        duration: Duration,
        /// What the compilers for it used.
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
        /// How large it is, and what making it took.
        compiled: Compiled,
    },
    /// A job failed.
    Failed {
        /// The job.
        job: JobId,
        /// Where and when.
        run: JobRun,
        /// Why, with the compiler's words.
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
