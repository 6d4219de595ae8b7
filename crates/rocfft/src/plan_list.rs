//! Lists of plans.

use std::collections::HashSet;
use std::io::BufRead;

use gfxpack_harvest::Skips;

use crate::lines::{ListError, MAX_ENTRIES, for_each_line};
use crate::plan::{FftPlan, PlanError};

/// The first words of plans, before which log tools may have written.
const BEGINS: [&str; 4] = ["c2c ", "r2c ", "c2r ", "rocfft-bench "];

/// The plans of a list, each once, in the order of their first lines, and the lines that are none.
/// `name` is the file's name in errors.
///
/// # Errors
/// [`ListError`], if there is no plan, too.
pub fn read_plans(name: &str, from: impl BufRead) -> Result<(Vec<FftPlan>, Skips), ListError> {
    let own = || name.to_owned();
    let (mut seen, mut plans, mut skipped) = (HashSet::new(), Vec::new(), Skips::default());
    for_each_line(name, from, |number, line| {
        let text = String::from_utf8_lossy(line);
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(());
        }
        let begin = BEGINS.iter().find_map(|begin| text.find(begin)).unwrap_or(0);
        match text.parse::<FftPlan>().or_else(|error| text[begin..].parse().map_err(|_| error)) {
            Ok(plan) if seen.insert(plan.clone()) => plans.push(plan),
            Ok(_) => {}
            Err(error) => skipped.add(number, line, &error, PlanError::hint(&error)),
        }
        if plans.len() > MAX_ENTRIES { Err(ListError::TooMany { name: own() }) } else { Ok(()) }
    })?;
    match skipped.iter().next() {
        _ if !plans.is_empty() => Ok((plans, skipped)),
        Some(first) => Err(ListError::Line { name: own(), first: first.clone() }),
        None => Err(ListError::Nothing { name: own() }),
    }
}
