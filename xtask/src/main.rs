//! The tasks of a checkout: `cargo xtask dist`, `test`, `bench`, `ci`, `release`, `update-miopen`.
//!
//! It depends on no crate of the workspace: it runs their command line like a user.

mod bench;
mod ci;
mod dist;
mod release;
mod setup;
mod test;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use xshell::{Shell, cmd};

/// Tasks of a checkout. Run as `cargo xtask <TASK>`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
enum Xtask {
    Dist(dist::Dist),
    Release(release::Release),
    Test(test::Test),
    Ci(ci::Ci),
    Bench(bench::Bench),
    /// Pin the newest libMIOpen of Debian's archive in packaging/miopen.lock
    UpdateMiopen {
        /// The suite to take it from
        #[arg(long, default_value = "sid")]
        suite: String,
    },
}

fn main() -> ExitCode {
    let (own, passed) = split(std::env::args_os().collect());
    match run(Xtask::parse_from(own), passed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Xtask, passed: Vec<OsString>) -> anyhow::Result<()> {
    let sh = Shell::new()?;
    match task {
        Xtask::Dist(dist) => dist.run(&sh, passed),
        Xtask::Release(release) => release.run(&sh),
        Xtask::Test(test) => test.run(&sh, passed),
        Xtask::Ci(ci) => ci.run(&sh),
        Xtask::Bench(bench) => bench.run(&sh),
        Xtask::UpdateMiopen { suite } => update_miopen(&sh, &suite),
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The root of the checkout in which this task was started.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root").to_owned()
}

/// Prints a message on stderr. stdout belongs to the programs that xtask runs.
#[expect(clippy::print_stderr, reason = "the one place that prints")]
fn print(text: &str) {
    eprintln!("{text}");
}

/// Pins the libMIOpen that `cargo xtask dist` asks, by `gfxpack miopen`.
fn update_miopen(sh: &Shell, suite: &str) -> anyhow::Result<()> {
    sh.change_dir(root());
    let (miopen, lock) = (format!("debian:{suite}"), "packaging/miopen.lock");
    cmd!(sh, "cargo run --quiet --package gfxpack --bin gfxpack --")
        .args(["miopen", "--miopen", &miopen, "--lock", lock])
        .run()?;
    Ok(cmd!(sh, "git --no-pager diff --stat -- {lock}").ignore_status().run()?)
}

/// Separates the arguments of xtask from those that `dist` and `test` pass on.
///
/// clap would drop a leading `--`, and pass on a `--setup` that is not at the
/// beginning.
fn split(args: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    const OURS: &[&str] = &["--setup", "--tool", "--source", "--rpm", "--clean-root"];
    let passes_on = args.get(1).is_some_and(|task| task == "dist" || task == "test");
    if !passes_on || args.get(2).is_some_and(|arg| arg == "--help" || arg == "-h") {
        return (args, Vec::new());
    }
    let (mut own, mut passed) = (Vec::new(), Vec::new());
    let mut args = args.into_iter();
    own.extend(args.by_ref().take(2));
    while let Some(arg) = args.next() {
        if arg == "--" {
            passed.push(arg);
            passed.extend(args);
            break;
        }
        let name = arg.to_string_lossy();
        let name = name.split('=').next().unwrap_or_default();
        if OURS.contains(&name) { own.push(arg) } else { passed.push(arg) }
    }
    (own, passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, own: &str, passed: &str) {
        let arguments =
            |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(split(arguments(line)), (arguments(own), arguments(passed)), "{line}");
    }

    #[test]
    fn arguments_that_are_not_ours_are_passed_on() {
        check("x dist --setup --target gfx906", "x dist --setup", "--target gfx906");
        check("x dist --target gfx906 --setup", "x dist --setup", "--target gfx906");
        check("x dist --help", "x dist --help", "");
        check("x dist --target gfx906 --help", "x dist", "--target gfx906 --help");
        check("x dist --clean-root=sid --setup", "x dist --clean-root=sid --setup", "");
        check("x test -- --nocapture", "x test", "-- --nocapture");
        check("x test kdb -- --setup", "x test", "kdb -- --setup");
        check("x bench --setup", "x bench --setup", "");
        check("x", "x", "");
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Xtask::command().debug_assert();
    }
}
