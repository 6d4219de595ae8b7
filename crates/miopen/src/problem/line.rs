//! Parses MIOpenDriver's arguments. Options of operations other than convolutions are not checked.

use std::str::FromStr;

use gfxpack_harvest::LineError;
use gfxpack_harvest::log::DriverCommand;

use super::values::{Convolution, DataType, Directions, Layout, Problem};

/// The program's name, in any directory.
const DRIVER: &str = DriverCommand::PROGRAM;
const AS_WRITTEN: &str = "see whether the line is as MIOpen wrote it";

impl FromStr for Problem {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let problem = read_unchecked(line)?;
        if let Self::Convolution(convolution) = &problem {
            convolution.check()?;
        }
        Ok(problem)
    }
}

/// Parses a line without checking sizes.
pub(crate) fn read_unchecked(line: &str) -> Result<Problem, LineError> {
    let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
    let program = |word: &str| word.rsplit(['/', '\\']).next() == Some(DRIVER);
    if words.first().is_some_and(|first| program(first)) {
        words.remove(0);
    }
    let plain =
        |word: &&&str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.,:=+-".contains(&b));
    if let Some(word) = words.iter().find(|word| !plain(word)) {
        let what = "it has characters that no option of MIOpenDriver has";
        return Err(bad_words(&format!("`{word}`"), what, AS_WRITTEN));
    }
    let no_operation = |words: &str, what| {
        let hint = "a line looks like `MIOpenDriver conv -n 1 -c 64 -H 56 -W 56 -k 64 …`";
        bad_words(words, what, hint)
    };
    let (operation, options) =
        words.split_first().ok_or_else(|| no_operation("the problem", "it is empty"))?;
    if let Some(data_type) = data_type(operation) {
        return convolution(data_type, options).map(Problem::Convolution);
    }
    if is_other_operation(operation) {
        return other_problem(operation, options);
    }
    Err(no_operation(&format!("`{operation}`"), "MIOpenDriver has no such operation"))
}

impl Problem {
    /// Whether MIOpenDriver has an operation of that name: `conv`, `poolfp16`.
    pub fn is_operation(name: &str) -> bool {
        data_type(name).is_some() || is_other_operation(name)
    }
}

/// Suffixes for types, and the operations that have them.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ParseBaseArg` in driver/driver.hpp and
/// driver/dm_*.cpp. `bnormbfp16` is what MIOpen itself logs, in
/// driver_arguments.cpp.
const OPERATIONS: [(&[&str], &str); 5] = [
    (&[""], "ampadam ampadamw ctc transformersampadamw"),
    (
        &["", "fp16"],
        "CBAInfer activ adam adamw dropout gemm lrn pool rnn rnn_seq softmax tensorop \
         transformersadamw",
    ),
    (
        &["", "fp16", "bfp16"],
        "addlayernorm cat getitem glu groupnorm kthvalue layernorm multimarginloss prelu \
         reducecalculation reduceextreme rope softmarginloss sum t5layernorm",
    ),
    (&["", "fp16", "bfp16", "fp16fp32", "bfp16fp32"], "bnorm"),
    (&["", "fp16", "fp64"], "reduce"),
];

/// Whether MIOpenDriver has that operation, and it is no convolution.
fn is_other_operation(name: &str) -> bool {
    OPERATIONS.iter().any(|(types, operations)| {
        let mut suffixes = operations.split(' ').filter_map(|one| name.strip_prefix(one));
        suffixes.any(|suffix| types.contains(&suffix))
    })
}

/// The problem of an operation and its options, which come in pairs.
///
/// Source: ROCm/MIOpen 2d1fd997a, `InputFlags::Parse` in
/// driver/InputFlags.cpp.
fn other_problem(operation: &str, options: &[&str]) -> Result<Problem, LineError> {
    for pair in options.chunks(2) {
        if !pair[0].starts_with('-') || pair[0].len() < 2 {
            return Err(bad_option(pair[0], "it is no option"));
        }
        if pair.len() < 2 {
            return Err(bad_option(pair[0], "its value is missing"));
        }
    }
    Ok(Problem::Driver([&[operation], options].concat().join(" ")))
}

/// The element type of a convolution, from its name.
fn data_type(operation: &str) -> Option<DataType> {
    let suffix = operation.strip_prefix("conv")?;
    DataType::ALL.into_iter().find(|data_type| data_type.driver_suffix() == suffix)
}

