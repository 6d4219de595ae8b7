//! Code objects, kdbs, caches that record their warnings, and other processes.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_runtime::{
    Config, KdbDirectories, Kernel, KernelCache, KernelKey, Lookup, UserDirectory, Warning,
    WarningClass, WarningSink,
};

/// `EF_AMDGPU_MACH` of the processors that the tests use.
pub(crate) const GFX906: u8 = 0x2f;
pub(crate) const GFX90A: u8 = 0x3f;

pub(crate) const NAME: &str = "gfx906_60.kdb";
pub(crate) const USER_NAME: &str = "gfx906_60.ukdb";

pub(crate) fn key(args: &str) -> KernelKey {
    KernelKey { kernel_name: "conv.cl.o".to_owned(), kernel_args: args.to_owned() }
}

/// The key with this number: ` -DN=7 -mcpu=gfx906`.
pub(crate) fn numbered(number: usize) -> KernelKey {
    key(&format!(" -DN={number} -mcpu=gfx906"))
}

/// A code object whose bytes depend on `mark`.
pub(crate) fn code_object(mach: u8, mark: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    bytes.resize(64, 0);
    bytes[18..20].copy_from_slice(&[0xe0, 0]);
    bytes[48..52].copy_from_slice(&[mach, 5, 0, 0]);
    let mut word = mark.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for index in 0..(40 + mark % 400) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        // Half of it compresses.
        let next = if index % 2 == 0 { word } else { mark };
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

/// The compiled code object of [`numbered`].
pub(crate) fn object(number: usize) -> Vec<u8> {
    code_object(GFX906, number as u64)
}

/// Writes a system kdb of these kernels; they need not be sorted.
pub(crate) fn write_kdb(path: &Path, kernels: &[(KernelKey, Vec<u8>)]) {
    let mut kernels = kernels.to_vec();
    kernels.sort();
    let rows: Vec<Row<'_>> = kernels.iter().map(|(key, _)| Row { key, size: 200 }).collect();
    let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
    write(path, &rows, &WriteOptions::default(), object).unwrap();
}

pub(crate) fn sql(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    connection.close().unwrap();
}

/// Temporary directories of a test machine: `system` exists, `user` does not.
pub(crate) struct Machine {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) system: PathBuf,
    pub(crate) user: PathBuf,
}

impl Machine {
    /// A machine with a `gfx906_60.kdb` of the first `kernels` numbered
    /// kernels, or without that file if there are none.
    pub(crate) fn new(kernels: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        // So that child processes of other users can read it.
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (system, user) = (root.join("system"), root.join("user"));
        std::fs::create_dir(&system).unwrap();
        if kernels > 0 {
            let kernels: Vec<_> = (0..kernels).map(|n| (numbered(n), object(n))).collect();
            write_kdb(&system.join(NAME), &kernels);
        }
        Self { _directory: directory, root, system, user }
    }

    pub(crate) fn kdb(&self) -> PathBuf {
        self.system.join(NAME)
    }

    pub(crate) fn ukdb(&self) -> PathBuf {
        self.user.join(USER_NAME)
    }

    pub(crate) fn config(&self) -> (Config, RecordedWarnings) {
        config(&self.system, UserDirectory::Dir(self.user.clone()))
    }

    pub(crate) fn open(&self) -> Cache {
        Cache::open(self.config())
    }
}

/// A configuration for a gfx906 with 60 compute units.
pub(crate) fn config(system: &Path, user: UserDirectory) -> (Config, RecordedWarnings) {
    let warnings = RecordedWarnings::default();
    let mut config = Config::new("gfx906@60".parse().unwrap(), KdbDirectories::new([system], user));
    config.warnings = warnings.sink();
    (config, warnings)
}

/// The recorded warnings of a cache.
#[derive(Clone, Default)]
pub(crate) struct RecordedWarnings(Arc<Mutex<Vec<Warning>>>);

impl RecordedWarnings {
    pub(crate) fn sink(&self) -> WarningSink {
        let warnings = Arc::clone(&self.0);
        WarningSink::Callback(Arc::new(move |warning: &Warning| {
            warnings.lock().unwrap().push(warning.clone());
        }))
    }

    pub(crate) fn classes(&self) -> Vec<WarningClass> {
        self.0.lock().unwrap().iter().map(|warning| warning.class).collect()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|warning| warning.text.clone()).collect()
    }
}

