//! The object store: one file per job digest, with everything needed to decide whether it is still
//! valid.

mod adopt;
mod dependencies;
mod entry;
#[cfg(test)]
mod fixture;
mod object_store;
mod places;
mod refusal;
mod upkeep;

pub use dependencies::Dependencies;
pub(crate) use entry::Entry;
pub use entry::{ObjectInfo, ObjectPurpose};
#[cfg(test)]
pub(crate) use fixture::{about_it, fixture};
pub use object_store::{ObjectStore, ValidityCheck};
pub(crate) use places::{COMMANDS, HEADERS};
pub use places::{VERSION, is_store};
pub use upkeep::{Damaged, Evicted, Limits, OldStore, StoreStats};
