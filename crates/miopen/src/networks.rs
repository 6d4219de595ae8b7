//! Well-known networks, and the problems that they are made of. Their tables
//! are files beside the sources, in crates/miopen/networks, which the program
//! carries.

mod blocks;
mod emit;
mod layer;
mod selection;
mod table;
mod walk;

use std::collections::BTreeSet;

use crate::problem::Problem;
use table::Tables;

pub use self::selection::{NetworkError, NetworkName, Selection};

/// The tables, by file name.
const FILES: [(&str, &str); 12] = [
    ("densenet.toml", include_str!("../networks/densenet.toml")),
    ("efficientnet.toml", include_str!("../networks/efficientnet.toml")),
    ("inception.toml", include_str!("../networks/inception.toml")),
    ("mask-rcnn.toml", include_str!("../networks/mask-rcnn.toml")),
    ("mobilenet.toml", include_str!("../networks/mobilenet.toml")),
    ("resnet.toml", include_str!("../networks/resnet.toml")),
    ("ssd.toml", include_str!("../networks/ssd.toml")),
    ("stable-diffusion.toml", include_str!("../networks/stable-diffusion.toml")),
    ("unet.toml", include_str!("../networks/unet.toml")),
    ("vgg.toml", include_str!("../networks/vgg.toml")),
    ("whisper.toml", include_str!("../networks/whisper.toml")),
    ("yolo.toml", include_str!("../networks/yolo.toml")),
];

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
