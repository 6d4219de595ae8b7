//! Asks the stock libMIOpen which kernels it would compile for a GPU that is
//! not there.

mod library;
mod problem;

pub use library::Library;
pub use problem::{Convolution, DataType, Directions, Layout, Problem, ProblemError};
