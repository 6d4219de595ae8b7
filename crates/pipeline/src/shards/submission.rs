//! What is left to be submitted of an array of shards.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use gfxpack_model::Digest;

use super::build::read_costs;
use super::slurm::{self, SlurmOptions};
use super::state::State;
use super::stored::Stored;
use crate::error::{self, Result, in_full};

/// An array of shards for Slurm, with its script.
pub struct Submission {
    plan: Digest,
    out: PathBuf,
    /// The state of the shards.
    pub state: State,
    /// The script.
    pub script: PathBuf,
    /// Whether the script was written by this run.
    pub is_script_new: bool,
}

/// The shards that are not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingShards {
    /// Shards that are neither queued nor running.
    pub to_submit: Vec<u32>,
    /// Number of shards that are queued or running.
    pub on_their_way: usize,
}

impl Submission {
    /// Reads plan and shards, and writes the script unless it exists.
    ///
    /// # Errors
    /// If plan, costs or shards can't be read, or do not fit the script.
    pub fn prepare(options: &SlurmOptions) -> Result<Self> {
        let plan = Stored::open(&options.plan)?.digest();
        options.costs.as_deref().map(read_costs).transpose()?;
        let out = &options.out;
        fs::create_dir_all(out).map_err(error::io("create", out))?;
        let dirs = std::slice::from_ref(out);
        let state = State::read(dirs, Some(&options.plan), Some(options.shards))?;
        let is_script_new = slurm::write_script(options)?;
        let script = slurm::script_path(out);
        Ok(Self { plan, out: out.clone(), state, script, is_script_new })
    }

    /// The shards that are left. On a dry run, `warn` is called if Slurm
    /// can't be asked.
    ///
    /// # Errors
    /// If Slurm can't be asked: active shards must not be submitted twice.
    pub fn left(&self, dry_run: bool, warn: impl FnMut(String)) -> Result<RemainingShards> {
        let known = slurm::submitted(&self.out).filter(|submitted| {
            submitted.plan == self.plan && submitted.shards == self.state.count && !dry_run
        });
        let active = match &known {
            Some(submitted) => slurm::active(submitted)?,
            None if dry_run => active_in(std::slice::from_ref(&self.out), warn),
            None => BTreeMap::new(),
        };
        let missing = self.state.missing().into_iter();
        let to_submit = missing.filter(|shard| !active.contains_key(shard)).collect();
        Ok(RemainingShards { to_submit, on_their_way: active.len() })
    }

    /// Submits these shards, and returns Slurm's job number.
    ///
    /// # Errors
    /// If Slurm refuses.
    pub fn submit(&self, shards: &[u32]) -> Result<u64> {
        slurm::submit(&self.out, self.plan, self.state.count, shards)
    }
}

/// Shards in these directories that are queued or running, with the state that
/// Slurm reports. Calls `warn` if Slurm can't be asked.
pub fn active_in(dirs: &[PathBuf], mut warn: impl FnMut(String)) -> BTreeMap<u32, String> {
    let mut active = BTreeMap::new();
    for submitted in dirs.iter().filter_map(|dir| slurm::submitted(dir)) {
        match slurm::active(&submitted) {
            Ok(more) => active.extend(more),
            Err(error) => warn(format!("Slurm can't be asked: {}", in_full(&error))),
        }
    }
    active
}
