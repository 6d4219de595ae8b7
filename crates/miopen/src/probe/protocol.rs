//! What the probe is told of problems. Its own `protocol` module describes all
//! that is said to it and that it answers.

use crate::problem::{Convolution, DataType, Layout};

/// What the probe is told of a convolution; none where it has no output.
pub(crate) fn worded(convolution: &Convolution) -> Option<String> {
    let axes = usize::from(convolution.spatial_dims);
    let directions = convolution.directions;
    let mut numbers: Vec<u64> = vec![
        match convolution.data_type {
            DataType::Fp32 => 0,
            DataType::Fp16 => 1,
            DataType::Bf16 => 2,
            DataType::Int8 => 3,
            DataType::Fp8 => 4,
        },
        convolution.spatial_dims.into(),
        convolution.groups,
        convolution.transposed.into(),
        convolution.bias.into(),
        u64::from(directions.forward)
            + 2 * u64::from(directions.backward_data)
            + 4 * u64::from(directions.backward_weights),
    ];
    for values in
        [&convolution.pad, &convolution.stride, &convolution.dilation, &convolution.output_pad]
    {
        numbers.extend(&values[3 - axes..]);
    }
    numbers.extend(convolution.input_lengths());
    numbers.extend(convolution.filter_lengths());
    numbers.extend(convolution.output_lengths()?);
    let layouts = [convolution.in_layout, convolution.filter_layout, convolution.out_layout];
    numbers.extend(layouts.map(|layout| u64::from(layout == Layout::ChannelsLast)));
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn a_convolution_is_worded_in_numbers() {
        let check = |line: &str, expected: &str| {
            let Problem::Convolution(convolution) = line.parse().unwrap() else { panic!("{line}") };
            assert_eq!(worded(&convolution).as_deref(), Some(expected), "{line}");
        };
        check(
            "convfp16 -n 32 -c 4 -H 224 -W 225 -k 64 -y 7 -x 5 -p 3 -q 2 -u 2 -v 1 -l 1 -j 1 -g 2 -F 5 -b 1",
            "1 2 2 0 1 5 3 2 2 1 1 1 0 0 32 4 224 225 64 2 7 5 32 64 112 225 0 0 0",
        );
        check(
            "conv --spatial_dim 3 -m trans -n 1 -c 4 -k 8 --in_d 9 -H 8 -W 7 --fil_d 3 -y 3 -x 3 \
             --pad_d 1 -p 1 -q 0 --conv_stride_d 2 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 -F 0",
            "0 3 1 1 0 7 1 1 0 2 1 1 1 1 1 0 0 0 1 4 9 8 7 4 8 3 3 3 1 8 17 8 9 0 0 0",
        );
    }
}
