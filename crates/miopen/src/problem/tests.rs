//! Lines in MIOpenDriver's syntax.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(line: &str, canonical: &str) {
    let problem: Problem = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(problem.to_string(), canonical, "{line}");
    assert_eq!(canonical.parse(), Ok(problem), "{canonical}");
}

#[track_caller]
fn refused(line: &str, message: &str) {
    let error = line.parse::<Problem>().expect_err(line);
    assert_eq!(error.to_string(), message, "{line}");
    assert!(!error.hint.is_empty());
}

#[test]
fn a_logged_line_is_the_canonical_text() {
    let line = "conv -n 128 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 \
                --in_layout NHWC --fil_layout NHWC --out_layout NHWC -m conv -g 1 -F 1";
    check(line, line);
    check(&format!("{line} -t 1 -S 85"), line);
    check(&format!("./bin/MIOpenDriver {line} -t 1"), line);
    let three = "convbfp16 -n 2 -c 8 --in_d 9 -H 10 -W 11 -k 16 --fil_d 1 -y 2 -x 3 --pad_d 1 -p 2 \
                 -q 3 --conv_stride_d 4 -u 5 -v 6 --dilation_d 1 -l 1 -j 2 --spatial_dim 3 \
                 --out_layout NDHWC -m conv -g 4 -F 4";
    check(three, three);
}

#[test]
fn missing_options_have_the_drivers_defaults() {
    check(
        "conv",
        "conv -n 100 -c 3 -H 32 -W 32 -k 32 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 0",
    );
    check(
        "convfp16 --spatial_dim 3",
        "convfp16 -n 100 -c 3 --in_d 32 -H 32 -W 32 -k 32 --fil_d 3 -y 3 -x 3 --pad_d 0 -p 0 -q 0 \
         --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 0",
    );
}

#[test]
fn long_and_short_options_are_the_same_and_the_last_one_counts() {
    check(
        "convint8 --batchsize 1 --in_channels 4 --in_h 5 --in_w 6 --out_channels 8 --fil_h 1 \
         --fil_w 3 --pad_h 0 --pad_w 1 --conv_stride_h 2 --conv_stride_w 3 --dilation_h 4 \
         --dilation_w 2 --group_count 2 --bias 1 --forw 7 --mode conv --in_layout nhwc \
         --iter 1 --verify 0 --time 1 -n 9 --pad_mode default",
        "convint8 -n 9 -c 4 -H 5 -W 6 -k 8 -y 1 -x 3 -p 0 -q 1 -u 2 -v 3 -l 4 -j 2 \
         --in_layout NHWC -m conv -g 2 -b 1 -F 0",
    );
}

#[test]
fn transposed_convolutions_keep_their_output_padding() {
    let line = "conv -n 1 -c 8 -H 7 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 \
                -Y 1 -X 1 -m trans -g 2 -F 1";
    check(line, line);
    let Ok(Problem::Convolution(convolution)) = line.parse() else { panic!("a convolution") };
    assert_eq!(convolution.filter_lengths(), [8, 3, 3, 3]);
    assert_eq!(convolution.output_lengths(), Some(vec![1, 6, 14, 14]));
    // The option does not affect other convolutions.
    check("conv -X 9 -Y 9", &"conv".parse::<Problem>().expect("defaults").to_string());
}

#[test]
fn padding_modes_are_those_of_the_driver() {
    let pad = |line: &str| {
        let Ok(Problem::Convolution(convolution)) = line.parse() else { panic!("{line}") };
        convolution.pad
    };
    assert_eq!(pad("conv -p 5 -q 5 -z valid"), [0, 0, 0]);
    assert_eq!(pad("conv -z same -y 7 -x 5"), [0, 3, 2]);
    assert_eq!(pad("conv -z same -H 224 -W 225 -y 7 -x 7 -u 2 -v 2"), [0, 2, 3]);
    // The mode applies neither to dilated nor to transposed convolutions.
    assert_eq!(pad("conv -z same -p 1 -q 1 -l 2 -j 2"), [0, 1, 1]);
    assert_eq!(pad("conv -z valid -p 1 -q 1 -m trans"), [0, 1, 1]);
}

