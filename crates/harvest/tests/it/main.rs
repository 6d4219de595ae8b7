//! Harvests of real files: logs as MIOpen writes them, kdbs, and harvests.

mod commands;
mod keys;
mod support;
