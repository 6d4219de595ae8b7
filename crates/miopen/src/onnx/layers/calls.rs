//! Layers other than convolutions, as calls of MIOpen.

use tract_onnx::pb::NodeProto;

use super::super::axes::Attributes;
use super::super::shape_table::Shapes;
use crate::calls::{Activation, Call, Pool, PoolKind, Shape};

/// MIOpen's call for a layer, if there is one: of images, or of rows.
pub(super) fn call(
    node: &NodeProto,
    read: &Attributes<'_>,
    input: &[u64],
    shapes: &Shapes,
) -> Option<Call> {
    let operation = node.op_type.as_str();
    let shape = match input {
        [_, channels, height, width] => Shape { channels: *channels, size: [*height, *width] },
        [_, values] if operation == "Softmax" => {
            let axis = read.int("axis").unwrap_or(-1);
            return matches!(axis, -1 | 1).then_some(Call::Softmax(*values));
        }
        _ => return None,
    };
    let global = |kind| {
        Some(Call::Pool(Pool { input: shape, kind, size: shape.size, pad: [0, 0], stride: [1, 1] }))
    };
    match operation {
        "BatchNormalization" => Some(Call::BatchNorm(shape)),
        "Relu" => Some(Call::Activation(shape, Activation::Relu)),
        "Sigmoid" => Some(Call::Activation(shape, Activation::Sigmoid)),
        "LeakyRelu" => {
            let slope = read.float("alpha").unwrap_or(0.01);
            Some(Call::Activation(shape, Activation::Leaky(slope)))
        }
        "Clip" => {
            // Bounds are attributes in old models and inputs in new ones.
            let bound = |name, index: usize| {
                let input = node.input.get(index).and_then(|name| shapes.scalars.get(name));
                input.copied().or_else(|| read.float(name))
            };
            let is_relu6 = bound("min", 1) == Some(0.0) && bound("max", 2) == Some(6.0);
            is_relu6.then_some(Call::Activation(shape, Activation::Relu6))
        }
        "GlobalMaxPool" => global(PoolKind::Max),
        "GlobalAveragePool" => global(PoolKind::Average),
        "MaxPool" | "AveragePool" => pool(operation, read, shape).map(Call::Pool),
        _ => None,
    }
}

/// A pooling, if MIOpen supports its windows: without gaps, and with equal padding on both sides.
fn pool(operation: &str, read: &Attributes<'_>, shape: Shape) -> Option<Pool> {
    let axes = read.axes(&shape.size, &read.optional("kernel_shape", 2).ok()??).ok()?;
    let pair = |values: &[u64]| [values[0], values[1]];
    let kind = match (operation, read.int("count_include_pad").unwrap_or(0)) {
        ("MaxPool", _) => PoolKind::Max,
        (_, 0) => PoolKind::Average,
        _ => PoolKind::AverageWithPadding,
    };
    let pool = Pool {
        input: shape,
        kind,
        size: pair(&axes.filter),
        pad: [axes.pads[0][0], axes.pads[1][0]],
        stride: pair(&axes.strides),
    };
    let even = axes.pads.iter().all(|[begin, end]| begin == end) && axes.dilations == [1, 1];
    let rounded_up = read.int("ceil_mode").unwrap_or(0) != 0;
    // MIOpen rounds down; frameworks compute a rounded-up pooling in another way.
    let fits =
        pool.output(false).is_some_and(|down| !rounded_up || pool.output(true) == Some(down));
    (even && fits).then_some(pool)
}
