//! `harvest`: keys and driver commands out of logs, kdbs and earlier harvests.

mod sources;

use std::collections::BTreeMap;

use gfxpack_compile::Cancel;
use gfxpack_harvest::log::DriverCommand;
use gfxpack_harvest::{FileReport, Options, SeenCommand, harvest, script};
use gfxpack_model::key_record::KeyRecord;
use gfxpack_pipeline::destination::{Destination, replace, replace_executable};
use gfxpack_pipeline::fft_plans;
use gfxpack_pipeline::line_file::{LineFile, directory_of};
use serde_json::json;

use self::sources::{bar, inputs, names, tell_files};
use crate::args::{Harvest, HarvestCommand, HarvestCommands, HarvestKeys, HarvestPlans, Sources};
use crate::fail::{self, Result};
use crate::output::{Output, counted, shown, to_file};

/// What composable kernels are told of the processor beside `-mcpu=`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `get_ck_common_compiler_flag` in
/// ck_utility_common.hpp.
const OF_THE_PROCESSOR: &str = " -DCK_AMD_GPU_GFX";

/// Runs `harvest` or one of its sub-commands.
pub(crate) fn run(args: &Harvest, cancel: &Cancel, output: &Output) -> Result {
    match &args.command {
        None => keys(&args.keys, cancel, output),
        Some(HarvestCommand::Commands(args)) => commands(args, cancel, output),
        Some(HarvestCommand::Plans(args)) => plans(args, output),
    }
}

fn plans(args: &HarvestPlans, output: &Output) -> Result {
    let found = fft_plans::harvest(&args.logs)?;
    let (plans, unsupported, damaged) = (&found.plans, found.unsupported, found.damaged);
    if plans.is_empty() {
        return Err(fail::usage(
            "failed to find a plan in these logs",
            "have rocFFT log its calls: ROCFFT_LAYER=1 ROCFFT_LOG_TRACE_PATH=FILE program",
        ));
    }
    let out = to_file(args.out.as_ref());
    match out {
        Some(out) => {
            replace(out, fft_plans::list(plans).as_bytes()).map_err(fail::io("write", out))?
        }
        None => plans.iter().for_each(|plan| {
            let plan = plan.to_string();
            output.message("plan-of-log", &json!({ "plan": plan }));
            if !output.json {
                output.data(&plan);
            }
        }),
    }
    let body = json!({
        "file": out.map(shown), "plans": plans.len(), "unsupported": unsupported, "damaged": damaged,
    });
    output.message("harvested-plans", &body);
    warn_of_plans(unsupported, damaged, output);
    output.say(&format!("{} of rocFFT", counted(plans.len(), "plan")));
    Ok(())
}

/// Says of how many plans a list can't tell.
pub(super) fn warn_of_plans(unsupported: u64, damaged: u64, output: &Output) {
    if unsupported > 0 {
        output.warn(&format!(
            "{} left out: with a scale factor or for several GPUs, which a list of plans can't have",
            counted(unsupported, "plan")
        ));
    }
    if damaged > 0 {
        output.warn(&format!(
            "{} cut short, or written into by two threads: run the program again for these plans",
            counted(damaged, "line")
        ));
    }
}

fn keys(args: &HarvestKeys, cancel: &Cancel, output: &Output) -> Result {
    let inputs = inputs(&args.sources)?;
    let bar = bar(&inputs, output);
    let read = |bytes| bar.add(bytes);
    let cancelled = || cancel.is_cancelled();
    let mut options = Options::default();
    options.max_object_bytes = args.max_object.bytes;
    options.retarget.clone_from(&args.retarget);
    options.retarget.sort();
    options.retarget.dedup();
    if let Some(out) = to_file(args.out.as_ref()) {
        // A temporary file system may be the memory that is to be spared.
        if let Destination::File(out) = Destination::follow(out).map_err(fail::io("write", out))? {
            options.temporary = directory_of(&out).to_owned();
            std::fs::create_dir_all(directory_of(&out)).map_err(fail::io("write", &out))?;
        }
    }
    options.read = Some(&read);
    options.cancelled = Some(&cancelled);
    let gathered = harvest(&inputs, &options)?;
    drop(bar);
    tell_files(&gathered.files, args.sources.keep_going, output)?;
    let mut sums = Sums::default();
    let mut out = to_file(args.out.as_ref()).map(LineFile::create).transpose()?;
    gathered.keys.for_each(|record| {
        sums.read += 1;
        if args.missed && !record.counts.was_missing() {
            return Ok(());
        }
        if !args.retarget.is_empty() && !may_exist(&record) {
            sums.not_for_processor += 1;
            return Ok(());
        }
        sums.add(&record);
        match &mut out {
            Some(out) => out.line(&record),
            None => {
                output.message("key", &record);
                if !output.json {
                    output.data(&serde_json::to_string(&record)?);
                }
                Ok(())
            }
        }
    })?;
    if sums.read == 0 {
        return Err(fail::usage(
            format!("failed to find a key in {}", names(&args.sources)),
            "MIOpen writes keys into its log where MIOPEN_LOG_LEVEL is 6 or more",
        ));
    }
    if let Some(out) = out {
        out.finish()?;
    }
    sums.tell(args, &gathered.files, output);
    Ok(())
}

