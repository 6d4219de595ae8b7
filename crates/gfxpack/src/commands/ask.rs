//! `ask`: the keys that problems want, as a list for `--keys`.

use gfxpack_model::Target;
use gfxpack_pipeline::ask;
use gfxpack_pipeline::kernel_library::LibraryFacts;
use gfxpack_pipeline::options::{InputOptions, processes};
use gfxpack_pipeline::rocfft;
use gfxpack_pipeline::stock_library::LibraryAnswer as _;

use crate::args::Ask;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{counted, display, message};
use crate::progress::Reporter;

/// Asks the library, and writes the keys. Problems that MIOpen failed on are
/// reported; the keys of the others are written nevertheless.
pub(crate) fn run(args: &Ask, context: &Context) -> Result {
    let Context { output, .. } = context;
    if args.asking.problems.is_empty() && args.asking.rocfft.plans.is_empty() {
        return Err(fail::usage(
            "failed to start: no problems are given",
            "give what programs compute, as --problems FILE; `gfxpack problems resnet50` prints a \
             network's; or rocFFT's plans, as --plans FILE",
        ));
    }
    if args.target.is_empty() {
        return Err(fail::usage(
            "failed to start: no target is given",
            "say which GPU to ask for, as --target gfx90a@104; `gfxpack targets` lists them",
        ));
    }
    let inputs = InputOptions {
        asking: args.asking.clone(),
        target: args.target.clone(),
        ..InputOptions::default()
    };
    let targets = inputs.targets()?;
    if !args.asking.rocfft.plans.is_empty() {
        return ask_rocfft(&targets, args, context);
    }
    let reporter = Reporter::new(context);
    let answer = ask::ask_miopen(&inputs, &targets, processes(args.jobs), &args.cache, &reporter)?;
    let hint = "each is named above; the list has the keys of the others";
    let all_asked = answer.report_failures(hint, &reporter);
    let lines = ask::key_lines(&answer);
    output.put_lines(args.out.as_ref(), "key", &lines)?;
    let problems = answer.question.problems.len();
    message!(output, "asked", {
        "keys": lines.len(), "problems": problems, "failures": answer.failures.len(),
        "file": args.out.as_deref().map(display), "miopen": answer.facts,
    });
    let (keys, problems) = (counted(lines.len(), "key"), counted(problems, "problem"));
    output.info(&format!("{}: {keys} for {problems}", answer.facts.in_words()));
    all_asked
}

fn ask_rocfft(targets: &[Target], args: &Ask, context: &Context) -> Result {
    let Context { output, .. } = context;
    let reporter = Reporter::new(context);
    let answer = rocfft::ask_rocfft(&args.asking, targets, &args.cache, &reporter)?;
    let hint = "each is named above; the list has the kernels of the others";
    let all_asked = answer.report_failures(hint, &reporter);
    let lines = rocfft::kernel_lines(&answer);
    if let Some(dir) = &args.sources {
        rocfft::write_sources(&answer, dir)?;
    }
    output.put_lines(args.out.as_ref(), "rocfft-kernel", &lines)?;
    message!(output, "plans-asked", {
        "kernels": lines.len(), "plans": answer.plans.len(), "failures": answer.failures.len(),
        "file": args.out.as_deref().map(display), "rocfft": answer.facts,
    });
    output.info(&format!(
        "{}: {} for {}",
        answer.facts.in_words(),
        counted(lines.len(), "kernel"),
        counted(answer.plans.len(), "plan")
    ));
    all_asked
}