#[test]
fn output_sizes_are_those_of_miopen() {
    let output = |line: &str| {
        let Ok(Problem::Convolution(convolution)) = line.parse() else { panic!("{line}") };
        convolution.output_lengths().expect("it was checked")
    };
    assert_eq!(
        output("conv -n 2 -H 224 -W 224 -k 64 -y 7 -x 7 -p 3 -q 3 -u 2 -v 2"),
        [2, 64, 112, 112]
    );
    assert_eq!(output("conv -n 1 -H 9 -W 9 -k 5 -l 4 -j 2"), [1, 5, 1, 5]);
    assert_eq!(output("conv -n 1 --spatial_dim 3 --in_d 3 -k 1"), [1, 1, 1, 30, 30]);
    assert_eq!(output("conv -n 1 -H 4 -W 4 -k 1 -y 2 -x 2 -u 2 -v 2 -m trans"), [1, 1, 8, 8]);
    // No output is empty.
    assert_eq!(output("conv -n 1 -H 1 -W 1 -k 1 -y 1 -x 1 -p 1 -q 1 -m trans"), [1, 1, 1, 1]);
}

#[test]
fn problems_that_crash_miopen_are_refused() {
    refused("conv -n 0", "failed to accept the problem: batchsize is 0");
    refused("conv -n -1", "failed to read `-n -1`: a number expected");
    refused("conv -H 0", "failed to accept the problem: in_h is 0");
    refused("conv -u 0", "failed to accept the problem: conv_stride_h is 0");
    refused("conv -j 0", "failed to accept the problem: dilation_w is 0");
    refused("conv -u 0 -z same", "failed to accept the problem: conv_stride_h is 0");
    refused("conv -g 0", "failed to accept the problem: group_count is 0");
    refused("conv -p 2147483648", "failed to accept the problem: pad_h is 2147483648");
    refused("conv -Y 1 -m trans", "failed to accept the problem: trans_output_pad_h is 1");
    let groups = "failed to accept the problem: 3 and 32 channels do not divide into groups: 2";
    refused("conv -g 2", groups);
    let large = "conv -n 2147483647 -c 2147483647 -k 1 -y 1 -x 1 -H 1 -W 1";
    refused(large, "failed to accept the problem: its input has 2^63 bytes or more");
    check(
        "convint8 -n 1 -c 2147483647 -k 1 -y 1 -x 1 -H 2147483647 -W 2",
        "convint8 -n 1 -c 2147483647 -H 2147483647 -W 2 -k 1 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 \
         -j 1 -m conv -g 1 -F 0",
    );
}

#[test]
fn a_filter_larger_than_its_padded_input_is_refused() {
    let larger =
        "failed to accept the problem: its filter covers more than its padded input: it is";
    refused("conv -H 4 -y 7", &format!("{larger} 7 high, and the input 4"));
    refused("conv -W 4 -p 9 -q 1 -j 3", &format!("{larger} 7 wide, and the input 6"));
    let three = "conv --spatial_dim 3 --in_d 2";
    refused(three, &format!("{larger} 3 deep, and the input 2"));
    for line in ["conv -H 5 -W 7 -y 7 -x 7 -p 1", "conv -H 4 -y 7 -m trans"] {
        assert!(line.parse::<Problem>().is_ok(), "{line}");
    }
}

