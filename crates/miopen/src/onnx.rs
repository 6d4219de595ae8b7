//! The problems of a model in ONNX: tract infers shapes, and sizes that it leaves open are filled
//! in from the shapes stated in the model.

mod answer;
mod axes;
mod layers;
mod model;
mod shape_table;
mod shapes;
mod strip_weights;

use std::collections::BTreeSet;
use std::path::Path;

use crate::problem::Problem;
use layers::Layers;
use model::Model;

pub use self::answer::{OnnxError, OnnxOptions, UnresolvedLayer};

/// The problems of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnnxProblems {
    /// The problems, each once.
    pub problems: BTreeSet<Problem>,
    /// Layers whose problems are not known, in the model's order.
    pub unresolved: Vec<UnresolvedLayer>,
    /// Layers with convolutions whose problems are known.
    pub convolutions: usize,
}

/// The problems of a model's layers: convolutions and the operations around them. Weights are not
/// read, so external weight files may be missing.
///
/// Shape inference of a malicious model may take any amount of memory and time, so the caller must
/// limit the process.
///
/// # Errors
/// [`OnnxError`].
pub fn onnx_problems(path: &Path, options: &OnnxOptions) -> Result<OnnxProblems, OnnxError> {
    let model = Model::read(path)?;
    let wanted = &options.operations;
    if !layers::has_any(&model.proto, wanted) {
        let convolution = wanted.is_empty() || *wanted == ["conv"];
        let what = if convolution { "convolution" } else { "layer of the wanted operations" };
        return Err(OnnxError::NoLayer { path: path.to_owned(), what });
    }
    let symbols = model.symbols();
    if let Some(symbol) = options.symbols.keys().find(|symbol| !symbols.contains(*symbol)) {
        let symbol = symbol.clone();
        return Err(OnnxError::Symbol { path: path.to_owned(), symbol, known: symbols });
    }
    let mut all = OnnxProblems::default();
    let batches = if options.batches.is_empty() { &[1][..] } else { &options.batches };
    for (index, &batch) in batches.iter().enumerate() {
        let (bound, takes) = model.bind(batch, &options.symbols);
        if !takes && !options.batches.is_empty() {
            return Err(OnnxError::FixedBatch { path: path.to_owned(), batch });
        }
        let mut layers = Layers::new(options);
        layers.of_model(&bound, &shapes::infer(&bound));
        all.problems.extend(layers.problems);
        if index == 0 {
            all.unresolved = layers.unresolved;
            all.convolutions = layers.convolutions;
        }
    }
    Ok(all)
}
