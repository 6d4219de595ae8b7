//! The problems of a network's steps.

use std::collections::BTreeSet;

use super::selection::{NetworkError, Selection};
use super::walk::Step;
use crate::calls::Run;
use crate::problem::{Directions, Problem};

/// The problems of all steps, in every selected way.
pub(super) fn problems(
    network: &str,
    steps: &[Step],
    selection: &Selection,
) -> Result<BTreeSet<Problem>, NetworkError> {
    let directions = selection.directions;
    let wanted = |name: &str| {
        selection.operations.is_empty() || selection.operations.iter().any(|one| one == name)
    };
    let mut problems = BTreeSet::new();
    for &batch in &selection.batches {
        for &data_type in &selection.data_types {
            for &layout in &selection.layouts {
                let run = Run { batch, data_type, layout, directions };
                for Step { call, training } in steps {
                    if (*training && directions == Directions::FORWARD) || !wanted(call.operation())
                    {
                        continue;
                    }
                    let found = run.problems(call).map_err(|error| NetworkError::Layer {
                        network: network.to_owned(),
                        layer: format!("{call:?}"),
                        what: error.to_string(),
                    })?;
                    problems.extend(found);
                }
            }
        }
    }
    Ok(problems)
}
