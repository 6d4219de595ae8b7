//! Which network is taken, and why that fails.

use crate::problem::{DataType, Directions, Layout};

/// A network that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkName {
    /// Its name: `resnet50`.
    pub name: String,
    /// Its name for people: `ResNet-50 v1.5`.
    pub title: String,
    /// Where its layers are taken from.
    pub source: String,
    /// Channels, height and width of an input.
    pub input: [u64; 3],
}

/// How a network is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Images at a time; each value for itself.
    pub batches: Vec<u64>,
    /// Types of its numbers.
    pub data_types: Vec<DataType>,
    /// Layouts of its tensors.
    pub layouts: Vec<Layout>,
    /// Directions. Batch normalization is that of training where these are
    /// more than [`Directions::FORWARD`].
    pub directions: Directions,
    /// Operations without type, `conv`, `bnorm`, `pool`, `activ` and
    /// `softmax`, that are wanted; none for all.
    pub operations: Vec<String>,
    /// Height and width of the input, where they are not those of the table.
    pub size: Option<[u64; 2]>,
}

/// Why a network gives no problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No table has it.
    #[error("failed to find the network `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name nearest to it.
        nearest: Option<String>,
    },
    /// The input is too small for the network's layers, or a table is wrong.
    #[error("failed to follow `{network}` at `{layer}`: {what}")]
    Layer {
        /// The network.
        network: String,
        /// The layer as its table has it.
        layer: String,
        /// What is wrong.
        what: String,
    },
}

impl NetworkError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { nearest: Some(name), .. } => {
                format!("`{name}` is there; `gfxpack problems --list` lists all")
            }
            Self::Unknown { .. } => "`gfxpack problems --list` lists all".to_owned(),
            Self::Layer { .. } => "choose a larger --size".to_owned(),
        }
    }
}
