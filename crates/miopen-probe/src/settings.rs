//! The settings that gfxpack sends before anything is loaded.
//!
//! | line | meaning |
//! | --- | --- |
//! | `library PATH` | the libMIOpen to load |
//! | `stub PATH` | an empty library, to be loaded before with the name of one that is stood in for |
//! | `device ARCHITECTURE COUNT` | the device to claim: HIP's `gcnArchName` and `multiProcessorCount` |
//! | `sqlite PATH` | the real SQLite |
//! | `kernels answered` or `kernels real` | who answers lookups of kernels |
//! | `solvers all`, `solvers natural` or `solvers NAME` | what a search tries: all there is, what the library chooses, or one |
//! | `find-db PATH` | the find database of the step `hit` |
//! | `limit SECONDS` | how long a problem may take |
//! | `warm-up PROBLEM` | the problem that the process works on before it forks |
//!
//! Others say which kernels nobody can compile ([`crate::withheld`]).

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use gfxpack_standin::SimulatedGpu;

use crate::convolution::Convolution;
use crate::protocol::number;
use crate::withheld::Withheld;

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) library: PathBuf,
    pub(crate) stubs: Vec<PathBuf>,
    pub(crate) gpu: SimulatedGpu,
    pub(crate) sqlite: Option<PathBuf>,
    pub(crate) real_kernels: bool,
    pub(crate) solvers: Solvers,
    pub(crate) find_db: Option<PathBuf>,
    pub(crate) limit: Duration,
    /// Only librocfft needs none.
    pub(crate) warm_up: Option<Convolution>,
    pub(crate) withheld: Withheld,
}

/// The solvers that a search tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Solvers {
    /// Every applicable solver.
    All,
    /// The solvers that the library itself would try.
    Natural,
    /// One solver, by name.
    Only(CString),
}

impl Settings {
    pub(crate) fn parse(lines: &[Vec<Vec<u8>>]) -> Result<Self, String> {
        let mut settings = Self {
            library: PathBuf::new(),
            stubs: Vec::new(),
            gpu: SimulatedGpu { architecture: CString::default(), compute_units: 0 },
            sqlite: None,
            real_kernels: false,
            solvers: Solvers::All,
            find_db: None,
            limit: Duration::from_secs(300),
            warm_up: None,
            withheld: Withheld::default(),
        };
        for line in lines {
            settings.take(line).ok_or_else(|| {
                let line = line.join(&b' ');
                format!("can't read the setting `{}`", String::from_utf8_lossy(&line))
            })?;
        }
        if settings.library.as_os_str().is_empty() || settings.gpu.compute_units == 0 {
            return Err("library or device is not set".into());
        }
        Ok(settings)
    }

    fn take(&mut self, line: &[Vec<u8>]) -> Option<()> {
        let text = |field: &[u8]| CString::new(field).ok();
        let path = |field: &[u8]| PathBuf::from(OsString::from_vec(field.to_vec()));
        let fields: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
        match fields[..] {
            [b"library", library] => self.library = path(library),
            [b"stub", stub] => self.stubs.push(path(stub)),
            [b"device", architecture, count] => {
                let architecture = text(architecture)?;
                self.gpu = SimulatedGpu { architecture, compute_units: number(count)? };
            }
            [b"sqlite", library] => self.sqlite = Some(path(library)),
            [b"kernels", b"answered"] => self.real_kernels = false,
            [b"kernels", b"real"] => self.real_kernels = true,
            [b"solvers", b"all"] => self.solvers = Solvers::All,
            [b"solvers", b"natural"] => self.solvers = Solvers::Natural,
            [b"solvers", name] => self.solvers = Solvers::Only(text(name)?),
            [b"find-db", file] => self.find_db = Some(path(file)),
            [b"limit", seconds] => self.limit = Duration::from_secs(number(seconds)?),
            [b"warm-up", problem] => self.warm_up = Some(Convolution::parse(problem)?),
            _ => self.withheld.take(&fields)?,
        }
        Some(())
    }
}
