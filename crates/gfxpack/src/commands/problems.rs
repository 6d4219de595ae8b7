//! `problems`: lists what networks, programs, logs and databases make MIOpen compute.

use std::collections::BTreeSet;
use std::fs;
use std::slice;

use gfxpack_harvest::Options;
use gfxpack_miopen::{Problem, ProblemFile, network_names, network_problems, read_problems};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::skipped_lines;
use gfxpack_process::{Foreground, temporary_dir};

use super::run::{exit_code, not_started};
use crate::args::ProblemsCommand;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, message, to_file};

macro_rules! files {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../../python/", $name)))),*] };
}

/// The Python package that has PyTorch tell what it would hand to MIOpen, and what starts it in
/// every Python.
const RECORDER: [(&str, &str); 4] = files!(
    "gfxpack_torch/__init__.py" "gfxpack_torch/_no_gpu.py" "gfxpack_torch/_problems.py"
    "start/sitecustomize.py"
);

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
        let (types, directions) = (&args.r#type, args.directions());
        problems.extend(network_problems(name, &args.batch, types, &args.layout, directions)?);
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
    let directory = temporary_dir()?;
    let recorded = directory.path().join("problems.txt");
    for (name, text) in RECORDER.into_iter().chain([("problems.txt", "")]) {
        let path = directory.path().join(name);
        let parent = path.parent().unwrap_or(directory.path());
        fs::create_dir_all(parent).map_err(fail::io("create", parent))?;
        fs::write(&path, text).map_err(fail::io("write", &path))?;
    }
    let mut python_path = format!("{0}/start:{0}", directory.path().display());
    if let Some(own) = &environment.python_path {
        python_path.push(':');
        python_path.push_str(&own.to_string_lossy());
    }
    let program = Foreground {
        args: &args.command,
        variables: &[
            ("PYTHONPATH", python_path),
            ("GFXPACK_TORCH_FILE", recorded.display().to_string()),
            ("GFXPACK_TORCH_COMPUTE", u8::from(args.compute).to_string()),
        ],
        output_to_stderr: output.json || file.is_none(),
    };
    let status = program.run(|text| output.pass_on(text)).map_err(not_started(&args.command))?;
    let code = exit_code(status);
    let list = fs::read_to_string(&recorded).map_err(fail::io("read", &recorded))?;
    if list.is_empty() && code != 0 {
        output.warn("the program failed before it handed anything to MIOpen: no list is written");
        return Ok(code);
    }
    if code != 0 {
        output.warn("the program failed: the list has what it handed to MIOpen until then");
    }
    let problems = if list.is_empty() {
        output.warn(
            "PyTorch would hand nothing to MIOpen, or the program does not import it: a Python \
             that is started with -I or -E can't be recorded",
        );
        BTreeSet::new()
    } else {
        read_problems(slice::from_ref(&recorded), &Options::default(), false)?.problems
    };
    match file {
        Some(path) => destination::replace(path, list)?,
        None => write(&problems, args, output)?,
    }
    report(&problems, args, output);
    Ok(code)
}

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
    }
    if let Some((line, error)) = first {
        let records = counted(file.passed_over, "record");
        output.show_warning(&format!(
            "{}: {records} skipped, the first in line {line}: {error}",
            file.name
        ));
    }
}

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
