//! The manifest of a finished shard: how each of its jobs ended. It is written beside the objects
//! once all of them exist; docs/plan-format.md describes it.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Shard;

/// Version of the manifest's format.
const FORMAT: u32 = 2;

/// How a job of a shard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// It was compiled.
    Ok,
    /// Its object already existed.
    Cached,
    /// The compiler refused it, and would again.
    Refused,
    /// It failed, and neither because of the machine nor of its time limit: not to be retried.
    Failed,
    /// It failed because of the machine: to be retried.
    Infra,
    /// It took too long, even with the doubled limit.
    Timeout,
}

impl JobState {
    /// Whether it has an object.
    pub fn is_made(self) -> bool {
        matches!(self, Self::Ok | Self::Cached)
    }

    /// Whether another run could end in another way.
    pub fn is_to_retry(self) -> bool {
        self == Self::Infra
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The result of one job of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardEntry {
    /// The job.
    pub job: Digest,
    /// How it ended.
    pub state: JobState,
    /// Its object; or the reason why it has none.
    pub result: Result<ShardObject, String>,
}

/// An object of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardObject {
    /// Its key in the shard's store.
    pub key: Digest,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
    /// Bytes.
    pub size: u64,
}

/// The results of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardManifest {
    /// The plan's digest.
    pub plan: Digest,
    /// The shard.
    pub shard: Shard,
    /// A digest of the paths of its toolchains, which objects may contain.
    pub places: Digest,
    /// Its jobs, by digest.
    pub jobs: Vec<ShardEntry>,
}

#[derive(Serialize, Deserialize)]
struct ManifestHead {
    format: u32,
    generator: String,
    plan: Digest,
    shard: Shard,
    places: Digest,
    jobs: usize,
}

#[derive(Serialize, Deserialize)]
struct ManifestTail {
    sha256: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Made(Digest, JobState, Digest, Digest, u64),
    Failed(Digest, JobState, String),
}

impl ShardManifest {
    /// The file name of a shard's manifest.
    pub fn file_name(shard: Shard) -> String {
        format!("shard-{}-of-{}.manifest", shard.index(), shard.count())
    }

    /// The number of its jobs that ended in this state.
    pub fn count(&self, state: JobState) -> usize {
        self.jobs.iter().filter(|ended| ended.state == state).count()
    }

    /// Writes the manifest.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut sha256 = Sha256::new();
        let mut body = |text: Vec<u8>| {
            sha256.update(&text);
            out.write_all(&text)
        };
        body(line(&ManifestHead {
            format: FORMAT,
            generator: concat!("gfxpack ", env!("CARGO_PKG_VERSION")).to_owned(),
            plan: self.plan,
            shard: self.shard,
            places: self.places,
            jobs: self.jobs.len(),
        }))?;
        for ended in &self.jobs {
            body(line(&match &ended.result {
                Ok(ShardObject { key, sha256, size }) => {
                    Line::Made(ended.job, ended.state, *key, *sha256, *size)
                }
                Err(reason) => Line::Failed(ended.job, ended.state, reason.clone()),
            }))?;
        }
        let sha256 = Digest::from_bytes(sha256.finalize().into());
        out.write_all(&line(&ManifestTail { sha256 }))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The error of `text`; [`io::ErrorKind::InvalidData`] if it is cut off or was changed.
    pub fn read(text: &mut dyn BufRead) -> io::Result<Self> {
        let mut sha256 = Sha256::new();
        let mut next = Vec::new();
        whole_line(text, &mut next)?;
        let head: ManifestHead = serde_json::from_slice(&next)
            .map_err(|_| damaged("it does not begin as a manifest does"))?;
        if head.format != FORMAT {
            return Err(damaged("its format is not known to this version"));
        }
        let mut jobs: Vec<ShardEntry> = Vec::new();
        for _ in 0..head.jobs {
            sha256.update(&next);
            whole_line(text, &mut next)?;
            jobs.push(ended(&next)?);
        }
        sha256.update(&next);
        whole_line(text, &mut next)?;
        let tail: ManifestTail = serde_json::from_slice(&next).map_err(|_| other())?;
        if Digest::from_bytes(sha256.finalize().into()) != tail.sha256
            || !text.fill_buf()?.is_empty()
            || !jobs.is_sorted_by(|a, b| a.job < b.job)
        {
            return Err(other());
        }
        let ManifestHead { plan, shard, places, .. } = head;
        Ok(Self { plan, shard, places, jobs })
    }
}

