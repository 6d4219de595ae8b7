//! Kernel caches of rocFFT: the SQLite files in which it looks kernels up before it compiles them.
//!
//! The format is described in `docs/rocfft-format.md`. This crate knows the file, the lines that
//! describe plans, rocFFT's log, and how to ask the stock library which kernels it compiles. It
//! knows nothing of compilers, packages, and the environment.
//!
//! ```
//! let list = "c2c sp ip 1024x1024 batch 8\nr2c dp op 336\n";
//! let (plans, _) = gfxpack_rocfft::read_plans("list", list.as_bytes())?;
//! assert_eq!(plans[0].to_string(), "c2c sp ip 1024x1024 batch 8");
//! # Ok::<(), gfxpack_model::Error>(())
//! ```

mod ask;
mod bench_line;
mod file;
mod key;
mod lines;
mod plan;
mod trace;

pub use ask::{
    AskOptions, AskReport, CheckReport, InstalledCache, Kernel, PlanFailure, ROCFFT, ask, check,
};
pub use file::{
    read::Reader,
    row::{RowError, check_row},
    verify::{Report, verify},
    write::{merge, write},
};
pub use key::{CacheKey, CachePaths};
pub use lines::{LoggedKernels, read_plans, read_rtc_log};
pub use plan::{ArrayLayout, Direction, FftPlan, Placement, Precision, Transform};
pub use trace::{LoggedPlans, read_trace};
