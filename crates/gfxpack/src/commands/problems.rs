//! `problems`: lists what networks, programs, logs and databases make MIOpen compute.

use std::collections::BTreeSet;
use std::fs;
use std::slice;

use gfxpack_harvest::Options;
use gfxpack_miopen::{
    Problem, ProblemFile, Selection, network_names, network_problems, read_problems,
};

use gfxpack_pipeline::destination;
use gfxpack_pipeline::error;
use gfxpack_pipeline::skipped_lines;
use gfxpack_pipeline::torch_program::TorchProgram;

use super::run::exit_code;
use crate::args::ProblemsCommand;
use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, counted, display, message, to_file};

/// Runs `problems`.
pub(crate) fn run(args: &ProblemsCommand, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    if args.list {
        return list(output);
    }
    let cancelled = || cancel.is_cancelled();
    let options = Options { cancelled: Some(&cancelled), read: None };
    let read = read_problems(&args.problems, &options, args.strict)?;
    read.files.iter().for_each(|file| report_file(file, output));
    let mut problems = read.problems;
    for name in &args.names {
        problems.extend(network_problems(name, &selection(args))?);
    }
    write(&problems, args, output)?;
    report(&problems, args, output);
    output.info(&counted(problems.len(), "problem"));
    Ok(())
}

fn report(problems: &BTreeSet<Problem>, args: &ProblemsCommand, output: &Output) {
    message!(output, "problems", {
        "file": to_file(args.out.as_ref()).map(display), "problems": problems.len(),
    });
}

/// Runs a program that uses PyTorch, and returns its exit code. The list keeps the numbers of calls
/// if it goes to a file.
pub(crate) fn record(args: &ProblemsCommand, context: &Context) -> Result<u8> {
    let Context { environment, output, .. } = context;
    let file = to_file(args.out.as_ref());
    let program = TorchProgram {
        args: &args.command,
        python_path: environment.python_path.as_deref(),
        compute: args.compute,
        output_to_stderr: output.json || file.is_none(),
    };
    let recorded = program.run(&mut |text| output.pass_on(text))?;
    let list = fs::read_to_string(&recorded.list).map_err(error::io("read", &recorded.list))?;
    let problems = if list.is_empty() {
        output.warn(
            "PyTorch would hand nothing to MIOpen, or the program does not import it: a Python \
             that is started with -I or -E can't be recorded",
        );
        BTreeSet::new()
    } else {
        read_problems(slice::from_ref(&recorded.list), &Options::default(), false)?.problems
    };
    match file {
        Some(path) => destination::replace(path, list)?,
        None => write(&problems, args, output)?,
    }
    report(&problems, args, output);
    Ok(exit_code(recorded.status))
}

/// Lists the known networks.
fn list(output: &Output) -> Result {
    for network in network_names() {
        message!(output, "network", {
            "name": network.name, "title": network.title, "source": network.source,
        });
        output.text(&format!("{:<22}{}", network.name, network.title));
        output.text(&format!("{:<22}{}", "", network.source));
    }
    Ok(())
}

/// The options for running networks.
fn selection(args: &ProblemsCommand) -> Selection {
    Selection {
        batches: args.batch.clone(),
        data_types: args.r#type.clone(),
        layouts: args.layout.clone(),
        directions: args.directions(),
    }
}

/// Reports what was read from a file.
fn report_file(file: &ProblemFile, output: &Output) {
    let first = file.first_passed_over.as_ref();
    message!(output, "problem-file", {
        "file": display(&file.name), "lines": file.lines, "told": file.used, "added": file.added,
        "passed_over": file.passed_over, "first_passed_over": first.map(|(line, _)| line),
        "reason": first.map(|(_, error)| error.to_string()),
        "skipped": skipped_lines::message(&file.skipped),
    });
    if file.comments > 0 {
        let commands = counted(file.comments, "command");
        output.info(&format!("{}: {commands} left out, after a `#`", file.name));
    }
    for skipped in file.skipped.iter() {
        output.show_warning(&skipped_lines::warning(&file.name, skipped));
        output.info(&format!("hint: {}", skipped.hint));
    }
    if let Some((line, error)) = first {
        let records = counted(file.passed_over, "record");
        output.show_warning(&format!(
            "{}: {records} skipped, the first in line {line}: {error}",
            file.name
        ));
    }
}

/// Writes one line for each problem.
fn write(problems: &BTreeSet<Problem>, args: &ProblemsCommand, output: &Output) -> Result {
    if let Some(path) = to_file(args.out.as_ref()) {
        let line = |problem: &Problem| format!("MIOpenDriver {problem}\n");
        let text: String = problems.iter().map(line).collect();
        return destination::replace(path, text);
    }
    for problem in problems {
        let line = problem.to_string();
        let operation = line.split(' ').next().unwrap_or_default();
        message!(output, "problem", { "command": line, "operation": operation });
        output.text(&format!("MIOpenDriver {line}"));
    }
    Ok(())
}
