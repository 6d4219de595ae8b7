//! The child processes of this process, from the kernel's list.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills every child of this process, with its process group. For a program that ends without
/// waiting for its workers.
pub fn kill_children() {
    for child in own() {
        // Only children that lead a process group are killed.
        if let Some(group) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// This process's children; none if the kernel keeps no list.
#[must_use]
pub(crate) fn own() -> Vec<u32> {
    listed("self")
}

/// A process's children; each thread has a list of those that it started.
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
