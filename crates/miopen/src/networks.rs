//! Well-known networks and their problems. Their tables are files beside the sources, in
//! crates/miopen/networks, and are compiled into the program.

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

const FILES: [&str; 12] = [
    include_str!("../networks/densenet.toml"),
    include_str!("../networks/efficientnet.toml"),
    include_str!("../networks/inception.toml"),
    include_str!("../networks/mask-rcnn.toml"),
    include_str!("../networks/mobilenet.toml"),
    include_str!("../networks/resnet.toml"),
    include_str!("../networks/ssd.toml"),
    include_str!("../networks/stable-diffusion.toml"),
    include_str!("../networks/unet.toml"),
    include_str!("../networks/vgg.toml"),
    include_str!("../networks/whisper.toml"),
    include_str!("../networks/yolo.toml"),
];

/// The tables; a test reads them too.
fn tables() -> impl Iterator<Item = Tables> {
    FILES.iter().map(|text| toml::from_str(text).expect("a table of networks"))
}

/// All networks, sorted by name.
#[must_use]
pub fn network_names() -> Vec<NetworkName> {
    let mut names: Vec<NetworkName> = Vec::new();
    for Tables { networks, source, .. } in tables() {
        names.extend(networks.into_iter().map(|network| NetworkName {
            name: network.name,
            title: network.title,
            source: source.clone(),
            input: network.input,
        }));
    }
    names.sort_by(|a, b| a.name.cmp(&b.name));
    names
}

/// The problems of a network, each once. Case, `-` and `_` in the name do not matter.
///
/// # Errors
/// [`NetworkError`].
pub fn network_problems(
    name: &str,
    selection: &Selection,
) -> Result<BTreeSet<Problem>, NetworkError> {
    let wanted = plain(name);
    for tables in tables() {
        if let Some(network) = tables.networks.iter().find(|one| plain(&one.name) == wanted) {
            let input = match selection.size {
                Some([height, width]) => [network.input[0], height, width],
                None => network.input,
            };
            let walked = walk::walk(&tables, network, input)?;
            return emit::problems(&network.name, &walked.steps, selection);
        }
    }
    let distance = |name: &str| strsim::levenshtein(&plain(name), &wanted);
    let names = network_names().into_iter().map(|one| one.name);
    let nearest = names.min_by_key(|name| (distance(name), name.clone()));
    let nearest = nearest.filter(|name| distance(name) <= 1 + wanted.len() / 3);
    Err(NetworkError::Unknown { name: name.to_owned(), nearest })
}

/// A name without case and punctuation.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests;
