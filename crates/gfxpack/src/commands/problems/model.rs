//! Reads models in ONNX.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_miopen::{OnnxOptions, Problem, UnresolvedLayer};
use gfxpack_pipeline::model::{self, ModelProblems};

use crate::args::ProblemsCommand;
use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, harmless, message};

/// Adds the problems of a model, and returns the number of layers that are not
/// resolved.
pub(super) fn add(
    name: &str,
    args: &ProblemsCommand,
    problems: &mut BTreeSet<Problem>,
    context: &Context,
) -> Result<usize> {
    let Context { cancel, output, .. } = context;
    let options = OnnxOptions {
        batches: args.batch.clone(),
        symbols: args.symbol.iter().cloned().collect(),
        data_types: args.r#type.clone(),
        layouts: args.layout.clone(),
        directions: args.directions(),
        operations: args.operations(),
    };
    let read = model::read_in_process("read-model", name, &options, cancel)?;
    let ModelProblems { problems: lines, unresolved, convolutions } = read;
    for (at, layer) in unresolved.iter().enumerate() {
        let UnresolvedLayer { name: layer, operation, reason, hint, .. } = layer;
        message!(output, "unresolved-layer", {
            "model": name, "layer": layer, "operation": operation, "reason": reason, "hint": hint,
        });
        output.show_warning(&format!("{name}: `{layer}` ({operation}) is left out: {reason}"));
        // Print a hint once for consecutive layers that share it.
        if !output.json && unresolved.get(at + 1).is_none_or(|next| next.hint != *hint) {
            output.hint(&harmless(hint));
        }
    }
    message!(output, "model", {
        "model": name, "convolutions": convolutions, "unresolved": unresolved.len(),
        "problems": lines.len(),
    });
    for line in lines {
        problems.insert(line.parse()?);
    }
    Ok(unresolved.len())
}

/// `read-model`: reads a model within limits, for [`add`].
pub(crate) fn read_model(model: &Path, output: &Output) -> Result {
    output.raw(&model::answer(model, std::io::stdin().lock())?);
    Ok(())
}
