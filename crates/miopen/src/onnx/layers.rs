//! The layers of a model that MIOpen computes.

mod calls;

use std::collections::{BTreeSet, HashMap};

use tract_onnx::pb::tensor_proto::DataType as Element;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

use super::answer::{OnnxOptions, Reason, UnresolvedLayer};
use super::axes::{Attributes, Axes};
use super::model::{Model, free_symbols, graphs};
use super::shape_table::Shapes;
use super::shapes::infer;
use crate::calls::Run;
use crate::problem::{Convolution, DataType, Directions, Layout, Problem};
use calls::call;

/// The layers found in a model.
pub(super) struct Layers<'a> {
    options: &'a OnnxOptions,
    pub(super) problems: BTreeSet<Problem>,
    pub(super) unresolved: Vec<UnresolvedLayer>,
    pub(super) convolutions: usize,
}

/// Whether a model has a layer of the wanted operations; if all are wanted, whether it has a
/// convolution.
pub(super) fn has_any(model: &ModelProto, wanted: &[String]) -> bool {
    let conv = ["conv".to_owned()];
    let wanted = if wanted.is_empty() { &conv } else { wanted };
    let functions = model.functions.iter().flat_map(|function| &function.node);
    let mut left: Vec<&NodeProto> =
        model.graph.iter().flat_map(|graph| &graph.node).chain(functions).collect();
    while let Some(node) = left.pop() {
        if operation(node).is_some_and(|one| wanted.iter().any(|name| name == one)) {
            return true;
        }
        left.extend(graphs(node).flat_map(|graph| &graph.node));
    }
    false
}

/// MIOpenDriver's name of a layer that MIOpen computes.
fn operation(node: &NodeProto) -> Option<&'static str> {
    Some(match node.op_type.as_str() {
        "Conv" | "ConvTranspose" | "ConvInteger" | "QLinearConv" => "conv",
        "BatchNormalization" => "bnorm",
        "MaxPool" | "AveragePool" | "GlobalMaxPool" | "GlobalAveragePool" => "pool",
        "Softmax" => "softmax",
        "Relu" | "Sigmoid" | "LeakyRelu" | "Clip" => "activ",
        _ => return None,
    })
}

impl<'a> Layers<'a> {
    pub(super) fn new(options: &'a OnnxOptions) -> Self {
        Self { options, problems: BTreeSet::new(), unresolved: Vec::new(), convolutions: 0 }
    }

    /// Visits all layers, also in inner graphs.
    pub(super) fn of_model(&mut self, model: &Model, shapes: &Shapes) {
        let location = LayerLocation { model, shapes, producers: Producers::new(model.graph()) };
        for node in &model.graph().node {
            if self.is_wanted(node) {
                match self.problems_of(&location, node) {
                    Ok(problems) => {
                        self.convolutions += usize::from(operation(node) == Some("conv"));
                        self.problems.extend(problems);
                    }
                    Err(reason) => self.unresolved(node, reason),
                }
            }
            for graph in graphs(node) {
                let inner = model.inner(graph, shapes);
                self.of_model(&inner, &infer(&inner));
            }
        }
        for function in &model.proto.functions {
            let name = function.name.as_deref().unwrap_or_default();
            self.of_function(&function.node, name);
        }
    }

    /// Layers of a function, whose shapes differ for each call.
    fn of_function(&mut self, nodes: &[NodeProto], function: &str) {
        for node in nodes {
            if self.is_wanted(node) {
                let why = format!("it is inside of the function `{function}`");
                let hint = "put functions in their place with onnx.inliner first".to_owned();
                self.unresolved(node, Reason { why, hint });
            }
            for graph in graphs(node) {
                self.of_function(&graph.node, function);
            }
        }
    }

    fn is_wanted(&self, node: &NodeProto) -> bool {
        let wanted = &self.options.operations;
        operation(node)
            .is_some_and(|name| wanted.is_empty() || wanted.iter().any(|one| one == name))
    }

    fn unresolved(&mut self, node: &NodeProto, Reason { why, hint }: Reason) {
        let (name, operation) = (name(node).to_owned(), node.op_type.clone());
        self.unresolved.push(UnresolvedLayer { name, operation, reason: why, hint });
    }

