//! The environment variables that are set.

use gfxpack_runtime::Environment;

use super::finding::Findings;

const ABOUT: &str = "environment";

/// Checks those that count at run time.
pub fn check_variables(environment: &Environment, findings: &mut Findings<'_>) {
    for variable in environment.variables() {
        let Some(value) = variable.value else { continue };
        let what = format!("{}=`{value}`: {}", variable.name, variable.effect);
        if variable.effect.starts_with("not ") {
            findings.problem(ABOUT, what, "correct it, or unset it");
        } else if variable.name == "MIOPEN_DISABLE_CACHE" && environment.disable_cache() {
            let hint = "unset it: every kernel is compiled anew in every process";
            findings.warning(ABOUT, what, hint);
        } else if !["HOME", "TMPDIR"].contains(&variable.name) {
            // Those two are set for everybody.
            findings.note(ABOUT, what);
        }
    }
}
