//! The library, installed like a user does, C programs compiled with it, and kdbs for them.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::project::{binary, workspace};
use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_model::KernelKey;

pub(crate) const KDB: &str = "gfx906_60.kdb";
pub(crate) const UKDB: &str = "gfx906_60.ukdb";
pub(crate) const NAME: &str = "conv.cl.o";

/// The C library's crate.
pub(crate) fn crate_dir() -> PathBuf {
    workspace().join("crates/runtime-c")
}

/// A C or C++ source of these tests.
pub(crate) fn c_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/runtime_c/c").join(name)
}

pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = crate::support::project::command(program);
    for name in ["MIOPEN_SYSTEM_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_DISABLE_CACHE"] {
        command.env_remove(name);
    }
    for name in ["MIOPEN_LOG_LEVEL", "MIOPEN_DEVICE_ARCH", "MIOPEN_DEVICE_CU"] {
        command.env_remove(name);
    }
    for name in ["HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK"] {
        command.env_remove(name);
    }
    command
}

/// What a command prints; it must end well.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        panic!("failed to start {command:?} ({error}): `cargo xtask test --setup` installs it")
    });
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("programs print UTF-8")
}

/// The directory with `libgfxpack_runtime_c.a`, built as these tests were.
pub(crate) fn built() -> &'static Path {
    binary().parent().expect("a file lies in a directory")
}

/// A machine with the library in `usr`, kdbs in `system` and the user's in
/// `user`, which does not exist.
pub(crate) struct Machine {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        // So that children of other users get in.
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(root.join("system")).unwrap();
        let prefix = root.join("usr");
        let mut install = command("sh");
        install.arg(crate_dir().join("install.sh")).arg("--built").arg(built());
        install.arg("--prefix").arg(&prefix).arg("--libdir").arg(prefix.join("lib/multi-arch"));
        run(&mut install);
        Self { _directory: directory, root }
    }

    /// With a kdb of kernels 0 to 2.
    pub(crate) fn with_kdb() -> Self {
        let machine = Self::new();
        write_kdb(&machine.kdb(), &[0, 1, 2]);
        machine
    }

    pub(crate) fn kdb(&self) -> PathBuf {
        self.root.join("system").join(KDB)
    }

    pub(crate) fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    pub(crate) fn ukdb(&self) -> PathBuf {
        self.user().join(UKDB)
    }

    pub(crate) fn libdir(&self) -> PathBuf {
        self.root.join("usr/lib/multi-arch")
    }

    /// The shared library's file.
    pub(crate) fn library(&self) -> String {
        let name = format!("libgfxpack_runtime.so.{}", env!("CARGO_PKG_VERSION"));
        self.libdir().join(name).into_os_string().into_string().unwrap()
    }

    pub(crate) fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        let mut pkg_config = command("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", self.libdir().join("pkgconfig"));
        let output = run(pkg_config.args(arguments).arg("gfxpack-runtime"));
        text(output.stdout).split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles a program once, warnings being errors.
    #[track_caller]
    pub(crate) fn compile(&self, source: &Path) -> PathBuf {
        let program = self.root.join(source.file_stem().unwrap());
        if program.exists() {
            return program;
        }
        let mut compiler = command("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-g"]);
        compiler.arg(source).arg("-o").arg(&program);
        compiler.args(self.pkg_config(&["--cflags", "--libs"]));
        run(&mut compiler);
        program
    }

    /// A program of `tests/c`, compiled, in this machine's environment.
    #[track_caller]
    pub(crate) fn program(&self, source: &str) -> Command {
        let program = self.compile(&c_source(source));
        self.environment(command(program))
    }

    pub(crate) fn environment(&self, mut command: Command) -> Command {
        command
            .env("LD_LIBRARY_PATH", self.libdir())
            .env("MIOPEN_SYSTEM_DB_PATH", self.root.join("system"))
            .env("MIOPEN_CUSTOM_CACHE_DIR", self.user());
        command
    }

    /// A file with what the compiler makes of a numbered kernel.
    pub(crate) fn object_file(&self, number: usize) -> String {
        let path = self.root.join(format!("{number}.o"));
        std::fs::write(&path, object(number)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The arguments of the key of that number.
pub(crate) fn args(number: usize) -> String {
    format!(" -DN={number} -mcpu=gfx906")
}

/// What the compiler makes of it: a code object for gfx906.
pub(crate) fn object(number: usize) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    bytes.resize(64, 0);
    bytes[18..20].copy_from_slice(&[0xe0, 0]);
    bytes[48..52].copy_from_slice(&[0x2f, 5, 0, 0]);
    bytes.extend((0..300 + number).map(|at| (at * number % 7) as u8));
    bytes
}

pub(crate) fn write_kdb(path: &Path, numbers: &[usize]) {
    let keys: Vec<KernelKey> = numbers
        .iter()
        .map(|&number| KernelKey { kernel_name: NAME.to_owned(), kernel_args: args(number) })
        .collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 300 }).collect();
    let object = |index: usize| io::Result::Ok(object(numbers[index]));
    write(path, &rows, &WriteOptions::default(), object).unwrap();
}

pub(crate) fn sql(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    connection.close().unwrap();
}

/// FNV-1a, as the driver prints it.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The driver's line for a kernel that there is.
pub(crate) fn there(step: &str, layer: u8, number: usize, file: Option<&Path>) -> String {
    let bytes = object(number);
    let file = file.map_or_else(|| "-".to_owned(), |file| file.display().to_string());
    let (size, hash) = (bytes.len(), hash(&bytes));
    format!("{step} status=0 layer={layer} size={size} hash={hash:016x} file={file} not-stored=-\n")
}

/// The driver's line for a lookup that found nothing.
pub(crate) fn nothing(step: &str, status: i8) -> String {
    let hash = hash(&[]);
    format!("{step} status={status} layer=0 size=0 hash={hash:016x} file=- not-stored=-\n")
}

/// The driver's line for a file asked in vain.
pub(crate) fn miss(layer: u8, reason: u8, file: &Path) -> String {
    format!("miss layer={layer} reason={reason} file={}\n", file.display())
}
