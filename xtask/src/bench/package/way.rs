//! A way to make a package, and how it is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use xshell::{Shell, cmd};

use super::super::table::median;
use crate::say::say;

/// What packages are to be like, whoever makes them.
pub(super) struct Setting {
    pub(super) title: &'static str,
    pub(super) format: &'static str,
    pub(super) codec: &'static str,
    pub(super) level: u32,
}

/// A program that packs, with what it needs around the payload.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// The names of the ways that it is held against, where this one is ours.
    pub(super) rivals: Vec<&'static str>,
    pub(super) words: Vec<String>,
    pub(super) dir: PathBuf,
    /// What it writes is found below this directory, by its ending.
    pub(super) out: PathBuf,
    pub(super) ending: &'static str,
    pub(super) seconds: Vec<f64>,
    pub(super) cpu: Vec<f64>,
    pub(super) peak_kib: u64,
    pub(super) size: u64,
}

impl Way {
    pub(super) fn new(
        name: &'static str,
        dir: &Path,
        out: &Path,
        ending: &'static str,
        words: &[&str],
    ) -> Self {
        Self {
            name,
            rivals: Vec::new(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            dir: dir.to_owned(),
            out: out.to_owned(),
            ending,
            seconds: Vec::new(),
            cpu: Vec::new(),
            peak_kib: 0,
            size: 0,
        }
    }

    /// How many times as fast it is as its rivals.
    pub(super) fn ratios(&self, ways: &[Self]) -> Vec<f64> {
        let rivals =
            self.rivals.iter().filter_map(|name| ways.iter().find(|way| way.name == *name));
        rivals.map(|rival| median(&rival.seconds) / median(&self.seconds)).collect()
    }

    /// The first round is not measured.
    pub(super) fn forget(&mut self) {
        self.seconds.clear();
        self.cpu.clear();
    }

    pub(super) fn measure(&mut self, sh: &Shell, title: &str) -> anyhow::Result<()> {
        let (said, words) = (self.dir.join("time"), &self.words);
        let _dir = sh.push_dir(&self.dir);
        let begun = Instant::now();
        cmd!(sh, "/usr/bin/time --format %U+%S+%M --output {said} {words...}")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .with_context(|| format!("failed to pack with {}", self.name))?;
        self.seconds.push(begun.elapsed().as_secs_f64());
        let text = fs::read_to_string(&said)?;
        let numbers: Vec<f64> =
            text.trim().split('+').filter_map(|number| number.parse().ok()).collect();
        let [user, system, peak] = numbers.as_slice() else {
            anyhow::bail!("failed to read what time said: `{text}`");
        };
        self.cpu.push(user + system);
        self.peak_kib = self.peak_kib.max(*peak as u64);
        self.size = newest(&self.out, self.ending)?;
        say(&format!("{title}, {}: {:.1} s of CPU time", self.name, user + system));
        Ok(())
    }
}

/// Size of the package that was written; it is removed.
pub(super) fn newest(dir: &Path, ending: &str) -> anyhow::Result<u64> {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                let size = fs::metadata(&path)?.len();
                fs::remove_file(&path)?;
                return Ok(size);
            }
        }
    }
    anyhow::bail!("failed to find a .{ending} below `{}`", dir.display())
}
