//! Code objects, keys, and helpers.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gfxpack_kdb::{Blob, Row, WriteOptions, Written, write};
use gfxpack_model::KernelKey;
use proptest::test_runner::Config as ProptestConfig;

/// Pseudo-random words determined by a seed.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// One in `share` of proptest's usual cases, which `PROPTEST_CASES` sets.
pub(crate) fn share_of_cases(share: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases.div_ceil(share);
    ProptestConfig { cases, failure_persistence: None, ..usual }
}

/// An empty kdb, as SQL.
pub(crate) const EMPTY: &str = "CREATE TABLE kern_db (id INTEGER PRIMARY KEY ASC,
    kernel_name TEXT NOT NULL, kernel_args TEXT NOT NULL, kernel_blob BLOB NOT NULL,
    kernel_hash TEXT NOT NULL, uncompressed_size INT NOT NULL);
    CREATE UNIQUE INDEX idx_kern_db ON kern_db (kernel_name, kernel_args);";

/// `EF_AMDGPU_MACH` of the processors that the tests use.
pub(crate) const GFX906: u8 = 0x2f;
pub(crate) const GFX90A: u8 = 0x3f;

/// An ELF code object of version 5 with features at "any". Whether bzip2 can
/// shrink its body depends on `compressible`.
pub(crate) fn code_object(mach: u8, seed: u64, size: usize, compressible: bool) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    bytes.resize(64, 0);
    bytes[18] = 0xe0;
    bytes[48] = mach;
    bytes[49] = 5;
    let mut noise = Noise::new(seed);
    while bytes.len() < size {
        let word = noise.word();
        let word = if compressible { word % 7 } else { word };
        bytes.extend(word.to_le_bytes());
    }
    bytes.truncate(size.max(64));
    bytes
}

pub(crate) fn key(name: &str, args: &str) -> KernelKey {
    KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() }
}

/// Kernels for gfx906 with unusual keys, in canonical order; every second one
/// compresses.
pub(crate) fn kernels() -> Vec<(KernelKey, Vec<u8>)> {
    let keys = [
        ("MIOpenConvDirUni.cl.o", " -DMLO_HW_WAVE_SZ=64   -DX=1 -mcpu=gfx906"),
        ("MIOpenConvDirUni.cl.o", "  -DMLO_HW_WAVE_SZ=64 -DX=1 -mcpu=gfx906"),
        ("conv.s.o", " -mcpu=gfx906"),
        ("conv.s.o", " -Wa,-defsym,K=3 -mcpu=gfx906"),
        ("naive_conv.cpp.o", "\t-DNAME=\"a b\" -D_X=%s?#&; -- /* \\ -mcpu=gfx906"),
        ("naive_conv.cpp.o", " -DÜ=ä -mcpu=gfx906"),
        ("naive_conv.cpp.o", " -DWIDE=\u{ff41} -mcpu=gfx906"),
        ("naive_conv.cpp.o", " -DWIDE=\u{1f300} -mcpu=gfx906"),
        ("rock.mlir.o", " --operation conv2d --arch gfx906"),
    ];
    let mut kernels: Vec<_> = keys
        .into_iter()
        .zip(1..)
        .map(|((name, args), seed)| {
            let size = 700 * seed as usize;
            (key(name, args), code_object(GFX906, seed, size, seed % 2 == 0))
        })
        .collect();
    kernels.sort();
    kernels
}

pub(crate) fn rows(kernels: &[(KernelKey, Vec<u8>)]) -> Vec<Row<'_>> {
    kernels.iter().map(|(key, object)| Row { key, size: object.len() as u64 }).collect()
}

pub(crate) fn write_kernels(path: &Path, kernels: &[(KernelKey, Vec<u8>)], blob: Blob) -> Written {
    let mut options = WriteOptions::default();
    options.blob = blob;
    write(path, &rows(kernels), &options, |index| io::Result::Ok(kernels[index].1.clone()))
        .expect("the kernels are in order and the disk has room")
}

/// A directory with a file `gfx906_60.kdb` of [`kernels`].
pub(crate) fn written() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    write_kernels(&path, &kernels(), Blob::Smaller);
    (directory, path)
}

/// Names in a directory, sorted.
pub(crate) fn listing(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[expect(clippy::disallowed_methods, reason = "tests start the tools that judge")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!("failed to start {command:?} ({error}): `cargo xtask test --setup` installs it")
    })
}

/// Leaves the file in WAL mode, closed and with no log beside it.
pub(crate) fn to_wal_mode(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    connection.close().unwrap();
}

pub(crate) fn mkfifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Runs one ignored test of this binary in its own process, after one line of
/// shell, and passes it a path.
#[track_caller]
pub(crate) fn run_child(test: &str, first: &str, path: &Path) -> String {
    let mut child = command("/bin/sh");
    child.arg("-c").arg(format!("{first}\nexec \"$0\" \"$@\""));
    let output = run(as_child(child.arg(std::env::current_exe().unwrap()), test, path));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("1 passed"), "the child ran: {printed}");
    printed
}

/// The arguments and the variable for running one ignored test of this binary.
pub(crate) fn as_child<'a>(command: &'a mut Command, test: &str, path: &Path) -> &'a mut Command {
    command.args(["--ignored", "--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(CHILD_PATH, path)
}

const CHILD_PATH: &str = "GFXPACK_KDB_TEST_PATH";

/// The path that [`run_child`] passed.
#[expect(clippy::disallowed_methods, reason = "how a test's own child is told its path")]
pub(crate) fn child_path() -> PathBuf {
    std::env::var_os(CHILD_PATH).expect("started by run_child").into()
}
