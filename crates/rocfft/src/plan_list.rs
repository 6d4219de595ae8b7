//! Lists of plans.

use std::collections::HashSet;
use std::io::BufRead;

use crate::lines::{ListError, MAX_ENTRIES, for_each_line};
use crate::plan::FftPlan;

/// The plans of a list, each once, in the order of their first lines. `name` is the file's name in
/// errors.
///
/// # Errors
/// [`ListError`] for the first invalid line.
pub fn read_plans(name: &str, from: impl BufRead) -> Result<Vec<FftPlan>, ListError> {
    let own = || name.to_owned();
    let (mut seen, mut plans) = (HashSet::new(), Vec::new());
    for_each_line(name, from, |line, text| {
        let text = text.ok_or_else(|| ListError::NoText { name: own(), line })?;
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(());
        }
        let plan: FftPlan =
            text.parse().map_err(|source| ListError::Line { name: own(), line, source })?;
        if seen.insert(plan.clone()) {
            plans.push(plan);
        }
        if plans.len() > MAX_ENTRIES {
            return Err(ListError::TooMany { name: own() });
        }
        Ok(())
    })?;
    if plans.is_empty() { Err(ListError::Nothing { name: own() }) } else { Ok(plans) }
}
