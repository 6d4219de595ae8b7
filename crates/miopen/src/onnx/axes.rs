//! A layer's attributes and their values for each axis of an image.

use tract_onnx::pb::AttributeProto;

use super::answer::Reason;
use crate::problem::MAX_SIZE;

/// A layer's attributes.
///
/// Source: ONNX, docs/Operators.md: Conv, ConvTranspose, MaxPool.
pub(super) struct Attributes<'a>(pub(super) &'a [AttributeProto]);

/// Sizes along the axes of an image, in the model's order.
#[derive(Debug)]
pub(super) struct Axes {
    pub(super) input: Vec<u64>,
    pub(super) filter: Vec<u64>,
    pub(super) strides: Vec<u64>,
    pub(super) dilations: Vec<u64>,
    /// Padding at the beginning and at the end.
    pub(super) pads: Vec<[u64; 2]>,
}

impl Axes {
    /// The number of input elements along the axis that an output element depends on.
    pub(super) fn covered(&self, axis: usize) -> u64 {
        self.dilations[axis] * (self.filter[axis] - 1) + 1
    }
}

impl Attributes<'_> {
    fn find(&self, name: &str) -> Option<&AttributeProto> {
        self.0.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.find(name).map(|attribute| attribute.i)
    }

    pub(super) fn float(&self, name: &str) -> Option<f32> {
        self.find(name).map(|attribute| attribute.f)
    }

    /// An attribute with as many numbers as there are axes, if it is given.
    pub(super) fn optional(&self, name: &str, axes: usize) -> Result<Option<Vec<u64>>, Reason> {
        let Some(attribute) = self.find(name).filter(|one| !one.ints.is_empty()) else {
            return Ok(None);
        };
        // Old models also state the output's batch and channels.
        let extra = if name == "output_shape" { 2 } else { 0 };
        let given = attribute.ints.len();
        if given != axes && given != axes + extra {
            return Err(Reason::wrong(format!("its `{name}` has {given} numbers")));
        }
        let numbers = attribute.ints[given - axes..].iter();
        let number = |number: &i64| u64::try_from(*number).ok().filter(|size| *size <= MAX_SIZE);
        let numbers: Option<Vec<u64>> = numbers.map(number).collect();
        let wrong = || Reason::wrong(format!("its `{name}` has a number out of range"));
        Ok(Some(numbers.ok_or_else(wrong)?))
    }

    fn numbers(&self, name: &str, axes: usize, default: u64) -> Result<Vec<u64>, Reason> {
        Ok(self.optional(name, axes)?.unwrap_or_else(|| vec![default; axes]))
    }

    fn automatic(&self) -> &[u8] {
        self.find("auto_pad").map_or(b"", |attribute| attribute.s.as_slice())
    }

    /// The axes of a convolution or pooling of an image with this filter.
    pub(super) fn axes(&self, image: &[u64], filter: &[u64]) -> Result<Axes, Reason> {
        let count = image.len();
        let strides = self.numbers("strides", count, 1)?;
        let dilations = self.numbers("dilations", count, 1)?;
        let small = |values: &[u64]| values.iter().all(|value| (1..=MAX_SIZE).contains(value));
        if ![image, filter, &strides, &dilations].into_iter().all(small) {
            return Err(Reason::wrong("one of its sizes is 0, or above 2147483647".to_owned()));
        }
        let given = self.numbers("pads", 2 * count, 0)?;
        let mut axes = Axes {
            input: image.to_vec(),
            filter: filter.to_vec(),
            strides,
            dilations,
            pads: Vec::new(),
        };
        for axis in 0..count {
            let (size, stride) = (image[axis], axes.strides[axis]);
            let whole = (size.div_ceil(stride) - 1) * stride + axes.covered(axis);
            let total = whole.saturating_sub(size);
            axes.pads.push(match self.automatic() {
                b"SAME_UPPER" => [total / 2, total.div_ceil(2)],
                b"SAME_LOWER" => [total.div_ceil(2), total / 2],
                b"VALID" => [0, 0],
                _ => [given[axis], given[count + axis]],
            });
        }
        Ok(axes)
    }

    /// Sets the padding of a transposed convolution, which is cut off its output. Returns the
    /// elements to add to the output's end.
    ///
    /// MIOpen cuts off the same on both sides. The difference between the sides is cut off
    /// afterwards, as frameworks do.
    pub(super) fn transposed(&self, axes: &mut Axes) -> Result<Vec<u64>, Reason> {
        let count = axes.input.len();
        let added = self.numbers("output_padding", count, 0)?;
        let is_upper = self.automatic() == b"SAME_UPPER";
        let shape = self.optional("output_shape", count)?;
        let mut output_pad = Vec::new();
        for axis in 0..count {
            let (stride, size) = (axes.strides[axis], axes.input[axis]);
            let wanted = match &shape {
                Some(shape) => Some(shape[axis]),
                None if is_upper || self.automatic() == b"SAME_LOWER" => Some(stride * size),
                None => None,
            };
            let mut added = added[axis];
            if let Some(wanted) = wanted {
                let whole = stride * (size - 1) + axes.covered(axis) + added;
                let total = whole.saturating_sub(wanted);
                added += wanted.saturating_sub(whole);
                let (less, more) = (total / 2, total.div_ceil(2));
                axes.pads[axis] = if is_upper { [less, more] } else { [more, less] };
            }
            let [begin, end] = axes.pads[axis];
            let common = begin.min(end);
            axes.pads[axis] = [common, common];
            output_pad.push(added.saturating_sub(end - common));
        }
        Ok(output_pad)
    }
}
