//! The state that all actions on a service share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gfxpack_compile::Action;
use gfxpack_model::Digest;

use super::blobs::Blobs;
use super::connection::Connection;
use super::options::RemoteOptions;
use super::tree::Tree;

/// The state that all actions share.
pub(super) struct Service {
    pub(super) options: RemoteOptions,
    pub(super) connection: Connection,
    pub(super) blobs: Blobs,
    pub(super) trees: Mutex<HashMap<Digest, Arc<Tree>>>,
}

impl Service {
    /// The tree of an input root, built once.
    pub(super) fn tree(&self, action: &Action) -> Arc<Tree> {
        let known = self.trees.lock().expect("no panic inside").get(&action.root.digest).cloned();
        known.unwrap_or_else(|| {
            let tree = Arc::new(Tree::from_root(&action.root));
            let mut trees = self.trees.lock().expect("no panic inside");
            Arc::clone(trees.entry(action.root.digest).or_insert(tree))
        })
    }
}
