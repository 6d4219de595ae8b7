//! What is worth showing of a build that runs: how far it is, what is to be
//! told of kernels that failed, and its events as messages. How that is drawn
//! or printed is its caller's.

mod count;
mod estimate;
mod failure_texts;
mod messages;

pub use count::BuildCount;
pub use failure_texts::FailureTexts;
pub use messages::messages;
