//! `problems`: lists what networks, logs and databases make MIOpen compute.

use std::collections::BTreeSet;

use gfxpack_miopen::{
    Problem, ProblemFile, ReadOptions, Selection, network_names, network_problems, read_problems,
};

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
    let options = ReadOptions { cancelled: Some(&cancelled), ..ReadOptions::default() };
    let read = read_problems(&args.problems, options)?;
    read.files.iter().for_each(|file| report_file(file, output));
    let mut problems = read.problems;
    for name in &args.names {
        problems.extend(network_problems(name, &selection(args))?);
    }
    write(&problems, args, output)?;
    message!(output, "problems", {
        "file": to_file(args.out.as_ref()).map(display), "problems": problems.len(),
    });
    output.info(&counted(problems.len(), "problem"));
    Ok(())
}

/// Lists the known networks.
fn list(output: &Output) -> Result {
    for network in network_names() {
        let [channels, height, width] = network.input;
        message!(output, "network", {
            "name": network.name, "title": network.title, "source": network.source,
            "input": network.input,
        });
        output.text(&format!("{:<22}{}, {channels}x{height}x{width}", network.name, network.title));
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
        operations: args.operations(),
        size: args.size,
    }
}

/// Reports what was read from a file.
fn report_file(file: &ProblemFile, output: &Output) {
    let first = file.first_passed_over.as_ref();
    message!(output, "problem-file", {
        "file": display(&file.name), "lines": file.lines, "told": file.used, "added": file.added,
        "passed_over": file.passed_over, "first_passed_over": first.map(|(line, _)| line),
        "reason": first.map(|(_, error)| error.to_string()),
    });
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
        return gfxpack_pipeline::destination::replace(path, text);
    }
    for problem in problems {
        let line = problem.to_string();
        let operation = line.split(' ').next().unwrap_or_default();
        message!(output, "problem", { "command": line, "operation": operation });
        output.text(&format!("MIOpenDriver {line}"));
    }
    Ok(())
}
