//! A build's events as JSON messages.

use std::time::Duration;

use gfxpack_compile::{Event, Failure, JobRun, Site, Usage};
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;
use serde_json::{Value, json};

use super::count::BuildCount;

/// Passes each message for an event, with its type, to `send`; one event may have
/// a million. `count` has been updated with the event already.
pub(super) fn messages(
    plan: &Plan,
    event: &Event,
    count: &BuildCount,
    send: &mut dyn FnMut(&'static str, Value),
) {
    match event {
        Event::FoundInCache { cached, refused } => looked(plan, cached, refused, send),
        Event::Warning { message } => send("warning", json!({ "message": message })),
        Event::Queued { workers, jobs } => {
            let expected: Duration = jobs.iter().map(|(_, expected)| *expected).sum();
            send(
                "build-queued",
                json!({
                    "workers": workers, "jobs": jobs.len(),
                    "start_milliseconds": milliseconds(count.begun.elapsed()),
                    "expected_milliseconds": milliseconds(expected),
                }),
            );
        }
        Event::HeadersPrecompiled { job, run, duration, usage } => {
            let job = &plan[*job];
            let mut body = json!({
                "what": "precompiled-headers", "language": job.language, "target": job.target_id,
            });
            place(&mut body, run, count);
            used(&mut body, *duration, *usage);
            send("prepared", body);
        }
        Event::Started { job, run } => {
            let mut body = describe(plan, *job);
            place(&mut body, run, count);
            send("job-started", body);
        }
        Event::Finished { job, run, compiled } => {
            let mut body = describe(plan, *job);
            body["size"] = compiled.object.size.into();
            place(&mut body, run, count);
            used(&mut body, compiled.duration, compiled.usage);
            ended(&mut body, &compiled.site, count);
            send("job-finished", body);
        }
        Event::Failed { job, run, failure } => {
            let mut body = failed(plan, *job, failure);
            body["before"] = false.into();
            place(&mut body, run, count);
            used(&mut body, failure.duration, failure.usage);
            ended(&mut body, &failure.site, count);
            send("job-failed", body);
        }
    }
}

/// Messages about what was found in the cache.
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

/// The body of the message about a job that failed.
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
