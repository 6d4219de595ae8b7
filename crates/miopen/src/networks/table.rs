//! A file of networks.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Networks of one source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    pub(super) source: String,
    /// Words of every convolution except for `plain` ones.
    #[serde(default)]
    pub(super) convolutions: String,
    /// The source of the sums that tests compare with.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for readers and tests"))]
    pub(super) published: String,
    /// Named sequences of layers.
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
    /// Published sums.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare with it"))]
    pub(super) sums: Published,
}

/// Published sums of a network.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Published {
    /// Weights, biases, scales of normalization.
    pub(super) parameters: Option<u64>,
    /// The same in millions, as others count them.
    pub(super) million_parameters: Option<u64>,
    /// Parameters and running statistics of batch normalization.
    pub(super) values: Option<u64>,
    /// Billions of multiply-adds of convolutions and fully connected layers,
    /// to three digits after the point.
    pub(super) gmacs: Option<f64>,
    /// Digits after the point, if not three.
    pub(super) gmacs_digits: Option<i32>,
    /// Channels, height and width of the output.
    pub(super) output: Option<[u64; 3]>,
    /// Layers with a convolution, transposed ones included.
    pub(super) convolution_layers: Option<usize>,
}

/// An item in a list of layers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Item {
    /// A layer or block: `conv 64 7x7 /2 same bn relu`.
    Line(String),
    /// Branches of the same input, whose outputs are concatenated.
    Branches(Vec<Vec<Item>>),
    /// Layers with common properties.
    Group(Group),
}

/// Layers with common properties.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) layers: Vec<Item>,
    /// How often they are repeated.
    #[serde(default = "once")]
    pub(super) repeat: u64,
    /// Whether the layers after them have the same input.
    #[serde(default)]
    pub(super) aside: bool,
    /// Whether they exist only in training; they are then `aside`, too.
    #[serde(default)]
    pub(super) training: bool,
    /// Whether they share the parameters of earlier layers.
    #[serde(default)]
    pub(super) shared: bool,
    /// Whether they are only counted; they are then `aside`, too.
    #[serde(default)]
    pub(super) unasked: bool,
}

fn once() -> u64 {
    1
}
