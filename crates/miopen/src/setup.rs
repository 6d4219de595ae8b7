//! What the probe and MIOpenDriver are started with: a directory of their own,
//! empty libraries in place of those of the GPU's side, and an environment that
//! has nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gfxpack_stock_library::{
    ElfError, ElfFile, Library, Needs, ProbeDirectory, ProbeError, is_sqlite,
};

use crate::error::AskError;

/// How the library is set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup<'a> {
    pub(crate) library: &'a Library,
    /// The probe's executable.
    pub(crate) probe: &'a Path,
    /// Where temporary files go where none can lie in memory.
    pub(crate) scratch: &'a Path,
    /// The device, in HIP's words.
    pub(crate) architecture: String,
    pub(crate) compute_units: u32,
    /// The directory of system databases.
    pub(crate) databases: Option<PathBuf>,
    /// Whether lookups of kernels go to the real SQLite.
    pub(crate) real_kernels: bool,
    pub(crate) time_limit: Duration,
}

impl Setup<'_> {
    /// A directory for the probe, or for a program that needs libraries of its own.
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

    /// A program's command line and all of its environment: nothing else
    /// reaches the library.
    pub(crate) fn command(
        &self,
        directory: &ProbeDirectory,
        program: &Path,
        preload: Option<&Path>,
    ) -> Command {
        // The current directory is that of each process: what the library keeps of a user lies there.
        let user = "/proc/self/cwd";
        let no_databases = || directory.path().join("no-databases");
        let mut command = directory.command(self.library, program, preload);
        command
            .env("MIOPEN_SYSTEM_DB_PATH", self.databases.clone().unwrap_or_else(no_databases))
            .env("MIOPEN_USER_DB_PATH", user)
            .env("MIOPEN_CUSTOM_CACHE_DIR", user)
            .env("MIOPEN_LOG_LEVEL", "1")
            // Threads would cost more than they save, where a compile takes no time.
            .env("MIOPEN_COMPILE_PARALLEL_LEVEL", "1")
            // Some builds find no assembler, and then no solver in assembly applicable. The file
            // is only looked for.
            .env("MIOPEN_EXPERIMENTAL_GCN_ASM_PATH", preload.unwrap_or(program));
        command
    }
}

/// Compares what a library or program needs with what is there, and with what
/// `stand_ins`, a program or library, defines.
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
    // SQLite's functions are stood in for, whether there is a real one or not.
    let undefined = ElfFile::open(file)?.shared_object()?.undefined;
    let sqlite = undefined.into_iter().map(|symbol| symbol.name);
    let sqlite = sqlite.filter(|name| name.starts_with("sqlite3_"));
    let mut wanted = needs.symbols;
    wanted.extend(sqlite);
    let symbols: Vec<String> = wanted.difference(&defined).cloned().collect();
    if symbols.is_empty() { Ok(()) } else { Err(AskError::MissingSymbols { symbols }) }
}
