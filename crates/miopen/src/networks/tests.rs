//! Compares the tables with published numbers.

use super::table::{Network, Published};
use super::walk::Walked;
use super::*;
use crate::calls::Shape;
use crate::problem::{DataType, Directions, Layout};

fn each(mut check: impl FnMut(&Tables, &Network, &Walked)) {
    for tables in tables() {
        for network in &tables.networks {
            let walked = walk::walk(&tables, network, network.input);
            let walked = walked.unwrap_or_else(|error| panic!("{error}"));
            check(&tables, network, &walked);
        }
    }
}

/// Parameters are exact. Multiply-adds are those of convolutions and fully
/// connected layers, and have to round to the published digits.
#[test]
fn sums_equal_the_published_ones() {
    let mut compared = 0;
    each(|tables, network, Walked { sums, output, .. }| {
        let Published {
            parameters,
            million_parameters,
            values,
            gmacs,
            gmacs_digits,
            output: end,
            convolution_layers,
        } = &network.sums;
        let name = &network.name;
        assert!(!tables.published.is_empty() && !tables.source.is_empty(), "{name}");
        if let Some(parameters) = parameters {
            assert_eq!(sums.parameters, *parameters, "{name}");
        }
        if let Some(values) = values {
            assert_eq!(sums.parameters + sums.statistics, *values, "{name}");
        }
        if let Some(millions) = million_parameters {
            let share = sums.parameters as f64 / (*millions as f64 * 1e6);
            assert!((0.95..=1.05).contains(&share), "{name}: {share}");
        }
        if let Some(gmacs) = gmacs {
            let half = 0.5 * 10_f64.powi(-gmacs_digits.unwrap_or(3));
            let difference = (sums.macs as f64 / 1e9 - gmacs).abs();
            assert!(difference <= half * 1.000_001, "{name}: {} for {gmacs}", sums.macs);
        }
        if let Some([channels, height, width]) = end {
            let expected = Shape { channels: *channels, size: [*height, *width] };
            assert_eq!(*output, expected, "{name}");
        }
        if let Some(layers) = convolution_layers {
            assert_eq!(sums.convolutions, *layers, "{name}");
        }
        let published = [parameters.is_some(), values.is_some(), gmacs.is_some(), end.is_some()];
        assert!(published.contains(&true), "{name}: nothing is compared");
        compared += 1;
    });
    assert_eq!(compared, network_names().len());
}

fn selection() -> Selection {
    Selection {
        batches: vec![1],
        data_types: vec![DataType::Fp32],
        layouts: vec![Layout::ChannelsFirst],
        directions: Directions::FORWARD,
        operations: Vec::new(),
        size: None,
    }
}

