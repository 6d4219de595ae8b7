//! A convolution as gfxpack words it, which has checked its sizes.
//!
//! Numbers separated by blanks: type (0 fp32, 1 fp16, 2 bf16, 3 int8, 4 fp8),
//! axes (2 or 3), groups, whether it is transposed, whether it has a bias, and
//! directions (the sum of 1 forward, 2 backward data, 4 backward weights);
//! then padding, stride, dilation and the output's padding, each a number for
//! each axis; then the lengths of input, filter and output, each two numbers
//! and one for each axis; then the layouts of these three (0 channels first, 1
//! channels last).

use crate::protocol::number;

/// A convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Convolution {
    pub(crate) data_type: DataType,
    pub(crate) groups: i32,
    pub(crate) transposed: bool,
    pub(crate) bias: bool,
    pub(crate) directions: Vec<Direction>,
    /// Each of these has a number for each axis.
    pub(crate) pad: Vec<i32>,
    pub(crate) stride: Vec<i32>,
    pub(crate) dilation: Vec<i32>,
    pub(crate) output_pad: Vec<i32>,
    pub(crate) input: Tensor,
    pub(crate) filter: Tensor,
    pub(crate) output: Tensor,
}

/// The type of input and filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataType {
    Fp32,
    Fp16,
    Bf16,
    Int8,
    Fp8,
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
    const ALL: [Self; 3] = [Self::Forward, Self::BackwardData, Self::BackwardWeights];

    /// MIOpen's letter.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::BackwardData => 'B',
            Self::BackwardWeights => 'W',
        }
    }
}

impl DataType {
    /// `miopenDataType_t`.
    pub(crate) fn of_input(self) -> i32 {
        match self {
            Self::Fp16 => 0,
            Self::Fp32 => 1,
            Self::Int8 => 3,
            Self::Bf16 => 5,
            Self::Fp8 => 7,
        }
    }

    /// `miopenDataType_t` of the output: products of eight-bit integers are
    /// summed in 32 bits.
    pub(crate) fn of_output(self) -> i32 {
        match self {
            Self::Int8 => 2,
            other => other.of_input(),
        }
    }
}

impl Convolution {
    /// The convolution of that wording.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let numbers: Vec<usize> =
            text.split(|&byte| byte == b' ').map(number).collect::<Option<_>>()?;
        let rest = &mut numbers.as_slice();
        let &[data_type, axes, groups, transposed, bias, directions] = take(rest, 6)? else {
            return None;
        };
        if !matches!(axes, 2 | 3) {
            return None;
        }
        let mut ints = || -> Option<Vec<i32>> {
            take(rest, axes)?.iter().map(|&value| i32::try_from(value).ok()).collect()
        };
        let (pad, stride, dilation, output_pad) = (ints()?, ints()?, ints()?, ints()?);
        let mut lengths = || take(rest, axes + 2);
        let (input, filter, output) = (lengths()?, lengths()?, lengths()?);
        let &[input_layout, filter_layout, output_layout] = take(rest, 3)? else { return None };
        let convolution = Self {
            data_type: match data_type {
                0 => DataType::Fp32,
                1 => DataType::Fp16,
                2 => DataType::Bf16,
                3 => DataType::Int8,
                4 => DataType::Fp8,
                _ => return None,
            },
            groups: i32::try_from(groups).ok()?,
            transposed: transposed != 0,
            bias: bias != 0,
            directions: (0..3)
                .filter(|bit| directions & (1 << bit) != 0)
                .map(|bit| Direction::ALL[bit])
                .collect(),
            pad,
            stride,
            dilation,
            output_pad,
            input: Tensor::new(input, input_layout != 0)?,
            filter: Tensor::new(filter, filter_layout != 0)?,
            output: Tensor::new(output, output_layout != 0)?,
        };
        rest.is_empty().then_some(convolution)
    }
}

/// Takes numbers off the beginning.
fn take<'a>(rest: &mut &'a [usize], count: usize) -> Option<&'a [usize]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

impl Tensor {
    /// A densely packed tensor.
    fn new(lengths: &[usize], channels_last: bool) -> Option<Self> {
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
        Some(Self { lengths: lengths.to_vec(), strides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "1 2 2 0 1 5 3 3 2 2 1 1 0 0";

    #[test]
    fn numbers_stand_in_their_order() {
        let conv = format!("{HEAD} 32 4 224 224 64 2 7 7 32 64 112 112 0 0 0");
        let conv = Convolution::parse(conv.as_bytes()).unwrap();
        assert_eq!(conv.data_type, DataType::Fp16);
        assert_eq!((conv.groups, conv.transposed, conv.bias), (2, false, true));
        assert_eq!(conv.directions, [Direction::Forward, Direction::BackwardWeights]);
        assert_eq!((conv.pad, conv.stride), (vec![3, 3], vec![2, 2]));
        assert_eq!(conv.input.lengths, [32, 4, 224, 224]);
        assert_eq!(conv.input.strides, [4 * 224 * 224, 224 * 224, 224, 1]);
        assert_eq!(conv.filter.lengths, [64, 2, 7, 7]);
        assert_eq!(conv.output.lengths, [32, 64, 112, 112]);
    }

    #[test]
    fn channels_last_is_a_matter_of_strides() {
        let conv = format!("{HEAD} 2 8 5 6 16 4 3 3 2 16 5 6 1 1 0");
        let conv = Convolution::parse(conv.as_bytes()).unwrap();
        assert_eq!(conv.input.strides, [8 * 5 * 6, 1, 6 * 8, 8]);
        assert_eq!(conv.filter.strides, [4 * 9, 1, 3 * 4, 4]);
        assert_eq!(conv.output.strides, [16 * 30, 30, 6, 1]);
    }

    #[test]
    fn three_axes_have_more_numbers() {
        let conv = "0 3 1 1 0 7 1 1 0 2 1 1 1 1 1 0 0 0 1 4 9 8 7 4 8 3 3 3 1 8 17 8 9 0 0 0";
        let conv = Convolution::parse(conv.as_bytes()).unwrap();
        assert!(conv.transposed);
        assert_eq!(conv.stride, [2, 1, 1]);
        assert_eq!(conv.output.strides, [8 * 17 * 72, 17 * 72, 72, 9, 1]);
    }

    #[test]
    fn other_texts_are_no_convolutions() {
        for wrong in [
            "",
            HEAD,
            "0 4 1 0 0 7",
            &format!("{HEAD} 2 8 5 6 16 4 3 3 2 16 5 6 1 1"),
            &format!("{HEAD} 2 8 5 6 16 4 3 3 2 16 5 6 1 1 0 0"),
            &format!("{HEAD} 2 8 5 x 16 4 3 3 2 16 5 6 1 1 0"),
            &format!("{HEAD} 2 -8 5 6 16 4 3 3 2 16 5 6 1 1 0"),
            &format!("9{} 2 8 5 6 16 4 3 3 2 16 5 6 1 1 0", &HEAD[1..]),
        ] {
            assert_eq!(Convolution::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
