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
//! # Ok::<(), gfxpack_rocfft::ListError>(())
//! ```

mod ask;
mod bench_line;
mod cache_paths;
mod file;
mod key;
mod lines;
mod log;
mod plan;
mod plan_line;
mod plan_list;
mod trace;

pub use ask::{
    AskError, AskOptions, AskReport, CheckReport, InstalledCache, Kernel, PlanFailure, ROCFFT, ask,
    check,
};
pub use cache_paths::CachePaths;
pub use file::{
    error::{ReadError, WriteError},
    merge::merge,
    read::Reader,
    row::{RowError, check_row},
    verify::{Finding, Report, verify},
    write::write,
};
pub use key::CacheKey;
pub use lines::ListError;
pub use log::{LoggedKernels, read_rtc_log};
pub use plan::{
    ArrayLayout, DataLayout, Direction, FftPlan, Placement, PlanError, Precision, Transform,
};
pub use plan_list::read_plans;
pub use trace::{LoggedPlans, read_trace};
