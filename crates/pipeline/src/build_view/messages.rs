//! A build's events as messages for machines.

use std::time::{Duration, Instant};

use gfxpack_compile::{Event, Failure, JobRun, Site, Usage};
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;
use serde_json::{Value, json};

use super::count::language_class;
use super::estimate::Estimator;
use crate::report::PRECOMPILED_HEADERS;

/// Makes messages of a build's events, with times since it was made.
#[derive(Debug)]
pub struct BuildMessages {
    begun: Instant,
    estimator: Estimator,
}

impl Default for BuildMessages {
    fn default() -> Self {
        Self { begun: Instant::now(), estimator: Estimator::default() }
    }
}

impl BuildMessages {
    /// Hands each message of an event to `send`, with its type. There may be a
    /// million of one event.
    pub fn event(&mut self, plan: &Plan, event: &Event, send: &mut dyn FnMut(&'static str, Value)) {
        match event {
            Event::Looked { cached, refused } => looked(plan, cached, refused, send),
            Event::Warning { message } => send("warning", json!({ "message": message })),
            Event::Queued { workers, jobs } => {
                let now = self.now();
                let queue = jobs
                    .iter()
                    .map(|(job, expected)| (*job, language_class(plan[*job].language), *expected));
                self.estimator.queued(queue);
                let expected: Duration = jobs.iter().map(|(_, expected)| *expected).sum();
                send(
                    "build-queued",
                    json!({
                        "workers": workers, "jobs": jobs.len(),
                        "start_milliseconds": milliseconds(now),
                        "expected_milliseconds": milliseconds(expected),
                    }),
                );
            }
            Event::Prepared { job, run, duration, usage } => {
                let job = &plan[*job];
                let mut body = json!({
                    "what": PRECOMPILED_HEADERS, "language": job.language, "target": job.target_id,
                });
                self.place(&mut body, run);
                used(&mut body, *duration, *usage);
                send("prepared", body);
            }
            Event::Started { job, run } => {
                self.estimator.started(*job, self.now());
                let mut body = describe(plan, *job);
                self.place(&mut body, run);
                send("job-started", body);
            }
            Event::Finished { job, run, built } => {
                let mut body = describe(plan, *job);
                body["size"] = built.size.into();
                self.place(&mut body, run);
                used(&mut body, built.duration, built.usage);
                ran(&mut body, &built.site);
                self.ended(&mut body, *job);
                send("job-finished", body);
            }
            Event::Failed { job, run, failure } => {
                let mut body = failed(plan, *job, failure);
                body["before"] = false.into();
                self.place(&mut body, run);
                used(&mut body, failure.duration, failure.usage);
                ran(&mut body, &failure.site);
                self.ended(&mut body, *job);
                send("job-failed", body);
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Where and when a job runs.
    fn place(&self, body: &mut Value, run: &JobRun) {
        body["worker"] = run.worker.into();
        let start = run.started.saturating_duration_since(self.begun);
        body["start_milliseconds"] = milliseconds(start);
    }

    fn ended(&mut self, body: &mut Value, job: JobId) {
        let now = self.now();
        self.estimator.ended(job, now);
        body["left_milliseconds"] = self.estimator.left(now).map_or(Value::Null, milliseconds);
    }
}

/// Says what was found in the cache.
fn looked(
    plan: &Plan,
    cached: &[(JobId, u64)],
    refused: &[(JobId, Failure)],
    send: &mut dyn FnMut(&'static str, Value),
) {
    let body = json!({
        "jobs": plan.jobs.len(), "cached": cached.len(), "refused": refused.len(),
    });
    send("build-started", body);
    for (job, size) in cached {
        let mut body = describe(plan, *job);
        body["size"] = (*size).into();
        send("job-cached", body);
    }
    for (job, failure) in refused {
        let mut body = failed(plan, *job, failure);
        body["before"] = true.into();
        send("job-failed", body);
    }
}

fn milliseconds(duration: Duration) -> Value {
    (duration.as_millis() as u64).into()
}

fn describe(plan: &Plan, job: JobId) -> Value {
    let job = &plan[job];
    json!({
        "job": job.digest, "kernel_name": job.key.kernel_name,
        "kernel_args": job.key.kernel_args, "target": job.target_id, "language": job.language,
    })
}

/// A job that failed, and why.
fn failed(plan: &Plan, job: JobId, failure: &Failure) -> Value {
    let mut body = describe(plan, job);
    body["reason"] = failure.kind.name().into();
    body["message"] = failure.kind.to_string().into();
    body["output"] = failure.output.as_str().into();
    body
}

fn used(body: &mut Value, duration: Duration, usage: Usage) {
    body["milliseconds"] = milliseconds(duration);
    body["cpu_milliseconds"] = milliseconds(usage.cpu);
    body["peak_memory"] = usage.peak_memory.into();
}

/// Says of a job that did not run on this machine where it did.
fn ran(body: &mut Value, site: &Site) {
    if let Site::Remote { worker, cached } = site {
        body["remote"] = json!({ "worker": worker, "cached": cached });
    }
}
