//! The memory that this machine has for new processes, and that of this process's children.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process_group};

/// Bytes of memory that new processes can have: the kernel's available memory, or what the limit of
/// the control group leaves if that is less. `None` if neither is known.
pub fn available_memory() -> Option<u64> {
    let meminfo = bytes_in("/proc/meminfo", "MemAvailable:");
    let rooms = own_groups().into_iter().map(|group| group.limit.saturating_sub(group.used));
    meminfo.into_iter().chain(rooms).min()
}

/// The most bytes of memory that one compiler may have: three quarters of the machine's, or of its
/// control group's. `None` if neither is known.
pub(crate) fn compiler_memory() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limits = own_groups().into_iter().map(|group| group.limit);
        let total = bytes_in("/proc/meminfo", "MemTotal:").into_iter().chain(limits).min()?;
        Some(total / 4 * 3)
    })
}

/// Resident bytes of this process's jobs, of which at most `running` run. Counts the largest
/// processes below this one, each without its parent's memory, which a forked compiler shares. The
/// other processes are compilers waiting for a job.
pub fn resident_of_jobs(running: usize) -> u64 {
    let mut found = Vec::new();
    for child in children_of("self") {
        let resident = resident(child);
        if !add_below(child, resident, &mut found) {
            found.push(resident);
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().take(running).sum()
}

/// Kills every child of this process, with its process group. For a program that ends without
/// waiting for its workers.
pub fn kill_children() {
    for child in children_of("self") {
        // Only children that lead a process group are killed.
        if let Some(group) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// A process's children; each thread has a list of those that it started. None if the kernel keeps
/// no list.
///
/// Source: proc_pid_task_children(5).
fn children_of(process: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|number| number.parse::<u32>().ok()));
    }
    found
}

/// Adds the memory of each process below another one, without its parent's. Returns whether there
/// is any.
fn add_below(process: u32, has: u64, found: &mut Vec<u64>) -> bool {
    let children = children_of(&process.to_string());
    for &child in &children {
        let resident = resident(child);
        found.push(resident.saturating_sub(has));
        add_below(child, resident, found);
    }
    !children.is_empty()
}

fn resident(process: u32) -> u64 {
    bytes_in(&format!("/proc/{process}/status"), "VmRSS:").unwrap_or(0)
}

/// The number of bytes in a line of a file in `/proc`: `VmRSS:    2048 kB`.
pub(crate) fn bytes_in(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// A control group with a limit of memory, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct MemoryGroup {
    limit: u64,
    /// Without file pages that were not used lately, since the kernel reclaims these first.
    /// Otherwise every build that writes much would seem to be out of memory.
    used: u64,
}

fn own_groups() -> Vec<MemoryGroup> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    memory_groups(&groups, Path::new("/sys/fs/cgroup"))
}

/// This process's memory control groups that have a limit.
///
/// Source: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.max,
/// memory.high, memory.stat) and cgroup-v1/memory.rst.
fn memory_groups(proc_self_cgroup: &str, mount: &Path) -> Vec<MemoryGroup> {
    let mut groups = Vec::new();
    for line in proc_self_cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limits, usage, idle): (PathBuf, &[&str], _, _) = if controllers.is_empty() {
            (mount.into(), &["memory.max", "memory.high"], "memory.current", "inactive_file ")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let limits = &["memory.limit_in_bytes"];
            (mount.join("memory"), limits, "memory.usage_in_bytes", "total_inactive_file ")
        } else {
            continue;
        };
        let mut group = root.join(path.trim_start_matches('/'));
        while group.starts_with(&root) {
            let limit = limits.iter().filter_map(|name| read_number(&group.join(name))).min();
            if let (Some(limit), Some(usage)) = (limit, read_number(&group.join(usage))) {
                let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
                let idle = stat.lines().find_map(|line| line.strip_prefix(idle)?.parse().ok());
                groups.push(MemoryGroup { limit, used: usage.saturating_sub(idle.unwrap_or(0)) });
            }
            if !group.pop() {
                break;
            }
        }
    }
    groups
}

/// `None` for `max`, which means no limit.
fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[(&str, &str)], proc_self_cgroup: &str) -> Option<u64> {
        let mount = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let groups = memory_groups(proc_self_cgroup, mount.path());
        groups.iter().map(|group| group.limit.saturating_sub(group.used)).min()
    }

    #[test]
    fn memory_of_children_is_counted() {
        use crate::{Cancel, Program, run};
        let dir = tempfile::tempdir().unwrap();
        let ready = dir.path().join("ready");
        // A grandchild, like a compiler behind a wrapper.
        let script = format!(
            "sh -c 'x=$(head -c 50000000 /dev/zero | tr \\\\0 x); : > {}; sleep 100000'; exit 0",
            ready.display()
        );
        let cancel = Cancel::default();
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            directory: dir.path(),
            environment: &[("PATH".into(), "/usr/bin:/bin".into())],
            temp_dir: dir.path(),
            time_limit: std::time::Duration::from_secs(600),
            record: None,
        };
        let resident = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&program, &cancel));
            while !ready.exists() && !running.is_finished() {
                std::thread::yield_now();
            }
            let resident = resident_of_jobs(usize::MAX);
            assert_eq!(resident_of_jobs(0), 0);
            cancel.cancel();
            running.join().unwrap().unwrap();
            resident
        });
        assert!(ready.exists() && resident > 50_000_000, "{resident}");
    }

    #[test]
    fn meminfo_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "MemTotal:  100 kB\nMemAvailable:   2048 kB\n").unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(bytes_in(path, "MemAvailable:"), Some(2 << 20));
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let files = [
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/memory.stat", "anon 200\ninactive_file 300\nactive_file 400\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "700\n"),
            ("a/b/memory.current", "100\n"),
        ];
        assert_eq!(groups(&files, "0::/a/b\n"), Some(400), "idle file pages are free");
        assert_eq!(groups(&files[3..], "0::/a/b\n"), Some(600), "memory.high");
        assert_eq!(groups(&files[3..4], "0::/a/b\n"), None, "no limit");
        assert_eq!(groups(&[], "0::/\n"), None);
        // In a container, its own group appears as the root.
        let inside = [("memory.max", "500"), ("memory.current", "100")];
        assert_eq!(groups(&inside, "0::/\n"), Some(400));
    }

    #[test]
    fn groups_of_version_1_count_too() {
        let files = [
            ("memory/job/memory.limit_in_bytes", "1000\n"),
            ("memory/job/memory.usage_in_bytes", "950\n"),
            ("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "100\n"),
        ];
        let text = "12:cpu,cpuacct:/job\n9:memory:/job\nnonsense\n1:name=systemd:/\n";
        assert_eq!(groups(&files, text), Some(550));
        // If the container's path is not visible, the root of its mount is used.
        assert_eq!(groups(&files[3..], "9:memory:/docker/x\n"), Some(9223372036854771712 - 100));
    }
}
