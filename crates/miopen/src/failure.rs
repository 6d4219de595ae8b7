//! Failures of MIOpen.

use std::fmt;

/// A failure of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// MIOpen refused a call.
    Refused {
        /// `F`, `B`, `W`, or `-`.
        direction: String,
        /// The function.
        call: String,
        /// Its `miopenStatus_t`.
        status: String,
    },
    /// A signal killed its process.
    Killed(i32),
    /// Its process exited early with this status.
    Exited(i32),
    /// It took longer than the time limit.
    Overdue,
    /// The process that worked on it has ended.
    Lost,
    /// It needs more kernels than can be recorded.
    TooMuch,
    /// The probe could not compute it.
    Probe(String),
    /// MIOpenDriver failed, and printed this.
    Driver(String),
    /// A compiler was started although the kernel exists.
    Compiled(String),
    /// It needed no kernel.
    NothingAsked,
    /// MIOpenDriver computes it, and is missing.
    NoDriver,
}

impl Failure {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::NoDriver).then_some(
            "install MIOpenDriver of the same version beside the library (Debian has it in \
             libmiopen1-tests), or let both be fetched, as --miopen debian:sid; with \
             --allow-partial, MIOpen compiles what these problems need when it needs it",
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { direction, call, status } => {
                let direction = match direction.as_str() {
                    "F" => " forward",
                    "B" => " backward data",
                    "W" => " backward weights",
                    _ => "",
                };
                write!(f, "{call}{direction} returned status {status}")
            }
            Self::Killed(signal) => write!(f, "killed by signal {signal}"),
            Self::Exited(status) => write!(f, "ended early with status {status}"),
            Self::Overdue => f.write_str("took longer than the time limit"),
            Self::Lost => f.write_str("the process that worked on it was killed"),
            Self::TooMuch => f.write_str("asked for too many kernels"),
            Self::Probe(reason) => f.write_str(reason),
            Self::Driver(line) => write!(f, "MIOpenDriver said: {line}"),
            Self::Compiled(what) => write!(f, "started a compiler: `{what}`"),
            Self::NothingAsked => f.write_str("asked for no kernel"),
            Self::NoDriver => f.write_str("needs MIOpenDriver, which is not there"),
        }
    }
}
