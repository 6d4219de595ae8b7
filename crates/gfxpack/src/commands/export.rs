//! `export`: writes a stored plan as input for another program.

use gfxpack_pipeline::shards::ninja;

use crate::args::Export;
use crate::context::Context;
use crate::fail::Result;
use crate::options::search;
use crate::output::{display, message};

/// Runs an `export` sub-command.
pub(crate) fn run(export: &Export, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    match export {
        Export::Ninja(args) => {
            let search = search(&args.toolchain, environment);
            let jobs = ninja::write(&args.plan, &args.out, &search, &args.allow_read)?;
            let file = args.out.join("build.ninja");
            message!(output, "exported", { "file": display(&file), "jobs": jobs });
            let dir = args.out.to_string_lossy();
            let dir = shlex::try_quote(&dir).expect("no path has a zero in it");
            output.info(&format!(
                "{jobs} jobs in {}: run `ninja -C {dir}`, with -k 0 to go on after a refused kernel",
                file.display()
            ));
            Ok(())
        }
    }
}
