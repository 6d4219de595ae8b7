//! `doctor --env`: lists the variables that matter at run time, and the places in
//! which MIOpen looks for databases.

use gfxpack_runtime::{Environment, KdbDirectories, database_directories};

use super::lookup;
use crate::args::LookupArgs;
use crate::fail::Result;
use crate::output::{Output, display, message};

/// Lists all variables, set or not.
pub(super) fn run(asked: &LookupArgs, output: &Output) -> Result {
    let environment = Environment::read();
    let directories = lookup::usual_directories(asked, &environment, output)?;
    let variables = environment.variables();
    let width = variables.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    for mut variable in variables {
        let ignored = variable.value.as_deref();
        let ignored = ignored.and_then(|value| directories.rules.ignores(variable.name, value));
        variable.effect = ignored.unwrap_or(variable.effect);
        message!(output, "variable", {
            "name": variable.name, "value": variable.value, "effect": variable.effect,
        });
        let value = variable.value.as_deref().map_or("-".to_owned(), |text| format!("`{text}`"));
        output.text(&format!("{:<width$}  {value}", variable.name));
        output.text(&format!("{:<width$}    {}", "", variable.effect));
    }
    databases(&environment, &directories, output);
    Ok(())
}

/// Lists the places of databases, each kind in the order of lookup.
fn databases(environment: &Environment, directories: &KdbDirectories, output: &Output) {
    for directory in database_directories(environment, directories, None, None) {
        let (kind, layer) = (directory.kind.name(), directory.layer.name());
        message!(output, "database-place", {
            "database": kind, "layer": layer, "dir": display(&directory.dir), "names": directory.names,
            "rule": directory.rule, "files": directory.existing().iter().map(display).collect::<Vec<_>>(),
        });
        let (dir, files) = (directory.dir.display(), directory.existing().len());
        let names = directory.names.join(" ");
        output.text(&format!("{kind:<11} {layer:<6}  {dir}/{names}"));
        output.text(&format!("{:<20}  {}, {files} files", "", directory.rule));
    }
}
