//! The shapes of a model's tensors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tract_onnx::Onnx;
use tract_onnx::model::{ParseResult, ParsingContext};
use tract_onnx::pb::ModelProto;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Size;
use tract_onnx::pb::type_proto;
use tract_onnx::prelude::{InferenceFact, InferenceModel, InferenceModelExt as _};
use tract_onnx::tract_hir::infer::Factoid as _;
use tract_onnx::tract_hir::internal::OutletId;

use super::model::Model;
use super::shape_table::Shapes;

/// Infers shapes. Where tract fails, stated shapes are used, and inference goes on from these.
pub(super) fn infer(model: &Model) -> Shapes {
    let mut shapes = Shapes::default();
    let proto = prepared(model);
    // tract has assertions about models. If one fails, the shapes inferred before are kept.
    let parsed = catch_unwind(AssertUnwindSafe(|| tract_onnx::onnx().parse(&proto, None)));
    if let Ok(Ok(ParseResult { model: mut graph, outlets_by_name, .. })) = parsed {
        analyse(&mut graph);
        let mut filled = false;
        for (name, outlet) in &outlets_by_name {
            let Ok(fact) = graph.outlet_fact(*outlet) else { continue };
            let open = concrete(fact).is_none();
            if let Some(stated) = model.stated(name).filter(|_| open) {
                let sizes: Vec<usize> = stated.iter().map(|size| *size as usize).collect();
                let fact = fact.clone().with_shape(sizes);
                filled |= graph.set_outlet_fact(*outlet, fact).is_ok();
            }
        }
        if filled {
            analyse(&mut graph);
        }
        for (name, outlet) in outlets_by_name {
            note(&mut shapes, name, &graph, outlet);
        }
    }
    for name in model.stated_names() {
        if let Some(sizes) = model.stated(name) {
            shapes.sizes.entry(name.clone()).or_insert(sizes);
        }
    }
    shapes
}

fn analyse(graph: &mut InferenceModel) {
    // Inference goes on after errors of single layers, whose shapes stay unknown.
    let _ = catch_unwind(AssertUnwindSafe(|| graph.analyse(true).ok()));
}

fn note(shapes: &mut Shapes, name: String, graph: &InferenceModel, outlet: OutletId) {
    let Ok(fact) = graph.outlet_fact(outlet) else { return };
    if let Some(data_type) = fact.datum_type.concretize() {
        shapes.types.insert(name.clone(), data_type);
    }
    if let Some(value) = fact.value.concretize().filter(|value| value.len() == 1)
        && let Ok(value) = value.cast_to_scalar::<f32>()
    {
        shapes.scalars.insert(name.clone(), value);
    }
    if let Some(sizes) = concrete(fact) {
        shapes.sizes.insert(name, sizes);
    }
}

fn concrete(fact: &InferenceFact) -> Option<Vec<u64>> {
    let sizes = fact.shape.as_concrete_finite().ok().flatten()?;
    Some(sizes.iter().map(|size| *size as u64).collect())
}

/// The model in a form that tract can read: open sizes have no names, and layers that it can't read
/// get an operation that it does not know.
fn prepared(model: &Model) -> ModelProto {
    let mut proto = model.proto.clone();
    let Some(graph) = proto.graph.as_mut() else { return proto };
    for input in &mut graph.input {
        let value = input.r#type.as_mut().and_then(|kind| kind.value.as_mut());
        let Some(type_proto::Value::TensorType(tensor)) = value else { continue };
        for size in tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim) {
            if !matches!(size.value, Some(Size::DimValue(0..))) {
                size.value = None;
            }
        }
    }
    // Stated outputs would stop inference.
    graph.output.iter_mut().for_each(|output| output.r#type = None);
    let framework = tract_onnx::onnx();
    let unreadable: Vec<usize> = unreadable(&framework, &proto);
    if let Some(graph) = proto.graph.as_mut() {
        for index in unreadable {
            graph.node[index].op_type = "unreadable".to_owned();
        }
    }
    proto
}

/// The layers that tract can't read.
fn unreadable(framework: &Onnx, proto: &ModelProto) -> Vec<usize> {
    let Some(graph) = &proto.graph else { return Vec::new() };
    let versions = proto.opset_import.iter();
    let version = versions.clone().find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    let context = ParsingContext {
        onnx_operator_set_version: version.map_or(0, |set| set.version),
        framework,
        model: proto,
        parent_graphs: vec![graph],
        model_dir: None,
        template: InferenceModel::default(),
    };
    let is_read = |index: &usize| {
        let node = &graph.node[*index];
        let Some(read) = framework.op_register.0.get(&node.op_type) else { return true };
        matches!(catch_unwind(AssertUnwindSafe(|| read(&context, node))), Ok(Ok(_)))
    };
    (0..graph.node.len()).filter(|index| !is_read(index)).collect()
}
