//! `doctor`: reports what is wrong or suspicious on this machine, and what to do about it; with
//! `--env`, lists the variables that matter at run time, and the places of databases.

mod databases;
mod kdbs;
mod libraries;
mod user_cache;

use std::cell::Cell;
use std::path::Path;

use clap::builder::styling::AnsiColor;
use gfxpack_pipeline::inputs::unknown_count;
use gfxpack_runtime::device::{Detection, Source};
use gfxpack_runtime::{Environment, Target, database_directories, user_database_dir};
use gfxpack_tuning::{DatabaseName, DatabaseOwner};
use rustix::fs::Access;
use serde_json::json;

use super::{detect, lookup};
use crate::args::{Doctor, LookupArgs, SYSFS};
use crate::context::Context;
use crate::fail::{Error, ErrorKind, Result};
use crate::output::{Output, counted, display, message};

const DEVICE: &str = "device";
const ENVIRONMENT: &str = "environment";
/// The device file that programs open for computing.
const KFD: &str = "/dev/kfd";

/// Runs all checks, and fails if there is a problem; or lists the environment.
pub(crate) fn run(args: &Doctor, context: &Context) -> Result {
    let Context { environment: machine, cancel, output } = context;
    let environment = Environment::read();
    if args.env {
        return list_environment(&args.asked, &environment, output);
    }
    let findings = Findings { output, problems: Cell::new(0) };
    let targets = match &args.asked.target {
        Some(target) => {
            findings.note(DEVICE, format!("{target}, as given; the hardware is not asked"));
            if let Some(doubt) = unknown_count(target) {
                findings.warning(DEVICE, doubt, "`gfxpack targets` lists the counts");
            }
            vec![target.clone()]
        }
        None => {
            let hardware = &args.asked.hardware;
            let detection = detect::detect(hardware, &environment)?;
            check_devices(&detection, hardware.sysfs == Path::new(SYSFS), &findings)
        }
    };
    check_variables(&environment, &findings);
    let rocm = gfxpack_pipeline::environment::ENVIRONMENT.rocm_path.as_deref();
    let places = lookup::libraries(&args.asked, rocm)?;
    let versions = libraries::check_miopen(&places, &findings);
    libraries::check_device_code(rocm, &targets, &findings);
    libraries::check_rocfft(machine, &targets, args.deep, cancel, &findings);
    let directories = lookup::directories(&args.asked, &environment, output)?;
    kdbs::check_directories(&directories, &findings);
    kdbs::check(&directories, &targets, &versions, args.deep, &findings);
    user_cache::check(&directories, &findings);
    databases::check(&environment, &directories, &targets, &findings);
    user_cache::check_compilers(&directories, args.deep, cancel, &findings);
    match findings.problems.get() {
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

/// Prints each finding when it is made, and counts problems: where kernels are not found, or
/// should not be trusted.
struct Findings<'a> {
    output: &'a Output,
    problems: Cell<usize>,
}

impl Findings<'_> {
    fn ok(&self, about: &str, message: impl AsRef<str>) {
        self.add("ok", about, message.as_ref(), None);
    }

    fn note(&self, about: &str, message: impl AsRef<str>) {
        self.add("note", about, message.as_ref(), None);
    }

    fn warning(&self, about: &str, message: impl AsRef<str>, hint: impl AsRef<str>) {
        self.add("warning", about, message.as_ref(), Some(hint.as_ref()));
    }

    fn problem(&self, about: &str, message: impl AsRef<str>, hint: impl AsRef<str>) {
        self.problems.set(self.problems.get() + 1);
        self.add("problem", about, message.as_ref(), Some(hint.as_ref()));
    }

    fn add(&self, level: &str, about: &str, message: &str, hint: Option<&str>) {
        let body = json!({ "level": level, "about": about, "message": message, "hint": hint });
        self.output.message("check", &body);
        if hint.is_some() || !self.output.quiet {
            let hint = hint.map(|hint| format!("\n{:<21}hint: {hint}", "")).unwrap_or_default();
            self.output.painted(&COLORS, &format!("{level:<8} {about:<11} {message}{hint}"));
        }
    }
}

