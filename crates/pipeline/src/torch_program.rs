//! Runs a program, and has PyTorch tell what it would hand to MIOpen.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;

use gfxpack_process::{Foreground, ScratchDir, temporary_dir};

use crate::error::{self, Result};
use crate::program_run::not_started;

macro_rules! files {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../python/", $name)))),*] };
}

/// The Python package that records, and what starts it in every Python.
const FILES: [(&str, &str); 4] = files!(
    "gfxpack_torch/__init__.py" "gfxpack_torch/_no_gpu.py" "gfxpack_torch/_problems.py"
    "start/sitecustomize.py"
);

/// A program and how to run it.
#[derive(Debug)]
pub struct TorchProgram<'a> {
    /// The program, which is searched for in `PATH`, and its arguments. Not empty.
    pub args: &'a [OsString],
    /// The user's `PYTHONPATH`.
    pub python_path: Option<&'a OsStr>,
    /// Whether tensors are computed.
    pub compute: bool,
    /// Whether the program's stdout goes to the caller's stderr.
    pub output_to_stderr: bool,
}

/// How a program ended, and its problems.
#[derive(Debug)]
pub struct Recorded {
    /// How it ended.
    pub status: ExitStatus,
    /// The list, which is empty if nothing was recorded.
    pub list: PathBuf,
    _directory: ScratchDir,
}

impl TorchProgram<'_> {
    /// Runs the program to its end. It inherits stdin and stdout; its stderr is passed to `show` as
    /// it comes.
    ///
    /// # Errors
    /// If the program can't be started, or the recorder can't be written. The program's exit status
    /// is not an error.
    pub fn run(&self, show: &mut dyn FnMut(&[u8])) -> Result<Recorded> {
        let directory = temporary_dir()?;
        let list = directory.path().join("problems.txt");
        for (name, text) in FILES.into_iter().chain([("problems.txt", "")]) {
            let path = directory.path().join(name);
            let parent = path.parent().unwrap_or(directory.path());
            fs::create_dir_all(parent).map_err(error::io("create", parent))?;
            fs::write(&path, text).map_err(error::io("write", &path))?;
        }
        let mut python_path = format!("{0}/start:{0}", directory.path().display());
        if let Some(own) = self.python_path {
            python_path.push(':');
            python_path.push_str(&own.to_string_lossy());
        }
        let variables = [
            ("PYTHONPATH", python_path),
            ("GFXPACK_TORCH_FILE", list.display().to_string()),
            ("GFXPACK_TORCH_COMPUTE", u8::from(self.compute).to_string()),
        ];
        let (args, output_to_stderr) = (self.args, self.output_to_stderr);
        let program = Foreground { args, variables: &variables, output_to_stderr };
        let status = program.run(|piece| show(piece)).map_err(not_started(self.args))?;
        Ok(Recorded { status, list, _directory: directory })
    }
}
