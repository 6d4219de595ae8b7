//! A build's events as JSON messages.

use std::time::Duration;

use gfxpack_compile::{Event, Failure, JobRun, Site, Usage};
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;
use serde_json::{Value, json};

use super::count::BuildCount;
use crate::output::{Output, message};

/// Writes each message for an event; one event may have a million. `count` has been updated with
/// the event already.
pub(super) fn messages(plan: &Plan, event: &Event, count: &BuildCount, output: &Output) {
    match event {
        Event::FoundInCache { cached, refused } => {
            message!(output, "build-started", {
                "jobs": plan.jobs.len(), "cached": cached.len(), "refused": refused.len(),
            });
            for (job, size) in cached {
                let mut body = describe(plan, *job);
                body["size"] = (*size).into();
                output.message("job-cached", &body);
            }
            for (job, failure) in refused {
                output.message("job-failed", &failed(plan, *job, failure, true));
            }
        }
        Event::Warning { message } => message!(output, "warning", { "message": message }),
        Event::Queued { workers, jobs } => {
            let expected: Duration = jobs.iter().map(|(_, expected)| *expected).sum();
            message!(output, "build-queued", {
                "workers": workers, "jobs": jobs.len(),
                "start_milliseconds": milliseconds(count.begun.elapsed()),
                "expected_milliseconds": milliseconds(expected),
            });
        }
        Event::HeadersPrecompiled { job, run, duration, usage } => {
            let job = &plan[*job];
            let mut body = json!({
                "what": "precompiled-headers", "language": job.language, "target": job.target_id,
            });
            place(&mut body, run, count);
            used(&mut body, *duration, *usage);
            output.message("prepared", &body);
        }
        Event::Started { job, run } => {
            let mut body = describe(plan, *job);
            place(&mut body, run, count);
            output.message("job-started", &body);
        }
        Event::Finished { job, run, compiled } => {
            let mut body = describe(plan, *job);
            body["size"] = compiled.object.size.into();
            place(&mut body, run, count);
            used(&mut body, compiled.duration, compiled.usage);
            ended(&mut body, &compiled.site, count);
            output.message("job-finished", &body);
        }
        Event::Failed { job, run, failure } => {
            let mut body = failed(plan, *job, failure, false);
            place(&mut body, run, count);
            used(&mut body, failure.duration, failure.usage);
            ended(&mut body, &failure.site, count);
            output.message("job-failed", &body);
        }
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

/// The body of the message about a job that failed, maybe in a run `before`.
fn failed(plan: &Plan, job: JobId, failure: &Failure, before: bool) -> Value {
    let mut body = describe(plan, job);
    body["reason"] = failure.kind.name().into();
    body["message"] = failure.kind.to_string().into();
    body["output"] = failure.output.as_str().into();
    body["before"] = before.into();
    body
}

fn used(body: &mut Value, duration: Duration, usage: Usage) {
    body["milliseconds"] = milliseconds(duration);
    body["cpu_milliseconds"] = milliseconds(usage.cpu);
    body["peak_memory"] = usage.peak_memory.into();
}

/// Adds where and when a job ran.
fn place(body: &mut Value, run: &JobRun, count: &BuildCount) {
    body["worker"] = run.worker.into();
    let start = run.started.saturating_duration_since(count.begun);
    body["start_milliseconds"] = milliseconds(start);
}

/// Adds where a job ran, unless on this machine, and how long the others will
/// still take.
fn ended(body: &mut Value, site: &Site, count: &BuildCount) {
    if let Site::Remote { worker, cached } = site {
        body["remote"] = json!({ "worker": worker, "cached": cached });
    }
    body["left_milliseconds"] = count.estimated().map_or(Value::Null, milliseconds);
}
