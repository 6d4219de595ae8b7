//! Checks sizes: MIOpen crashes on some.

use gfxpack_harvest::LineError;

use super::values::Convolution;

/// Largest size: C's `int` in MIOpenDriver and in most of MIOpen's functions.
pub const MAX_SIZE: u64 = i32::MAX as u64;

impl Convolution {
    /// Depth, height and width of the output; `None` if one is out of range. A filter that does not
    /// fit the padded input gives one element, as in MIOpen; [`Self::check`] refuses it.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetForwardOutputTensorWithLayout` in
    /// convolution.cpp.
    pub fn output(&self) -> Option<[u64; 3]> {
        let mut output = [1; 3];
        for (axis, output) in output.iter_mut().enumerate() {
            let covered = self.dilation[axis].checked_mul(self.filter[axis].checked_sub(1)?)?;
            let covered = covered.checked_add(1)?;
            let pad = self.pad[axis].checked_mul(2)?;
            *output = if self.transposed {
                let last = self.stride[axis].checked_mul(self.input[axis].checked_sub(1)?)?;
                let end = last.checked_add(covered)?.checked_add(self.output_pad[axis])?;
                end.saturating_sub(pad).max(1)
            } else {
                let room = self.input[axis].checked_add(pad)?.saturating_sub(covered);
                room.checked_div(self.stride[axis])? + 1
            };
        }
        Some(output)
    }

    /// Whether MIOpen could compute it, and a program would ask for it.
    ///
    /// # Errors
    /// A size out of range, a filter larger than the padded input, channels that do not divide into
    /// the groups, or a tensor of 2^63 bytes.
    pub fn check(&self) -> Result<(), LineError> {
        let axes = |names: [&'static str; 3], values: [u64; 3]| names.into_iter().zip(values);
        let positive = [
            ("batchsize", self.batch),
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("group_count", self.groups),
        ]
        .into_iter()
        .chain(axes(["in_d", "in_h", "in_w"], self.input))
        .chain(axes(["fil_d", "fil_h", "fil_w"], self.filter))
        .chain(axes(["conv_stride_d", "conv_stride_h", "conv_stride_w"], self.stride))
        .chain(axes(["dilation_d", "dilation_h", "dilation_w"], self.dilation));
        for (option, value) in positive {
            if !(1..=MAX_SIZE).contains(&value) {
                return Err(range(option, value));
            }
        }
        let names = ["trans_output_pad_d", "trans_output_pad_h", "trans_output_pad_w"];
        let pads = axes(["pad_d", "pad_h", "pad_w"], self.pad).chain(axes(names, self.output_pad));
        for (option, value) in pads {
            if value > MAX_SIZE {
                return Err(range(option, value));
            }
        }
        let divides = |channels: u64| channels.is_multiple_of(self.groups);
        if !divides(self.in_channels) || !divides(self.out_channels) {
            let Self { in_channels, out_channels, groups, .. } = self;
            let what = format!(
                "{in_channels} and {out_channels} channels do not divide into groups: {groups}"
            );
            return Err(refused(what, "the group count divides the channels of input and output"));
        }
        for (axis, option) in names.into_iter().enumerate() {
            let pad = self.output_pad[axis];
            let most = if self.transposed { self.stride[axis] - 1 } else { 0 };
            if pad > most {
                return Err(range(option, pad));
            }
        }
        self.check_filter()?;
        self.check_tensors()
    }

    /// MIOpen computes one element where a filter does not fit; PyTorch and other programs refuse
    /// to, so such a line is a slip, and its kernels are for nobody.
    fn check_filter(&self) -> Result<(), LineError> {
        for (axis, name) in ["deep", "high", "wide"].into_iter().enumerate() {
            // All are at most MAX_SIZE, so their products fit.
            let covered = self.dilation[axis] * (self.filter[axis] - 1) + 1;
            let padded = self.input[axis] + 2 * self.pad[axis];
            if covered > padded && !self.transposed {
                let what = format!(
                    "its filter covers more than its padded input: it is {covered} {name}, and the \
                     input {padded}"
                );
                return Err(refused(
                    what,
                    "check the sizes of input, filter, padding and dilation",
                ));
            }
        }
        Ok(())
    }

    fn check_tensors(&self) -> Result<(), LineError> {
        let output = self.output_lengths().ok_or_else(|| too_large("output"))?;
        let data_type = self.data_type;
        for (tensor, lengths, bytes) in [
            ("input", self.input_lengths(), data_type.bytes()),
            ("filter", self.filter_lengths(), data_type.bytes()),
            ("output", output, data_type.output_bytes()),
        ] {
            let bytes = lengths.into_iter().try_fold(bytes, u64::checked_mul);
            if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
                return Err(too_large(tensor));
            }
        }
        Ok(())
    }
}

fn range(option: &str, value: u64) -> LineError {
    let hint = "sizes, strides, dilations and groups are from 1 to 2147483647";
    refused(format!("{option} is {value}"), hint)
}

fn too_large(tensor: &str) -> LineError {
    refused(format!("its {tensor} has 2^63 bytes or more"), "choose a smaller batch")
}

fn refused(what: String, hint: &'static str) -> LineError {
    LineError { why: format!("failed to accept the problem: {what}").into(), hint }
}
