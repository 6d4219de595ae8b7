//! How many compilers this machine carries at once.

use std::fs;
use std::path::{Path, PathBuf};

/// What one compile job may need: the largest kernels seen take 225 MB, and
/// a wrapper and the linker run beside the compiler.
pub(crate) const JOB_MEMORY: u64 = 384 << 20;

/// Bytes of memory that new processes can have: what the kernel calls
/// available, or what the control group leaves if that is less. `None` where
/// neither is known.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(mem_available);
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| cgroup_room(&text));
    match (meminfo, group) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// How many jobs to run at once if nobody says: as many as there are
/// processors to run on, but no more than memory carries, and at least one.
#[must_use]
pub fn default_jobs() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    jobs_for(processors, available_memory())
}

/// As many jobs as wanted, but no more than memory carries, and at least one.
pub(crate) fn jobs_for(wanted: usize, memory: Option<u64>) -> usize {
    let carried = memory.map_or(usize::MAX, |bytes| (bytes / JOB_MEMORY) as usize);
    wanted.min(carried).max(1)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// What the tightest of this process's memory control groups leaves.
fn cgroup_room(proc_self_cgroup: &str) -> Option<u64> {
    let mut room: Option<u64> = None;
    for line in proc_self_cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, limit, usage) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            continue;
        };
        let mut group = PathBuf::from(root).join(path.trim_start_matches('/'));
        while group.starts_with(root) {
            let number = |name: &str| read_number(&group.join(name));
            if let (Some(limit), Some(usage)) = (number(limit), number(usage)) {
                let left = limit.saturating_sub(usage);
                room = Some(room.map_or(left, |room| room.min(left)));
            }
            if !group.pop() {
                break;
            }
        }
    }
    room
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_bounds_the_jobs() {
        assert_eq!(jobs_for(8, Some(64 << 30)), 8);
        assert_eq!(jobs_for(8, Some(1 << 30)), 2);
        assert_eq!(jobs_for(8, Some(0)), 1);
        assert_eq!(jobs_for(8, None), 8);
    }

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:  100 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(mem_available(text), Some(2 << 20));
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }
}