fn lines(name: &str, selection: &Selection) -> Vec<String> {
    let problems = network_problems(name, selection).unwrap_or_else(|error| panic!("{error}"));
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn resnet50_has_its_23_convolutions_in_every_way_that_is_selected() {
    let mut selection = Selection { operations: vec!["conv".to_owned()], ..selection() };
    let one = lines("resnet50", &selection);
    assert_eq!(one.len(), 23);
    assert_eq!(
        one[0],
        "conv -n 1 -c 3 -H 224 -W 224 -k 64 -y 7 -x 7 -p 3 -q 3 -u 2 -v 2 -l 1 -j 1 -m conv -g 1 -F 1"
    );
    // Version 1.5: the stride is in the 3x3 convolution.
    assert!(
        one.iter().any(|line| line.contains("-c 128 -H 56 -W 56 -k 128 -y 3 -x 3 -p 1 -q 1 -u 2"))
    );
    selection.batches = vec![1, 32, 64];
    selection.data_types = vec![DataType::Fp32, DataType::Fp16, DataType::Bf16];
    selection.layouts = vec![Layout::ChannelsFirst, Layout::ChannelsLast];
    let all = lines("ResNet-50", &selection);
    assert_eq!(all.len(), 23 * 3 * 3 * 2);
    let last = "--in_layout NHWC --fil_layout NHWC --out_layout NHWC -m conv -g 1 -F 1";
    assert_eq!(all.iter().filter(|line| line.ends_with(last)).count(), 23 * 3 * 3);
    selection.directions = Directions::ALL;
    assert!(lines("resnet_50", &selection).iter().all(|line| line.ends_with("-F 0")));
}

#[test]
fn other_operations_are_lines_of_miopendriver() {
    let mut selection = Selection { batches: vec![2], ..selection() };
    let other = |selection: &Selection| -> Vec<String> {
        let lines = lines("resnet18", selection);
        lines.into_iter().filter(|line| !line.starts_with("conv")).collect()
    };
    assert_eq!(
        other(&selection),
        [
            "activ -n 2 -c 128 -H 28 -W 28 -m 3 -F 1",
            "activ -n 2 -c 256 -H 14 -W 14 -m 3 -F 1",
            "activ -n 2 -c 512 -H 7 -W 7 -m 3 -F 1",
            "activ -n 2 -c 64 -H 112 -W 112 -m 3 -F 1",
            "activ -n 2 -c 64 -H 56 -W 56 -m 3 -F 1",
            "bnorm -n 2 -c 128 -H 28 -W 28 -m 1 --forw 2 -b 0 -r 1",
            "bnorm -n 2 -c 256 -H 14 -W 14 -m 1 --forw 2 -b 0 -r 1",
            "bnorm -n 2 -c 512 -H 7 -W 7 -m 1 --forw 2 -b 0 -r 1",
            "bnorm -n 2 -c 64 -H 112 -W 112 -m 1 --forw 2 -b 0 -r 1",
            "bnorm -n 2 -c 64 -H 56 -W 56 -m 1 --forw 2 -b 0 -r 1",
            "pool -W 2x512x7x7,NCHW -y 7 -x 7 -p 0 -q 0 -v 1 -u 1 -m avg -F 1",
            "pool -W 2x64x112x112,NCHW -y 3 -x 3 -p 1 -q 1 -v 2 -u 2 -m max -F 1",
            "softmax -n 2 -c 1000 -H 1 -W 1 -F 1",
        ]
    );
    selection.directions = Directions::ALL;
    selection.data_types = vec![DataType::Fp16];
    selection.operations = vec!["bnorm".to_owned(), "softmax".to_owned()];
    let training = other(&selection);
    assert_eq!(training.len(), 2 * 5 + 1);
    assert!(
        training.contains(
            &"bnormfp16fp32 -n 2 -c 64 -H 56 -W 56 -m 1 --forw 1 -b 0 -s 1 -r 1".to_owned()
        )
    );
    assert!(
        training
            .contains(&"bnormfp16fp32 -n 2 -c 64 -H 56 -W 56 -m 1 --forw 0 -b 1 -s 1".to_owned())
    );
    assert!(training.contains(&"softmaxfp16 -n 2 -c 1000 -H 1 -W 1 -F 0".to_owned()));
    // MIOpen computes none of these in bf16 or NHWC.
    selection.operations = ["activ", "pool", "softmax"].map(str::to_owned).to_vec();
    selection.data_types = vec![DataType::Bf16];
    assert_eq!(other(&selection), [""; 0]);
}

#[test]
fn layers_for_training_are_not_part_of_inference() {
    let auxiliary = |line: &String| line.contains(" -k 768 -y 5 -x 5 ");
    let mut selection = selection();
    assert!(!lines("inception-v3", &selection).iter().any(auxiliary));
    selection.directions = Directions::ALL;
    assert!(lines("inception-v3", &selection).iter().any(auxiliary));
}

#[test]
fn networks_have_the_shapes_of_their_papers() {
    let check = |name: &str, part: &str| {
        let lines = lines(name, &selection());
        assert!(lines.iter().any(|line| line.contains(part)), "{name}: {part}\n{lines:#?}");
    };
    check("whisper-base", "-c 80 -H 1 -W 3000 -k 512 -y 1 -x 3 -p 0 -q 1 -u 1 -v 1");
    check("whisper-base", "-c 512 -H 1 -W 3000 -k 512 -y 1 -x 3 -p 0 -q 1 -u 1 -v 2");
    check("whisper-large-v3", "-c 128 -H 1 -W 3000 -k 1280");
    // Padding adds a pixel below and at the right.
    check("stable-diffusion-vae", "-c 128 -H 513 -W 513 -k 128 -y 3 -x 3 -p 0 -q 0 -u 2 -v 2");
    check("stable-diffusion-unet", "-c 2560 -H 8 -W 8 -k 1280 -y 3 -x 3 -p 1 -q 1");
    check("unet", "-c 1024 -H 28 -W 28 -k 512 -y 2 -x 2 -p 0 -q 0 -u 2 -v 2 -l 1 -j 1 -m trans");
    check("unet", "-c 128 -H 392 -W 392 -k 64 -y 3");
    check(
        "mobilenet-v2",
        "-c 32 -H 112 -W 112 -k 32 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 32",
    );
    check("ssd", "-c 512 -H 19 -W 19 -k 1024 -y 3 -x 3 -p 6 -q 6 -u 1 -v 1 -l 6 -j 6");
    check("yolov3", "-c 384 -H 52 -W 52 -k 128 -y 1 -x 1");
    check("mask-rcnn", "-c 256 -H 13 -W 21 -k 256 -y 3 -x 3");
    check("densenet121", "-c 992 -H 7 -W 7 -k 128 -y 1 -x 1");
}

#[test]
fn other_sizes_are_followed_or_refused() {
    let mut selection = Selection { size: Some([608, 608]), ..selection() };
    let yolo = lines("yolov3", &selection);
    assert!(yolo.iter().any(|line| line.contains("-c 1024 -H 19 -W 19 -k 255")), "{yolo:#?}");
    selection.size = Some([30, 30]);
    let error = network_problems("inception-v3", &selection).expect_err("too small");
    assert!(matches!(&error, NetworkError::Layer { network, .. } if network == "inception-v3"));
    assert!(error.hint().contains("--size"));
}

#[test]
fn unknown_names_come_with_the_nearest() {
    let error = network_problems("resnet51", &selection()).expect_err("no such network");
    assert_eq!(error.to_string(), "failed to find the network `resnet51`");
    assert!(error.hint().starts_with("`resnet50` is there"), "{}", error.hint());
    let error = network_problems("gpt", &selection()).expect_err("no such network");
    assert!(!error.hint().contains("is there"), "{}", error.hint());
}

#[test]
fn names_are_sorted_and_differ_in_letters_or_digits() {
    let names: Vec<String> = network_names().into_iter().map(|one| one.name).collect();
    assert!(names.is_sorted());
    let plain: BTreeSet<String> = names.iter().map(|name| super::plain(name)).collect();
    assert_eq!(plain.len(), names.len());
    let wanted = [
        "resnet18",
        "resnet50",
        "resnet101",
        "resnet152",
        "vgg16",
        "densenet121",
        "mobilenet-v2",
        "efficientnet-b0",
        "inception-v3",
        "ssd",
        "yolov3",
        "unet",
        "mask-rcnn",
        "stable-diffusion-unet",
        "stable-diffusion-vae",
        "whisper-base",
    ];
    assert!(wanted.iter().all(|name| names.iter().any(|one| one == name)), "{names:?}");
}
