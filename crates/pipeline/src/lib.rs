//! The main job as a library: it reads inputs, makes a plan, runs its jobs,
//! assembles and verifies kdbs, writes packages, and records what was made.
//!
//! Options come in as the command line has them ([`options`]), events go out ([`progress`]);
//! nothing here knows a terminal. Begin with [`dist::Dist`].
//!
//! ```
//! use gfxpack_pipeline::error::ErrorKind;
//! use gfxpack_pipeline::exit_code::MEANINGS;
//!
//! assert_eq!(ErrorKind::Incomplete.exit_code(), 100);
//! assert!(MEANINGS.iter().any(|(code, _)| *code == 100));
//! ```

pub mod ask;
pub mod build;
pub mod build_status;
pub mod cache;
pub mod checked_files;
pub mod destination;
pub mod device_code;
pub mod device_packages;
pub mod dist;
pub mod doctor;
pub mod environment;
pub mod error;
pub mod exit_code;
pub mod explain;
pub mod failure_log;
pub mod failures;
pub mod fft_lookup;
pub mod fft_plans;
pub mod harvest_sums;
pub mod hidden_kdbs;
pub mod inputs;
pub mod inspector;
pub mod kdb_check;
mod kdb_inputs;
mod kernel_files;
pub mod kernel_library;
pub mod ledger;
mod license_head;
pub mod line_file;
pub mod lookup_answers;
pub mod message_file;
pub mod missing_from;
pub mod options;
mod outputs;
mod package_existing;
mod packages;
pub mod plan_state;
pub mod prepare;
pub mod program_run;
pub mod progress;
mod rayon_workers;
pub mod recipes;
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
mod text_file;
pub mod toolchains;
pub mod torch_program;
pub mod tune;
pub mod usual_directories;
pub mod write_packages;
