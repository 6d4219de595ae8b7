//! The status of a running build: its progress, which kernels failed and why, and
//! its events as messages. The caller draws or prints it.

mod count;
mod estimate;
mod failure_texts;
mod messages;

pub use count::BuildCount;
pub use failure_texts::FailureTexts;
pub use messages::messages;
