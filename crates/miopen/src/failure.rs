//! What MIOpen failed on.

use std::fmt;

/// What can go wrong with a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// MIOpen could not compute it.
    Invalid(String),
    /// MIOpen refused a call.
    Refused {
        /// `F`, `B`, `W`, or `-`.
        direction: String,
        /// The function.
        call: String,
        /// Its `miopenStatus_t`.
        status: String,
    },
    /// Its process was killed by a signal.
    Killed(i32),
    /// Its process ended early, with that status.
    Exited(i32),
    /// It took longer than the time limit.
    Overdue,
    /// The process that worked on it is gone.
    Lost,
    /// It asks for more than there is room to note.
    TooMuch,
    /// The probe could not work on it.
    Probe(String),
    /// A compiler was started, though the kernel was there.
    Compiled(String),
    /// It asked for no kernel.
    NothingAsked,
    /// MIOpenDriver computes it, and is not there.
    NoDriver,
}

impl Failure {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoDriver => Some(
                "install MIOpenDriver of the same version beside the library (Debian has it in \
                 libmiopen1-tests), or let both be fetched, as --miopen debian:sid",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
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
            Self::Compiled(what) => write!(f, "started a compiler: `{what}`"),
            Self::NothingAsked => f.write_str("asked for no kernel"),
            Self::NoDriver => f.write_str("needs MIOpenDriver, which is not there"),
        }
    }
}
