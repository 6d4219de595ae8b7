//! Lists of the problems of well-known networks, for one image in fp32, and the same lines for other
//! batches, types, layouts and directions. The lists are in packaging/problems, to which `problems`
//! here is a link; `make.py` there made most of them. They are compiled into the program.

use std::collections::BTreeSet;

use gfxpack_model::{Error, Result};

use crate::problem::{Convolution, DataType, Directions, Layout, Problem};

/// What follows a line that inference has not.
const TRAINING: &str = " # training";

macro_rules! lists {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../problems/", $name, ".txt")))),*]
    };
}

/// Names and lists, sorted by name.
const LISTS: [(&str, &str); 37] = lists!(
    "alexnet" "convnext-tiny" "darknet53" "deeplabv3-resnet50" "densenet121" "efficientnet-b0"
    "efficientnet-v2-s" "googlenet" "inception-v3" "mask-rcnn" "mobilenet-v2" "mobilenet-v3-large"
    "regnet-y-8gf" "resnet101" "resnet152" "resnet18" "resnet34" "resnet50" "resnext50" "retinanet"
    "sdxl-unet" "sdxl-vae" "shufflenet-v2" "squeezenet" "ssd" "stable-diffusion-unet"
    "stable-diffusion-vae" "unet" "vgg16" "wav2vec2" "whisper-base" "whisper-large"
    "whisper-large-v3" "whisper-medium" "whisper-small" "whisper-tiny" "yolov3"
);

/// A network that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkName {
    /// Its name: `resnet50`.
    pub name: &'static str,
    /// Its title, with the size of an input: `ResNet-50 v1.5, 3x224x224`.
    pub title: &'static str,
    /// The source of its layers.
    pub source: &'static str,
}

/// All networks, sorted by name.
pub fn network_names() -> impl Iterator<Item = NetworkName> {
    LISTS.iter().map(|(name, list)| {
        let mut head = list.lines().map(|line| line.trim_start_matches("# "));
        let (title, source) = (head.next().unwrap_or_default(), head.next().unwrap_or_default());
        NetworkName { name, title, source }
    })
}

/// The problems of a network, each once, for every combination of these batch sizes, element types
/// and layouts. Case, `-` and `_` in the name do not matter. Batch normalization is in training mode
/// if the directions are more than [`Directions::FORWARD`].
pub fn network_problems(
    name: &str,
    batches: &[u64],
    data_types: &[DataType],
    layouts: &[Layout],
    directions: Directions,
) -> Result<BTreeSet<Problem>> {
    let wanted = plain(name);
    let Some((_, list)) = LISTS.iter().find(|(name, _)| plain(name) == wanted) else {
        let distance = |name: &str| strsim::levenshtein(&plain(name), &wanted);
        let nearest = LISTS.iter().map(|(name, _)| *name).min_by_key(|name| distance(name));
        let nearest = nearest.filter(|name| distance(name) <= 1 + wanted.len() / 3);
        let hint = match nearest {
            Some(name) => format!("`{name}` is there; `gfxpack problems --list` lists all"),
            None => {
                "`gfxpack problems --list` lists all; --problems FILE reads a log or a list, and \
                     `-- python train.py` records a program"
                    .to_owned()
            }
        };
        return Err(Error::usage(format!("failed to find the network `{name}`"), hint));
    };
    let mut problems = BTreeSet::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let of_training = line.strip_suffix(TRAINING);
        if of_training.is_some() && directions == Directions::FORWARD {
            continue;
        }
        let problem: Problem = of_training.unwrap_or(line).parse().expect("a line of a list");
        for &batch in batches {
            for &data_type in data_types {
                for &layout in layouts {
                    problems.extend(match &problem {
                        Problem::Convolution(convolution) => {
                            vec![Problem::Convolution(Convolution {
                                batch,
                                data_type,
                                in_layout: layout,
                                filter_layout: layout,
                                out_layout: layout,
                                directions,
                                ..convolution.clone()
                            })]
                        }
                        Problem::Driver(line) => norms(line, batch, data_type, layout, directions),
                    });
                }
            }
        }
    }
    Ok(problems)
}

/// A batch normalization's inference of one image, in another way. PyTorch computes those of
/// channels-last tensors itself.
fn norms(
    line: &str,
    batch: u64,
    data_type: DataType,
    layout: Layout,
    directions: Directions,
) -> Vec<Problem> {
    // Scales and statistics of 16-bit tensors are fp32.
    let operation = match (data_type, layout) {
        (DataType::Fp32, Layout::ChannelsFirst) => "bnorm",
        (DataType::Fp16, Layout::ChannelsFirst) => "bnormfp16fp32",
        (DataType::Bf16, Layout::ChannelsFirst) => "bnormbfp16fp32",
        _ => return Vec::new(),
    };
    let sizes = line.strip_prefix("bnorm -n 1").and_then(|rest| rest.split(" --forw").next());
    let line = format!("{operation} -n {batch}{}", sizes.unwrap_or_default());
    let Directions { forward, backward_data, backward_weights } = directions;
    let ways = match (forward, backward_data || backward_weights) {
        (true, true) => &["--forw 1 -b 0 -s 1 -r 1", "--forw 0 -b 1 -s 1"][..],
        (true, false) => &["--forw 2 -b 0 -r 1"],
        _ => &["--forw 0 -b 1 -s 1"],
    };
    ways.iter().map(|way| Problem::Driver(format!("{line} {way}"))).collect()
}

/// A name without case and punctuation.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(
        name: &str,
        (batch, data_type, layout): (u64, DataType, Layout),
        directions: Directions,
    ) -> Vec<String> {
        let problems = network_problems(name, &[batch], &[data_type], &[layout], directions);
        problems.unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_are_changed_as_selected() {
        let lines = |layout| lines("resnet18", (32, DataType::Fp16, layout), Directions::ALL);
        let trained = lines(Layout::ChannelsFirst);
        assert_eq!(trained.len(), 11 + 2 * 5);
        for line in [
            "convfp16 -n 32 -c 64 -H 56 -W 56 -k 128 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -m conv -g 1 -F 0",
            "bnormfp16fp32 -n 32 -c 64 -H 56 -W 56 -m 1 --forw 1 -b 0 -s 1 -r 1",
            "bnormfp16fp32 -n 32 -c 64 -H 56 -W 56 -m 1 --forw 0 -b 1 -s 1",
        ] {
            assert!(trained.contains(&line.to_owned()), "{line}: {trained:#?}");
        }
        let last = lines(Layout::ChannelsLast);
        assert_eq!(last.len(), 11, "batch normalization is PyTorch's own: {last:#?}");
        assert!(last.iter().all(|line| line.contains("--in_layout NHWC")), "{last:#?}");
    }

    #[test]
    fn layers_for_training_are_not_part_of_inference() {
        let auxiliary = |line: &String| line.contains(" -k 768 -y 5 -x 5 ");
        let lines = |directions| {
            lines("inception-v3", (1, DataType::Fp32, Layout::ChannelsFirst), directions)
        };
        let inference = lines(Directions::FORWARD);
        assert!(!inference.iter().any(auxiliary), "{inference:#?}");
        let training = lines(Directions::ALL);
        assert!(training.iter().any(auxiliary), "{training:#?}");
    }
}
