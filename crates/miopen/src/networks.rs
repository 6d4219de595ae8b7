//! Well-known networks, and the problems that they are made of. Their tables
//! are files beside the sources, in packaging/networks, which the program
//! carries.

mod blocks;
mod emit;
mod layer;
mod table;
mod walk;

use std::collections::BTreeSet;

use crate::problem::{DataType, Directions, Layout, Problem};
use table::Tables;

/// The tables, by file name.
const FILES: [(&str, &str); 12] = [
    ("densenet.toml", include_str!("../../../packaging/networks/densenet.toml")),
    ("efficientnet.toml", include_str!("../../../packaging/networks/efficientnet.toml")),
    ("inception.toml", include_str!("../../../packaging/networks/inception.toml")),
    ("mask-rcnn.toml", include_str!("../../../packaging/networks/mask-rcnn.toml")),
    ("mobilenet.toml", include_str!("../../../packaging/networks/mobilenet.toml")),
    ("resnet.toml", include_str!("../../../packaging/networks/resnet.toml")),
    ("ssd.toml", include_str!("../../../packaging/networks/ssd.toml")),
    ("stable-diffusion.toml", include_str!("../../../packaging/networks/stable-diffusion.toml")),
    ("unet.toml", include_str!("../../../packaging/networks/unet.toml")),
    ("vgg.toml", include_str!("../../../packaging/networks/vgg.toml")),
    ("whisper.toml", include_str!("../../../packaging/networks/whisper.toml")),
    ("yolo.toml", include_str!("../../../packaging/networks/yolo.toml")),
];

/// A network that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkName {
    /// Its name: `resnet50`.
    pub name: String,
    /// Its name for people: `ResNet-50 v1.5`.
    pub title: String,
    /// Where its layers are taken from.
    pub source: String,
    /// Channels, height and width of an input.
    pub input: [u64; 3],
}

/// How a network is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Images at a time; each value for itself.
    pub batches: Vec<u64>,
    /// Types of its numbers.
    pub data_types: Vec<DataType>,
    /// Layouts of its tensors.
    pub layouts: Vec<Layout>,
    /// Directions. Batch normalization is that of training where these are
    /// more than [`Directions::FORWARD`].
    pub directions: Directions,
    /// Operations without type, `conv`, `bnorm`, `pool`, `activ` and
    /// `softmax`, that are wanted; none for all.
    pub operations: Vec<String>,
    /// Height and width of the input, where they are not those of the table.
    pub size: Option<[u64; 2]>,
}

/// Why a network gives no problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No table has it.
    #[error("failed to find the network `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name nearest to it.
        nearest: Option<String>,
    },
    /// The input is too small for the network's layers, or a table is wrong.
    #[error("failed to follow `{network}` at `{layer}`: {what}")]
    Layer {
        /// The network.
        network: String,
        /// The layer as its table has it.
        layer: String,
        /// What is wrong.
        what: String,
    },
    /// A table cannot be read.
    #[error("failed to read the table `{file}`: {what}")]
    Table {
        /// Its file name.
        file: &'static str,
        /// What is wrong.
        what: String,
    },
}

impl NetworkError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { nearest: Some(name), .. } => {
                format!("`{name}` is there; `gfxpack problems --list` lists all")
            }
            Self::Unknown { .. } => "`gfxpack problems --list` lists all".to_owned(),
            Self::Layer { .. } => "choose a larger --size".to_owned(),
            Self::Table { .. } => "this is a defect of gfxpack".to_owned(),
        }
    }
}

/// All networks, sorted by name.
///
/// # Errors
/// [`NetworkError::Table`].
pub fn network_names() -> Result<Vec<NetworkName>, NetworkError> {
    let mut names: Vec<NetworkName> = Vec::new();
    for (file, text) in FILES {
        let tables = Tables::read(file, text)?;
        let source = &tables.source;
        names.extend(tables.networks.iter().map(|network| NetworkName {
            name: network.name.clone(),
            title: network.title.clone(),
            source: source.clone(),
            input: network.input,
        }));
    }
    names.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

/// The problems of a network, each once. Case, `-` and `_` of the name do not
/// matter.
///
/// # Errors
/// [`NetworkError`].
pub fn network_problems(
    name: &str,
    selection: &Selection,
) -> Result<BTreeSet<Problem>, NetworkError> {
    let wanted = plain(name);
    for (file, text) in FILES {
        let tables = Tables::read(file, text)?;
        if let Some(network) = tables.networks.iter().find(|one| plain(&one.name) == wanted) {
            let input = match selection.size {
                Some([height, width]) => [network.input[0], height, width],
                None => network.input,
            };
            let walked = walk::walk(&tables, network, input)?;
            return emit::problems(&network.name, &walked.steps, selection);
        }
    }
    let names = network_names()?;
    let nearest = names.into_iter().map(|one| one.name);
    let nearest = nearest.min_by_key(|name| (distance(&plain(name), &wanted), name.clone()));
    let near = |name: &String| distance(&plain(name), &wanted) <= 1 + wanted.len() / 3;
    Err(NetworkError::Unknown { name: name.to_owned(), nearest: nearest.filter(near) })
}

/// A name without what people write differently.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

/// Letters to be inserted, removed or changed to get from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut before = row[0];
        row[0] = line + 1;
        for at in 0..to.len() {
            let changed = before + usize::from(to[at] != letter);
            before = row[at + 1];
            row[at + 1] = changed.min(before + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests;
