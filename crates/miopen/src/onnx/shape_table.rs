//! The known shapes.

use std::collections::HashMap;

use tract_onnx::pb::tensor_proto::DataType as Element;
use tract_onnx::prelude::DatumType;

/// The known properties of tensors.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) sizes: HashMap<String, Vec<u64>>,
    pub(super) types: HashMap<String, DatumType>,
    /// Values of tensors with one element.
    pub(super) scalars: HashMap<String, f32>,
}

impl Shapes {
    /// The sizes of a tensor, if all are known.
    pub(super) fn sizes(&self, name: &str) -> Option<&[u64]> {
        self.sizes.get(name).map(Vec::as_slice)
    }

    /// The inferred type of a tensor: a number of `TensorProto.DataType`; `None` for types that
    /// MIOpen does not compute.
    pub(super) fn element(&self, name: &str) -> Option<i32> {
        let element = match self.types.get(name)? {
            DatumType::F32 => Element::Float,
            DatumType::F16 => Element::Float16,
            DatumType::F64 => Element::Double,
            DatumType::I8 => Element::Int8,
            DatumType::U8 => Element::Uint8,
            DatumType::I32 => Element::Int32,
            DatumType::I64 => Element::Int64,
            DatumType::Bool => Element::Bool,
            _ => return None,
        };
        Some(element as i32)
    }
}
