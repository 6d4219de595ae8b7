//! `problems`: lists what networks, models, logs and databases make MIOpen compute.

#[cfg(feature = "onnx")]
mod model;

use std::collections::BTreeSet;

use gfxpack_miopen::{
    DataType, Problem, ProblemFile, ReadOptions, Selection, network_names, network_problems,
    read_problems,
};

use crate::args::ProblemsCommand;
use crate::context::Context;
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, counted, display, message, to_file};

#[cfg(feature = "onnx")]
pub(crate) use model::read_model;

/// Runs `problems`.
pub(crate) fn run(args: &ProblemsCommand, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    if args.list {
        return list(output);
    }
    check(args)?;
    let cancelled = || cancel.is_cancelled();
    let options = ReadOptions { cancelled: Some(&cancelled), ..ReadOptions::default() };
    let read = read_problems(&args.problems, options)?;
    read.files.iter().for_each(|file| report_file(file, output));
    let mut problems = read.problems;
    let mut unresolved = 0;
    for name in &args.names {
        if is_model(name) {
            unresolved += add_model(name, args, &mut problems, context)?;
        } else {
            problems.extend(network_problems(name, &selection(args))?);
        }
    }
    write(&problems, args, output)?;
    message!(output, "problems", {
        "file": to_file(args.out.as_ref()).map(display), "problems": problems.len(),
        "unresolved": unresolved,
    });
    output.info(&counted(problems.len(), "problem"));
    if unresolved > 0 {
        return Err(Error::new(
            ErrorKind::Incomplete,
            format!("failed to resolve {}", counted(unresolved, "layer")),
            "each is named above, with what would resolve it",
        ));
    }
    Ok(())
}

/// Rejects options that do not apply to what was named.
fn check(args: &ProblemsCommand) -> Result {
    if !args.symbol.is_empty() && !args.names.iter().any(|name| is_model(name)) {
        return Err(fail::usage("failed to bind --symbol: no model is given", "name a MODEL.onnx"));
    }
    if args.size.is_some() && args.names.iter().all(|name| is_model(name)) {
        return Err(fail::usage(
            "failed to use --size: no network is given",
            "say by --symbol what is open in a model's inputs",
        ));
    }
    Ok(())
}

/// Whether a name is that of a model's file.
fn is_model(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".onnx")
}

#[cfg(feature = "onnx")]
use model::add as add_model;

#[cfg(not(feature = "onnx"))]
fn add_model(
    name: &str,
    _: &ProblemsCommand,
    _: &mut BTreeSet<Problem>,
    _: &Context,
) -> Result<usize> {
    Err(fail::usage(
        format!("failed to read `{name}`: this gfxpack was built without models in ONNX"),
        "build it with `cargo build --release --package gfxpack --package gfxpack-miopen-probe \
         --features gfxpack/onnx`",
    ))
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
        batches: if args.batch.is_empty() { vec![1] } else { args.batch.clone() },
        data_types: if args.r#type.is_empty() { vec![DataType::Fp32] } else { args.r#type.clone() },
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
