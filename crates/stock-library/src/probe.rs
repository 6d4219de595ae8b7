//! Starts a probe: a program of gfxpack that loads the library behind stand-ins, by the library's
//! own dynamic loader.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use gfxpack_model::probe_line::{fields, line};
use gfxpack_model::{Error, Result};
use gfxpack_process::watch::confined;
use gfxpack_process::{Group, ScratchDir};

use crate::elf::ElfFile;
use crate::library::Library;
use crate::needs::{file_of, is_sqlite, stood_in};
use crate::product::Product;
use crate::stubs::write_stubs;

/// How often a waiting thread checks for cancellation.
const TICK: Duration = Duration::from_millis(100);
/// A file system in memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// How much output of the loader or the library is reported.
const MAX_OUTPUT: u64 = 4096;

/// The directory in which programs that load a library are started.
#[derive(Debug)]
pub struct ProbeDirectory {
    product: &'static Product,
    directory: ScratchDir,
    /// Empty libraries with the names of those that have a stand-in.
    pub stubs: Vec<PathBuf>,
    /// The real SQLite.
    pub sqlite: Option<PathBuf>,
}

impl ProbeDirectory {
    /// For the probe, or for a program that needs libraries of its own. In memory if there is room,
    /// otherwise below `scratch`.
    pub fn create(
        product: &'static Product,
        library: &Library,
        program: Option<&Path>,
        scratch: &Path,
    ) -> Result<Self> {
        let directory = temporary_directory(scratch).map_err(product.scratch(scratch))?;
        let mut created = Self { product, directory, stubs: Vec::new(), sqlite: None };
        created.create_dir("tmp")?;
        let stubs = created.create_dir("stubs")?;
        let read = |file: &Path| {
            let object = ElfFile::open(file).and_then(|file| file.shared_object());
            object.map_err(|error| product.unreadable(error))
        };
        let object = read(&library.file)?;
        let mut needed = object.needed.clone();
        if let Some(program) = program {
            needed.extend(read(program)?.needed);
        }
        created.stubs = write_stubs(&stubs, object.machine, &stood_in(&needed))
            .map_err(product.scratch(&stubs))?;
        created.sqlite = file_of(&object, &library.search_path, is_sqlite);
        Ok(created)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a directory in it.
    pub fn create_dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir(&path).map_err(self.product.scratch(&path))?;
        Ok(path)
    }

    /// Calls `start` such that what it starts may write only into this directory.
    pub fn confined<T: Send>(&self, start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        confined(&[self.path().to_owned()], start)
    }

    /// A command that starts a program in this directory. `library` is found there, with the empty
    /// libraries before all others, and `preload` loaded before these. The environment contains
    /// nothing else, and nothing of the user's.
    pub fn command(&self, library: &Library, program: &Path, preload: Option<&Path>) -> Command {
        let mut search_path = self.path().join("stubs").into_os_string();
        for path in &library.search_path {
            search_path.push(":");
            search_path.push(path);
        }
        #[expect(clippy::disallowed_methods, reason = "what is started is a part of gfxpack")]
        let mut command = Command::new(library.loader.as_deref().unwrap_or(program));
        command.env_clear();
        if library.loader.is_some() {
            if let Some(preload) = preload {
                command.arg("--preload").arg(preload);
            }
            command.arg("--library-path").arg(search_path).arg(program);
        } else {
            command.env("LD_LIBRARY_PATH", search_path);
            if let Some(preload) = preload {
                command.env("LD_PRELOAD", preload);
            }
        }
        command
            .env("HOME", self.path())
            .env("TMPDIR", self.path().join("tmp"))
            .env("LC_ALL", "C")
            .current_dir(self.path());
        command
    }
}

/// Starts a program in a process group of its own, with bounded memory.
pub fn spawn(command: &mut Command) -> io::Result<Group> {
    let group = Group::new(command.process_group(0).spawn()?);
    group.limit_memory();
    Ok(group)
}

/// A running probe.
#[derive(Debug)]
pub struct ProbeProcess {
    group: Group,
    /// The connection to the probe.
    pub socket: UnixStream,
    /// Kept until the process has ended.
    pub directory: ProbeDirectory,
    path: PathBuf,
}

impl ProbeProcess {
    /// Starts the probe at `path` by a `command` of `directory`.
    pub fn start(path: &Path, mut command: Command, directory: ProbeDirectory) -> Result<Self> {
        let product = directory.product;
        let (socket, theirs) = UnixStream::pair().map_err(product.not_started(path))?;
        let output = directory.path().join("output");
        let written = File::create(&output).map_err(product.scratch(&output))?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(written);
        let group =
            directory.confined(|| spawn(&mut command)).map_err(product.not_started(path))?;
        Ok(Self { group, socket, directory, path: path.to_owned() })
    }

    /// Tells the probe to load the library for a device, with additional lines of settings.
    pub fn load(
        &self,
        library: &Library,
        architecture: &str,
        compute_units: u32,
        settings: &[u8],
    ) -> io::Result<()> {
        let mut lines = line(&[b"library", library.file.as_os_str().as_bytes()]);
        for stub in &self.directory.stubs {
            lines.extend(line(&[b"stub", stub.as_os_str().as_bytes()]));
        }
        lines.extend(line(&["device", architecture, &compute_units.to_string()]));
        if let Some(sqlite) = &self.directory.sqlite {
            lines.extend(line(&[b"sqlite", sqlite.as_os_str().as_bytes()]));
        }
        lines.extend(settings);
        lines.extend(line(&[b"start"]));
        (&self.socket).write_all(&lines)
    }

