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

/// Samples a child's memory while it runs, because the kernel's value at its end is not enough: a
/// process started by fork or vfork inherits its parent's peak, so lower values are not visible.
///
/// Source: Linux, fs/exec.c, `exec_mmap`: `setmax_mm_hiwater_rss` with the
/// memory map that is left, which is the parent's.
pub(crate) struct PeakWatch {
    status_file: String,
    /// The peak that a child inherits.
    inherited: u64,
    seen: u64,
}

impl PeakWatch {
    /// The peak that a child will inherit, read before it is started.
    pub(crate) fn inherited() -> u64 {
        peak_of("/proc/self/status").unwrap_or(0)
    }

    pub(crate) fn new(child: u32, inherited: u64) -> Self {
        Self { status_file: format!("/proc/{child}/status"), inherited, seen: 0 }
    }

    /// Takes a sample; the child may have ended.
    pub(crate) fn look(&mut self) {
        self.seen = self.seen.max(peak_of(&self.status_file).unwrap_or(0));
    }

    /// The peak, given the value that the kernel reported at the end.
    pub(crate) fn peak(&self, reported: u64) -> u64 {
        // Between the two values, another thread may have added a page or two to the parent.
        let tolerance = self.inherited / 64;
        if reported > self.inherited + tolerance || self.seen == 0 { reported } else { self.seen }
    }
}

fn peak_of(status_file: &str) -> Option<u64> {
    bytes_in(status_file, "VmHWM:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inherited_peak_does_not_count() {
        let mut watch = PeakWatch::new(0, 500 << 20);
        assert_eq!(watch.peak(500 << 20), 500 << 20, "no better known");
        watch.seen = 90 << 20;
        assert_eq!(watch.peak(500 << 20), 90 << 20);
        assert_eq!(watch.peak(700 << 20), 700 << 20);
    }

    #[test]
    fn the_peak_of_a_process_is_read() {
        assert!(PeakWatch::inherited() > 100 << 10);
        assert_eq!(peak_of("/proc/0/status"), None);
    }
}
