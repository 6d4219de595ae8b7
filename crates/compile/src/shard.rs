//! What a shard hands on: its manifest, which says how each of its jobs ended
//! and lies beside the objects once all of them do.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_plan::Digest;
use gfxpack_plan::shard::Shard;
use serde::{Deserialize, Serialize};

use crate::job::FailureKind;
use crate::work::write_atomic;

/// Version of the manifest's format.
const FORMAT: u32 = 1;
/// How a manifest's file name ends.
const EXTENSION: &str = "manifest";
/// Signals that the machine sends and a compiler's defect does not: killed,
/// as when memory runs out, and asked to end.
const MACHINES_SIGNALS: [i32; 2] = [9, 15];

/// How a job of a shard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// It was compiled.
    Ok,
    /// Its object was there already.
    Cached,
    /// The compiler said no, and would again: never retried.
    Refused,
    /// The machine failed it: to be retried.
    Infra,
    /// It took too long, with the limit doubled too.
    Timeout,
}

impl JobState {
    /// What a failure comes to.
    #[must_use]
    pub fn of(failure: &FailureKind) -> Self {
        match failure {
            FailureKind::Crashed(signal) if MACHINES_SIGNALS.contains(signal) => Self::Infra,
            FailureKind::TimedOut(_) => Self::Timeout,
            _ => Self::Refused,
        }
    }

    /// Whether there is an object.
    #[must_use]
    pub fn is_made(self) -> bool {
        matches!(self, Self::Ok | Self::Cached)
    }

    /// Whether another run could end otherwise.
    #[must_use]
    pub fn is_to_retry(self) -> bool {
        self == Self::Infra
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Cached => "cached",
            Self::Refused => "refused",
            Self::Infra => "infra",
            Self::Timeout => "timeout",
        })
    }
}

/// One job of a shard, as it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub job: Digest,
    /// How it ended.
    pub state: JobState,
    /// SHA-256 and size of its object; or why there is none.
    pub result: Result<(Digest, u64), String>,
}

/// How a shard of a plan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardManifest {
    /// The plan's digest.
    pub plan: Digest,
    /// Which shard.
    pub shard: Shard,
    /// SHA-256 of the costs that the jobs were parted by; `None` where their
    /// digests did it.
    pub costs: Option<Digest>,
    /// Its jobs, by digest.
    pub jobs: Vec<Ended>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    generator: String,
    plan: Digest,
    shard: Shard,
    costs: Option<Digest>,
    jobs: usize,
}

#[derive(Serialize, Deserialize)]
struct Tail {
    sha256: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Made(Digest, JobState, Digest, u64),
    Failed(Digest, JobState, String),
}

/// Why a manifest can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It could not be read or written.
    #[error("failed to {action} `{path}`")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is cut off, or not what was written.
    #[error("failed to trust `{path}`: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
}

impl ManifestError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path",
            Self::Damaged { .. } => {
                "copy it again, or remove it and run that shard again: what is compiled is kept"
            }
        }
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

impl ShardManifest {
    /// The file name of a shard's manifest.
    #[must_use]
    pub fn file_name(shard: Shard) -> String {
        format!("shard-{}-of-{}.{EXTENSION}", shard.index(), shard.count())
    }

    /// The manifests in a directory, sorted by name.
    ///
    /// # Errors
    /// [`ManifestError::Io`] where the directory can't be read.
    pub fn list(dir: &Path) -> Result<BTreeSet<PathBuf>, ManifestError> {
        let entries = fs::read_dir(dir).map_err(ManifestError::io("read", dir))?;
        let mut found = BTreeSet::new();
        for entry in entries {
            let path = entry.map_err(ManifestError::io("read", dir))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("shard-") && path.extension().is_some_and(|end| end == EXTENSION) {
                found.insert(path);
            }
        }
        Ok(found)
    }

