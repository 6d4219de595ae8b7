//! The runtime as programs use it, with intact, damaged, shared, foreign and
//! missing files.

mod directories;
mod environment;
mod evict;
mod fork;
mod layers;
mod live_wal;
mod other_program;
mod processes;
mod setuid;
mod support;
mod system_faults;
mod unprivileged;
mod user_faults;
mod warnings;
