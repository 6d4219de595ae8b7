//! Asks the stock libMIOpen which kernels it would compile for a GPU that is
//! not there.

mod calls;
mod library;
mod networks;
mod problem;
mod problems;

pub use library::Library;
pub use networks::{NetworkError, NetworkName, Selection, network_names, network_problems};
pub use problem::{Convolution, DataType, Directions, Layout, Problem, ProblemError};
pub use problems::{
    BadLine, KeyError, LineError, MAX_PROBLEMS, ProblemFile, Problems, ProblemsError, ReadOptions,
    read_problems,
};
