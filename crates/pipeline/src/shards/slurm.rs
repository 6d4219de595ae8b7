//! Shards as elements of a Slurm array: writes the script, submits it, and asks
//! which elements are queued or running.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_model::Digest;
use gfxpack_plan::shard::ranges;
use gfxpack_process::SystemTool;
use gfxpack_toolchain::Search;
use serde::{Deserialize, Serialize};

use super::script_args::{compiler_options, text};
use crate::destination::replace;
use crate::error::{self, Result};

const SBATCH: SystemTool =
    SystemTool { program: "sbatch", provided_by: "Slurm's client (Debian: slurm-client)" };
const SQUEUE: SystemTool =
    SystemTool { program: "squeue", provided_by: "Slurm's client (Debian: slurm-client)" };
/// The subdirectory for Slurm's files.
const DIR: &str = "slurm";
const SCRIPT: &str = "shards.sbatch";
const SUBMITTED: &str = "submitted.json";

/// An array of shards for Slurm.
#[derive(Debug, Clone)]
pub struct SlurmOptions {
    /// The stored plan, in a directory that every node sees.
    pub plan: PathBuf,
    /// The directory that shards are built into, also seen by every node.
    pub out: PathBuf,
    /// Number of shards.
    pub shards: NonZeroU32,
    /// Number of processors for each shard.
    pub cpus: NonZeroU32,
    /// Costs by which jobs are divided among shards.
    pub costs: Option<PathBuf>,
    /// Time limit for one kernel.
    pub timeout: Duration,
    /// Directories besides the sources that compilers may read.
    pub allow_read: Vec<PathBuf>,
    /// Lines to add at the top of the script.
    pub sbatch: Vec<String>,
    /// Where toolchains are looked for.
    pub search: Search,
}

/// The arrays that were submitted so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The shards' plan.
    pub plan: Digest,
    /// Number of shards of the plan.
    pub shards: u32,
    /// Slurm's job numbers of the arrays.
    pub jobs: Vec<u64>,
}

/// What was submitted for the shards in a directory.
pub fn submitted(out: &Path) -> Option<Submitted> {
    let text = fs::read(out.join(DIR).join(SUBMITTED)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The path of the script for the shards in a directory.
pub fn script_path(out: &Path) -> PathBuf {
    out.join(DIR).join(SCRIPT)
}

/// Writes the script unless it exists, since people edit it. Returns whether it
/// was written.
///
/// # Errors
/// If an existing script is for another plan or number of shards.
pub fn write_script(options: &SlurmOptions) -> Result<bool> {
    let path = script_path(&options.out);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let lacking = |own: &&String| !text.lines().any(|line| line.trim() == *own);
            match settings(options)?.iter().find(lacking) {
                None => Ok(false),
                Some(own) => Err(error::usage(
                    format!("failed to use the script `{}`: it is not for {own}", path.display()),
                    "give the same --plan and --shards, or remove the script to have it written \
                     anew",
                )),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            replace(&path, script(options)?.as_bytes())?;
            Ok(true)
        }
        Err(error) => Err(error::io("read", &path)(error)),
    }
}

fn absolute(path: &Path) -> Result<String> {
    let path = fs::canonicalize(path).map_err(error::io("find", path))?;
    text(&path)
}

/// The lines of a script that identify the plan and the number of shards.
fn settings(options: &SlurmOptions) -> Result<[String; 2]> {
    let plan = absolute(&options.plan)?;
    Ok([format!("PLAN={}", shlex::try_quote(&plan)?), format!("SHARDS={}", options.shards)])
}

/// The arguments of the command that runs a shard, without `--plan` and `--shard`.
fn command(options: &SlurmOptions) -> Result<Vec<String>> {
    let program = std::env::current_exe().map_err(error::io("find", Path::new("gfxpack")))?;
    let mut arguments = vec![absolute(&program)?, "build".to_owned()];
    arguments.extend(["--out".to_owned(), absolute(&options.out)?]);
    arguments.extend(["--timeout".to_owned(), options.timeout.as_secs().to_string()]);
    if let Some(costs) = &options.costs {
        arguments.extend(["--costs".to_owned(), absolute(costs)?]);
    }
    arguments.extend(compiler_options(&options.search, &options.allow_read)?);
    Ok(arguments)
}

fn script(options: &SlurmOptions) -> Result<String> {
    let command = command(options)?;
    let command = shlex::try_join(command.iter().map(String::as_str))?;
    let [plan, shards] = settings(options)?;
    let logs = format!("{}/{DIR}/%A_%a.log", absolute(&options.out)?);
    let mut text = format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=gfxpack\n\
         #SBATCH --output=\"{logs}\"\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --cpus-per-task={}\n\
         #SBATCH --requeue\n",
        options.cpus
    );
    for option in &options.sbatch {
        text += &format!("#SBATCH {option}\n");
    }
    text += &format!(
        "# Written by `gfxpack submit slurm`, once: edit it as your site needs.\n\
         # SLURM_ARRAY_TASK_COUNT would be fewer where only some shards run again.\n\
         {plan}\n\
         {shards}\n\
         exec {command} --plan \"$PLAN\" --shard \"$SLURM_ARRAY_TASK_ID/$SHARDS\" \
         --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n"
    );
    Ok(text)
}

