//! Options and errors of reading models.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::problem::{DataType, Directions, Layout};

/// How a model is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnnxOptions {
    /// Values for the symbols in the first axis of the model's inputs, each run separately; 1 if
    /// empty.
    pub batches: Vec<u64>,
    /// Values of other symbols.
    pub symbols: BTreeMap<String, u64>,
    /// Element types; the model's own if empty.
    pub data_types: Vec<DataType>,
    /// Layouts of its tensors.
    pub layouts: Vec<Layout>,
    /// Directions, as for networks.
    pub directions: Directions,
    /// Operations to include, as for networks; all if empty.
    pub operations: Vec<String>,
}

/// A layer whose problem is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnresolvedLayer {
    /// Its name, or that of its output.
    pub name: String,
    /// Its operation: `Conv`.
    pub operation: String,
    /// The reason, as a clause that follows its name.
    pub reason: String,
    /// What the user can do about it.
    pub hint: String,
}

/// Why a model cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file cannot be read.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no model.
    #[error("failed to read `{path}`: {what}")]
    NoModel {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// The model has none of the wanted layers.
    #[error("failed to find a {what} in `{path}`")]
    NoLayer {
        /// The file.
        path: PathBuf,
        /// The kind of layer.
        what: &'static str,
    },
    /// None of the model's inputs has this symbol.
    #[error("failed to bind `{symbol}`: the inputs of `{path}` have no such symbol")]
    Symbol {
        /// The file.
        path: PathBuf,
        /// The symbol.
        symbol: String,
        /// The symbols that they have.
        known: BTreeSet<String>,
    },
    /// A batch was given, but that of the inputs is fixed.
    #[error("failed to choose a batch of {batch}: the inputs of `{path}` have a fixed one")]
    FixedBatch {
        /// The file.
        path: PathBuf,
        /// The batch.
        batch: u64,
    },
}

impl OnnxError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Io { .. } => "check the path".to_owned(),
            Self::NoModel { .. } => {
                "a model as onnx.save writes it is expected; fetch or export it again".to_owned()
            }
            Self::NoLayer { .. } => {
                "MIOpen has nothing to compute for it; check that it is the model you mean"
                    .to_owned()
            }
            Self::Symbol { known, .. } if known.is_empty() => {
                "all of their sizes are fixed: leave --symbol out".to_owned()
            }
            Self::Symbol { known, .. } => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("they have {}", known.join(", "))
            }
            Self::FixedBatch { .. } => {
                "leave --batch out, or export the model with a dynamic first axis".to_owned()
            }
        }
    }
}

/// Why a layer's problem is not known, and a hint.
#[derive(Debug)]
pub(super) struct Reason {
    pub(super) why: String,
    pub(super) hint: String,
}

impl Reason {
    /// The model contradicts itself or MIOpen's limits.
    pub(super) fn wrong(why: String) -> Self {
        Self { why, hint: "check the model with onnx.checker, or export it again".to_owned() }
    }
}
