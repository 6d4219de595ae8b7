//! The steps of the probe.

use core::ffi::c_int;

use crate::protocol::number;

/// A step for a problem, in each of its directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `search`: a search through all applicable solvers.
    Search,
    /// `immediate`: after a search, each of its solutions in immediate mode.
    Immediate,
    /// `hit`: after a search, the record of the find database instead of the search's.
    Hit,
    /// `mode-N`: like a program that searches in find mode N, twice.
    Mode(c_int),
    /// `unprepared`: like a program that does not search.
    Unprepared,
    /// `bias`: adding the bias, which no solver of convolutions does.
    Bias,
}

impl Step {
    /// Steps separated by commas.
    pub(crate) fn parse_list(text: &[u8]) -> Option<Vec<Self>> {
        text.split(|&byte| byte == b',').map(Self::parse).collect()
    }

    fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"search" => Self::Search,
            b"immediate" => Self::Immediate,
            b"hit" => Self::Hit,
            b"unprepared" => Self::Unprepared,
            b"bias" => Self::Bias,
            _ => Self::Mode(number(text.strip_prefix(b"mode-")?)?),
        })
    }
}