/// Submits these shards as one array, and returns Slurm's job number.
pub fn submit(out: &Path, plan: Digest, count: u32, shards: &[u32]) -> Result<u64> {
    let script = script_path(out);
    let script = absolute(&script)?;
    let array = format!("--array={}", ranges(shards));
    let output = SBATCH.output(&["--parsable", &array, &script], Path::new("."), b"")?;
    let output = String::from_utf8_lossy(&output).into_owned();
    // If there are several clusters, the cluster's name follows the number.
    let number = output.trim().split(';').next().and_then(|number| number.parse().ok());
    let job: u64 = number.ok_or_else(|| {
        error::usage(
            format!("failed to read the job's number in `{}`", output.trim()),
            "see what `squeue` says of it",
        )
    })?;
    let earlier = submitted(out).filter(|earlier| earlier.plan == plan && earlier.shards == count);
    let mut jobs = earlier.map_or_else(Vec::new, |earlier| earlier.jobs);
    jobs.push(job);
    let text = serde_json::to_vec_pretty(&Submitted { plan, shards: count, jobs })?;
    let path = out.join(DIR).join(SUBMITTED);
    replace(&path, &text)?;
    Ok(job)
}

/// Shards that are queued or running, each with the state that Slurm reports.
pub fn active(submitted: &Submitted) -> Result<BTreeMap<u32, String>> {
    let arguments = ["--noheader", "--array", "--me", "--format=%F %K %T"];
    let output = SQUEUE.output(&arguments, Path::new("."), b"")?;
    Ok(parse_queue(&String::from_utf8_lossy(&output), submitted))
}

fn parse_queue(text: &str, submitted: &Submitted) -> BTreeMap<u32, String> {
    let element = |line: &str| {
        let mut fields = line.split_whitespace();
        let job: u64 = fields.next()?.parse().ok()?;
        let shard = fields.next()?.parse().ok()?;
        let state = fields.next()?.to_owned();
        submitted.jobs.contains(&job).then_some((shard, state))
    };
    text.lines().filter_map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_used_for_its_own_plan_and_number_of_shards() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["a plan", "another", "out"] {
            fs::create_dir(path(name)).unwrap();
        }
        let write = |plan: &str, shards: u32| {
            write_script(&SlurmOptions {
                plan: path(plan),
                out: path("out"),
                shards: shards.try_into().unwrap(),
                cpus: NonZeroU32::MIN,
                costs: None,
                timeout: Duration::from_secs(1),
                allow_read: Vec::new(),
                sbatch: Vec::new(),
                search: Search::default(),
            })
        };
        assert!(write("a plan", 3).unwrap());
        assert!(!write("a plan", 3).unwrap());
        for (plan, shards, word) in [("another", 3, "another"), ("a plan", 4, "SHARDS=4")] {
            let error = write(plan, shards).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn only_elements_of_our_own_arrays_are_active() {
        let submitted = Submitted { plan: Digest::of(b""), shards: 4, jobs: vec![7, 9] };
        let text = "7 3 RUNNING\n8 1 RUNNING\n9 4 PENDING\n10 N/A PENDING\n7 N/A RUNNING\n\n";
        let active = parse_queue(text, &submitted);
        let expected = [(3, "RUNNING".to_owned()), (4, "PENDING".to_owned())];
        assert_eq!(active, BTreeMap::from(expected));
    }
}
