//! Compiles a HIP source for the host: the source, a replacement for HIP's header, and the
//! simulator that calls the kernels.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// As HIP kernels are compiled, but for the host; optimised little, since
/// compiling takes longer than running. The sanitizer traps: it needs no
/// library, and the simulator says which thread it was.
const OPTIONS: &[&str] =
    &["-std=c++17", "-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];

/// Where programs are built, and the part that all of them share.
pub(crate) struct Workshop {
    directory: TempDir,
    built: AtomicUsize,
}

/// A source built with one set of options.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The kernels that the source holds with these options.
    pub(crate) kernels: Vec<String>,
}

#[expect(clippy::disallowed_methods, reason = "tests start the tools that they need")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Runs a tool to its end and returns its standard output.
pub(crate) fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| {
        format!("failed to start `{name}`; `cargo xtask test --setup` installs what tests need")
    })?;
    ensure!(
        output.status.success(),
        "failed to run `{name}` ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

fn shim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/shim")
}

impl Workshop {
    pub(crate) fn open() -> Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory to build in")?;
        let simulator = directory.path().join("simulator.o");
        // Fibers jump between stacks, which the fortified longjmp takes for an error.
        run(command("c++")
            .args(["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-c"])
            .arg("-I")
            .arg(shim())
            .arg(shim().join("simulator.cpp"))
            .arg("-o")
            .arg(&simulator))?;
        Ok(Self { directory, built: AtomicUsize::new(0) })
    }

    /// Builds a source of the library with `launched` callable by name.
    pub(crate) fn build(
        &self,
        library: &Path,
        source: &Path,
        options: &str,
        launched: &[&str],
    ) -> Result<Program> {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(number.to_string());
        let main = path.with_extension("cpp");
        let object = path.with_extension("o");
        std::fs::write(&main, main_source(&library.join(source), launched)?)
            .with_context(|| format!("failed to write `{}`", main.display()))?;
        run(command("c++")
            .args(OPTIONS)
            .args(options.split_whitespace())
            .arg("-I")
            .arg(shim())
            .arg("-I")
            .arg(library.join("include"))
            .arg("-c")
            .arg(&main)
            .arg("-o")
            .arg(&object))?;
        let symbols = run(command("nm").args(["-g", "--defined-only"]).arg(&object))?;
        run(command("c++")
            .arg(&object)
            .arg(self.directory.path().join("simulator.o"))
            .arg("-o")
            .arg(&path))?;
        Ok(Program { path, kernels: kernels(&String::from_utf8_lossy(&symbols)) })
    }
}

fn main_source(source: &Path, launched: &[&str]) -> Result<String> {
    let mut text = format!("#include {:?}\n#include \"launch.hpp\"\n", source.canonicalize()?);
    text.push_str("int main() {\n    static const simulator::Kernel kernels[] = {\n");
    for name in launched {
        writeln!(text, "        simulator::Bound<{name}>::kernel(\"{name}\"),")?;
    }
    writeln!(text, "    }};\n    return simulator::serve(kernels, {});\n}}", launched.len())?;
    Ok(text)
}

/// The functions in `nm`'s list with C's names: kernels are `extern "C"`, and
/// nothing else in a kernel source is.
fn kernels(symbols: &str) -> Vec<String> {
    symbols
        .lines()
        .filter_map(|line| line.split_once(" T "))
        .map(|(_, name)| name.to_owned())
        .filter(|name| name != "main" && !name.starts_with("_Z"))
        .collect()
}
