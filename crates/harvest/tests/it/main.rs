//! Harvests of real files: logs as MIOpen writes them, kdbs, and each other.

mod commands;
mod keys;
mod support;