    fn problems_of(
        &self,
        location: &LayerLocation<'_>,
        node: &NodeProto,
    ) -> Result<Vec<Problem>, Reason> {
        let read = Attributes(&node.attribute);
        if operation(node) != Some("conv") {
            let sizes = location.sizes(node, 0, "input")?;
            // MIOpen does not compute layers with other axes.
            return match call(node, &read, sizes, location.shapes) {
                Some(call) => self.calls(location, node, sizes[0], &call),
                None => Ok(Vec::new()),
            };
        }
        let weights = if node.op_type == "QLinearConv" { 3 } else { 1 };
        let (input, weights) =
            (location.sizes(node, 0, "input")?, location.sizes(node, weights, "weights")?);
        if input.len() != weights.len() || !(3..=5).contains(&input.len()) {
            return Err(Reason::wrong(format!(
                "its input has {} axes, and its weights {}",
                input.len(),
                weights.len()
            )));
        }
        let mut axes = read.axes(&input[2..], &weights[2..])?;
        let groups = read.int("group").map_or(1, |groups| u64::try_from(groups).unwrap_or(0));
        let transposed = node.op_type == "ConvTranspose";
        let of_all = weights[1].checked_mul(groups);
        let channels = if transposed { Some(weights[0]) } else { of_all };
        if groups == 0 || channels != Some(input[1]) {
            return Err(Reason::wrong("its weights do not fit its input".to_owned()));
        }
        let (out_channels, output_pad) = if transposed {
            (of_all.unwrap_or(0), read.transposed(&mut axes)?)
        } else {
            pad_before(&mut axes);
            (weights[0], Vec::new())
        };
        let plain = Convolution {
            transposed,
            groups,
            output_pad: three(&output_pad, 0),
            ..convolution(&axes, input[0], [input[1], out_channels])
        };
        self.every_way(location, node, &plain)
    }

    fn every_way(
        &self,
        location: &LayerLocation<'_>,
        node: &NodeProto,
        plain: &Convolution,
    ) -> Result<Vec<Problem>, Reason> {
        let mut problems = Vec::new();
        for data_type in self.data_types(location, node)? {
            let mut directions = self.options.directions;
            if data_type == DataType::Int8 {
                // Integers have no gradients.
                directions.backward_data = false;
                directions.backward_weights = false;
                if !directions.forward {
                    continue;
                }
            }
            for &layout in &self.options.layouts {
                let convolution = Convolution {
                    data_type,
                    in_layout: layout,
                    filter_layout: layout,
                    out_layout: layout,
                    directions,
                    ..plain.clone()
                };
                convolution.check().map_err(|error| Reason::wrong(error.to_string()))?;
                problems.push(Problem::Convolution(convolution));
            }
        }
        Ok(problems)
    }

    fn calls(
        &self,
        location: &LayerLocation<'_>,
        node: &NodeProto,
        batch: u64,
        call: &crate::calls::Call,
    ) -> Result<Vec<Problem>, Reason> {
        let mut problems = Vec::new();
        for data_type in self.data_types(location, node)? {
            for &layout in &self.options.layouts {
                let directions = self.options.directions;
                let run = Run { batch, data_type, layout, directions };
                let lines = run.problems(call);
                problems.extend(lines.map_err(|error| Reason::wrong(error.to_string()))?);
            }
        }
        Ok(problems)
    }

    /// The element types: the model's own, unless others are wanted.
    fn data_types(
        &self,
        location: &LayerLocation<'_>,
        node: &NodeProto,
    ) -> Result<Vec<DataType>, Reason> {
        if !self.options.data_types.is_empty() {
            return Ok(self.options.data_types.clone());
        }
        if matches!(node.op_type.as_str(), "ConvInteger" | "QLinearConv") {
            // MIOpen has one 8-bit type. Frameworks subtract 128 from unsigned values first.
            return Ok(vec![DataType::Int8]);
        }
        // Weights first, since most models state their type.
        let names = node.input.iter().skip(1).chain(&node.input).chain(&node.output);
        let stated = names.clone().find_map(|name| location.model.types.get(name).copied());
        let element =
            stated.or_else(|| names.clone().find_map(|name| location.shapes.element(name)));
        match element.map(Element::try_from) {
            // The few models that state no types have fp32.
            None | Some(Ok(Element::Float)) => Ok(vec![DataType::Fp32]),
            Some(Ok(Element::Float16)) => Ok(vec![DataType::Fp16]),
            Some(Ok(Element::Bfloat16)) => Ok(vec![DataType::Bf16]),
            _ => Err(Reason {
                why: "its tensors are of no type that MIOpen computes".to_owned(),
                hint: "choose one by --type".to_owned(),
            }),
        }
    }
}

/// The model around a layer.
struct LayerLocation<'a> {
    model: &'a Model,
    shapes: &'a Shapes,
    producers: Producers<'a>,
}

/// The layers or inputs that tensors come from.
struct Producers<'a> {
    nodes: HashMap<&'a str, &'a NodeProto>,
    inputs: HashMap<&'a str, &'a ValueInfoProto>,
}

