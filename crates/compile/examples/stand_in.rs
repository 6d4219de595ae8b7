//! Makes objects for all jobs of a stored plan without compiling any, for
//! `cargo xtask bench scale`.
//!
//! `stand_in PLAN OUT OBJECT`: each job's object is OBJECT followed by the job's digest.

use std::error::Error;
use std::fs;
use std::path::Path;

use gfxpack_compile::{Dependencies, ObjectPurpose, ObjectStore};
use gfxpack_model::args::Args;
use gfxpack_model::{Digest, KernelKey};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [plan, out, object] = &args[..] else {
        return Err("usage: stand_in PLAN OUT OBJECT".into());
    };
    let object = fs::read(object)?;
    let store = ObjectStore::open(Path::new(out))?;
    let text = fs::read_to_string(Path::new(plan).join("jobs.jsonl"))?;
    let about = ObjectPurpose {
        key: KernelKey { kernel_name: "stand-in.s.o".into(), kernel_args: " -mcpu=gfx906".into() },
        target_id: "gfx906".parse()?,
        arguments: Args::default(),
    };
    text.par_lines().try_for_each(|line| {
        let digest = line.get(2..66).ok_or_else(|| "a line has no digest".to_owned())?;
        let job: Digest = digest.parse().map_err(|error| format!("{error}"))?;
        let bytes = [&object, job.as_ref()].concat();
        store
            .insert(job, &bytes, &about, &Dependencies::default())
            .map_err(|error| error.to_string())?;
        Ok::<(), String>(())
    })?;
    Ok(())
}
