//! The choice of a network and how to run it, and errors.

use crate::problem::{DataType, Directions, Layout};

/// A network that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkName {
    /// Its name: `resnet50`.
    pub name: String,
    /// Its title: `ResNet-50 v1.5`.
    pub title: String,
    /// The source of its layers.
    pub source: String,
    /// Channels, height and width of an input.
    pub input: [u64; 3],
}

/// How a network is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Batch sizes, each run separately.
    pub batches: Vec<u64>,
    /// Element types.
    pub data_types: Vec<DataType>,
    /// Layouts of its tensors.
    pub layouts: Vec<Layout>,
    /// Directions. Batch normalization is in training mode if these are more than
    /// [`Directions::FORWARD`].
    pub directions: Directions,
    /// Operations to include, without type: `conv`, `bnorm`, `pool`, `activ` and `softmax`; all if
    /// empty.
    pub operations: Vec<String>,
    /// Height and width of the input, if different from the table's.
    pub size: Option<[u64; 2]>,
}

/// Why a network gives no problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No table contains it.
    #[error("failed to find the network `{name}`")]
    Unknown {
        /// The given name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The input is too small for the network's layers, or a table is wrong.
    #[error("failed to follow `{network}` at `{layer}`: {what}")]
    Layer {
        /// The network.
        network: String,
        /// The layer as written in its table.
        layer: String,
        /// The problem.
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
