//! A file of networks.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Networks of one source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    pub(super) source: String,
    /// Words that every convolution has, but for those that are `plain`.
    #[serde(default)]
    pub(super) convolutions: String,
    /// Where the sums are from that tests compare with.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for readers and tests"))]
    pub(super) published: String,
    /// Layers under a name of their own.
    #[serde(default)]
    pub(super) blocks: BTreeMap<String, Vec<Item>>,
    #[serde(rename = "network")]
    pub(super) networks: Vec<Network>,
}

/// A network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) title: String,
    /// Channels, height, width.
    pub(super) input: [u64; 3],
    pub(super) layers: Vec<Item>,
    /// What others counted.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare with it"))]
    pub(super) sums: Published,
}

/// What was published of a network.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Published {
    /// Weights, biases, scales of normalization.
    pub(super) parameters: Option<u64>,
    /// The same in millions, with whatever others count.
    pub(super) million_parameters: Option<u64>,
    /// Parameters and running statistics of batch normalization.
    pub(super) values: Option<u64>,
    /// Billions of multiply-adds of convolutions and fully connected layers,
    /// to three digits after the point.
    pub(super) gmacs: Option<f64>,
    /// Digits after the point, where there are others.
    pub(super) gmacs_digits: Option<i32>,
    /// Channels, height and width at the end.
    pub(super) output: Option<[u64; 3]>,
    /// Layers with a convolution, transposed ones included.
    pub(super) convolution_layers: Option<usize>,
}

/// What stands in a list of layers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Item {
    /// A layer or block: `conv 64 7x7 /2 same bn relu`.
    Line(String),
    /// Branches of the same input, whose outputs are concatenated.
    Branches(Vec<Vec<Item>>),
    /// Layers with something about all of them.
    Group(Group),
}

/// Layers with something about all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) layers: Vec<Item>,
    /// How often they follow each other.
    #[serde(default = "once")]
    pub(super) repeat: u64,
    /// Whether what follows has the same input as these have.
    #[serde(default)]
    pub(super) aside: bool,
    /// Whether they are there in training only; aside, then.
    #[serde(default)]
    pub(super) training: bool,
    /// Whether their parameters are those of layers before.
    #[serde(default)]
    pub(super) shared: bool,
    /// Whether they are counted only; aside, then.
    #[serde(default)]
    pub(super) unasked: bool,
}

fn once() -> u64 {
    1
}
