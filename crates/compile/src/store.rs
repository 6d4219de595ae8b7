//! The object store: one file per job digest, with everything needed to decide whether it is still
//! valid.

mod adopt;
mod dependencies;
mod entry;
mod object_store;
mod paths;
mod refusal;
#[cfg(test)]
mod test_support;
mod upkeep;

pub use dependencies::Dependencies;
pub(crate) use entry::Entry;
pub use entry::{ObjectInfo, ObjectPurpose};
pub use object_store::{ObjectStore, ValidityCheck};
pub(crate) use paths::{COMMANDS, HEADERS};
pub use paths::{VERSION, is_store};
#[cfg(test)]
pub(crate) use test_support::{about_it, fixture};
pub use upkeep::{Damaged, Evicted, Limits, StoreStats};
