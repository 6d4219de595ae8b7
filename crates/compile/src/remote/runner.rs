//! Runs jobs on remote workers. Any job that yields no object there is run here: a kernel that a
//! remote compiler refuses is refused here too, and the output of the driver here is reported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use gfxpack_model::{Error, JobId, SourceId};
use gfxpack_process::Usage;

use super::action::ActionTemplate;
use super::{RemoteError, RemoteWorkers};
use crate::context::{BuildContext, get_or_make};
use crate::declare::Declared;
use crate::job::{self, FailureKind, Made, Outcome, Site};

/// How jobs run remotely, by source and by command list. `None` if they can't, or if the template
/// failed to be made.
type ActionTemplates = HashMap<(SourceId, usize), Arc<OnceLock<Option<ActionTemplate>>>>;

/// The state that all remote workers share.
pub(crate) struct RemoteContext<'a> {
    workers: &'a dyn RemoteWorkers,
    context: &'a BuildContext<'a>,
    declared: &'a HashMap<JobId, Declared>,
    templates: Mutex<ActionTemplates>,
}

impl<'a> RemoteContext<'a> {
    pub(crate) fn new(
        workers: &'a dyn RemoteWorkers,
        context: &'a BuildContext<'a>,
        declared: &'a HashMap<JobId, Declared>,
    ) -> Self {
        Self { workers, context, declared, templates: Mutex::default() }
    }

    /// Runs a job of the plan to its end; `None` if it has to run on this machine, with a warning if
    /// the user should know why. The caller stores the object.
    pub(crate) fn run(
        &self,
        index: JobId,
        warn: impl FnOnce(String),
    ) -> Result<Option<Outcome>, Error> {
        let Self { workers, context, .. } = self;
        let job = &context.plan[index];
        let direct = context.declarer.direct(job);
        let Some((defines, commands)) = direct.filter(|(_, commands)| !commands.by_driver) else {
            return Ok(None);
        };
        // Drivers keep their command lists, so an address identifies one.
        let key = (job.source, Arc::as_ptr(&commands) as usize);
        let slot = {
            let mut templates = self.templates.lock().expect("no panic inside");
            Arc::clone(templates.entry(key).or_default())
        };
        let inputs = self.declared[&index].inputs.as_deref();
        let template = get_or_make(&slot, || match inputs {
            Some(inputs) => ActionTemplate::new(context, job, &commands.list, inputs),
            None => Ok(None),
        })?;
        let action = template.and_then(|template| template.action(context, job, &defines));
        let Some(action) = action else { return Ok(None) };
        let started = Instant::now();
        let outcome = match workers.run(&action, context.cancel) {
            Ok(outcome) => outcome,
            Err(RemoteError::Fatal(error)) => return Err(error),
            Err(RemoteError::NotCached) => return Ok(None),
            Err(RemoteError::Lost(reason)) => {
                let name = &job.key.kernel_name;
                warn(format!("failed to run `{name}` remotely: {reason}; it is compiled here"));
                return Ok(None);
            }
            Err(RemoteError::TimedOut) => {
                return Ok(Some(Outcome {
                    made: Made::nothing(FailureKind::TimedOut(context.time_limit)),
                    duration: started.elapsed(),
                    usage: Usage::default(),
                    site: Site::Remote { worker: String::new(), cached: false },
                }));
            }
        };
        let bytes = match job::checked(job, outcome.output.unwrap_or_default()) {
            Ok(bytes) if outcome.exit_code == 0 => bytes,
            _ => {
                let (code, output) = (outcome.exit_code, &outcome.diagnostics);
                tracing::debug!(key = %job.key, code, output, "no object from elsewhere");
                return Ok(None);
            }
        };
        if let Some(path) = inputs.and_then(|inputs| inputs.changed()) {
            tracing::debug!(path = %path.display(), "it changed while the job ran elsewhere");
            return Ok(None);
        }
        Ok(Some(Outcome {
            made: Made::Object { bytes, is_known: true },
            duration: outcome.duration.unwrap_or_else(|| started.elapsed()),
            usage: Usage::default(),
            site: Site::Remote { worker: outcome.worker, cached: outcome.cached },
        }))
    }
}
