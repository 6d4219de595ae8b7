//! Disassembling code objects with LLVM's own program.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use gfxpack_process::watch::Recorder;
use gfxpack_process::{self as process, Cancel, FileError, Program, ProgramEnd, find_in_path};

use crate::discover::Search;
use crate::error::ToolchainError;
use crate::probe::successful;
use crate::toolchain::Toolchain;

const PROGRAM: &str = "llvm-objdump";
/// The largest kernels give some hundred megabytes of text.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// A disassembler of code objects.
#[derive(Debug)]
pub struct Disassembler {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Disassembler {
    /// Finds llvm-objdump beside the toolchain's clang, so that it knows the
    /// same processors, or in `PATH`.
    ///
    /// # Errors
    /// [`ToolchainError::NoProgram`].
    pub fn find(search: &Search, toolchain: Option<&Toolchain>) -> Result<Self, ToolchainError> {
        let beside = toolchain.and_then(|toolchain| {
            // A distribution's /usr/bin/clang-15 is a link into LLVM's directory.
            let clang = std::fs::canonicalize(&toolchain.clang).ok()?;
            Some(clang.parent()?.join(PROGRAM)).filter(|file| file.is_file())
        });
        let program = beside
            .or_else(|| find_in_path(PROGRAM, &search.path()))
            .ok_or_else(|| ToolchainError::NoProgram(PROGRAM.into()))?;
        Ok(Self { program, environment: search.environment.clone() })
    }

    /// The disassembly of one ELF code object, in an unnamed file whose position is at the
    /// beginning.
    ///
    /// # Errors
    /// [`ToolchainError`] if the program can't be started or fails, there is no temporary space, or
    /// the user cancels.
    pub fn run(
        &self,
        code_object: &[u8],
        processor: &str,
        cancel: &Cancel,
    ) -> Result<File, ToolchainError> {
        let scratch = process::temporary_dir()?;
        let name = scratch.path().join("kernel.o");
        let io = |source| FileError::io("write", &name)(source);
        File::create(&name).and_then(|mut file| file.write_all(code_object)).map_err(io)?;
        let mut text = tempfile::tempfile().map_err(io)?;
        let mcpu = format!("--mcpu={processor}");
        let recorder = Recorder::of_driver(scratch.path(), false).ok();
        let arguments = ["--disassemble", "--triple=amdgcn-amd-amdhsa", &mcpu, "kernel.o"];
        let output = process::run_into(
            text.try_clone().map_err(io)?,
            &Program {
                path: &self.program,
                arguments: arguments.iter().map(OsString::from).collect(),
                directory: scratch.path(),
                environment: &self.environment,
                temp_dir: scratch.path(),
                time_limit: TIME_LIMIT,
                record: recorder.as_ref(),
            },
            cancel,
        )?;
        if matches!(output.end, ProgramEnd::Cancelled) {
            return Err(ToolchainError::Interrupted);
        }
        successful(&self.program, &arguments, output)?;
        text.seek(SeekFrom::Start(0)).map_err(io)?;
        Ok(text)
    }
}