/// Whether MIOpen may ask for the key on the processor that it names.
fn may_exist(record: &KeyRecord) -> bool {
    let processor = record.key.split_device().map(|(_, device)| device);
    match (record.key.source_name(), processor) {
        (Some(source), Some(processor)) => gfxpack_harvest::may_ask_for(source, processor),
        _ => true,
    }
}

/// What was harvested, in numbers.
#[derive(Default)]
struct Sums {
    read: u64,
    keys: u64,
    missed: u64,
    /// Keys that no compiler is asked for.
    uncompilable: u64,
    /// Keys with options that a solver chose for its processor.
    of_processor: u64,
    /// Keys that MIOpen never asks for on the processor they were to be for.
    not_for_processor: u64,
    devices: BTreeMap<String, u64>,
}

impl Sums {
    fn add(&mut self, record: &KeyRecord) {
        self.keys += 1;
        self.missed += u64::from(record.counts.was_missing());
        self.uncompilable += u64::from(record.key.check().is_err());
        self.of_processor += u64::from(record.key.kernel_args.contains(OF_THE_PROCESSOR));
        let device = record.key.split_device().map_or("", |(_, device)| device);
        match self.devices.get_mut(device) {
            Some(count) => *count += 1,
            None => {
                self.devices.insert(device.to_owned(), 1);
            }
        }
    }

    fn tell(&self, args: &HarvestKeys, files: &[FileReport], output: &Output) {
        let body = json!({
            "file": to_file(args.out.as_ref()).map(shown), "keys": self.keys, "missed": self.missed,
            "uncompilable": self.uncompilable, "left_out": self.not_for_processor, "devices": self.devices, "files": files.len(),
        });
        output.message("harvested", &body);
        let devices: Vec<String> = self
            .devices
            .iter()
            .map(|(device, count)| match device.as_str() {
                "" => format!("{count} for no processor by name"),
                device => format!("{count} for {device}"),
            })
            .collect();
        if self.keys == 0 {
            return output.say(&format!("nothing was missing among {}", counted(self.read, "key")));
        }
        let devices = format!(" ({})", devices.join(", "));
        output.say(&format!(
            "{}{devices}, {} of which were missing somewhere",
            counted(self.keys, "key"),
            self.missed
        ));
        if self.uncompilable > 0 {
            output.say(&format!(
                "{} of them are of no source file that gfxpack compiles",
                self.uncompilable
            ));
        }
        if self.not_for_processor > 0 {
            output.say(&format!(
                "{} left out: MIOpen does not ask for them on these processors",
                counted(self.not_for_processor, "key")
            ));
        }
        if self.of_processor > 0 && !args.retarget.is_empty() {
            output.warn(&format!(
                "{} with options that MIOpen chose for the processor it saw \
                 (-DCK_AMD_GPU_GFX…); those stay, and another processor asks with others",
                counted(self.of_processor, "key")
            ));
        }
    }
}

fn commands(args: &HarvestCommands, cancel: &Cancel, output: &Output) -> Result {
    let found = gather_commands(&args.sources, cancel, output)?;
    let commands: Vec<DriverCommand> = found.iter().map(|found| found.command.clone()).collect();
    let text = script::plain(&commands);
    match to_file(args.out.as_ref()) {
        Some(path) => replace_executable(path, &text).map_err(fail::io("write", path))?,
        // As messages they are there already.
        None if output.json => {}
        None => output.bytes(text.as_bytes()),
    }
    let body = json!({ "file": to_file(args.out.as_ref()).map(shown), "commands": commands.len() });
    output.message("harvested-commands", &body);
    output.say(&counted(commands.len(), "command"));
    Ok(())
}

/// The commands of all inputs, each told to machines.
///
/// # Errors
/// Where an input can't be read, or there is no command.
pub(super) fn gather_commands(
    sources: &Sources,
    cancel: &Cancel,
    output: &Output,
) -> Result<Vec<SeenCommand>> {
    let inputs = inputs(sources)?;
    let bar = bar(&inputs, output);
    let read = |bytes| bar.add(bytes);
    let cancelled = || cancel.is_cancelled();
    let mut options = Options::default();
    options.read = Some(&read);
    options.cancelled = Some(&cancelled);
    let (found, files) = gfxpack_harvest::commands(&inputs, &options)?;
    drop(bar);
    tell_files(&files, sources.keep_going, output)?;
    if found.is_empty() {
        return Err(fail::usage(
            format!("failed to find a driver command in {}", names(sources)),
            "MIOpen writes them into its log where MIOPEN_ENABLE_LOGGING_CMD is 1",
        ));
    }
    for SeenCommand { command, seen, .. } in &found {
        let body = json!({
            "command": command.as_str(), "operation": command.operation(), "seen": seen,
            "tunable": command.is_tunable(),
        });
        output.message("command", &body);
    }
    Ok(found)
}
