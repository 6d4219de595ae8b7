//! The main job as a library: it reads inputs, makes a plan, runs its jobs,
//! assembles and verifies kdbs, writes packages, and records what was made.
//!
//! Options come in as the command line has them ([`options`]), events go out ([`progress`]);
//! nothing here knows a terminal. Begin with [`dist::Dist`].

pub mod ask;
pub mod build;
pub mod cache;
pub mod destination;
pub mod dist;
pub mod environment;
pub mod error;
pub mod failures;
pub mod hidden_kdbs;
pub mod inputs;
pub mod inspector;
pub mod kdb_check;
mod kdb_inputs;
mod kernel_files;
pub mod kernel_library;
pub mod ledger;
mod license_head;
pub mod options;
mod outputs;
mod package_existing;
mod packages;
pub mod plan_state;
pub mod prepare;
pub mod progress;
pub mod record;
pub mod remote;
pub mod report;
pub mod rocfft;
pub mod shards;
mod shipped_databases;
pub mod skipped_lines;
pub mod source_tree;
pub mod stock_library;
pub mod text;
pub mod write_packages;
