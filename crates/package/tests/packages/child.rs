//! Runs a writer in another process, so that a test can change its environment
//! and limits, or kill it.

use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_model::Result;
use gfxpack_model::package::{Content, PackageFile, PackageSpec};
use gfxpack_package::{Compression, FORMATS, Format, Written};

use super::support::{awkward_spec, spec_with, tool};

/// Every format that users can choose, and those whose compression can be chosen with each, as
/// `deb-gz`.
pub(crate) fn kinds() -> Vec<(String, Format)> {
    let codecs = [
        ("xz", Compression::Xz { level: 0 }),
        ("gz", Compression::Gz { level: 1 }),
        ("zst", Compression::Zst { level: 1 }),
    ];
    let mut kinds = Vec::new();
    for (name, _, format) in FORMATS {
        kinds.push((name.to_owned(), format));
        let chosen =
            codecs.map(|(codec, by)| (format!("{name}-{codec}"), format.compressed(Some(by))));
        kinds.extend(chosen.into_iter().filter(|(_, other)| *other != format));
    }
    kinds
}

/// Writes one of [`kinds`].
pub(crate) fn write(kind: &str, spec: &PackageSpec, dir: &Path, threads: usize) -> Result<Written> {
    let kinds = kinds();
    let (_, format) = kinds.iter().find(|(name, _)| name == kind).expect("a kind");
    format.write(spec, dir, threads, None)
}

/// The package that a child writes.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// [`awkward_spec`] with its files in reverse order, and inputs that are
    /// written again.
    Awkward,
    /// The file `input` in the input directory.
    OneFile,
}

/// The command of a child that writes `kind` into `out`, run by `sh`. `before` is
/// shell code to run first, such as `umask 077;`.
pub(crate) fn command(before: &str, job: Job, kind: &str, inputs: &Path, out: &Path) -> Command {
    let program = std::env::current_exe().expect("a test knows its program");
    // Two crates have this module, at different paths.
    let (_crate, module) = module_path!().split_once("::").expect("a module");
    let child = format!("{module}::child_process_writes_a_package");
    let job = match job {
        Job::Awkward => "awkward",
        Job::OneFile => "one-file",
    };
    let mut command = tool("/bin/sh");
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["--exact", &child, "--nocapture", "--quiet", "--ignored"])
        .env("GFXPACK_TEST_CHILD", format!("{job} {kind}"))
        .env("GFXPACK_TEST_INPUTS", inputs)
        .env("GFXPACK_TEST_OUT", out);
    command
}

/// A value that a child printed as a line `key value`.
pub(crate) fn printed_value(stdout: &str, key: &str) -> Option<String> {
    let begin = format!("child: {key} ");
    stdout.lines().find_map(|line| Some(line.split_once(&begin)?.1.to_owned()))
}

#[expect(clippy::disallowed_methods, reason = "a child is told what to do by its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
#[ignore = "the other tests run it as their child process"]
#[expect(clippy::print_stdout, reason = "that is how the parent hears of the result")]
fn child_process_writes_a_package() {
    let Some(job) = variable("GFXPACK_TEST_CHILD") else { return };
    let path = |name| PathBuf::from(variable(name).expect("the parent sets it"));
    let (inputs, out) = (path("GFXPACK_TEST_INPUTS"), path("GFXPACK_TEST_OUT"));
    let (job, kind) = job.split_once(' ').expect("job and kind");
    let spec = match job {
        "awkward" => {
            let mut spec = awkward_spec(&inputs);
            spec.files.reverse();
            spec
        }
        "one-file" => spec_with(vec![PackageFile::readable(
            "/opt/rocm-6.3.4/share/miopen/db/gfx1030.kdb",
            Content::File(inputs.join("input")),
        )]),
        other => panic!("no job {other}"),
    };
    match write(kind, &spec, &out, 2) {
        Ok(written) => println!("\nchild: wrote {}", written.sha256),
        Err(error) => {
            println!("\nchild: failed {error}");
            println!("child: hint {}", error.hint().unwrap_or_default());
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    println!("child: peak-kib {}", peak.trim().trim_end_matches(" kB"));
}
