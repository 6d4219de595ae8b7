//! A model without its weights, and its symbols.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::Dimension;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Size;
use tract_onnx::pb::type_proto::{self, Tensor};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};
use tract_onnx::prelude::Framework as _;

use super::answer::OnnxError;
use super::shape_table::Shapes;
use super::strip_weights::{StripError, strip_weights};

/// The largest constant, in elements, whose values shapes may depend on.
const MAX_ELEMENTS: i64 = 1024;

/// A model, or a graph inside of one, without its weights.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) proto: ModelProto,
    /// Stated element types, by name of the tensor: numbers of `TensorProto.DataType`.
    pub(super) types: HashMap<String, i32>,
    /// Stated sizes of tensors between layers.
    stated: HashMap<String, Vec<Dimension>>,
    /// Inputs with values from the model: constants and weights.
    constants: HashSet<String>,
    /// The values of its symbols.
    values: BTreeMap<String, u64>,
}

impl Model {
    pub(super) fn read(path: &Path) -> Result<Self, OnnxError> {
        let io = |source| OnnxError::Io { path: path.to_owned(), source };
        let no_model = |what: String| OnnxError::NoModel { path: path.to_owned(), what };
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            return Err(no_model("it is no file".to_owned()));
        }
        let file = BufReader::new(File::open(path).map_err(io)?);
        let bytes = strip_weights(file, metadata.len()).map_err(|error| match error {
            StripError::Io(source) => io(source),
            StripError::NoModel(what) => no_model(what),
        })?;
        let proto = tract_onnx::onnx().proto_model_for_read(&mut &bytes[..]);
        let mut proto = proto.map_err(|error| no_model(error.root_cause().to_string()))?;
        match proto.graph.take() {
            Some(graph) if !graph.node.is_empty() => Ok(Self::new(proto, graph)),
            _ => Err(no_model("it has no layers".to_owned())),
        }
    }

    /// A model of the graph, with everything else from `proto`.
    fn new(proto: ModelProto, graph: GraphProto) -> Self {
        let mut model = Self {
            proto,
            types: HashMap::new(),
            stated: HashMap::new(),
            constants: HashSet::new(),
            values: BTreeMap::new(),
        };
        model.proto.graph = Some(model.lighten(graph));
        model
    }

    /// Records the shapes stated in the graph, and replaces everything that is large, or has a type
    /// that tract lacks, by an input without value.
    fn lighten(&mut self, mut graph: GraphProto) -> GraphProto {
        for info in graph.value_info.drain(..).chain(graph.output.iter().cloned()) {
            if let Some(tensor) = tensor_type(&info) {
                self.types.insert(info.name.clone(), tensor.elem_type);
                if let Some(shape) = &tensor.shape {
                    self.stated.insert(info.name.clone(), shape.dim.clone());
                }
            }
        }
        for input in &mut graph.input {
            if let Some(tensor) = tensor_type(input) {
                self.types.insert(input.name.clone(), tensor.elem_type);
            }
            make_known(input);
        }
        let mut weights = Vec::new();
        for tensor in std::mem::take(&mut graph.initializer) {
            self.types.insert(tensor.name.clone(), tensor.data_type);
            self.constants.insert(tensor.name.clone());
            if decides_shapes(&tensor) {
                graph.initializer.push(tensor);
            } else {
                weights.push(weight(&tensor.name, &tensor));
            }
        }
        for mut node in std::mem::take(&mut graph.node) {
            let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
            match (node.op_type.as_str(), value, node.output.first()) {
                ("Constant", Some(value), Some(output)) => {
                    self.types.insert(output.clone(), value.data_type);
                    if decides_shapes(value) {
                        graph.node.push(node);
                    } else {
                        self.constants.insert(output.clone());
                        weights.push(weight(output, value));
                    }
                }
                _ => {
                    make_plain(&mut node);
                    graph.node.push(node);
                }
            }
        }
        // Old models list their weights among the inputs.
        let names: HashSet<String> = weights.iter().map(|input| input.name.clone()).collect();
        graph.input.retain(|input| !names.contains(&input.name));
        graph.input.append(&mut weights);
        // Some models list outputs that no layer computes.
        let made: HashSet<&str> = made(&graph).collect();
        let outputs = graph.output.iter().filter(|output| made.contains(output.name.as_str()));
        let outputs = outputs.cloned().collect();
        graph.output = outputs;
        graph
    }

    pub(super) fn graph(&self) -> &GraphProto {
        self.proto.graph.as_ref().expect("a model that was read has a graph")
    }

    /// The symbols of its inputs. A size without name gets one by its position: `image[2]`.
    pub(super) fn symbols(&self) -> BTreeSet<String> {
        let inputs = self.graph().input.iter().filter(|one| !self.constants.contains(&one.name));
        inputs.flat_map(free_symbols).collect()
    }

    /// Replaces symbols by numbers: those in the first axis of its inputs by the batch, unless they
    /// are given too. Also returns whether the inputs accept that batch.
    pub(super) fn bind(&self, batch: u64, given: &BTreeMap<String, u64>) -> (Self, bool) {
        let mut bound = self.clone();
        bound.values = given.clone();
        let mut takes = false;
        for input in self.graph().input.iter().filter(|one| !self.constants.contains(&one.name)) {
            let shape = tensor_type(input).and_then(|tensor| tensor.shape.as_ref());
            let Some(first) = shape.and_then(|shape| shape.dim.first()) else { continue };
            match symbol(first) {
                Some(name) => {
                    let value = *bound.values.entry(name.to_owned()).or_insert(batch);
                    takes |= value == batch;
                }
                None => takes |= u64::try_from(number(first)).is_ok_and(|size| size == batch),
            }
        }
        bound.put_values();
        (bound, takes)
    }

    fn put_values(&mut self) {
        let Self { proto, stated, values, .. } = self;
        stated.values_mut().flatten().for_each(|size| bind(size, values));
        let graph = proto.graph.as_mut().expect("a model that was read has a graph");
        for input in &mut graph.input {
            let value = input.r#type.as_mut().and_then(|kind| kind.value.as_mut());
            let Some(type_proto::Value::TensorType(tensor)) = value else { continue };
            let sizes = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim);
            sizes.for_each(|size| bind(size, values));
        }
    }

    /// A graph inside of a layer as a model. Tensors from outside become its constants and inputs.
    pub(super) fn inner(&self, graph: &GraphProto, shapes: &Shapes) -> Self {
        let mut graph = graph.clone();
        let mut used = BTreeSet::new();
        collect_used(&graph, &mut used);
        for name in made(&graph) {
            used.remove(name);
        }
        let used: BTreeSet<String> = used.into_iter().map(str::to_owned).collect();
        let constants = self.graph().initializer.iter().cloned();
        let constants = constants.chain(self.graph().node.iter().filter_map(constant));
        graph.initializer.extend(constants.filter(|tensor| used.contains(&tensor.name)));
        let known: HashSet<String> =
            graph.initializer.iter().map(|tensor| tensor.name.clone()).collect();
        let missing = used.iter().filter(|name| !known.contains(*name));
        let outer: HashMap<&str, &ValueInfoProto> =
            self.graph().input.iter().map(|input| (&*input.name, input)).collect();
        graph.input.extend(missing.map(|name| {
            if let Some(input) = outer.get(&**name) {
                return ValueInfoProto::clone(input);
            }
            let sizes = shapes.sizes(name).map(|sizes| sizes.iter().map(|size| *size as i64));
            let sizes = sizes.map(Iterator::collect::<Vec<_>>);
            let data_type = self.types.get(name).copied().or_else(|| shapes.element(name));
            input(name, data_type.unwrap_or(DataType::Float as i32), sizes.as_deref())
        }));
        let rest = ModelProto { graph: None, functions: Vec::new(), ..self.proto.clone() };
        let mut model = Self::new(rest, graph);
        model.values = self.values.clone();
        model.put_values();
        model
    }

    /// The names of the tensors whose sizes are all stated.
    pub(super) fn stated_names(&self) -> impl Iterator<Item = &String> {
        self.stated.keys()
    }

    /// The stated sizes of a tensor, if all are numbers.
    pub(super) fn stated(&self, name: &str) -> Option<Vec<u64>> {
        let size = |size: &Dimension| u64::try_from(number(size)).ok().filter(|size| *size > 0);
        self.stated.get(name)?.iter().map(size).collect()
    }
}

