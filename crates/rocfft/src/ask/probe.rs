//! The probe: started through the library's loader, with a list of plans, and read until it ends.
//! Its own module `rocfft` describes the messages.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gfxpack_model::probe_line::{fields, line};
use gfxpack_model::{Error, ErrorKind, Result};
use gfxpack_stock_library::{CANCELLED, DeadlineReader, ProbeDirectory, ProbeProcess};

use super::{AskOptions, InstalledCache, PlanFailure, ROCFFT, unusable};
use crate::plan::{FftPlan, Placement, Precision};

/// Longer than any useful plan takes.
const PLAN_LIMIT: Duration = Duration::from_secs(300);

/// A probe that has created all plans that the library can create.
pub(super) struct FinishedProbe {
    pub(super) output: ProbeOutput,
    directory: ProbeDirectory,
}

impl FinishedProbe {
    /// The cache that the library has written.
    pub(super) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache.db")
    }

    pub(super) fn source(&self, number: u64) -> PathBuf {
        self.directory.path().join("sources").join(number.to_string())
    }
}

/// Starts a probe and sends it all plans. Also returns the number of the plan for each request.
fn start<'p>(
    plans: impl Iterator<Item = &'p FftPlan>,
    installed: InstalledCache<'_>,
    options: &AskOptions<'_>,
) -> Result<(ProbeProcess, Vec<usize>)> {
    let directory = ProbeDirectory::create(&ROCFFT, options.library, None, options.scratch)?;
    let sources = directory.create_dir("sources")?;
    let mut command = directory.command(options.library, options.probe, None);
    let inside = |name: &str| directory.path().join(name);
    let cache = match installed {
        InstalledCache::Nothing => Some(inside("none.db")),
        InstalledCache::File(file) => Some(file.to_owned()),
        // Variables would change where the library looks.
        InstalledCache::Own => None,
    };
    if let Some(cache) = cache {
        command
            .env("ROCFFT_RTC_SYS_CACHE_PATH", cache)
            .env("ROCFFT_RTC_CACHE_PATH", inside("cache.db"))
            // The library compiles in its own process.
            .env("ROCFFT_RTC_PROCESS", "0");
    }
    let mut lines = line(&[b"rocfft", sources.as_os_str().as_bytes()]);
    let mut asked = Vec::new();
    for (number, plan) in plans.enumerate() {
        for transform in plan.transform_types() {
            lines.extend(line(&["plan", &worded(plan, *transform)]));
            asked.push(number);
        }
    }
    let process = ProbeProcess::start(options.probe, command, directory)?;
    // If the probe has ended, its message is read later.
    let _ = process.load(options.library, options.arch, options.compute_units, &lines);
    Ok((process, asked))
}

/// Has a probe create these plans, and reads until it has ended. If it died, returns the number of
/// the plan that it created then, and how it ended.
pub(super) fn run<'p>(
    plans: impl Iterator<Item = &'p FftPlan>,
    installed: InstalledCache<'_>,
    options: &AskOptions<'_>,
) -> Result<std::result::Result<FinishedProbe, (usize, PlanFailure)>> {
    let (mut process, plans) = start(plans, installed, options)?;
    let deadline = Instant::now() + PLAN_LIMIT;
    let patient = DeadlineReader::new(&process.socket, deadline, options.cancelled)
        .map_err(ROCFFT.not_started(options.probe))?;
    let mut reader = BufReader::new(patient);
    let (mut output, mut line, mut overdue) = (ProbeOutput::default(), Vec::new(), false);
    loop {
        line.clear();
        reader.get_mut().deadline = Instant::now() + PLAN_LIMIT;
        match reader.read_until(b'\n', &mut line) {
            Err(error) if error.kind() == CANCELLED => {
                return Err(Error::without_hint(ErrorKind::Interrupted, "interrupted"));
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                process.kill();
                overdue = true;
                break;
            }
            Ok(read) if read > 0 => {}
            _ => break,
        }
        if output.line(&line, &plans, &process)? {
            let directory = process.directory;
            return Ok(Ok(FinishedProbe { output, directory }));
        }
    }
    let status = process.wait()?;
    match plans.get(output.created) {
        Some(&plan) if !output.version.is_empty() => {
            let failure = match status.signal() {
                _ if overdue => PlanFailure::Overdue,
                Some(signal) => PlanFailure::Killed(signal),
                None => PlanFailure::Exited(status.code().unwrap_or_default()),
            };
            Ok(Err((plan, failure)))
        }
        _ => Err(process.early_end(status)),
    }
}

