//! What the probe is told to do.

use core::ffi::c_int;

use crate::protocol::number;

/// One thing to do with a problem, in each of its directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `search`: a search through all applicable solvers.
    Search,
    /// `immediate`: after a search, each of its solutions in immediate mode.
    Immediate,
    /// `hit`: after a search, what the find database records instead.
    Hit,
    /// `mode-N`: what a program that searches in find mode N does, twice.
    Mode(c_int),
    /// `unprepared`: what a program that searches nothing does.
    Unprepared,
    /// `bias`: adding the bias, for which no solver of convolutions will do.
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
