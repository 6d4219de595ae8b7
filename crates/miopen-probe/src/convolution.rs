//! A convolution as gfxpack words it, and the sizes of its tensors.
//!
//! Numbers separated by blanks: type (0 fp32, 1 fp16, 2 bf16, 3 int8), axes
//! (2 or 3), images, input channels, output channels, groups, whether it is
//! transposed, whether it has a bias; then depth, height and width of input,
//! filter, padding, stride and dilation; then the layouts of input, filter and
//! output (0 channels first, 1 channels last); then directions (the sum of 1
//! forward, 2 backward data, 4 backward weights).

use crate::settings::number;

/// A convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Convolution {
    pub(crate) data_type: DataType,
    /// 2 or 3.
    pub(crate) axes: usize,
    pub(crate) transposed: bool,
    pub(crate) bias: bool,
    pub(crate) groups: i32,
    pub(crate) pad: [i32; 3],
    pub(crate) stride: [i32; 3],
    pub(crate) dilation: [i32; 3],
    pub(crate) input: Tensor,
    pub(crate) filter: Tensor,
    pub(crate) output: Tensor,
    pub(crate) directions: Vec<Direction>,
}

/// The type of input and filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataType {
    Fp32,
    Fp16,
    Bf16,
    Int8,
}

/// Lengths and strides, in elements: images or output channels, channels, axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) lengths: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    BackwardData,
    BackwardWeights,
}

impl Direction {
    /// MIOpen's letter.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::BackwardData => 'B',
            Self::BackwardWeights => 'W',
        }
    }
}

/// Numbers of a convolution.
const NUMBERS: usize = 27;

impl Convolution {
    /// The convolution of that wording; `None` where it is none, or too large
    /// for MIOpen's interface, which would fault.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let numbers: Vec<usize> =
            text.split(|&byte| byte == b' ').map(number).collect::<Option<_>>()?;
        let numbers: &[usize; NUMBERS] = numbers.as_slice().try_into().ok()?;
        let &[data_type, axes, batch, in_channels, out_channels, groups, transposed, bias, ..] =
            numbers;
        let triple = |at: usize| [numbers[at], numbers[at + 1], numbers[at + 2]];
        let (input, filter, pad) = (triple(8), triple(11), triple(14));
        let (stride, dilation) = (triple(17), triple(20));
        let data_type = match data_type {
            0 => DataType::Fp32,
            1 => DataType::Fp16,
            2 => DataType::Bf16,
            3 => DataType::Int8,
            _ => return None,
        };
        let some = |values: &[usize]| values.iter().all(|&value| value > 0);
        if !matches!(axes, 2 | 3)
            || !some(&[batch, in_channels, out_channels, groups])
            || !some(&input)
            || !some(&filter)
            || !some(&stride)
            || !some(&dilation)
            || in_channels % groups != 0
            || out_channels % groups != 0
        {
            return None;
        }
        let transposed = transposed != 0;
        let first = 3 - axes;
        let mut output = [1; 3];
        for axis in first..3 {
            output[axis] = length_of_output(
                transposed,
                input[axis],
                filter[axis],
                pad[axis],
                stride[axis],
                dilation[axis],
            )?;
        }
        // A transposed convolution's filter lies the other way round.
        let (k, c) =
            if transposed { (in_channels, out_channels) } else { (out_channels, in_channels) };
        let tensor = |outer: usize, channels: usize, spatial: &[usize; 3], layout: usize| {
            Tensor::new(outer, channels, &spatial[first..], layout != 0)
        };
        let ints = |values: [usize; 3]| -> Option<[i32; 3]> {
            let [a, b, c] = values.map(|value| i32::try_from(value).ok());
            Some([a?, b?, c?])
        };
        let [input_layout, filter_layout, output_layout] = triple(23);
        let directions = [Direction::Forward, Direction::BackwardData, Direction::BackwardWeights];
        Some(Self {
            data_type,
            axes,
            transposed,
            bias: bias != 0,
            groups: i32::try_from(groups).ok()?,
            pad: ints(pad)?,
            stride: ints(stride)?,
            dilation: ints(dilation)?,
            input: tensor(batch, in_channels, &input, input_layout)?,
            filter: tensor(k, c / groups, &filter, filter_layout)?,
            output: tensor(batch, out_channels, &output, output_layout)?,
            directions: (0..3)
                .filter(|bit| numbers[26] & (1 << bit) != 0)
                .map(|bit| directions[bit])
                .collect(),
        })
    }

    /// The values of the axes that there are.
    pub(crate) fn axes_of<'a>(&self, values: &'a [i32; 3]) -> &'a [i32] {
        &values[3 - self.axes..]
    }
}

