//! The object store: one file per key, with an object or a refusal.

mod entry;
mod object_store;
mod paths;
mod refusal;
#[cfg(test)]
mod test_support;
mod upkeep;

pub(crate) use entry::Entry;
pub use entry::{ObjectInfo, ObjectPurpose};
pub use object_store::{CorruptObject, ObjectStore};
pub use paths::VERSION;
pub(crate) use paths::{COMMANDS, HEADERS, is_store};
pub use upkeep::{Damaged, Evicted, Limits, StoreStats};
