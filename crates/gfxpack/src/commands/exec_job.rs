//! `exec-job`: runs one job of a stored plan, for engines that start a process
//! for each.

use std::time::Duration;

use gfxpack_compile::{Cancel, Event as JobEvent};
use gfxpack_pipeline::options::BuildOptions;
use gfxpack_pipeline::progress::{Event, Progress};
use gfxpack_pipeline::shards::build;
use gfxpack_pipeline::shards::stored::Stored;
use gfxpack_plan::shard::Shard;

use crate::args::ExecJob;
use crate::context::Context;
use crate::fail::Result;
use crate::options::{cache_options, search};

/// Runs the job, unless its object or a kept refusal exists.
pub(crate) fn run(args: &ExecJob, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let options = BuildOptions {
        out: args.out.clone(),
        jobs: Some(1),
        timeout: Duration::from_secs(args.timeout),
        allow_read: args.allow_read.clone(),
        ..BuildOptions::default()
    };
    let cache = cache_options(&args.cache, environment)?;
    let search = search(&args.toolchain, environment);
    let stored = Stored::open(&args.plan)?;
    let (ended, note) =
        build::run_job(stored, args.job, &cache, &search, &options, &Notes(context))?;
    if let Some(note) = note {
        output.stderr(&format!(
            "failed to compile `{}`: {}\n{}",
            note.key,
            note.reason,
            note.output.trim_end()
        ));
    }
    build::outcome(&ended, Shard::new(1, 1).expect("one of one"))
}

/// Prints no progress: the engine that starts the processes does.
struct Notes<'a>(&'a Context);

impl Progress for Notes<'_> {
    fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    fn event(&self, event: Event<'_>) {
        let output = &self.0.output;
        match event {
            Event::Note(text) => output.note(text),
            Event::Warning(text) => output.warn(text),
            Event::Job { event: JobEvent::Warning { message }, .. } => output.warn(message),
            _ => {}
        }
    }
}
