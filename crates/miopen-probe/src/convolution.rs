//! A convolution in the form in which gfxpack sends it; its sizes are already checked.
//!
//! Numbers separated by blanks: the types of input and filter and of the output
//! (`miopenDataType_t`), the number of axes (2 or 3), groups, whether it is transposed, and
//! directions (the sum of 1 forward, 2 backward data, 4 backward weights); then padding, stride,
//! dilation and the output's padding, each with one number per axis; then the lengths and strides
//! of input, filter and output, in elements, each two numbers and one per axis.

use crate::protocol::number;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Convolution {
    /// `miopenDataType_t` of input and filter, and of the output.
    pub(crate) input_type: i32,
    pub(crate) output_type: i32,
    pub(crate) groups: i32,
    pub(crate) transposed: bool,
    pub(crate) directions: Vec<Direction>,
    /// Each of these has one number per axis.
    pub(crate) pad: Vec<i32>,
    pub(crate) stride: Vec<i32>,
    pub(crate) dilation: Vec<i32>,
    pub(crate) output_pad: Vec<i32>,
    pub(crate) input: Tensor,
    pub(crate) filter: Tensor,
    pub(crate) output: Tensor,
}

/// Lengths and strides, in elements: images or output channels, channels, axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) lengths: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

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

impl Convolution {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let numbers: Vec<usize> =
            text.split(|&byte| byte == b' ').map(number).collect::<Option<_>>()?;
        let rest = &mut numbers.as_slice();
        let &[input_type, output_type, axes, groups, transposed, directions] = take(rest, 6)?
        else {
            return None;
        };
        if !matches!(axes, 2 | 3) {
            return None;
        }
        let int = |value: usize| i32::try_from(value).ok();
        let mut ints =
            || -> Option<Vec<i32>> { take(rest, axes)?.iter().map(|&value| int(value)).collect() };
        let (pad, stride, dilation, output_pad) = (ints()?, ints()?, ints()?, ints()?);
        let mut tensor = || -> Option<Tensor> {
            let mut numbers = || take(rest, axes + 2).map(<[usize]>::to_vec);
            Some(Tensor { lengths: numbers()?, strides: numbers()? })
        };
        let (input, filter, output) = (tensor()?, tensor()?, tensor()?);
        let is_wanted = |bit: &usize| directions & (1 << bit) != 0;
        let convolution = Self {
            input_type: int(input_type)?,
            output_type: int(output_type)?,
            groups: int(groups)?,
            transposed: transposed != 0,
            directions: (0..3).filter(is_wanted).map(|bit| Direction::ALL[bit]).collect(),
            pad,
            stride,
            dilation,
            output_pad,
            input,
            filter,
            output,
        };
        rest.is_empty().then_some(convolution)
    }
}

/// Splits the first `count` numbers off.
fn take<'a>(rest: &mut &'a [usize], count: usize) -> Option<&'a [usize]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "0 0 2 2 0 5 3 3 2 2 1 1 0 0";
    const TENSORS: &str = "32 4 9 8 288 72 8 1 64 2 7 7 98 49 7 1 32 64 5 4 1280 20 4 1";

    #[test]
    fn numbers_are_read_in_order_for_two_and_three_axes() {
        let conv = Convolution::parse(format!("{HEAD} {TENSORS}").as_bytes()).unwrap();
        assert_eq!((conv.input_type, conv.output_type), (0, 0));
        assert_eq!((conv.groups, conv.transposed), (2, false));
        assert_eq!(conv.directions, [Direction::Forward, Direction::BackwardWeights]);
        assert_eq!((conv.pad, conv.stride), (vec![3, 3], vec![2, 2]));
        assert_eq!(conv.input.lengths, [32, 4, 9, 8]);
        assert_eq!(conv.input.strides, [288, 72, 8, 1]);
        assert_eq!(conv.filter.lengths, [64, 2, 7, 7]);
        assert_eq!(conv.output.strides, [1280, 20, 4, 1]);
        let tensor = "1 4 9 8 7 2016 504 56 7 1";
        let conv = format!("1 1 3 1 1 7 1 1 0 2 1 1 1 1 1 0 0 0 {tensor} {tensor} {tensor}");
        let conv = Convolution::parse(conv.as_bytes()).unwrap();
        assert!(conv.transposed);
        assert_eq!(conv.stride, [2, 1, 1]);
        assert_eq!(conv.output.lengths, [1, 4, 9, 8, 7]);
    }

    #[test]
    fn other_texts_are_no_convolutions() {
        for wrong in [
            "",
            HEAD,
            "1 1 4 1 0 7",
            &format!("{HEAD} {}", &TENSORS[..TENSORS.len() - 2]),
            &format!("{HEAD} {TENSORS} 0"),
            &format!("{HEAD} x{TENSORS}"),
            &format!("{HEAD} -{TENSORS}"),
            &format!("9999999999{HEAD} {TENSORS}"),
        ] {
            assert_eq!(Convolution::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
