//! One of several shards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of several shards, written `3/8`; counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    pub(super) index: u32,
    pub(super) count: u32,
}

/// The text is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read shard `{0}`")]
pub struct ShardError(String);

impl ShardError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "write which of how many, counted from 1, as 3/8"
    }
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
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok());
        text.split_once('/')
            .and_then(|(index, count)| Self::new(number(index)??, number(count)??))
            .ok_or_else(|| ShardError(text.to_owned()))
    }
}
