//! Keys of performance and find databases, which describe convolutions.

use crate::problem::{Convolution, DataType, Directions, Layout};

/// The result of reading a key, or why it gives no problem.
type Result<T> = std::result::Result<T, String>;

/// The most inputs that are tried for a key of a performance database: strides of 64 in both axes.
const MAX_INPUTS: u64 = 4096;

/// The parts of a key.
struct Key {
    /// As written in the key, which calls dy the input and x the output of gradients.
    convolution: Convolution,
    /// Sizes of "out"; keys of performance databases lack them.
    output: Option<[u64; 3]>,
}

/// The convolutions with this key. A key of a find database has one. A key of a performance
/// database lacks the size of x, so with a stride, gradients of several inputs have the same key.
///
/// # Errors
/// The reason why the key gives no problem: another form than that of a convolution's (batch
/// normalization's, a fusion's, or one of another version of MIOpen), tensors or sizes that are not
/// supported, or too many possible inputs.
pub(super) fn convolutions(key: &str) -> Result<Vec<Convolution>> {
    let key = if key.contains('-') { find_key(key) } else { perf_key(key) }?;
    let Key { mut convolution, output } = key;
    if convolution.spatial_dims == 2 {
        // Keys for two dimensions may have any depth.
        convolution.flatten();
    }
    let input = convolution.input;
    let (x, y) = if convolution.directions == Directions::FORWARD {
        (Some(input), output)
    } else {
        let Convolution { in_channels, out_channels, in_layout, out_layout, .. } = &mut convolution;
        std::mem::swap(in_channels, out_channels);
        std::mem::swap(in_layout, out_layout);
        (output, Some(input))
    };
    let problem = |input| {
        let convolution = Convolution { input, ..convolution.clone() };
        convolution.check().map_err(|error| error.to_string())?;
        Ok(convolution)
    };
    let Some(x) = x else {
        return inputs(&convolution, input)?.into_iter().map(problem).collect();
    };
    let convolution = problem(x)?;
    match y {
        Some(y) if convolution.output() != Some(y) => Err(contradiction()),
        _ => Ok(vec![convolution]),
    }
}

/// The sizes of x that give this y and that the filter fits.
fn inputs(convolution: &Convolution, y: [u64; 3]) -> Result<Vec<[u64; 3]>> {
    // Sizes that are 0 or far too large are refused later.
    let small = |values: [u64; 3]| values.iter().all(|value| (1..1 << 31).contains(value));
    let Convolution { filter, pad, stride, dilation, .. } = convolution;
    if !small(y) || !small(*filter) || !small(*stride) || !small(*dilation) {
        return Err(no_convolution());
    }
    let ranges: [Vec<u64>; 3] = std::array::from_fn(|axis| {
        let covered = (y[axis] - 1) * stride[axis] + dilation[axis] * (filter[axis] - 1) + 1;
        let padded = covered..covered + stride[axis].min(MAX_INPUTS + 1);
        padded.filter_map(|size| size.checked_sub(2 * pad[axis])).filter(|size| *size > 0).collect()
    });
    let count: u64 = ranges.iter().map(|range| range.len() as u64).product();
    if count > MAX_INPUTS {
        let strides: u64 = stride.iter().product();
        return Err(format!(
            "failed to accept the key: its stride leaves {strides} inputs possible"
        ));
    }
    let [depths, heights, widths] = &ranges;
    let mut all = Vec::new();
    for depth in depths {
        for height in heights {
            all.extend(widths.iter().map(|width| [*depth, *height, *width]));
        }
    }
    if all.is_empty() { Err(contradiction()) } else { Ok(all) }
}

/// A key such as `2x64x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP32xF`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Visit` in conv/problem_description.hpp.
fn perf_key(key: &str) -> Result<Key> {
    let fields: Vec<&str> = key.split('x').collect();
    let fields: [&str; 24] = fields.try_into().map_err(|_| no_convolution())?;
    let (numbers, words) = fields.split_at(21);
    let mut values = [0_u64; 21];
    for (value, text) in values.iter_mut().zip(numbers) {
        *value = text.parse().map_err(|_| no_convolution())?;
    }
    let [dims, in_channels, in_h, in_w, in_d, fil_h, fil_w, fil_d, out_channels, batch, ..] =
        values;
    let axes = |at: usize| [values[at + 2], values[at], values[at + 1]];
    let layout = layout(words[0])?;
    let convolution = Convolution {
        data_type: data_type(words[1])?,
        spatial_dims: dims
            .try_into()
            .ok()
            .filter(|dims| matches!(dims, 2 | 3))
            .ok_or_else(no_convolution)?,
        batch,
        in_channels,
        input: [in_d, in_h, in_w],
        out_channels,
        filter: [fil_d, fil_h, fil_w],
        pad: axes(10),
        stride: axes(13),
        dilation: axes(16),
        groups: values[20],
        transposed: false,
        output_pad: [0; 3],
        in_layout: layout,
        filter_layout: layout,
        out_layout: layout,
        bias: values[19] != 0,
        directions: direction(words[2])?,
    };
    Ok(Key { convolution, output: None })
}

