//! Problems that programs ask MIOpen to compute: one convolution, or a call of another primitive.

mod check;
mod driver;
mod error;
mod line;
mod values;

pub use self::values::{Convolution, DataType, Directions, Layout, Problem};
pub use check::MAX_SIZE;
pub use error::ProblemError;
pub(crate) use line::read_unchecked;

#[cfg(test)]
mod tests;
