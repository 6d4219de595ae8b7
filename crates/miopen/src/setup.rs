//! The setup of the probe and of MIOpenDriver: a directory of their own, empty libraries in place
//! of those of the GPU, and a clean environment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gfxpack_stock_library::{
    ElfError, ElfFile, Library, Needs, ProbeDirectory, ProbeError, is_sqlite,
};

use crate::error::AskError;

/// The setup of the library.
#[derive(Debug, Clone)]
pub(crate) struct Setup<'a> {
    pub(crate) library: &'a Library,
    /// The probe's executable.
    pub(crate) probe: &'a Path,
    /// The directory for temporary files if they can't be in memory.
    pub(crate) scratch: &'a Path,
    /// The device, in HIP's form.
    pub(crate) architecture: String,
    pub(crate) compute_units: u32,
    /// The directory of system databases.
    pub(crate) databases: Option<PathBuf>,
    /// Whether the library finds an assembler; otherwise, the one that it finds itself, if any.
    pub(crate) assembler: bool,
    /// Whether kernels are looked up by the real SQLite.
    pub(crate) real_kernels: bool,
    pub(crate) time_limit: Duration,
    /// The lines that say which kernels nobody can compile.
    pub(crate) withheld: &'a [u8],
}

impl Setup<'_> {
    /// Creates a directory for the probe, or for a program that needs libraries of its own.
    ///
    /// # Errors
    /// [`ProbeError::Elf`] or [`ProbeError::Scratch`].
    pub(crate) fn create_directory(
        &self,
        program: Option<&Path>,
    ) -> Result<ProbeDirectory, ProbeError> {
        let directory = ProbeDirectory::create(self.library, program, self.scratch)?;
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
        if self.assembler {
            // The file must only exist.
            command.env("MIOPEN_EXPERIMENTAL_GCN_ASM_PATH", preload.unwrap_or(program));
        }
        command
    }
}

/// Checks that all libraries and functions that a library or program needs exist, or are defined by
/// `stand_ins`, a program or library.
///
/// # Errors
/// [`AskError`]: something is missing, or can't be read.
pub(crate) fn check_needs(
    file: &Path,
    search_path: &[PathBuf],
    stand_ins: &Path,
) -> Result<(), AskError> {
    let needs = Needs::of_file(file, search_path)?;
    let missing = needs.missing.into_iter().filter(|soname| !is_sqlite(soname));
    let sonames: Vec<String> = missing.collect();
    if !sonames.is_empty() {
        return Err(AskError::MissingLibraries { sonames });
    }
    let defined = match ElfFile::open(stand_ins).and_then(|file| file.shared_object()) {
        Ok(object) => object.defined,
        Err(ElfError::Io { source, .. }) => {
            return Err(ProbeError::Start { probe: stand_ins.to_owned(), source }.into());
        }
        Err(error) => return Err(error.into()),
    };
    // The stand-in also has SQLite's functions, whether or not there is a real one.
    let undefined = ElfFile::open(file)?.shared_object()?.undefined;
    let sqlite = undefined.into_iter().map(|symbol| symbol.name);
    let sqlite = sqlite.filter(|name| name.starts_with("sqlite3_"));
    let mut wanted = needs.symbols;
    wanted.extend(sqlite);
    let symbols: Vec<String> = wanted.difference(&defined).cloned().collect();
    if symbols.is_empty() { Ok(()) } else { Err(AskError::MissingSymbols { symbols }) }
}
