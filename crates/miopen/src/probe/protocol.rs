//! The requests to the probe about problems. The `protocol` module of the probe describes all
//! messages.

use crate::problem::{Convolution, DataType, Layout};

/// A convolution that was checked, as the probe takes it.
pub(crate) fn worded(convolution: &Convolution) -> String {
    let axes = usize::from(convolution.spatial_dims);
    let directions = convolution.directions;
    // `miopenDataType_t`; products of eight-bit integers are summed in 32 bits.
    let (input_type, output_type) = match convolution.data_type {
        DataType::Fp16 => (0, 0),
        DataType::Fp32 => (1, 1),
        DataType::Int8 => (3, 2),
        DataType::Bf16 => (5, 5),
        DataType::Fp8 => (7, 7),
    };
    let mut numbers: Vec<u64> = vec![
        input_type,
        output_type,
        convolution.spatial_dims.into(),
        convolution.groups,
        convolution.transposed.into(),
        u64::from(directions.forward)
            + 2 * u64::from(directions.backward_data)
            + 4 * u64::from(directions.backward_weights),
    ];
    for values in
        [&convolution.pad, &convolution.stride, &convolution.dilation, &convolution.output_pad]
    {
        numbers.extend(&values[3 - axes..]);
    }
    for (lengths, layout) in [
        (convolution.input_lengths(), convolution.in_layout),
        (convolution.filter_lengths(), convolution.filter_layout),
        (convolution.output_lengths().expect("it was checked"), convolution.out_layout),
    ] {
        let strides = strides(&lengths, layout);
        numbers.extend(lengths.into_iter().chain(strides));
    }
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(" ")
}

/// Strides of a densely packed tensor.
fn strides(lengths: &[u64], layout: Layout) -> Vec<u64> {
    // From the innermost dimension outwards.
    let mut order: Vec<usize> = (0..lengths.len()).rev().collect();
    if layout == Layout::ChannelsLast {
        order.retain(|dimension| *dimension != 1);
        order.insert(0, 1);
    }
    let (mut strides, mut stride) = (vec![0; lengths.len()], 1);
    for dimension in order {
        strides[dimension] = stride;
        stride *= lengths[dimension];
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn a_convolution_is_sent_to_the_probe_as_numbers() {
        let check = |line: &str, expected: &str| {
            let Problem::Convolution(convolution) = line.parse().unwrap() else { panic!("{line}") };
            assert_eq!(worded(&convolution), expected, "{line}");
        };
        check(
            "convfp16 -n 32 -c 4 -H 224 -W 225 -k 64 -y 7 -x 5 -p 3 -q 2 -u 2 -v 1 -l 1 -j 1 -g 2 -F 5 -b 1",
            "0 0 2 2 0 5 3 2 2 1 1 1 0 0 32 4 224 225 201600 50400 225 1 64 2 7 5 70 35 5 1 \
             32 64 112 225 1612800 25200 225 1",
        );
        check(
            "conv --spatial_dim 3 -m trans -n 1 -c 4 -k 8 --in_d 9 -H 8 -W 7 --fil_d 3 -y 3 -x 3 \
             --pad_d 1 -p 1 -q 0 --conv_stride_d 2 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 -F 0",
            "1 1 3 1 1 7 1 1 0 2 1 1 1 1 1 0 0 0 1 4 9 8 7 2016 504 56 7 1 4 8 3 3 3 216 27 9 3 1 \
             1 8 17 8 9 9792 1224 72 9 1",
        );
        check(
            "convint8 -n 2 -c 8 -H 5 -W 6 -k 16 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -g 2 -F 1 -I NHWC -f NHWC",
            "3 2 2 2 0 1 1 1 1 1 1 1 0 0 2 8 5 6 240 1 48 8 16 4 3 3 36 1 12 4 \
             2 16 5 6 480 30 6 1",
        );
    }
}
