//! `env`: the variables that count at run time.

use gfxpack_runtime::Environment;
use serde_json::json;

use crate::output::Output;

/// Lists all of them, set or not.
pub(crate) fn run(output: &Output) {
    let variables = Environment::read().variables();
    let width = variables.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    for variable in variables {
        if output.json {
            let body = json!({
                "name": variable.name, "value": variable.value, "effect": variable.effect,
            });
            output.message("variable", &body);
        } else {
            let value =
                variable.value.as_deref().map_or("-".to_owned(), |text| format!("`{text}`"));
            output.data(&format!("{:<width$}  {value}", variable.name));
            output.data(&format!("{:<width$}    {}", "", variable.effect));
        }
    }
}