    /// The library's version, from the probe's first line. `None` if it is any
    /// other line.
    ///
    /// # Errors
    /// If the line says why the library can't be used.
    pub fn version(&self, line: &[u8]) -> Result<Option<String>> {
        let Product { name, probe_hint, function_hint, .. } = self.directory.product;
        let fields = fields(line);
        let fields: Vec<_> = fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
        let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
        match fields[..] {
            ["ready", env!("CARGO_PKG_VERSION"), version] => Ok(Some(version.to_owned())),
            ["ready", version, _] => Err(Error::internal(
                format!(
                    "`{}` belongs to gfxpack {version}, but this is gfxpack {}",
                    self.path.display(),
                    env!("CARGO_PKG_VERSION")
                ),
                probe_hint,
            )),
            ["missing", function] => {
                let message = format!("failed to find `{function}` in {name}");
                Err(Error::internal(message, function_hint))
            }
            ["failed", reason] => Err(self.not_loaded(reason)),
            _ => Ok(None),
        }
    }

    /// Whether the process is still running.
    pub fn is_running(&self) -> bool {
        !self.group.has_ended()
    }

    /// Kills the process, and all that it has started.
    pub fn kill(&self) {
        self.group.kill();
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        self.group.wait().map_err(self.directory.product.not_started(&self.path))
    }

    /// The error for a probe that ended without a message: the output of the loader, or of the
    /// library before it died; without output, the exit status.
    pub fn early_end(&self, status: ExitStatus) -> Error {
        let mut output = String::new();
        let _ = File::open(self.directory.path().join("output"))
            .and_then(|file| file.take(MAX_OUTPUT).read_to_string(&mut output));
        let output = output.trim();
        self.not_loaded(&if output.is_empty() { status.to_string() } else { output.to_owned() })
    }

    /// The error if the library can't be loaded.
    pub fn not_loaded(&self, reason: &str) -> Error {
        self.directory.product.not_loaded(reason)
    }
}

/// The error of a read that was cancelled. `BufRead` does not retry it.
pub const CANCELLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Reads from a socket, until a deadline or cancellation.
#[derive(Clone, Copy)]
pub struct DeadlineReader<'a> {
    socket: &'a UnixStream,
    /// Until when to wait.
    pub deadline: Instant,
    cancelled: &'a dyn Fn() -> bool,
}

impl<'a> DeadlineReader<'a> {
    /// For a socket of this process.
    pub fn new(
        socket: &'a UnixStream,
        deadline: Instant,
        cancelled: &'a dyn Fn() -> bool,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        Ok(Self { socket, deadline, cancelled })
    }
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if (self.cancelled)() {
                        return Err(CANCELLED.into());
                    }
                    if Instant::now() >= self.deadline {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                read => return read,
            }
        }
    }
}

fn temporary_directory(scratch: &Path) -> io::Result<ScratchDir> {
    let memory = Some(Path::new(SHARED_MEMORY)).filter(|memory| is_in_memory(memory));
    let in_memory = memory.and_then(|memory| ScratchDir::below(memory).ok());
    in_memory.map_or_else(|| ScratchDir::below(scratch), Ok)
}

/// Whether the path is in memory and has room for the files of a probe.
fn is_in_memory(path: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const ENOUGH: u64 = 32 << 20;
    rustix::fs::statfs(path).is_ok_and(|system| {
        #[expect(clippy::unnecessary_cast, reason = "the types differ between processors")]
        let (kind, block) = (system.f_type as i64, system.f_bsize as u64);
        kind == TMPFS_MAGIC && system.f_bavail.saturating_mul(block) >= ENOUGH
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static LIBRARY: Product = Product {
        name: "libx",
        file: "libx.so",
        soname: "libx.so.1",
        function: "x",
        option: "--x",
        package: "libx1",
        companions: &[],
        databases_package: None,
        driver: None,
        databases: &[],
        version: |_| None,
        version_of_tree: |_| None,
        scratch_hint: "",
        probe_hint: "",
        load_hint: "",
        function_hint: "",
    };

    #[expect(clippy::disallowed_methods, reason = "a program that behaves as the test wants")]
    fn probe(script: &str) -> ProbeProcess {
        let directory = ScratchDir::below(&std::env::temp_dir()).unwrap();
        let stubs = Vec::new();
        let directory = ProbeDirectory { product: &LIBRARY, directory, stubs, sqlite: None };
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ProbeProcess::start(Path::new("/x/probe"), command, directory).unwrap()
    }

    #[test]
    fn the_first_line_of_a_probe_is_its_version_or_an_error() {
        let probe = probe("exit 0");
        let version = |line: &[u8]| probe.version(line).map_err(|error| error.to_string());
        let own = env!("CARGO_PKG_VERSION");
        let ready = format!("ready\t{own}\t1.2\n");
        assert_eq!(version(ready.as_bytes()), Ok(Some("1.2".to_owned())));
        assert_eq!(version(b"end\n"), Ok(None));
        let other = format!("`/x/probe` belongs to gfxpack 0.0.9, but this is gfxpack {own}");
        assert_eq!(version(b"ready\t0.0.9\t1.2\n"), Err(other));
        assert_eq!(version(b"missing\tx\n"), Err("failed to find `x` in libx".to_owned()));
        assert_eq!(version(b"failed\ta\\tb\n"), Err("failed to load libx: a\tb".to_owned()));
    }

    #[test]
    fn the_error_of_a_probe_that_ends_early_is_its_output_or_status() {
        let check = |script: &str, expected: &str| {
            let mut probe = probe(script);
            let status = probe.wait().unwrap();
            assert_eq!(probe.early_end(status).to_string(), expected);
        };
        check("echo x: no such library >&2; exit 1", "failed to load libx: x: no such library");
        check("exit 3", "failed to load libx: exit status: 3");
    }
}
