//! The processor time and memory that a program used, as counted by the kernel.

use std::time::Duration;

use crate::memory::bytes_in;

/// The resources that a job's processes used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of the process and the children it waited for.
    pub cpu: Duration,
    /// The largest resident memory of any of them, in bytes.
    pub peak_memory: u64,
}

impl Usage {
    /// The total for this program and `other`, which ran after it.
    pub fn then(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, peak_memory: self.peak_memory.max(other.peak_memory) }
    }
}

/// The peak of a child that ended, in bytes, given the value that the kernel reported, that of its
/// parent when it was started, and the last one that was read while it ran, if any. The kernel's
/// value is not enough: a process started by fork or vfork inherits its parent's peak, so lower
/// values are not visible.
///
/// Source: Linux, fs/exec.c, `exec_mmap`: `setmax_mm_hiwater_rss` with the
/// memory map that is left, which is the parent's.
pub(crate) fn peak(reported: u64, inherited: u64, seen: Option<u64>) -> u64 {
    // Meanwhile, another thread may have added a page or two to the parent.
    let tolerance = inherited / 64;
    if reported > inherited + tolerance { reported } else { seen.unwrap_or(reported) }
}

/// The peak so far of a process, by its number or `self`; `None` if it has ended.
pub(crate) fn peak_so_far(process: &str) -> Option<u64> {
    bytes_in(&format!("/proc/{process}/status"), "VmHWM:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inherited_peak_does_not_count() {
        assert_eq!(peak(500 << 20, 500 << 20, None), 500 << 20, "no better known");
        assert_eq!(peak(500 << 20, 500 << 20, Some(90 << 20)), 90 << 20);
        assert_eq!(peak(700 << 20, 500 << 20, Some(90 << 20)), 700 << 20);
    }

    #[test]
    fn the_peak_of_a_process_is_read() {
        assert!(peak_so_far("self").unwrap() > 100 << 10);
        assert_eq!(peak_so_far("0"), None);
    }
}
