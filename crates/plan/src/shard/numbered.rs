//! One of several shards.

use std::fmt;
use std::str::FromStr;

use gfxpack_model::Error;
use serde::{Deserialize, Serialize};

/// One of several shards, written `3/8`; counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    pub(super) index: u32,
    pub(super) count: u32,
}

impl Shard {
    /// The shard with this number; `None` if the number is too large or 0.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count })
    }

    /// The shard's number, from 1.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of shards.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok());
        text.split_once('/')
            .and_then(|(index, count)| Self::new(number(index)??, number(count)??))
            .ok_or_else(|| {
                let hint = "write which of how many, counted from 1, as 3/8";
                Error::usage(format!("failed to read shard `{text}`"), hint)
            })
    }
}
