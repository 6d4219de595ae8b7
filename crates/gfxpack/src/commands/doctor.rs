//! `doctor`: what is wrong or suspicious on this machine, and what to do.

mod compilers;
mod databases;
mod files;
mod hardware;
mod library;
mod places;
mod user;

use gfxpack_compile::Cancel;
use gfxpack_pipeline::doctor_tuning;
use gfxpack_runtime::{Environment, user_database_dir};
use serde_json::json;

use super::lookup;
use crate::args::{Doctor, MaxObject};
use crate::fail::{Failure, Result};
use crate::output::Output;

/// Checks everything, and fails where there is a problem.
pub(crate) fn run(
    args: &Doctor,
    machine: &crate::environment::Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    let rocm = machine.rocm_path.as_deref();
    let environment = Environment::read();
    let mut checks = Checks { output, max_object: args.asked.max_object, problems: 0 };
    let targets = hardware::check(args, &environment, &mut checks)?;
    variables(&environment, &mut checks);
    let user_db = user_database_dir(&environment).0;
    let (enforce, system_db) = (environment.find_enforce(), environment.system_db_path());
    for left in doctor_tuning::left_over(enforce, system_db.as_deref(), &user_db) {
        checks.warning("tuning", left.message, left.hint);
    }
    library::check(rocm, &mut checks);
    let places = lookup::places(&args.asked, &environment, output)?;
    places::check(&places, &mut checks);
    files::check(&places, &targets, args.deep, &mut checks);
    user::check(&places, &mut checks);
    compilers::check(&places, args.deep, machine, cancel, &mut checks);
    databases::check(&environment, &places, &targets, &mut checks);
    if checks.problems > 0 { Err(Failure::Unwell(checks.problems)) } else { Ok(()) }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Suspicious: it may be wanted so.
    Warning,
    /// Wrong: kernels are not found, or should not be trusted.
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// Tells each check as it is made, and counts.
struct Checks<'a> {
    output: &'a Output,
    max_object: MaxObject,
    problems: usize,
}

impl Checks<'_> {
    fn ok(&mut self, about: &str, what: impl Into<String>) {
        self.tell(Level::Ok, about, &what.into(), None);
    }

    fn note(&mut self, about: &str, what: impl Into<String>) {
        self.tell(Level::Note, about, &what.into(), None);
    }

    fn warning(&mut self, about: &str, what: impl Into<String>, hint: &str) {
        self.tell(Level::Warning, about, &what.into(), Some(hint));
    }

    fn problem(&mut self, about: &str, what: impl Into<String>, hint: &str) {
        self.problems += 1;
        self.tell(Level::Problem, about, &what.into(), Some(hint));
    }

    fn tell(&self, level: Level, about: &str, what: &str, hint: Option<&str>) {
        if self.output.json {
            let body = json!({
                "level": level.name(), "about": about, "message": what, "hint": hint,
            });
            self.output.message("check", &body);
            return;
        }
        if self.output.quiet && matches!(level, Level::Ok | Level::Note) {
            return;
        }
        self.output.data(&format!("{:<8} {about:<11} {what}", level.name()));
        if let Some(hint) = hint {
            self.output.data(&format!("{:<21}hint: {hint}", ""));
        }
    }
}

/// The variables that are set.
fn variables(environment: &Environment, checks: &mut Checks<'_>) {
    for variable in environment.variables() {
        let Some(value) = variable.value else { continue };
        let what = format!("{}=`{value}`: {}", variable.name, variable.effect);
        if variable.effect.starts_with("not ") {
            checks.problem("environment", what, "correct it, or unset it");
        } else if variable.name == "MIOPEN_DISABLE_CACHE" && environment.disable_cache() {
            let hint = "unset it: every kernel is compiled anew in every process";
            checks.warning("environment", what, hint);
        } else if !["HOME", "TMPDIR"].contains(&variable.name) {
            // Those two are set for everybody.
            checks.note("environment", what);
        }
    }
}