/// A key such as `576-4-4-1x1-192-4-4-8-1x1-2x2-3x3-0-NCHW-FP32-F`. It has three layouts if not all
/// are NCHW, depth before height and width if there is one, and may end with `_g2`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ProblemDescription::Serialize` in
/// conv/problem_description.cpp.
fn find_key(key: &str) -> Result<Key> {
    let mut fields = key.split('-');
    let mut field = || fields.next().ok_or_else(no_convolution);
    let number = |text: &str| text.parse::<u64>().map_err(|_| no_convolution());
    let in_channels = number(field()?)?;
    // Sizes of the input up to the filter, which contains an `x`.
    let mut sizes = Vec::new();
    let filter = loop {
        let text = field()?;
        if text.contains('x') {
            break text;
        }
        sizes.push(number(text)?);
    };
    let dims = sizes.len();
    if !matches!(dims, 2 | 3) {
        return Err(no_convolution());
    }
    let axes = |text: &str, depth| -> Result<[u64; 3]> {
        let values: Vec<u64> = text.split('x').map(number).collect::<Result<_>>()?;
        three(&values, dims, depth)
    };
    let filter = axes(filter, 1)?;
    let out_channels = number(field()?)?;
    let outputs: Vec<u64> = (0..dims).map(|_| number(field()?)).collect::<Result<_>>()?;
    let batch = number(field()?)?;
    let (pad, stride, dilation) = (axes(field()?, 0)?, axes(field()?, 1)?, axes(field()?, 1)?);
    let bias = number(field()?)? != 0;
    let rest: Vec<&str> = fields.collect();
    let ([in_layout, filter_layout, out_layout], [type_name, end]) = match rest.as_slice() {
        [all, type_name, end] => ([layout(all)?; 3], [*type_name, *end]),
        [input, filter, output, type_name, end] => {
            ([layout(input)?, layout(filter)?, layout(output)?], [*type_name, *end])
        }
        _ => return Err(no_convolution()),
    };
    let (end, optional) = end.split_once('_').unwrap_or((end, ""));
    let convolution = Convolution {
        data_type: data_type(type_name)?,
        spatial_dims: if dims == 3 { 3 } else { 2 },
        batch,
        in_channels,
        input: three(&sizes, dims, 1)?,
        out_channels,
        filter,
        pad,
        stride,
        dilation,
        groups: groups(optional)?,
        transposed: false,
        output_pad: [0; 3],
        in_layout,
        filter_layout,
        out_layout,
        bias,
        directions: direction(end)?,
    };
    Ok(Key { convolution, output: Some(three(&outputs, dims, 1)?) })
}

/// The number of groups, from `g2` in the optional end of a key.
fn groups(optional: &str) -> Result<u64> {
    let mut groups = 1;
    for text in optional.split('_').filter(|text| !text.is_empty()) {
        // Other fields are types that tensors are cast to.
        let count = text.strip_prefix('g').ok_or_else(|| unsupported(text))?;
        groups = count.parse().map_err(|_| no_convolution())?;
    }
    Ok(groups)
}

/// Sizes of three axes; the key may have two.
fn three(values: &[u64], dims: usize, depth: u64) -> Result<[u64; 3]> {
    match (values, dims) {
        ([height, width], 2) => Ok([depth, *height, *width]),
        ([depth, height, width], 3) => Ok([*depth, *height, *width]),
        _ => Err(no_convolution()),
    }
}

fn direction(text: &str) -> Result<Directions> {
    match text {
        "F" => Ok(Directions::FORWARD),
        "B" => Ok(Directions::BACKWARD_DATA),
        "W" => Ok(Directions::BACKWARD_WEIGHTS),
        _ => Err(no_convolution()),
    }
}

/// Layouts by the order of their axes; old keys use NCHW also for three.
fn layout(text: &str) -> Result<Layout> {
    match text {
        "NCHW" | "NCDHW" => Ok(Layout::ChannelsFirst),
        "NHWC" | "NDHWC" => Ok(Layout::ChannelsLast),
        other => Err(unsupported(other)),
    }
}

/// The types of input, filter and output, written once if they are the same.
///
/// Source: ROCm/MIOpen 2d1fd997a, `EncodeDataTypesForKey` in
/// conv/problem_description.cpp.
fn data_type(text: &str) -> Result<DataType> {
    match text {
        "FP32" => Ok(DataType::Fp32),
        "FP16" => Ok(DataType::Fp16),
        "BF16" => Ok(DataType::Bf16),
        "INT8" | "INT8INT8INT32" => Ok(DataType::Int8),
        "FP8" => Ok(DataType::Fp8),
        other => Err(unsupported(other)),
    }
}

fn no_convolution() -> String {
    "failed to read the key: it is no convolution's".to_owned()
}

fn unsupported(tensors: &str) -> String {
    format!("failed to read the key: tensors of `{tensors}` are not supported")
}

fn contradiction() -> String {
    "failed to accept the key: no convolution has both its input and its output".to_owned()
}
