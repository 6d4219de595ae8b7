//! Shards as elements of a Slurm array: the script, what was submitted, and
//! what is still on its way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_plan::shard::ranges;
use gfxpack_process::SystemTool;
use serde::{Deserialize, Serialize};

use super::words::{text, toolchain_options};
use crate::args::SlurmArgs;
use crate::fail;
use crate::record::replace;

const SLURM: &str = "Slurm's client (Debian: slurm-client)";
const SBATCH: SystemTool = SystemTool { program: "sbatch", provided_by: SLURM };
const SQUEUE: SystemTool = SystemTool { program: "squeue", provided_by: SLURM };
/// Below the directory of the shards.
const DIR: &str = "slurm";
const SCRIPT: &str = "shards.sbatch";
const SUBMITTED: &str = "submitted.json";

/// What was submitted so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) plan: Digest,
    pub(crate) shards: u32,
    /// Slurm's numbers of the arrays.
    pub(crate) jobs: Vec<u64>,
}

/// What was submitted of the shards in a directory.
pub(crate) fn submitted(out: &Path) -> Option<Submitted> {
    let text = fs::read(out.join(DIR).join(SUBMITTED)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Where the script of the shards in a directory lies.
pub(crate) fn script_path(out: &Path) -> PathBuf {
    out.join(DIR).join(SCRIPT)
}

/// Writes the script, unless there is one: people edit it.
///
/// # Errors
/// Where the one that is there is for another number of shards.
pub(crate) fn write_script(args: &SlurmArgs, out: &Path) -> anyhow::Result<bool> {
    let path = script_path(out);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let own = format!("SHARDS={}", args.shards);
            if !text.lines().any(|line| line.trim() == own) {
                return Err(fail::usage(
                    format!("failed to use the script `{}`: it is not for {own}", path.display()),
                    "give the same --shards, or remove the script to have it written anew",
                ));
            }
            Ok(false)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            replace(&path, script(args, out)?.as_bytes()).map_err(fail::io("write", &path))?;
            Ok(true)
        }
        Err(error) => Err(fail::io("read", &path)(error)),
    }
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = fs::canonicalize(path).map_err(fail::io("find", path))?;
    text(&path)
}

/// The command that runs a shard, as words; `shard` is what the shell makes
/// which of how many of.
fn command(args: &SlurmArgs, out: &Path) -> anyhow::Result<Vec<String>> {
    let program = std::env::current_exe().map_err(fail::io("find", Path::new("gfxpack")))?;
    let mut words = vec![absolute(&program)?, "build".to_owned()];
    words.extend(["--plan".to_owned(), absolute(&args.plan)?]);
    words.extend(["--out".to_owned(), absolute(out)?]);
    words.extend(["--timeout".to_owned(), args.timeout.to_string()]);
    if let Some(costs) = &args.costs {
        words.extend(["--costs".to_owned(), absolute(costs)?]);
    }
    words.extend(toolchain_options(&args.toolchain)?);
    Ok(words)
}

fn script(args: &SlurmArgs, out: &Path) -> anyhow::Result<String> {
    let words = command(args, out)?;
    let words = shlex::try_join(words.iter().map(String::as_str))?;
    let logs = format!("{}/{DIR}/%A_%a.log", absolute(out)?);
    let mut text = format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=gfxpack\n\
         #SBATCH --output=\"{logs}\"\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --cpus-per-task={}\n\
         #SBATCH --requeue\n",
        args.cpus
    );
    for option in &args.sbatch {
        writeln!(text, "#SBATCH {option}").expect("a String takes all");
    }
    write!(
        text,
        "# Written by `gfxpack submit slurm`, once: edit it as your site needs.\n\
         # SLURM_ARRAY_TASK_COUNT would be fewer where only some shards run again.\n\
         SHARDS={}\n\
         exec {words} --shard \"$SLURM_ARRAY_TASK_ID/$SHARDS\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
        args.shards
    )
    .expect("a String takes all");
    Ok(text)
}

/// Submits these shards as one array.
pub(crate) fn submit(out: &Path, plan: Digest, count: u32, shards: &[u32]) -> anyhow::Result<u64> {
    let script = script_path(out);
    let script = absolute(&script)?;
    let array = format!("--array={}", ranges(shards));
    let said = SBATCH.output(&["--parsable", &array, &script], Path::new("."), b"")?;
    let said = String::from_utf8_lossy(&said).into_owned();
    // Where there are several clusters, its name stands behind.
    let number = said.trim().split(';').next().and_then(|number| number.parse().ok());
    let job: u64 = number.ok_or_else(|| {
        fail::usage(
            format!("failed to read the job's number in `{}`", said.trim()),
            "see what `squeue` says of it",
        )
    })?;
    let earlier = submitted(out).filter(|earlier| earlier.plan == plan && earlier.shards == count);
    let mut jobs = earlier.map_or_else(Vec::new, |earlier| earlier.jobs);
    jobs.push(job);
    let text = serde_json::to_vec_pretty(&Submitted { plan, shards: count, jobs })?;
    let path = out.join(DIR).join(SUBMITTED);
    replace(&path, &text).map_err(fail::io("write", &path))?;
    Ok(job)
}

/// Shards that Slurm still has, each with the state that it says.
pub(crate) fn active(submitted: &Submitted) -> anyhow::Result<BTreeMap<u32, String>> {
    let words = ["--noheader", "--array", "--me", "--format=%F %K %T"];
    let said = SQUEUE.output(&words, Path::new("."), b"")?;
    Ok(parse_queue(&String::from_utf8_lossy(&said), submitted))
}

fn parse_queue(text: &str, submitted: &Submitted) -> BTreeMap<u32, String> {
    let element = |line: &str| {
        let mut words = line.split_whitespace();
        let job: u64 = words.next()?.parse().ok()?;
        let shard = words.next()?.parse().ok()?;
        let state = words.next()?.to_owned();
        submitted.jobs.contains(&job).then_some((shard, state))
    };
    text.lines().filter_map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_elements_are_on_their_way() {
        let submitted = Submitted { plan: Digest::of(b""), shards: 4, jobs: vec![7, 9] };
        let text = "7 3 RUNNING\n8 1 RUNNING\n9 4 PENDING\n10 N/A PENDING\n7 N/A RUNNING\n\n";
        let active = parse_queue(text, &submitted);
        let expected = [(3, "RUNNING".to_owned()), (4, "PENDING".to_owned())];
        assert_eq!(active, BTreeMap::from(expected));
    }
}