/// Options that affect what is computed: the long name and the short one. If the short name is
/// special in shells, the long one is used everywhere.
///
/// Source: ROCm/MIOpen 2d1fd997a, `AddCmdLineArgs` in driver/conv_driver.hpp.
const OPTIONS: [(&str, Option<char>); 35] = [
    ("in_layout", Some('I')),
    ("out_layout", Some('O')),
    ("fil_layout", Some('f')),
    ("spatial_dim", Some('_')),
    ("forw", Some('F')),
    ("batchsize", Some('n')),
    ("in_channels", Some('c')),
    ("in_d", None),
    ("in_h", Some('H')),
    ("in_w", Some('W')),
    ("out_channels", Some('k')),
    ("fil_d", None),
    ("fil_h", Some('y')),
    ("fil_w", Some('x')),
    ("conv_stride_d", None),
    ("conv_stride_h", Some('u')),
    ("conv_stride_w", Some('v')),
    ("pad_d", None),
    ("pad_h", Some('p')),
    ("pad_w", Some('q')),
    ("trans_output_pad_d", None),
    ("trans_output_pad_h", Some('Y')),
    ("trans_output_pad_w", Some('X')),
    ("bias", Some('b')),
    ("mode", Some('m')),
    ("pad_mode", Some('z')),
    ("dilation_d", None),
    ("dilation_h", Some('l')),
    ("dilation_w", Some('j')),
    ("group_count", Some('g')),
    ("tensor_vect", Some('Z')),
    ("vector_length", Some('L')),
    ("in_cast_type", Some('U')),
    ("out_cast_type", Some('T')),
    ("wei_cast_type", Some('R')),
];

/// Options about measuring, verifying and filling, which do not affect kernels.
///
/// Source: as above.
const OTHERS: [(&str, char); 15] = [
    ("iter", 'i'),
    ("verify", 'V'),
    ("verification_cache", 'C'),
    ("time", 't'),
    ("wall", 'w'),
    ("search", 's'),
    ("printconv", 'P'),
    ("dump_output", 'o'),
    ("in_data", 'd'),
    ("weights", 'e'),
    ("in_bias", 'a'),
    ("dout_data", 'D'),
    ("gpualloc", 'G'),
    // The value of padding, which MIOpen does not use.
    ("pad_val", 'r'),
    // The solution that a program chose: all are asked for.
    ("solution", 'S'),
];

/// The long name of an option that affects what is computed; empty for other options.
fn long_name(option: &str) -> Result<&'static str, LineError> {
    let rest = option.strip_prefix('-').ok_or_else(|| bad_option(option, "it is no option"))?;
    let is_meant = |name: &str, short: Option<char>| match rest.strip_prefix('-') {
        Some(long) => name == long,
        // MIOpenDriver uses only the first character.
        None => short.is_some() && short == rest.chars().next(),
    };
    let found = OPTIONS.iter().find(|(name, short)| is_meant(name, *short)).map(|(name, _)| *name);
    let other = OTHERS.iter().any(|(name, short)| is_meant(name, Some(*short))).then_some("");
    let unknown = || bad_option(option, "MIOpenDriver's convolutions have no such option");
    found.or(other).ok_or_else(unknown)
}

/// The given options, the last of each. Missing ones have MIOpenDriver's defaults.
struct Given<'a>(Vec<(&'static str, &'a str, &'a str)>);

impl<'a> Given<'a> {
    fn read(options: &[&'a str]) -> Result<Self, LineError> {
        let mut given = Vec::new();
        for pair in options.chunks(2) {
            let name = long_name(pair[0])?;
            let [option, value] = pair else {
                return Err(bad_option(pair[0], "its value is missing"));
            };
            given.push((name, *option, *value));
        }
        Ok(Self(given))
    }

    fn find(&self, name: &str) -> Option<(&'a str, &'a str)> {
        let found = self.0.iter().rev().find(|(given, ..)| *given == name)?;
        Some((found.1, found.2))
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, LineError> {
        let Some((option, value)) = self.find(name) else { return Ok(default) };
        value.parse().map_err(|_| bad(option, value, "a number"))
    }

    fn axes(&self, names: [&str; 3], default: u64) -> Result<[u64; 3], LineError> {
        let [depth, height, width] = names;
        let number = |name| self.number(name, default);
        Ok([number(depth)?, number(height)?, number(width)?])
    }

    /// The value of an option that takes one of these words.
    fn word<T: Copy>(
        &self,
        name: &str,
        default: T,
        words: &[(&str, T)],
        expected: &str,
    ) -> Result<T, LineError> {
        let Some((option, value)) = self.find(name) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| value.eq_ignore_ascii_case(word));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| bad(option, value, expected))
    }

    /// Refuses any other value than these.
    fn only(&self, name: &str, values: &[&str]) -> Result<(), LineError> {
        match self.find(name) {
            Some((option, value)) if !values.contains(&value) => Err(bad_words(
                &format!("`{option} {value}`"),
                "such tensors are not supported",
                "tensors are NCHW, NHWC, NCDHW or NDHWC, of fp32, fp16, bf16 or int8",
            )),
            _ => Ok(()),
        }
    }
}