/// The symbols of an input that have no value.
pub(super) fn free_symbols(input: &ValueInfoProto) -> Vec<String> {
    let shape = tensor_type(input).and_then(|tensor| tensor.shape.as_ref());
    let sizes = shape.into_iter().flat_map(|shape| &shape.dim);
    sizes.filter_map(symbol).map(str::to_owned).collect()
}

/// The tensors that a graph defines.
fn made(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let outputs = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    outputs
        .chain(graph.input.iter().map(|input| input.name.as_str()))
        .chain(graph.initializer.iter().map(|tensor| tensor.name.as_str()))
}

/// Collects the tensors that a graph and its inner graphs use.
fn collect_used<'a>(graph: &'a GraphProto, used: &mut BTreeSet<&'a str>) {
    used.extend(graph.output.iter().map(|output| output.name.as_str()));
    for node in &graph.node {
        used.extend(node.input.iter().map(String::as_str).filter(|name| !name.is_empty()));
        for inner in graphs(node) {
            collect_used(inner, used);
        }
    }
}

/// The graphs inside of a layer.
pub(super) fn graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// A constant layer's value, under the name of its output.
fn constant(node: &NodeProto) -> Option<TensorProto> {
    let value = node.attribute.iter().find_map(|attribute| attribute.t.clone())?;
    let name = node.output.first().filter(|_| node.op_type == "Constant")?.clone();
    Some(TensorProto { name, ..value })
}

