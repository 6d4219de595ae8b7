//! The processes that this one started, found by the kernel's own list.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills every child of this process with its process group, for a program
/// that ends without waiting for its workers.
pub fn kill_children() {
    for child in own() {
        // Children lead groups of their own; who does not is left alone.
        if let Some(group) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// This process's children; none where the kernel keeps no list.
#[must_use]
pub(crate) fn own() -> Vec<u32> {
    listed("self")
}

/// A process's children; each of its threads has a list of those it started.
///
/// Source: proc_pid_task_children(5).
#[must_use]
pub(crate) fn of_process(process: u32) -> Vec<u32> {
    listed(&process.to_string())
}

fn listed(process: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|number| number.parse::<u32>().ok()));
    }
    found
}