    /// Writes it into `dir`, whole or not at all.
    ///
    /// # Errors
    /// [`ManifestError::Io`] where it can't be written.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, ManifestError> {
        let head = Head {
            format: FORMAT,
            generator: concat!("gfxpack ", env!("CARGO_PKG_VERSION")).to_owned(),
            plan: self.plan,
            shard: self.shard,
            costs: self.costs,
            jobs: self.jobs.len(),
        };
        let mut text = line(&head);
        for ended in &self.jobs {
            text.extend(line(&match &ended.result {
                Ok((sha256, size)) => Line::Made(ended.job, ended.state, *sha256, *size),
                Err(reason) => Line::Failed(ended.job, ended.state, reason.clone()),
            }));
        }
        let tail = line(&Tail { sha256: Digest::of(&text) });
        let path = dir.join(Self::file_name(self.shard));
        write_atomic(&path, &[&text, &tail]).map_err(ManifestError::io("write", &path))?;
        Ok(path)
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`ManifestError`] where it can't be read, or is not what was written.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        let text = fs::read(path).map_err(ManifestError::io("read", path))?;
        parse(&text).map_err(|reason| ManifestError::Damaged { path: path.to_owned(), reason })
    }

    /// How many of its jobs ended so.
    #[must_use]
    pub fn count(&self, state: JobState) -> usize {
        self.jobs.iter().filter(|ended| ended.state == state).count()
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("plain data");
    line.push(b'\n');
    line
}

fn parse(text: &[u8]) -> Result<ShardManifest, &'static str> {
    const CUT: &str = "it is cut off";
    let body = text.strip_suffix(b"\n").ok_or(CUT)?;
    let split = body.iter().rposition(|byte| *byte == b'\n').ok_or(CUT)? + 1;
    let tail: Tail = serde_json::from_slice(&body[split..]).map_err(|_| CUT)?;
    if Digest::of(&text[..split]) != tail.sha256 {
        return Err("its bytes are not those that were written");
    }
    let mut lines = text[..split - 1].split(|byte| *byte == b'\n');
    let head: Head = serde_json::from_slice(lines.next().unwrap_or_default())
        .map_err(|_| "it does not begin as a manifest does")?;
    if head.format != FORMAT {
        return Err("its format is not known to this version");
    }
    let one = |text: &[u8]| match serde_json::from_slice(text) {
        Ok(Line::Made(job, state, sha256, size)) if state.is_made() => {
            Ok(Ended { job, state, result: Ok((sha256, size)) })
        }
        Ok(Line::Failed(job, state, reason)) if !state.is_made() => {
            Ok(Ended { job, state, result: Err(reason) })
        }
        _ => Err("a line is no job"),
    };
    let jobs = lines.map(one).collect::<Result<Vec<_>, _>>()?;
    if jobs.len() != head.jobs || !jobs.is_sorted_by(|a, b| a.job < b.job) {
        return Err("its jobs are not those that it began with");
    }
    Ok(ShardManifest { plan: head.plan, shard: head.shard, costs: head.costs, jobs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_written_is_read_and_damage_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let mut digests: Vec<Digest> = (0..3_u8).map(|n| Digest::of(&[n])).collect();
        digests.sort();
        let manifest = ShardManifest {
            plan: Digest::of(b"plan"),
            shard: "2/11".parse().unwrap(),
            costs: None,
            jobs: vec![
                Ended { job: digests[0], state: JobState::Ok, result: Ok((digests[1], 7)) },
                Ended { job: digests[1], state: JobState::Refused, result: Err("no".to_owned()) },
                Ended { job: digests[2], state: JobState::Cached, result: Ok((digests[1], 7)) },
            ],
        };
        let path = manifest.write(dir.path()).unwrap();
        assert_eq!(ShardManifest::read(&path).unwrap(), manifest);
        assert_eq!(ShardManifest::list(dir.path()).unwrap(), BTreeSet::from([path.clone()]));
        let text = fs::read(&path).unwrap();
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            assert!(ShardManifest::read(&path).is_err(), "cut to {length}");
            let mut changed = text.clone();
            changed[length] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert!(ShardManifest::read(&path).is_err(), "changed at {length}");
        }
        let empty = ShardManifest { jobs: Vec::new(), ..manifest };
        assert_eq!(ShardManifest::read(&empty.write(dir.path()).unwrap()).unwrap(), empty);
    }

    #[test]
    fn what_the_machine_did_is_retried_and_what_the_compiler_said_is_not() {
        for (kind, state) in [
            (FailureKind::Refused(1), JobState::Refused),
            (FailureKind::Crashed(11), JobState::Refused),
            (FailureKind::Crashed(9), JobState::Infra),
            (FailureKind::NoOutput, JobState::Refused),
            (FailureKind::TimedOut(Duration::from_secs(1)), JobState::Timeout),
        ] {
            assert_eq!(JobState::of(&kind), state);
        }
    }
}