#[derive(Default)]
pub(super) struct ProbeOutput {
    /// The library's version; empty before it is set up.
    pub(super) version: String,
    /// The options of each program that was compiled, by its number.
    pub(super) programs: BTreeMap<u64, Vec<String>>,
    /// Plans that the library refuses.
    pub(super) failures: BTreeMap<usize, PlanFailure>,
    /// The number of plans that are done, created or refused.
    created: usize,
}

impl ProbeOutput {
    /// Handles a line. Returns whether it is the last one. `plans` has the number of the plan for
    /// each request.
    fn line(&mut self, line: &[u8], plans: &[usize], probe: &ProbeProcess) -> Result<bool> {
        if let Some(version) = probe.version(line)? {
            self.version = short_version(&version);
            return Ok(false);
        }
        let fields = fields(line);
        let fields: Vec<_> = fields.iter().map(|one| String::from_utf8_lossy(one)).collect();
        let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
        match fields[..] {
            ["program", number, ref options @ ..] => {
                let number = number.parse().unwrap_or_default();
                self.programs.insert(number, options.iter().map(|&one| one.to_owned()).collect());
            }
            ["plan", _, status] => {
                let status = status.parse().unwrap_or(-1);
                if let (true, Some(&plan)) = (status != 0, plans.get(self.created)) {
                    self.failures.insert(plan, PlanFailure::Refused(status));
                }
                self.created += 1;
            }
            ["end"] => return Ok(true),
            // The library could then compile other kernels than with a GPU.
            ["unanswered", question] => {
                let what = "which has no answer without a GPU";
                return Err(unusable(format!("librocfft asks for `{question}`, {what}")));
            }
            _ => return Err(probe.not_loaded("the probe can't be read")),
        }
        Ok(false)
    }
}

/// The first three numbers of a version: `1.0.32` for `1.0.32.7b43d4a-dirty`.
fn short_version(text: &str) -> String {
    text.split('.').take(3).collect::<Vec<_>>().join(".")
}

/// A plan as the numbers of a request.
///
/// Source: rocFFT 1.0.32, `rocfft.h`.
fn worded(plan: &FftPlan, transform: u32) -> String {
    let placement = match plan.placement {
        Placement::InPlace => 0,
        Placement::OutOfPlace => 1,
    };
    let precision = match plan.precision {
        Precision::Single => 0,
        Precision::Double => 1,
        Precision::Half => 2,
    };
    let mut numbers =
        vec![placement, u64::from(transform), precision, plan.batch, plan.lengths.len() as u64];
    numbers.extend(plan.lengths.iter().rev());
    for array in plan.layout.iter().flatten() {
        numbers.push(u64::from(array.array_type));
        numbers.extend(array.offsets);
        numbers.push(array.distance);
        numbers.extend(array.strides.iter().rev());
    }
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_sent_with_the_fastest_length_first() {
        let plan: FftPlan = "c2c dp op 64x32 batch 8".parse().unwrap();
        let texts: Vec<String> =
            plan.transform_types().iter().map(|transform| worded(&plan, *transform)).collect();
        assert_eq!(texts, ["1 0 1 8 2 32 64", "1 1 1 8 2 32 64"]);
        let plan: FftPlan = "c2r half ip 7".parse().unwrap();
        assert_eq!(worded(&plan, plan.transform_types()[0]), "0 3 2 1 1 7");
        let plan: FftPlan = "--length 4 6 -b 3 --istride 8 1 --idist 40".parse().unwrap();
        let text = worded(&plan, plan.transform_types()[0]);
        assert_eq!(text, "0 0 0 3 2 6 4 0 0 0 40 1 8 0 0 0 24 1 6");
    }

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(short_version("1.0.32.7b43d4a-dirty"), "1.0.32");
        assert_eq!(short_version("1.0.32"), "1.0.32");
    }
}
