//! `export`: a stored plan as another program's input.

use serde_json::json;

use crate::args::Export;
use crate::output::{Output, shown};
use crate::shards::ninja;

/// Writes what was asked for.
pub(crate) fn run(export: &Export, output: &Output) -> anyhow::Result<()> {
    match export {
        Export::Ninja(args) => {
            let jobs = ninja::write(args)?;
            let file = args.out.join("build.ninja");
            output.message("exported", &json!({ "file": shown(&file), "jobs": jobs }));
            output.say(&format!(
                "{jobs} jobs in {}: run `ninja -C {}`, with -k 0 to go on after a refused kernel",
                file.display(),
                args.out.display()
            ));
            Ok(())
        }
    }
}