/// The error of a word in place of an option.
fn bad_option(option: &str, what: &str) -> LineError {
    let hint = "`MIOpenDriver conv --help` lists the options; each has a value";
    bad_words(&format!("`{option}`"), what, hint)
}

/// The error of words that MIOpenDriver does not know, or that are not supported here.
fn bad_words(words: &str, what: &str, hint: &'static str) -> LineError {
    LineError { why: format!("failed to read {words}: {what}").into(), hint }
}

fn bad(option: &str, value: &str, expected: &str) -> LineError {
    bad_words(&format!("`{option} {value}`"), &format!("{expected} expected"), AS_WRITTEN)
}

/// MIOpenDriver's padding mode (`-z`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum PadMode {
    Given,
    Same,
    Valid,
}

fn convolution(data_type: DataType, options: &[&str]) -> Result<Convolution, LineError> {
    let given = Given::read(options)?;
    given.only("tensor_vect", &["0"])?;
    given.only("vector_length", &["1"])?;
    for name in ["in_cast_type", "out_cast_type", "wei_cast_type"] {
        given.only(name, &["-1"])?;
    }
    let number = |name, default| given.number(name, default);
    let dims = given.word("spatial_dim", 2, &[("2", 2), ("3", 3)], "2 or 3")?;
    let layout = |name| {
        let words = [Layout::ChannelsFirst, Layout::ChannelsLast];
        let words = words.map(|layout| (layout.name(dims), layout));
        let expected = if dims == 3 { "NCDHW or NDHWC" } else { "NCHW or NHWC" };
        given.word(name, Layout::ChannelsFirst, &words, expected)
    };
    let bits = number("forw", 0)?;
    let directions = Directions::from_bits(bits).ok_or_else(|| {
        let (option, value) = given.find("forw").unwrap_or_default();
        bad(option, value, "a number from 0 to 7")
    })?;
    let output_pad = ["trans_output_pad_d", "trans_output_pad_h", "trans_output_pad_w"];
    let mut convolution = Convolution {
        data_type,
        spatial_dims: dims,
        batch: number("batchsize", 100)?,
        in_channels: number("in_channels", 3)?,
        input: given.axes(["in_d", "in_h", "in_w"], 32)?,
        out_channels: number("out_channels", 32)?,
        filter: given.axes(["fil_d", "fil_h", "fil_w"], 3)?,
        pad: given.axes(["pad_d", "pad_h", "pad_w"], 0)?,
        stride: given.axes(["conv_stride_d", "conv_stride_h", "conv_stride_w"], 1)?,
        dilation: given.axes(["dilation_d", "dilation_h", "dilation_w"], 1)?,
        groups: number("group_count", 1)?,
        transposed: given.word("mode", false, &MODES, "conv or trans")?,
        output_pad: given.axes(output_pad, 0)?,
        in_layout: layout("in_layout")?,
        filter_layout: layout("fil_layout")?,
        out_layout: layout("out_layout")?,
        bias: number("bias", 0)? != 0,
        directions,
    };
    if dims == 2 {
        convolution.flatten();
    }
    if !convolution.transposed {
        convolution.output_pad = [0; 3];
    }
    let mode = given.word("pad_mode", PadMode::Given, &PAD_MODES, "default, same or valid")?;
    convolution.pad_as(mode);
    Ok(convolution)
}

const MODES: [(&str, bool); 2] = [("conv", false), ("trans", true)];
const PAD_MODES: [(&str, PadMode); 3] =
    [("default", PadMode::Given), ("same", PadMode::Same), ("valid", PadMode::Valid)];

impl Convolution {
    /// Sets the depth to that of a two-dimensional convolution.
    pub(crate) fn flatten(&mut self) {
        self.input[0] = 1;
        self.filter[0] = 1;
        self.pad[0] = 0;
        self.stride[0] = 1;
        self.dilation[0] = 1;
        self.output_pad[0] = 0;
    }

    /// Source: ROCm/MIOpen 2d1fd997a, `SetConvDescriptorFromCmdLineArgs` in
    /// driver/conv_driver.hpp.
    fn pad_as(&mut self, mode: PadMode) {
        let axes = usize::from(self.spatial_dims == 2)..3;
        let plain = self.dilation[axes.clone()].iter().all(|dilation| *dilation == 1)
            || self.filter[axes.clone()].iter().all(|size| *size == 1);
        if mode == PadMode::Given || self.transposed || !plain {
            return;
        }
        for axis in axes {
            let (size, stride) = (self.input[axis], self.stride[axis]);
            self.pad[axis] = match size.checked_rem(stride) {
                _ if mode == PadMode::Valid => 0,
                Some(0) => self.filter[axis].saturating_sub(stride) / 2,
                Some(over) => self.filter[axis].saturating_sub(over) / 2,
                // This is refused later.
                None => 0,
            };
        }
    }
}
