//! A Slurm for this test: two nodes on this machine, in a temporary directory and on free ports,
//! stopped when the value is dropped.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gfxpack_tests::project::{command, finish, tool};

/// A safety limit, far beyond what any step takes.
const LIMIT: Duration = Duration::from_secs(300);

/// Daemons and their directory.
pub(crate) struct Slurm {
    dir: tempfile::TempDir,
    conf: PathBuf,
    children: Vec<(&'static str, Child)>,
}

impl Slurm {
    /// Two nodes of one processor each, ready for jobs.
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().display().to_string();
        let host = tool("hostname", &[], dir.path()).trim().to_owned();
        let user = tool("id", &["-un"], dir.path()).trim().to_owned();
        let [controller, first, second] = free_ports();
        let conf = format!(
            "ClusterName=test\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={controller}\n\
             SlurmUser={user}\n\
             SlurmdUser={user}\n\
             AuthInfo=socket={root}/munge.sock\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             MpiDefault=none\n\
             SchedulerParameters=sched_interval=1,bf_interval=1\n\
             SlurmdTimeout=10\n\
             ReturnToService=2\n\
             StateSaveLocation={root}/state\n\
             SlurmdSpoolDir={root}/spool.%n\n\
             SlurmctldPidFile={root}/slurmctld.pid\n\
             SlurmdPidFile={root}/slurmd.%n.pid\n\
             MailProg=/bin/true\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 RealMemory=500\n\
             NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 RealMemory=500\n\
             PartitionName=all Nodes=n1,n2 Default=YES State=UP\n"
        );
        let path = dir.path().join("slurm.conf");
        fs::write(&path, conf).expect("written");
        for name in ["state", "spool.n1", "spool.n2"] {
            fs::create_dir(dir.path().join(name)).expect("made");
        }
        let key: String = gfxpack_model::Digest::of(root.as_bytes()).to_string();
        fs::write(dir.path().join("munge.key"), key).expect("written");
        tool("chmod", &["600", "munge.key"], dir.path());
        let mut slurm = Self { conf: path, children: Vec::new(), dir };
        let munge = ["socket", "key-file", "pid-file", "log-file", "seed-file"]
            .map(|what| format!("--{what}={root}/munge.{}", what.trim_end_matches("-file")));
        let munge = munge.map(|line| line.replace("munge.socket", "munge.sock"));
        slurm.daemon("munged", &munge, &["--force", "--foreground"]);
        slurm.until("munged listens", || slurm.dir.path().join("munge.sock").exists());
        slurm.daemon("slurmctld", &[], &["-D"]);
        slurm.daemon("slurmd", &[], &["-D", "-N", "n1"]);
        slurm.daemon("slurmd", &[], &["-D", "-N", "n2"]);
        slurm.until("both nodes are idle", || {
            slurm.ask("sinfo", &["--noheader", "--format=%T %D"]).contains("idle 2")
        });
        slurm
    }

    fn daemon(&mut self, program: &'static str, more: &[String], args: &[&str]) {
        let log = self.dir.path().join(format!("{program}.{}.log", self.children.len()));
        let log = fs::File::create(log).expect("a log");
        // Where daemons are is not on everybody's PATH.
        let file = format!("/usr/sbin/{program}");
        let mut command = command(if Path::new(&file).exists() { &file } else { program });
        command.args(more).args(args).env("SLURM_CONF", &self.conf).current_dir(self.dir.path());
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{program} is needed ({error}): `cargo xtask test --setup` installs it")
        });
        self.children.push((program, child));
    }

    /// Has a command ask this Slurm.
    pub(crate) fn applies_to<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("SLURM_CONF", &self.conf)
    }

    /// What one of Slurm's programs prints; nothing where it fails.
    pub(crate) fn ask(&self, program: &str, args: &[&str]) -> String {
        let mut command = command(program);
        command.args(args);
        self.applies_to(&mut command);
        finish(command).stdout
    }

    /// Waits until something holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < LIMIT, "{what}: not in {LIMIT:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let mut all = self.ask("squeue", &["--array"]) + &self.ask("sinfo", &[]);
        for entry in fs::read_dir(self.dir.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "log") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines[lines.len().saturating_sub(15)..].join("\n");
                all.push_str(&format!("{}:\n{last}\n", path.display()));
            }
        }
        all
    }

    /// Takes a node away as a power cut would: its daemon and everything that
    /// runs on it, at once.
    pub(crate) fn cut_off(&mut self, node: &str) {
        let place = if node == "n1" { 2 } else { 3 };
        let daemon = &mut self.children[place].1;
        daemon.kill().expect("it runs");
        daemon.wait().expect("it ends");
        let spool = format!("/spool.{node}/");
        let name = format!("SLURMD_NODENAME={node}");
        let own = self.dir.path().display().to_string();
        let on_node = |process: &Path| {
            let read = |file: &str| fs::read(process.join(file)).unwrap_or_default();
            let environment = String::from_utf8_lossy(&read("environ")).into_owned();
            let commands = String::from_utf8_lossy(&read("cmdline")).into_owned();
            let ours = environment.contains(&own) || commands.contains(&own);
            ours && (environment.split('\0').any(|entry| entry == name)
                || commands.contains(&spool))
        };
        let (mut steps, mut doomed): (Vec<String>, Vec<String>) = Default::default();
        for entry in fs::read_dir("/proc").expect("readable").flatten() {
            let process = entry.path();
            if on_node(&process) {
                doomed.extend(entry.file_name().into_string());
                // The daemon's part of the job goes first: it would tell the
                // controller that the job has ended.
                let status = fs::read_to_string(process.join("status")).unwrap_or_default();
                let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
                let parent = parent.unwrap_or_default().trim().to_owned();
                let is_step = fs::read_to_string(format!("/proc/{parent}/cmdline"))
                    .is_ok_and(|text| text.starts_with("slurmstepd"));
                steps.extend(is_step.then_some(parent));
            }
        }
        assert!(!doomed.is_empty(), "nothing ran on {node}");
        for process in steps.into_iter().chain(doomed) {
            let mut kill = command("kill");
            kill.args(["-KILL", &process]);
            // It may have ended with its parent.
            let _ = finish(kill);
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.ask("scancel", &["--me", "--full", "--signal=KILL"]);
        for (_, child) in self.children.iter_mut().rev() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Three ports that were free a moment ago.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.each_ref().map(|listener| listener.local_addr().expect("bound").port())
}