/// A cache and its warnings.
pub(crate) struct Cache {
    pub(crate) cache: KernelCache,
    pub(crate) warnings: RecordedWarnings,
}

impl Cache {
    pub(crate) fn open((config, warnings): (Config, RecordedWarnings)) -> Self {
        Self { cache: KernelCache::open(config), warnings }
    }

    /// Gets or compiles a numbered kernel, and checks its bytes.
    #[track_caller]
    pub(crate) fn kernel(&self, number: usize) -> Kernel {
        let compile = || Ok::<_, Infallible>(object(number));
        let kernel = self.cache.get_or_compile(&numbered(number), compile).unwrap();
        assert!(kernel.code_object[..] == object(number)[..], "kernel {number} has its own bytes");
        kernel
    }

    /// The layer in which a numbered kernel is found, without compiling it.
    #[track_caller]
    pub(crate) fn layer(&self, number: usize) -> Option<&'static str> {
        let lookup = self.cache.get(&numbered(number));
        let found = lookup.found?;
        assert!(found.code_object[..] == object(number)[..], "kernel {number} has its own bytes");
        Some(found.layer.name())
    }
}

/// Layer and reason of each miss.
pub(crate) fn reasons(misses: &[gfxpack_runtime::Miss]) -> Vec<String> {
    let reason = |miss: &gfxpack_runtime::Miss| {
        assert!(!miss.reason.hint().is_empty());
        format!("{} {}", miss.layer.name(), miss.reason.name())
    };
    misses.iter().map(reason).collect()
}

pub(crate) fn lookup_reasons(lookup: &Lookup) -> Vec<String> {
    reasons(&lookup.misses)
}

/// Names in a directory, sorted; empty if there is no directory.
pub(crate) fn listing(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[expect(clippy::disallowed_methods, reason = "tests start the tools that judge, and children")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!("failed to start {command:?} ({error}): `cargo xtask test --setup` installs it")
    })
}

/// Checks a file with SQLite's integrity check.
#[track_caller]
pub(crate) fn assert_whole(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let check = "PRAGMA integrity_check";
    let found: String = connection.query_row(check, (), |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// Leaves the file in WAL mode, closed and with no log beside it.
pub(crate) fn to_wal_mode(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mode = "PRAGMA journal_mode = WAL";
    let mode: String = connection.query_row(mode, (), |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    connection.close().unwrap();
}

/// Copies the program of this test, in another process: one that another test starts meanwhile would
/// hold the copy open for writing, so that it could not be started.
#[track_caller]
pub(crate) fn copy_this_program(to: &Path) {
    let copied = run(command("cp").arg(std::env::current_exe().unwrap()).arg(to));
    assert!(copied.status.success(), "{copied:?}");
}

/// Makes a program run as this user, without groups.
pub(crate) fn as_user(command: &mut Command, user: u32) {
    command.uid(user).gid(user);
}

/// Variable that marks a child process of a test; it holds its arguments.
const CHILD: &str = "GFXPACK_RUNTIME_TEST_CHILD";

/// One ignored test of this binary, to be started in its own process.
pub(crate) fn child(test: &str, arguments: &[&str]) -> Command {
    let mut command = command(std::env::current_exe().unwrap());
    with_test(&mut command, test, arguments);
    command
}

pub(crate) fn with_test(command: &mut Command, test: &str, arguments: &[&str]) {
    command
        .args(["--ignored", "--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, arguments.join("\n"));
}

/// The arguments that were passed to [`child`].
#[expect(clippy::disallowed_methods, reason = "how a test's own child is told what to do")]
pub(crate) fn child_arguments() -> Vec<String> {
    let arguments = std::env::var(CHILD).expect("started by another test");
    arguments.split('\n').map(str::to_owned).collect()
}

/// Starts a child with pipes for its output and for commands.
pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Prints a line for the parent.
pub(crate) fn print_line(line: &str) {
    let mut stdout = io::stdout();
    // The test harness has not ended its own line.
    stdout.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    stdout.flush().unwrap();
}

/// Reads the child's output up to this line. The returned reader must live as
/// long as the child needs its output.
#[track_caller]
pub(crate) fn await_line(child: &mut Child, line: &str) -> BufReader<ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let found = output.by_ref().lines().map(Result::unwrap).any(|printed| printed == line);
    assert!(found, "the child prints `{line}`");
    output
}

/// The output of a child, which must have succeeded.
#[track_caller]
pub(crate) fn finish(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