/// Source: ROCm/MIOpen 2d1fd997a, `ConvolutionDescriptor::GetForwardOutputTensor`.
fn length_of_output(
    transposed: bool,
    input: usize,
    filter: usize,
    pad: usize,
    stride: usize,
    dilation: usize,
) -> Option<usize> {
    let reach = dilation.checked_mul(filter - 1)?.checked_add(1)?;
    let pads = pad.checked_mul(2)?;
    let length = if transposed {
        stride.checked_mul(input - 1)?.checked_add(reach)?.checked_sub(pads)?
    } else {
        input.checked_add(pads)?.checked_sub(reach)? / stride + 1
    };
    (length > 0).then_some(length)
}

impl Tensor {
    fn new(outer: usize, channels: usize, spatial: &[usize], channels_last: bool) -> Option<Self> {
        let lengths: Vec<usize> = [outer, channels].iter().chain(spatial).copied().collect();
        if lengths.iter().any(|&length| i32::try_from(length).is_err()) {
            return None;
        }
        // From the innermost dimension outwards.
        let order: Vec<usize> = if channels_last {
            std::iter::once(1).chain((2..lengths.len()).rev()).chain([0]).collect()
        } else {
            (0..lengths.len()).rev().collect()
        };
        let mut strides = vec![0; lengths.len()];
        let mut stride: usize = 1;
        for dimension in order {
            strides[dimension] = stride;
            stride = stride.checked_mul(lengths[dimension])?;
        }
        // Elements have up to eight bytes.
        (stride < usize::MAX >> 4).then_some(Self { lengths, strides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Convolution> {
        Convolution::parse(text.as_bytes())
    }

    #[test]
    fn tensors_follow_from_the_sizes() {
        let conv = parse("0 2 32 3 64 1 0 0 1 224 224 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7").unwrap();
        assert_eq!(conv.output.lengths, [32, 64, 112, 112]);
        assert_eq!(conv.filter.lengths, [64, 3, 7, 7]);
        assert_eq!(conv.input.strides, [3 * 224 * 224, 224 * 224, 224, 1]);
        assert_eq!(conv.directions.len(), 3);
        assert_eq!(conv.axes_of(&conv.pad), [3, 3]);
    }

    #[test]
    fn channels_last_is_a_matter_of_strides() {
        let conv = parse("1 2 2 8 16 2 0 1 1 5 6 1 3 3 0 1 1 1 1 1 1 1 1 1 1 1 1").unwrap();
        assert_eq!(conv.input.lengths, [2, 8, 5, 6]);
        assert_eq!(conv.input.strides, [8 * 5 * 6, 1, 6 * 8, 8]);
        assert_eq!(conv.filter.lengths, [16, 4, 3, 3]);
        assert_eq!(conv.filter.strides, [4 * 9, 1, 3 * 4, 4]);
        assert!(conv.bias);
        assert_eq!(conv.directions, [Direction::Forward]);
    }

    #[test]
    fn a_transposed_filter_lies_the_other_way_round() {
        let conv = parse("0 2 1 8 16 2 1 0 1 5 5 1 3 3 0 1 1 1 2 2 1 1 1 0 0 0 1").unwrap();
        assert_eq!(conv.filter.lengths, [8, 8, 3, 3]);
        assert_eq!(conv.output.lengths, [1, 16, 9, 9]);
    }

    #[test]
    fn a_third_axis_is_the_first() {
        let conv = parse("0 3 1 4 8 1 0 0 9 8 7 3 3 3 1 1 0 2 1 1 1 1 1 0 0 0 7").unwrap();
        assert_eq!(conv.output.lengths, [1, 8, 5, 8, 5]);
        assert_eq!(conv.axes_of(&conv.stride), [2, 1, 1]);
    }

    #[test]
    fn what_miopen_would_fault_on_is_refused() {
        for wrong in [
            "",
            "0 2 32",
            "0 2 0 3 64 1 0 0 1 224 224 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7", // no image
            "0 2 32 3 64 1 0 0 1 224 224 1 7 7 0 3 3 1 0 2 1 1 1 0 0 0 7", // stride 0
            "0 2 32 3 64 2 0 0 1 224 224 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7", // groups
            "0 2 32 3 64 1 0 0 1 2 2 1 7 7 0 0 0 1 2 2 1 1 1 0 0 0 7",    // no output
            "0 2 4294967296 3 64 1 0 0 1 9 9 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7",
            "0 2 2147483647 2147483647 64 1 0 0 1 9 9 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7",
            "0 4 32 3 64 1 0 0 1 224 224 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7", // axes
            "9 2 32 3 64 1 0 0 1 224 224 1 7 7 0 3 3 1 2 2 1 1 1 0 0 0 7", // type
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
