//! Problems that programs ask MIOpen to compute: one convolution, or a call of another primitive.

mod check;
mod line;
mod values;

pub use self::values::{Convolution, DataType, Directions, Layout, Problem};
pub use check::MAX_SIZE;
pub(crate) use line::read_unchecked;

#[cfg(test)]
mod tests;
