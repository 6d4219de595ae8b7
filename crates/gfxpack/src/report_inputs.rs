//! Reports facts about inputs before anything runs.

use std::collections::BTreeSet;

use gfxpack_pipeline::inputs::{ExistingCount, Inputs};
use gfxpack_pipeline::ledger::{Absences, Reason};

use crate::fail::Error;
use crate::output::{Output, counted, message};

/// How many different hints are printed.
const MAX_HINTS: usize = 5;

/// Reports what is wrong but does not stop a build: sources that are left out,
/// warnings, keys that are wrong or cannot be built, and what existing kdbs have.
pub(crate) fn report(inputs: &Inputs, output: &Output) {
    for (source, reason) in inputs.absent.left_out() {
        output.warn(&format!("left out `{source}`: {reason}"));
    }
    inputs.warnings.iter().for_each(|warning| output.warn(warning));
    inputs.key_errors.iter().for_each(|error| output.warn(&error.to_string()));
    let hints: BTreeSet<&str> = inputs.key_errors.iter().filter_map(Error::hint).collect();
    // Some hints name the files of one error; a few of them show what to do.
    let hints = hints.iter().take(MAX_HINTS).filter(|_| !output.json);
    hints.for_each(|hint| output.hint(hint));
    report_coverage(&inputs.coverage, output);
    report_absent(&inputs.absent, output);
}

/// Reports by target how many keys existing kdbs have.
fn report_coverage(coverage: &[ExistingCount], output: &Output) {
    for ExistingCount { target, present, missing } in coverage {
        message!(output, "missing-from", {
            "target": target, "present": present, "missing": missing,
        });
        output.info(&match missing {
            0 => {
                let keys = counted(*present, "key");
                format!("{target}: nothing is missing: the kdbs have all of {keys}")
            }
            _ => {
                let keys = counted(*missing + *present, "key");
                format!("{target}: {missing} of {keys} missing, {present} in the kdbs")
            }
        });
    }
}

/// Reports that existing kdbs have everything, or that the lists of keys are empty.
pub(crate) fn report_nothing(coverage: &[ExistingCount], output: &Output) {
    if !coverage.is_empty() {
        return report_coverage(coverage, output);
    }
    message!(output, "nothing-to-do", { "reason": "no-keys" });
    output.info("nothing to do: there is no key in the lists");
}

/// Reports how many kernels are not built: since compilers refuse them, and since something is
/// wrong with them. Messages list every key of the latter.
fn report_absent(absent: &Absences, output: &Output) {
    for target in absent.targets() {
        if let Some(kernels) = absent.counts(target).get(&Reason::Skipped) {
            message!(output, "skipped-refused", { "target": target, "kernels": kernels });
            let kernels = counted(*kernels, "kernel");
            output.info(&format!("{target}: {kernels} left out, as --skip-refused says"));
        }
    }
    for group in absent.groups() {
        output.message("unbuildable", &group);
    }
    for target in absent.targets() {
        let of = |reason| absent.of(target).iter().filter(move |one| one.reason == reason);
        let without = of(Reason::NoSource).count();
        let keys = of(Reason::NoSource).map(|one| &one.key);
        let sources: BTreeSet<&str> =
            keys.map(|key| key.source_name().unwrap_or(&key.kernel_name)).collect();
        let others = of(Reason::NotCompilable).count();
        let mut parts = Vec::new();
        if without > 0 {
            let sources = counted(sources.len(), "source");
            parts.push(format!("{without} whose source was not found ({sources})"));
        }
        if others > 0 {
            parts.push(format!("{others} that no compiler takes"));
        }
        if !parts.is_empty() {
            output.info(&format!("{target}: keys that can't be built: {}", parts.join(", ")));
        }
    }
}