/// The most bytes of a line: a reason takes far less.
const MAX_LINE: u64 = 16 << 20;

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn other() -> io::Error {
    damaged("its bytes are not those that were written")
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("plain data");
    line.push(b'\n');
    line
}

fn whole_line(text: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    Read::take(&mut *text, MAX_LINE).read_until(b'\n', line)?;
    if line.ends_with(b"\n") { Ok(()) } else { Err(damaged("it is cut off")) }
}

fn ended(line: &[u8]) -> io::Result<ShardEntry> {
    match serde_json::from_slice(line) {
        Ok(Line::Made(job, state, key, sha256, size)) if state.is_made() => {
            Ok(ShardEntry { job, state, result: Ok(ShardObject { key, sha256, size }) })
        }
        Ok(Line::Failed(job, state, reason)) if !state.is_made() => {
            Ok(ShardEntry { job, state, result: Err(reason) })
        }
        _ => Err(other()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_that_are_stored() {
        for (state, name) in [
            (JobState::Ok, "ok"),
            (JobState::Cached, "cached"),
            (JobState::Refused, "refused"),
            (JobState::Failed, "failed"),
            (JobState::Infra, "infra"),
            (JobState::Timeout, "timeout"),
        ] {
            assert_eq!(state.to_string(), name);
            assert_eq!(serde_json::to_value(state).unwrap(), name);
        }
    }

    #[test]
    fn a_manifest_is_read_back_and_damage_is_found() {
        let mut digests: Vec<Digest> = (0..3_u8).map(|n| Digest::of(&[n])).collect();
        digests.sort();
        let object = ShardObject { key: Digest::of(b"key"), sha256: digests[1], size: 7 };
        let manifest = ShardManifest {
            plan: Digest::of(b"plan"),
            shard: "2/11".parse().unwrap(),
            places: Digest::of(b"places"),
            jobs: vec![
                ShardEntry { job: digests[0], state: JobState::Ok, result: Ok(object) },
                ShardEntry {
                    job: digests[1],
                    state: JobState::Failed,
                    result: Err("no".to_owned()),
                },
                ShardEntry { job: digests[2], state: JobState::Cached, result: Ok(object) },
            ],
        };
        let written = |manifest: &ShardManifest| {
            let mut text = Vec::new();
            manifest.write(&mut text).unwrap();
            text
        };
        let text = written(&manifest);
        assert_eq!(ShardManifest::read(&mut &text[..]).unwrap(), manifest);
        for length in 0..text.len() {
            ShardManifest::read(&mut &text[..length]).expect_err("cut");
            let mut changed = text.clone();
            changed[length] ^= 1;
            ShardManifest::read(&mut &changed[..]).expect_err("changed");
        }
        ShardManifest::read(&mut &[&text[..], b"\n"].concat()[..]).expect_err("more behind it");
        let empty = ShardManifest { jobs: Vec::new(), ..manifest.clone() };
        assert_eq!(ShardManifest::read(&mut &written(&empty)[..]).unwrap(), empty);
        // Content that gfxpack never writes, with a digest that fits.
        let mut twice = manifest.clone();
        twice.jobs[1] = twice.jobs[0].clone();
        ShardManifest::read(&mut &written(&twice)[..]).expect_err("a job twice");
        let mut wrong = manifest;
        wrong.jobs[1].state = JobState::Ok;
        ShardManifest::read(&mut &written(&wrong)[..]).expect_err("made without an object");
    }
}