impl<'a> Producers<'a> {
    fn new(graph: &'a GraphProto) -> Self {
        let outputs = |node: &'a NodeProto| node.output.iter().map(move |name| (&**name, node));
        Self {
            nodes: graph.node.iter().flat_map(outputs).collect(),
            inputs: graph.input.iter().map(|input| (&*input.name, input)).collect(),
        }
    }
}

impl<'a> LayerLocation<'a> {
    fn sizes(&self, node: &NodeProto, index: usize, what: &str) -> Result<&'a [u64], Reason> {
        let name = node.input.get(index).map(String::as_str).unwrap_or_default();
        if name.is_empty() {
            return Err(Reason::wrong(format!("it has no {what}")));
        }
        if let Some(sizes) = self.shapes.sizes(name).filter(|sizes| !sizes.is_empty()) {
            return Ok(sizes);
        }
        let (origin, hint) = self.origin(name);
        Err(Reason { why: format!("the shape of its {what} `{name}` is not known{origin}"), hint })
    }

    /// The reason why the shape of a tensor is not known, and a hint.
    fn origin(&self, name: &str) -> (String, String) {
        let mut at = name;
        // Some models contain cycles.
        for _ in 0..=self.producers.nodes.len() {
            if let Some(input) = self.producers.inputs.get(at) {
                let free = free_symbols(input);
                let open: Vec<String> = free.iter().map(|name| format!("`{name}`")).collect();
                if open.is_empty() {
                    let why = format!(": nothing is said of that of the model's input `{at}`");
                    return (why, "export the model with the shapes of its inputs".to_owned());
                }
                let bind: Vec<String> =
                    free.iter().map(|name| format!("--symbol '{name}=…'")).collect();
                let why = format!(": the model's input `{at}` has {} open", open.join(" and "));
                return (why, format!("say what they are: {}", bind.join(" ")));
            }
            let Some(node) = self.producers.nodes.get(at) else { break };
            let is_open = |one: &&String| !one.is_empty() && self.shapes.sizes(one).is_none();
            match node.input.iter().find(is_open) {
                Some(input) => at = input,
                None => {
                    let (layer, operation) = (self::name(node), &node.op_type);
                    let why = format!(": `{layer}` ({operation}) does not tell what it makes");
                    let hint = format!(
                        "state the shape of `{at}` in the model (value_info), as \
                         onnx.shape_inference and onnxruntime do"
                    );
                    return (why, hint);
                }
            }
        }
        (String::new(), "check the model with onnx.checker".to_owned())
    }
}

/// A layer's name, or that of its output.
fn name(node: &NodeProto) -> &str {
    let unnamed = || node.output.first().map(String::as_str).unwrap_or_default();
    if node.name.is_empty() { unnamed() } else { &node.name }
}

/// MIOpen pads both sides equally. The difference between the sides is added to the input before,
/// as frameworks do.
fn pad_before(axes: &mut Axes) {
    for (size, pads) in axes.input.iter_mut().zip(&mut axes.pads) {
        let common = pads[0].min(pads[1]);
        *size += pads[0] + pads[1] - 2 * common;
        *pads = [common, common];
    }
}

/// A convolution in fp32, of which other forms are made.
fn convolution(axes: &Axes, batch: u64, channels: [u64; 2]) -> Convolution {
    let pads: Vec<u64> = axes.pads.iter().map(|[begin, _]| *begin).collect();
    let [in_channels, out_channels] = channels;
    Convolution {
        data_type: DataType::Fp32,
        spatial_dims: if axes.input.len() == 3 { 3 } else { 2 },
        batch,
        in_channels,
        input: three(&axes.input, 1),
        out_channels,
        filter: three(&axes.filter, 1),
        pad: three(&pads, 0),
        stride: three(&axes.strides, 1),
        dilation: three(&axes.dilations, 1),
        groups: 1,
        transposed: false,
        output_pad: [0; 3],
        in_layout: Layout::ChannelsFirst,
        filter_layout: Layout::ChannelsFirst,
        out_layout: Layout::ChannelsFirst,
        // Frameworks add biases themselves.
        bias: false,
        directions: Directions::FORWARD,
    }
}

/// Sizes of three axes. Convolutions along one axis get a height of 1, as in frameworks.
fn three(values: &[u64], missing: u64) -> [u64; 3] {
    match values {
        [width] => [missing, missing, *width],
        [height, width] => [missing, *height, *width],
        [depth, height, width] => [*depth, *height, *width],
        _ => [missing; 3],
    }
}
