//! Collects MIOpenDriver's commands from many inputs, without duplicates.

use std::collections::HashMap;

use gfxpack_model::{Error, Result};
use memchr::memmem;
use rayon::prelude::*;

use crate::input::Input;
use crate::log::DriverCommand;
use crate::open::{Options, read_lines};
use crate::report::{ContentKind, FileReport};

/// A command, and how often it was seen.
pub type SeenCommand = (DriverCommand, u64);

/// Commands in the order in which they were first seen.
#[derive(Default)]
struct Unique {
    list: Vec<SeenCommand>,
    places: HashMap<DriverCommand, usize>,
}

impl Unique {
    fn add(&mut self, command: DriverCommand, seen: u64) {
        if let Some(place) = self.places.get(&command) {
            self.list[*place].1 += seen;
            return;
        }
        self.places.insert(command.clone(), self.list.len());
        self.list.push((command, seen));
    }
}

/// Collects the commands of all inputs, in the order of the inputs and of the
/// commands within them. Errors of single files are in their reports.
///
/// # Errors
/// Only that the caller asked to stop.
pub fn commands(
    inputs: &[Input],
    options: &Options<'_>,
) -> Result<(Vec<SeenCommand>, Vec<FileReport>)> {
    let one = |input: &Input| {
        let mut unique = Unique::default();
        let mut report = FileReport { name: input.name(), ..FileReport::default() };
        report.error = read(input, &mut unique, &mut report, options).err();
        (unique, report)
    };
    let mut all = Unique::default();
    let mut reports = Vec::new();
    let read: Vec<_> = inputs.par_iter().with_max_len(1).map(one).collect();
    for (unique, report) in read {
        if report.error.as_ref().is_some_and(Error::is_interrupted) {
            return Err(Error::interrupted());
        }
        for (command, seen) in unique.list {
            all.add(command, seen);
        }
        reports.push(report);
    }
    Ok((all.list, reports))
}

fn read(
    input: &Input,
    unique: &mut Unique,
    report: &mut FileReport,
    options: &Options<'_>,
) -> Result {
    let each = |number, line: &[u8], cut| {
        for command in DriverCommand::in_line(line, cut) {
            match command {
                Ok(command) => {
                    report.used += 1;
                    unique.add(command, 1);
                }
                Err(error) => report.skipped.add(number, line, error),
            }
        }
    };
    let has_command = |line: &[u8]| {
        !line.starts_with(b"#") && memmem::find(line, DriverCommand::PROGRAM.as_bytes()).is_some()
    };
    match read_lines(input, options, has_command, each)? {
        Some((lines, seen)) => (report.lines, report.seen) = (lines, seen),
        None => report.kind = ContentKind::Other,
    }
    Ok(())
}
