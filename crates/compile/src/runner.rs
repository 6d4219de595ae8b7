//! Who makes a job's object: a worker of this machine, or one elsewhere.

use gfxpack_model::JobId;

use crate::error::CompileError;
use crate::job::{FailedJob, Object};

/// Makes the objects of one worker's jobs, one after the other. This is the
/// one place where it shows whether a job runs here or elsewhere.
pub(crate) trait Runner {
    /// Whether its jobs take this machine's memory, so that they wait for it.
    fn is_here(&self) -> bool;

    /// Runs a job of the plan to its end. Storing what was made is the
    /// caller's.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on; a kernel that can't be
    /// made is [`Outcome::Failed`].
    fn run(&mut self, job: JobId) -> Result<Outcome, CompileError>;
}

/// How a job ended.
pub(crate) enum Outcome {
    /// An object that was made.
    Made(Object),
    /// None could be made.
    Failed(FailedJob),
    /// It has to be run on this machine; why, if the user should hear that.
    Here(Option<String>),
}
