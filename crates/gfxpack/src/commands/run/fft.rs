//! Reads FFT plans from the logs that rocFFT writes of a program's calls.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use gfxpack_pipeline::skipped_lines;
use gfxpack_rocfft::{FftPlan, LoggedKernels, LoggedPlans, read_rtc_log, read_trace};
use serde_json::{Value, json};

use crate::fail::{self, Result};
use crate::output::counted;

/// The enabled layers of rocFFT's log: calls and kernels.
///
/// Source: rocFFT 1.0.32, `rocfft_layer_mode`.
const LAYERS: u8 = 1 + 32;
/// The logs of calls and of kernels.
const CALLS: &str = "calls";
const KERNELS: &str = "kernels";

pub(super) struct FftRun {
    pub(super) plans: LoggedPlans,
    /// The kernels for which the log says whether they had to be compiled.
    kernels: LoggedKernels,
}

/// The environment variables that make rocFFT write its logs into this directory.
pub(super) fn variables(dir: &Path) -> [(&'static str, String); 3] {
    [
        ("ROCFFT_LAYER", LAYERS.to_string()),
        ("ROCFFT_LOG_TRACE_PATH", dir.join(CALLS).display().to_string()),
        ("ROCFFT_LOG_RTC_PATH", dir.join(KERNELS).display().to_string()),
    ]
}

/// Reads the logs in this directory; the result is empty if rocFFT wrote none.
pub(super) fn read(dir: &Path) -> Result<FftRun> {
    fn of_file<T: Default>(
        path: &Path,
        read: impl FnOnce(&str, BufReader<File>) -> Result<T>,
    ) -> Result<T> {
        match File::open(path) {
            Ok(file) => read(&path.display().to_string(), BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(source) => Err(fail::io("read", path)(source)),
        }
    }
    Ok(FftRun {
        plans: of_file(&dir.join(CALLS), read_trace)?,
        kernels: of_file(&dir.join(KERNELS), read_rtc_log)?,
    })
}

/// A list of plans, one per line, as `--plans` reads it.
pub(in crate::commands) fn list(plans: &[FftPlan]) -> String {
    plans.iter().map(|plan| format!("{plan}\n")).collect()
}

/// Warnings about a log's plans that can't be put on a list: how many there are, and why.
pub(in crate::commands) fn warnings(log: &str, found: &LoggedPlans) -> Vec<String> {
    let skipped = found.skipped.iter().map(|skipped| skipped_lines::warning(log, skipped));
    let unsupported = (found.unsupported > 0).then(|| {
        format!(
            "{} left out: with a scale factor or for several GPUs, which a list of plans can't have",
            counted(found.unsupported, "plan")
        )
    });
    skipped.chain(unsupported).collect()
}

impl FftRun {
    pub(in crate::commands) fn message(&self) -> Value {
        let Self { plans, kernels } = self;
        json!({
            "plans": plans.plans.len(), "found": kernels.found.len(),
            "compiled": kernels.compiled.len(), "unsupported": plans.unsupported,
            "damaged": plans.skipped.lines(),
        })
    }

    /// The result as lines of text; `file` has the plans. Empty if there is no
    /// plan.
    pub(in crate::commands) fn in_words(&self, file: &Path) -> Vec<String> {
        let Self { plans, kernels } = self;
        let file = file.display();
        if plans.plans.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!(
            "rocFFT created {}: found {} in its caches, compiled {}; the plans are in {file}",
            counted(plans.plans.len(), "plan"),
            counted(kernels.found.len(), "kernel"),
            kernels.compiled.len()
        )];
        if !kernels.compiled.is_empty() {
            lines.push(format!(
                "a package that has their kernels is made by\n  \
                 gfxpack dist --plans {file} --target TARGET --out dist"
            ));
        }
        lines
    }
}