#[test]
fn unknown_options_are_refused() {
    refused("", "failed to read the problem: it is empty");
    refused("MIOpenDriver", "failed to read the problem: it is empty");
    refused("convfp61", "failed to read `convfp61`: MIOpenDriver has no such operation");
    refused("conv n 1", "failed to read `n`: it is no option");
    refused("conv -n", "failed to read `-n`: its value is missing");
    refused("conv -k1 2 -n", "failed to read `-n`: its value is missing");
    refused(
        "conv -? 1",
        "failed to read `-?`: it has characters that no option of MIOpenDriver has",
    );
    refused(
        "conv --nonsense 1",
        "failed to read `--nonsense`: MIOpenDriver's convolutions have no such option",
    );
    refused("conv -F 8", "failed to read `-F 8`: a number from 0 to 7 expected");
    refused("conv -m deconv", "failed to read `-m deconv`: conv or trans expected");
    refused("conv -_ 4", "failed to read `-_ 4`: 2 or 3 expected");
    refused("conv -I NCDHW", "failed to read `-I NCDHW`: NCHW or NHWC expected");
    refused("conv -Z 1 -L 4", "failed to read `-Z 1`: such tensors are not supported");
    refused("conv -U fp8", "failed to read `-U fp8`: such tensors are not supported");
    refused("pool 3", "failed to read `3`: it is no option");
    refused("pool -n", "failed to read `-n`: its value is missing");
    refused(
        "pool -n $(reboot)",
        "failed to read `$(reboot)`: it has characters that no option of MIOpenDriver has",
    );
}

#[test]
fn other_operations_are_kept_as_they_are() {
    check("/opt/rocm/bin/MIOpenDriver  pool -M 0,1  -n 4", "pool -M 0,1 -n 4");
    check("bnormbfp16fp32 --forw 1 -b 0 -s 1", "bnormbfp16fp32 --forw 1 -b 0 -s 1");
    check("CBAInferfp16 -F 4 -n 1", "CBAInferfp16 -F 4 -n 1");
    check("ctc", "ctc");
    let is_operation = Problem::is_operation;
    assert!(is_operation("rnn_seqfp16") && is_operation("convfp8") && !is_operation("convbfp8"));
    assert!(!is_operation("") && !is_operation("fp16"));
}

prop_compose! {
    fn convolutions()(
        data_type in proptest::sample::select(DataType::ALL.to_vec()),
        three in any::<bool>(),
        sizes in proptest::array::uniform3(1_u64..300),
        input in proptest::array::uniform3(1_u64..40),
        filter in proptest::array::uniform3(1_u64..8),
        pad in proptest::array::uniform3(0_u64..4),
        stride in proptest::array::uniform3(1_u64..4),
        dilation in proptest::array::uniform3(1_u64..3),
        groups in 1_u64..5,
        switches in proptest::array::uniform5(any::<bool>()),
        bits in 0_u64..8,
    ) -> Convolution {
        let [transposed, bias, layouts @ ..] = switches;
        let layouts = layouts.map(|last| if last {
Layout::ChannelsLast
        } else {
Layout::ChannelsFirst
        });
        let output_pad = if transposed { stride.map(|stride| stride - 1) } else { [0; 3] };
        let flat = |values: [u64; 3], depth| if three { values } else { [depth, values[1], values[2]] };
        Convolution {
            data_type,
            spatial_dims: if three { 3 } else { 2 },
            batch: sizes[0],
            in_channels: sizes[1] * groups,
            input: flat(input, 1),
            out_channels: sizes[2] * groups,
            filter: flat(filter, 1),
            pad: flat(pad, 0),
            stride: flat(stride, 1),
            dilation: flat(dilation, 1),
            groups,
            transposed,
            output_pad: flat(output_pad, 0),
            in_layout: layouts[0],
            filter_layout: layouts[1],
            out_layout: layouts[2],
            bias,
            directions: Directions::from_bits(bits).expect("up to 7"),
        }
    }
}

proptest! {
    #[test]
    fn every_text_reads_as_what_it_was_written_from(convolution in convolutions()) {
        let expected = convolution.check().map(|()| Problem::Convolution(convolution.clone()));
        prop_assert_eq!(convolution.to_string().parse(), expected);
    }

    #[test]
    fn any_text_is_read_or_refused(line in "(conv(fp16)?|pool|x)( -[-a-zA-Z_$]{1,12}| [0-9a-z]{1,20}){0,8}") {
        if let Ok(problem) = line.parse::<Problem>() {
            prop_assert_eq!(problem.to_string().parse(), Ok(problem));
        }
    }
}
