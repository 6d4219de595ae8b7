//! What is said to the probe, and what it answers: lines of fields separated
//! by tabs. The probe's own `protocol` module describes them.

use std::io::{self, Write};

use crate::problem::{Convolution, DataType, Layout};

/// Writes a line.
pub(crate) fn write_line(to: &mut impl Write, fields: &[&[u8]]) -> io::Result<()> {
    let mut line = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        for &byte in *field {
            match byte {
                b'\t' => line.extend(b"\\t"),
                b'\n' => line.extend(b"\\n"),
                b'\\' => line.extend(b"\\\\"),
                byte => line.push(byte),
            }
        }
    }
    line.push(b'\n');
    to.write_all(&line)
}

/// The fields of a line.
pub(crate) fn read_line(line: &[u8]) -> Vec<Vec<u8>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.split(|&byte| byte == b'\t').map(unescape).collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    if !field.contains(&b'\\') {
        return field.to_vec();
    }
    let mut bytes = field.iter().copied();
    let mut plain = Vec::with_capacity(field.len());
    while let Some(byte) = bytes.next() {
        plain.push(match (byte, (byte == b'\\').then(|| bytes.next()).flatten()) {
            (_, Some(b't')) => b'\t',
            (_, Some(b'n')) => b'\n',
            (_, Some(other)) => other,
            (byte, None) => byte,
        });
    }
    plain
}

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
    fn fields_come_back_as_they_were() {
        let fields = [&b"key"[..], b"", b" -DA=\"\t\\n\n\\\" ", &[0xff, 0, b'\r']];
        let mut line = Vec::new();
        write_line(&mut line, &fields).unwrap();
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(read_line(&line), fields);
    }

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
