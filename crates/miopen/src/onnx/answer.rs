//! What is asked of a model, and what can be wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::problem::{DataType, Directions, Layout};

/// How a model is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnnxOptions {
    /// What the symbols of the first axis of the model's inputs stand for,
    /// each value for itself; none for 1.
    pub batches: Vec<u64>,
    /// What other symbols stand for.
    pub symbols: BTreeMap<String, u64>,
    /// Types of its numbers; none for the model's own.
    pub data_types: Vec<DataType>,
    /// Layouts of its tensors.
    pub layouts: Vec<Layout>,
    /// Directions, as for networks.
    pub directions: Directions,
    /// Operations that are wanted, as for networks; none for all.
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
    /// Why: a clause that follows its name.
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
        /// What the system says.
        source: io::Error,
    },
    /// The file is no model.
    #[error("failed to read `{path}`: {what}")]
    NoModel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The model has none of the layers that are wanted.
    #[error("failed to find a {what} in `{path}`")]
    NoLayer {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// None of the model's inputs has such a symbol.
    #[error("failed to bind `{symbol}`: the inputs of `{path}` have no such symbol")]
    Symbol {
        /// The file.
        path: PathBuf,
        /// The symbol.
        symbol: String,
        /// Those that they have.
        known: BTreeSet<String>,
    },
    /// A batch was given, and the inputs have another one, which is fixed.
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

/// Why a layer's problem is not known, and what helps.
#[derive(Debug)]
pub(super) struct Reason {
    pub(super) why: String,
    pub(super) hint: String,
}

impl Reason {
    /// The model contradicts itself or what MIOpen can do.
    pub(super) fn wrong(why: String) -> Self {
        Self { why, hint: "check the model with onnx.checker, or export it again".to_owned() }
    }
}