/// Checks the detected devices, and returns their targets without duplicates. `is_here` says that
/// sysfs is that of this machine and not a copy.
fn check_devices(detection: &Detection, is_here: bool, findings: &Findings<'_>) -> Vec<Target> {
    for device in &detection.devices {
        findings.ok(DEVICE, device.to_string());
    }
    for note in &detection.notes {
        findings.note(DEVICE, note);
    }
    match detection.devices.first().map(|device| device.source) {
        None => findings.problem(
            DEVICE,
            "no AMD GPU was found",
            "on a machine that has one, load the driver amdgpu (`modprobe amdgpu`; `dmesg` tells what \
             it says); for another machine's, say --target",
        ),
        Some(Source::Pci) => findings.problem(
            DEVICE,
            "the GPU can't be used to compute: the driver amdgpu does not offer it",
            "`modprobe amdgpu`, and see `dmesg`; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Some(Source::Kfd) if detection.hip.is_some() => findings.problem(
            DEVICE,
            "the kernel driver knows a GPU, and the HIP runtime does not see it",
            "see HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, the rights to /dev/kfd, and whether \
             this ROCm release knows the GPU",
        ),
        Some(_) => {}
    }
    if !detection.devices.is_empty() && is_here {
        check_access(findings);
    }
    let mut targets: Vec<Target> = Vec::new();
    for target in detection.devices.iter().map(|device| device.target()) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

/// Checks that this user may open the device file.
fn check_access(findings: &Findings<'_>) {
    match rustix::fs::access(KFD, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => findings.ok(DEVICE, format!("{KFD} may be opened")),
        Err(rustix::io::Errno::NOENT) => findings.problem(
            DEVICE,
            format!("{KFD} is not there"),
            "load the driver amdgpu; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Err(error) => findings.problem(
            DEVICE,
            format!("{KFD} may not be opened by this user: {error}"),
            "add the user to its group: `usermod -a -G render,video USER`, and log in again",
        ),
    }
}

/// Checks the variables that matter at run time, and those that make MIOpen tune.
fn check_variables(environment: &Environment, findings: &Findings<'_>) {
    for variable in environment.variables() {
        let Some(value) = variable.value else { continue };
        let what = format!("{}=`{value}`: {}", variable.name, variable.effect);
        if variable.effect.starts_with("not ") {
            findings.problem(ENVIRONMENT, what, "correct it, or unset it");
        } else if variable.name == "MIOPEN_DISABLE_CACHE" && environment.disable_cache() {
            let hint = "unset it: every kernel is compiled anew in every process";
            findings.warning(ENVIRONMENT, what, hint);
        } else if !["HOME", "TMPDIR"].contains(&variable.name) {
            // Those two are set for every user.
            findings.note(ENVIRONMENT, what);
        }
    }
    // What was left set after tuning: programs are slow with it.
    let hint = "when nothing is to be tuned, unset it: `eval \"$(gfxpack tune env off)\"`";
    if let Some(value) = environment.find_enforce()
        && let Some(effect) = effect_of_enforcing(value)
    {
        findings.warning("tuning", format!("MIOPEN_FIND_ENFORCE=`{value}`: {effect}"), hint);
    }
    let user_db = user_database_dir(environment).0;
    if let Some(dir) = environment.system_db_path().filter(|dir| is_users(dir, &user_db)) {
        let message = format!(
            "MIOPEN_SYSTEM_DB_PATH=`{}`: these are the user's databases, so the installed ones and \
             installed kernels are not found",
            dir.display()
        );
        findings.warning("tuning", message, hint);
    }
}

/// The effect on MIOpen of a value of MIOPEN_FIND_ENFORCE; `None` if it has none.
///
/// Source: ROCm/MIOpen 2d1fd997a, `FindEnforceAction` in find_controls.hpp.
fn effect_of_enforcing(value: &str) -> Option<&'static str> {
    match value.to_ascii_uppercase().as_str() {
        "2" | "DB_UPDATE" => Some("MIOpen measures every problem again in each program"),
        "3" | "SEARCH" => Some("MIOpen tunes for every problem that its databases lack"),
        "4" | "SEARCH_DB_UPDATE" => Some("MIOpen tunes for every problem in each program"),
        "5" | "DB_CLEAN" => Some("MIOpen removes the results of tuning that it comes across"),
        _ => None,
    }
}

/// Whether a directory holds a user's databases, but no system's.
fn is_users(dir: &Path, user_db: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| DatabaseName::from_path(&entry.path()));
    let (users, systems): (Vec<_>, Vec<_>) =
        names.partition(|name| name.owner == DatabaseOwner::User);
    dir == user_db || !users.is_empty() && systems.is_empty()
}

/// Lists all variables, set or not, and where MIOpen looks for databases, each kind in the order
/// of lookup.
fn list_environment(asked: &LookupArgs, environment: &Environment, output: &Output) -> Result {
    let directories = lookup::usual_directories(asked, environment, output)?;
    let variables = environment.variables();
    let width = variables.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    for mut variable in variables {
        let ignored = variable.value.as_deref();
        let ignored = ignored.and_then(|value| directories.rules.ignores(variable.name, value));
        variable.effect = ignored.unwrap_or(variable.effect);
        message!(output, "variable", {
            "name": variable.name, "value": variable.value, "effect": variable.effect,
        });
        let value = variable.value.as_deref().map_or("-".to_owned(), |text| format!("`{text}`"));
        output.text(&format!("{:<width$}  {value}", variable.name));
        output.text(&format!("{:<width$}    {}", "", variable.effect));
    }
    for directory in database_directories(environment, &directories, None, None) {
        let (kind, layer) = (directory.kind.name(), directory.layer.name());
        message!(output, "database-place", {
            "database": kind, "layer": layer, "dir": display(&directory.dir), "names": directory.names,
            "rule": directory.rule, "files": directory.existing().iter().map(display).collect::<Vec<_>>(),
        });
        let (dir, files) = (directory.dir.display(), counted(directory.existing().len(), "file"));
        let names = directory.names.join(" ");
        output.text(&format!("{kind:<11} {layer:<6}  {dir}/{names}"));
        output.text(&format!("{:<20}  {}, {files}", "", directory.rule));
    }
    Ok(())
}
