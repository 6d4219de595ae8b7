//! The setup of the probe and of MIOpenDriver: a directory of their own, empty libraries in place
//! of those of the GPU, and a clean environment.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_model::{Error, Result};
use gfxpack_stock_library::{ElfFile, Library, Needs, ProbeDirectory, is_sqlite};

use crate::ask::AskOptions;
use crate::ask::plan::Phase;
use crate::library::{MIOPEN, NOT_SUPPORTED};

/// One start of the library: for a phase, with these databases.
#[derive(Debug, Clone)]
pub(crate) struct Setup<'a> {
    pub(crate) library: &'a Library,
    pub(crate) options: &'a AskOptions,
    pub(crate) phase: &'a Phase,
    /// The device, in HIP's form.
    pub(crate) architecture: String,
    pub(crate) compute_units: u32,
    /// The directory of system databases.
    pub(crate) databases: Option<PathBuf>,
    /// The find database of the step `hit`.
    pub(crate) find_db: Option<PathBuf>,
    /// Whether kernels are looked up by the real SQLite.
    pub(crate) real_kernels: bool,
    /// The lines that say which kernels nobody can compile.
    pub(crate) withheld: &'a [u8],
}

impl Setup<'_> {
    /// Creates a directory for the probe, or for a program that needs libraries of its own.
    pub(crate) fn create_directory(&self, program: Option<&Path>) -> Result<ProbeDirectory> {
        let scratch = &self.options.scratch;
        let directory = ProbeDirectory::create(&MIOPEN, self.library, program, scratch)?;
        directory.create_dir("no-databases")?;
        Ok(directory)
    }

    /// A program's command line and complete environment. The library gets no other variables.
    pub(crate) fn command(
        &self,
        directory: &ProbeDirectory,
        program: &Path,
        preload: Option<&Path>,
    ) -> Command {
        // The current directory differs for each process, and so do the library's user files.
        let user = "/proc/self/cwd";
        let no_databases = || directory.path().join("no-databases");
        let mut command = directory.command(self.library, program, preload);
        command
            .env("MIOPEN_SYSTEM_DB_PATH", self.databases.clone().unwrap_or_else(no_databases))
            .env("MIOPEN_USER_DB_PATH", user)
            .env("MIOPEN_CUSTOM_CACHE_DIR", user)
            .env("MIOPEN_LOG_LEVEL", "1")
            // Threads would cost more than they save, since compiling takes no time.
            .env("MIOPEN_COMPILE_PARALLEL_LEVEL", "1");
        if self.phase.assembler {
            // The file must only exist.
            command.env("MIOPEN_EXPERIMENTAL_GCN_ASM_PATH", preload.unwrap_or(program));
        }
        command
    }
}

/// Checks that all libraries and functions that a library or program needs exist, or are defined by
/// `stand_ins`, a program or library.
pub(crate) fn check_needs(file: &Path, search_path: &[PathBuf], stand_ins: &Path) -> Result {
    let needs = Needs::of_file(file, search_path).map_err(|error| MIOPEN.unreadable(error))?;
    let missing = needs.missing.into_iter().filter(|soname| !is_sqlite(soname));
    let sonames: Vec<String> = missing.collect();
    if !sonames.is_empty() {
        return Err(Error::internal(
            format!("failed to find what libMIOpen needs: {}", sonames.join(", ")),
            "unpack these libraries into the same tree, or install them",
        ));
    }
    File::open(stand_ins).map_err(MIOPEN.not_started(stand_ins))?;
    let read = |file: &Path| {
        let object = ElfFile::open(file).and_then(|file| file.shared_object());
        object.map_err(|error| MIOPEN.unreadable(error))
    };
    let defined = read(stand_ins)?.defined;
    // The stand-in also has SQLite's functions, whether or not there is a real one.
    let sqlite = read(file)?.undefined.into_iter().map(|symbol| symbol.name);
    let sqlite = sqlite.filter(|name| name.starts_with("sqlite3_"));
    let mut wanted = needs.symbols;
    wanted.extend(sqlite);
    let symbols: Vec<String> = wanted.difference(&defined).cloned().collect();
    if symbols.is_empty() {
        return Ok(());
    }
    let symbols = symbols.join(", ");
    let message = format!("this libMIOpen needs functions that gfxpack can't replace: {symbols}");
    Err(Error::internal(message, NOT_SUPPORTED))
}
