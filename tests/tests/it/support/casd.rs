//! A real remote-execution service on this machine: buildbox-casd, which
//! `cargo xtask test --setup` puts into target/tools.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::project::{command, workspace};

/// A service that ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Casd {
    child: Child,
    port: u16,
    dir: PathBuf,
    options: Vec<String>,
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound one").port()
}

impl Casd {
    /// Starts a service that stores its data in a directory.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// The same with additional options.
    pub(crate) fn start_with(dir: &Path, options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        // Another process may take a port between its choice and its use.
        for _ in 0..5 {
            let port = free_port();
            if let Some(child) = spawn(dir, port, &options) {
                return Self { child, port, dir: dir.to_owned(), options };
            }
        }
        let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
        panic!("buildbox-casd does not start: {log}");
    }

    /// Its address.
    pub(crate) fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// The directory of its blobs.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.join("store/cas/objects")
    }

    /// Kills it with all its processes.
    pub(crate) fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        command("kill").args(["-KILL", "--", &group]).status().expect("kill runs");
        self.child.wait().expect("it ends");
    }

    /// Kills a worker that is running a job, as if its machine were lost. Returns whether there was
    /// one.
    pub(crate) fn kill_a_worker(&self) -> bool {
        let ours = format!("PPid:\t{}", self.child.id());
        // The service has the name in its own command line, too.
        let is_worker = |process: &Path| {
            let read = |file: &str| fs::read_to_string(process.join(file)).unwrap_or_default();
            let program = read("cmdline").split('\0').next().map(str::to_owned);
            read("status").lines().any(|line| line == ours)
                && program.is_some_and(|program| program.contains("buildbox-run"))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let Some(worker) = processes.map(|entry| entry.path()).find(|path| is_worker(path)) else {
            return false;
        };
        let number = worker.file_name().expect("a process has a number");
        let killed = command("kill").arg("-KILL").arg(number).stderr(Stdio::null()).status();
        // Waits for the end of the worker, so that it is not found again.
        while is_worker(&worker) {
            std::thread::yield_now();
        }
        killed.is_ok_and(|status| status.success())
    }

    /// Starts it again at the same address.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.dir, self.port, &self.options).expect("its port is free");
    }
}

impl Drop for Casd {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Starts it and waits until it answers; `None` if it ended instead.
fn spawn(dir: &Path, port: u16, options: &[String]) -> Option<Child> {
    let tools = workspace().join("target/tools/buildbox");
    let program = tools.join("buildbox-casd");
    assert!(
        program.is_file(),
        "{} is missing\nhint: cargo xtask test --setup installs it",
        program.display()
    );
    fs::create_dir_all(dir).expect("made");
    let log = fs::File::options().create(true).append(true).open(dir.join("log")).expect("a log");
    let mut casd = command(&program);
    casd.arg(format!("--bind=127.0.0.1:{port}"))
        .arg(format!("--buildbox-run={}", tools.join("buildbox-run").display()))
        .args(["--runner-arg=--staging-mode=copy-or-link", "--jobs=2"])
        // The shell comes from this machine, the compiler from gfxpack.
        .args(
            ["/usr", "/lib", "/lib64", "/bin", "/dev"]
                .map(|dir| format!("--runner-arg=--bind-mount={dir}:{dir}")),
        )
        .args(options)
        .arg(dir.join("store"))
        .stdout(Stdio::null())
        .stderr(log)
        // In a process group of its own, which is killed as a whole.
        .process_group(0);
    let mut path = vec![tools];
    #[expect(clippy::disallowed_methods, reason = "a test starts a tool that looks for its own")]
    let own = std::env::var_os("PATH").unwrap_or_default();
    path.extend(std::env::split_paths(&own));
    casd.env("PATH", std::env::join_paths(path).expect("a path"));
    let mut child = casd.spawn().expect("it starts");
    loop {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return None;
        }
        std::thread::yield_now();
    }
}