/// Whether to keep a constant's values: shapes may depend on them, and tract can read them.
fn decides_shapes(tensor: &TensorProto) -> bool {
    let elements = tensor.dims.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
    let inside = tensor.data_location != Some(DataLocation::External as i32)
        && tensor.external_data.is_empty();
    inside
        && elements.is_some_and(|elements| (0..=MAX_ELEMENTS).contains(&elements))
        && tensor.dims.iter().all(|size| *size >= 0)
        && known(tensor.data_type) == tensor.data_type
        && catch_unwind(AssertUnwindSafe(|| {
            let provider = tract_onnx::data_resolver::MmapDataResolver;
            tract_onnx::tensor::load_tensor(&provider, tensor, None).is_ok()
        }))
        .unwrap_or(false)
}

/// The type that tract gets: bf16 and smaller types become fp32, which gives the same shapes.
fn known(data_type: i32) -> i32 {
    match DataType::try_from(data_type) {
        Ok(
            DataType::Float
            | DataType::Uint8
            | DataType::Int8
            | DataType::Uint16
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::String
            | DataType::Bool
            | DataType::Float16
            | DataType::Double
            | DataType::Uint32
            | DataType::Uint64,
        ) => data_type,
        _ => DataType::Float as i32,
    }
}

fn tensor_type(info: &ValueInfoProto) -> Option<&Tensor> {
    match info.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => Some(tensor),
    }
}

/// A tensor without its values.
fn weight(name: &str, tensor: &TensorProto) -> ValueInfoProto {
    input(name, tensor.data_type, Some(&tensor.dims))
}

fn input(name: &str, data_type: i32, sizes: Option<&[i64]>) -> ValueInfoProto {
    let dimension =
        |size: &i64| Dimension { denotation: String::new(), value: Some(Size::DimValue(*size)) };
    let shape = sizes.map(|sizes| TensorShapeProto { dim: sizes.iter().map(dimension).collect() });
    let value = Some(type_proto::Value::TensorType(Tensor { elem_type: known(data_type), shape }));
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto { value, ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}

/// Gives an input a type that tract supports, and names its sizes; sequences become tensors of
/// unknown shape.
fn make_known(info: &mut ValueInfoProto) {
    let value = info.r#type.as_mut().and_then(|kind| kind.value.as_mut());
    let Some(type_proto::Value::TensorType(tensor)) = value else {
        *info = input(&info.name, DataType::Float as i32, None);
        return;
    };
    tensor.elem_type = known(tensor.elem_type);
    for (axis, size) in tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim).enumerate() {
        if symbol(size).is_none() && number(size) < 1 {
            size.value = Some(Size::DimParam(format!("{}[{axis}]", info.name)));
        }
    }
}

/// Replaces a layer by a form that tract supports.
fn make_plain(node: &mut NodeProto) {
    // A convolution with following operations; its shapes are the convolution's.
    if node.op_type == "FusedConv" {
        node.op_type = "Conv".to_owned();
        node.input.truncate(3);
    }
    let casts = |attribute: &&mut AttributeProto| attribute.name == "to";
    if let ("Cast", Some(to)) = (node.op_type.as_str(), node.attribute.iter_mut().find(casts)) {
        let number = i32::try_from(to.i).unwrap_or_default();
        to.i = known(number).into();
    }
}

fn symbol(size: &Dimension) -> Option<&str> {
    match &size.value {
        Some(Size::DimParam(name)) if !name.is_empty() && name != "?" => Some(name),
        _ => None,
    }
}

/// A size; 0 if it is no number.
fn number(size: &Dimension) -> i64 {
    match size.value {
        Some(Size::DimValue(value)) => value,
        _ => 0,
    }
}

fn bind(size: &mut Dimension, values: &BTreeMap<String, u64>) {
    let value = symbol(size).and_then(|name| values.get(name));
    if let Some(value) = value.and_then(|value| i64::try_from(*value).ok()) {
        size.value = Some(Size::DimValue(value));
    }
}
