//! Which caches a command is about.

use clap::Args;
use clap::builder::PossibleValuesParser;
use gfxpack_caches::{Cache, NAMES, Surroundings};

#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// Only these caches [default: all]
    #[arg(value_name = "CACHE", value_parser = PossibleValuesParser::new(NAMES))]
    pub(super) names: Vec<String>,
}

impl Chosen {
    /// The caches, of all that are known.
    pub(super) fn caches(&self, surroundings: &Surroundings) -> Vec<Cache> {
        let wanted = |cache: &Cache| {
            self.names.is_empty() || self.names.iter().any(|name| name == cache.name)
        };
        gfxpack_caches::known(surroundings).into_iter().filter(wanted).collect()
    }
}
