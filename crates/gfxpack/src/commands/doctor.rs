//! `doctor`: reports problems on this machine, and what to do.

use std::path::Path;

use clap::builder::styling::AnsiColor;
use gfxpack_pipeline::doctor::{
    Finding, Findings, InstalledFiles, Level, check_compilers, check_device_code, check_devices,
    check_installed, check_libraries, check_rocfft, check_target, check_variables,
};
use gfxpack_runtime::Environment;

use super::{detect, env, lookup};
use crate::args::{CacheDir, Doctor, SYSFS, ToolchainArgs};
use crate::context::Context;
use crate::fail::{Error, ErrorKind, Result};
use crate::options;
use crate::output::{Output, counted};

/// Runs all checks, and fails if there is a problem; or lists the environment.
pub(crate) fn run(args: &Doctor, context: &Context) -> Result {
    let Context { environment: machine, cancel, output } = context;
    if args.env {
        return env::run(&args.asked, output);
    }
    let environment = Environment::read();
    let mut report = |finding: &Finding| print(finding, output);
    let mut findings = Findings::new(&mut report);
    let targets = match &args.asked.target {
        Some(target) => {
            check_target(target, &mut findings);
            vec![target.clone()]
        }
        None => {
            let hardware = &args.asked.hardware;
            let detection = detect::detect(hardware, &environment)?;
            check_devices(&detection, hardware.sysfs == Path::new(SYSFS), &mut findings)
        }
    };
    check_variables(&environment, &mut findings);
    let libraries =
        lookup::miopen_places(&args.asked).libraries(machine.run.rocm_path.as_deref())?;
    let versions = check_libraries(&libraries, &mut findings);
    check_device_code(machine.run.rocm_path.as_deref(), &targets, &mut findings);
    check_rocfft(
        machine.run.rocm_path.as_deref(),
        &targets,
        &machine.rocfft,
        args.deep,
        cancel,
        &mut findings,
    );
    let installed = InstalledFiles {
        environment: &environment,
        directories: &lookup::directories(&args.asked, &environment, output)?,
        targets: &targets,
        versions: &versions,
        deep: args.deep,
    };
    check_installed(installed, &mut findings);
    let cache = options::cache_dir(&CacheDir::default(), machine);
    let search = options::search(&ToolchainArgs::default(), machine);
    check_compilers(installed, &search, &cache, cancel, &mut findings);
    match findings.problems() {
        0 => Ok(()),
        problems => Err(Error::new(
            ErrorKind::Unsound,
            format!("found {} on this machine", counted(problems, "problem")),
            "each problem above says what to do",
        )),
    }
}

/// How the beginnings of lines look on a terminal.
const COLORS: [(&str, AnsiColor); 4] = [
    ("problem ", AnsiColor::Red),
    ("warning ", AnsiColor::Yellow),
    ("ok ", AnsiColor::Green),
    ("hint:", AnsiColor::Cyan),
];

fn print(finding: &Finding, output: &Output) {
    output.message("check", finding);
    if finding.level >= Level::Warning || !output.quiet {
        output.painted(&COLORS, &finding.to_string());
    }
}
