//! Licences that all hold.

use std::collections::BTreeSet;

/// All licences hold, each for its own sources.
pub(super) fn conjunction(licenses: &BTreeSet<&str>) -> String {
    match licenses.len() {
        1 => licenses.iter().copied().collect(),
        _ => {
            let parenthesised = licenses.iter().map(|license| {
                if license.contains(" OR ") {
                    format!("({license})")
                } else {
                    (*license).to_owned()
                }
            });
            parenthesised.collect::<Vec<_>>().join(" AND ")
        }
    }
}
