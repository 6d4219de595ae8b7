//! Asks the stock libMIOpen which kernels it would compile for a GPU that is
//! not there.

mod problem;

pub use problem::{Convolution, DataType, Directions, Layout, Problem};
