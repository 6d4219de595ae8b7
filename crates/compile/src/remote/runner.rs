//! Runs jobs on remote workers. Any job that yields no object there is run here: a kernel that a
//! remote compiler refuses is refused here too, and the output of the driver here is reported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use gfxpack_launch::DriverCommands;
use gfxpack_model::{JobId, SourceId};
use gfxpack_process::{Timestamp, Usage};

use super::action::ActionTemplate;
use super::headers::Headers;
use super::judge::RemoteRun;
use super::workers::RemoteWorkers;
use crate::context::BuildContext;
use crate::error::{CompileError, get_or_make};
use crate::job::{self, FailureKind, Made, Outcome, Site};
use crate::remote_error::RemoteError;
use crate::store::Dependencies;

/// How jobs run remotely, by source and by command list. `None` if they can't, or if the template failed to be made.
type ActionTemplates = HashMap<(SourceId, usize), Arc<OnceLock<Option<Arc<ActionTemplate>>>>>;

/// The result of a job that was to run remotely.
pub(crate) enum RemoteOutcome {
    /// It ran remotely.
    Done(Box<Outcome>),
    /// It has to run on this machine; with a reason if the user should see one.
    Here(Option<String>),
}

/// The state that all remote workers share.
pub(crate) struct RemoteContext<'a> {
    workers: &'a dyn RemoteWorkers,
    context: &'a BuildContext<'a>,
    headers: Headers,
    templates: Mutex<ActionTemplates>,
    /// A time before any file was read to be sent.
    since: Timestamp,
}

impl<'a> RemoteContext<'a> {
    pub(crate) fn new(workers: &'a dyn RemoteWorkers, context: &'a BuildContext<'a>) -> Self {
        let (headers, templates) = (Headers::default(), Mutex::default());
        Self { workers, context, headers, templates, since: Timestamp::now() }
    }

    fn template(
        &self,
        index: JobId,
        commands: &Arc<DriverCommands>,
    ) -> Result<Option<Arc<ActionTemplate>>, CompileError> {
        let job = &self.context.plan[index];
        // Drivers keep their command lists, so an address identifies one.
        let key = (job.source, Arc::as_ptr(commands) as usize);
        let slot = {
            let mut templates = self.templates.lock().expect("no panic inside");
            Arc::clone(templates.entry(key).or_default())
        };
        let template = get_or_make(&slot, || {
            let toolchain = self.workers.toolchain();
            let made =
                ActionTemplate::new(self.context, job, &commands.list, &self.headers, toolchain)?;
            Ok(made.map(Arc::new))
        })?;
        Ok(template.cloned())
    }

    /// Runs a job of the plan to its end. The caller stores the object.
    pub(crate) fn run(&self, index: JobId) -> Result<RemoteOutcome, CompileError> {
        let Self { workers, context, .. } = self;
        let job = &context.plan[index];
        let Some((defines, commands)) = context.direct(job) else {
            return Ok(RemoteOutcome::Here(None));
        };
        let Some(template) = self.template(index, &commands)? else {
            return Ok(RemoteOutcome::Here(None));
        };
        let Some(action) = template.action(context, job, &defines, workers.toolchain()) else {
            return Ok(RemoteOutcome::Here(None));
        };
        let started = Instant::now();
        let outcome = match workers.run(&action, context.cancel) {
            Ok(outcome) => outcome,
            Err(error) => return without_answer(error, context.time_limit, started),
        };
        let [object, record] = outcome.outputs;
        let bytes = match job::checked(job, object.unwrap_or_default()) {
            Ok(bytes) if outcome.exit_code == 0 => bytes,
            _ => {
                let diagnostics = outcome.diagnostics.as_str();
                tracing::debug!(key = %job.key, outcome.exit_code, words = diagnostics, "no object from elsewhere");
                return Ok(RemoteOutcome::Here(None));
            }
        };
        let (root, toolchain, since) = (&template.root, workers.toolchain(), self.since);
        let run = RemoteRun { context, job, root, toolchain, since };
        let (system, sources) = match run.judge(&record.unwrap_or_default()) {
            Ok(states) => states,
            Err(reason) => {
                tracing::debug!(key = %job.key, reason, "what was made elsewhere is made here");
                return Ok(RemoteOutcome::Here(None));
            }
        };
        let dependencies = Dependencies {
            commands: Some(commands.name),
            system,
            sources,
            ..Dependencies::default()
        };
        let outcome = Outcome {
            made: Made::Object(bytes, dependencies),
            duration: outcome.duration.unwrap_or_else(|| started.elapsed()),
            usage: Usage::default(),
            site: Site::Remote { worker: outcome.worker, cached: outcome.cached },
        };
        Ok(RemoteOutcome::Done(Box::new(outcome)))
    }
}

/// Decides about a job for which the remote service had no outcome.
fn without_answer(
    error: RemoteError,
    time_limit: Duration,
    started: Instant,
) -> Result<RemoteOutcome, CompileError> {
    match error {
        RemoteError::Interrupted => Err(CompileError::Interrupted),
        RemoteError::NotCached(_) => Ok(RemoteOutcome::Here(None)),
        RemoteError::TimedOut(_) => {
            let outcome = Outcome {
                made: Made::nothing(FailureKind::TimedOut(time_limit)),
                duration: started.elapsed(),
                usage: Usage::default(),
                site: Site::Remote { worker: String::new(), cached: false },
            };
            Ok(RemoteOutcome::Done(Box::new(outcome)))
        }
        RemoteError::Lost { .. } => {
            Ok(RemoteOutcome::Here(Some(format!("{error}; it is compiled here"))))
        }
        RemoteError::Service { .. } => Err(CompileError::Remote(error)),
    }
}
