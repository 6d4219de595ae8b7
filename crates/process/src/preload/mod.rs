//! The library that is loaded into every compiler with `LD_PRELOAD`: a heap on which the order of
//! instructions' addresses is the same in every run (`heap.c`), the recorder (`record.c` and its
//! neighbours), what compilers see (`visible.c`), and, for compilers that fork for every job, the fork server (`fork_server.c`).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use tempfile::TempPath;

/// Compiled by the build script.
static PRELOADED: Library =
    Library::new("gfxpack-preload", include_bytes!(concat!(env!("OUT_DIR"), "/preload.so")));
/// The same, with the fork server in it.
static FORK_SERVER: Library = Library::new(
    "gfxpack-fork-server",
    include_bytes!(concat!(env!("OUT_DIR"), "/fork-server.so")),
);

/// The library, for remote compilers.
pub fn bytes() -> &'static [u8] {
    PRELOADED.bytes
}

/// A path of the library that child processes of this process can open.
///
/// # Errors
/// If the system has no files in memory or no /proc.
pub fn path() -> io::Result<&'static OsStr> {
    PRELOADED.path()
}

/// Writes the library to a file in a directory, for programs that can't open files of this process.
pub(crate) fn write_into(dir: &Path) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix(".gfxpack-preload-").tempfile_in(dir)?;
    file.write_all(bytes())?;
    Ok(file.into_temp_path())
}

/// The variable that names the libraries to load.
pub(crate) const PRELOAD_VARIABLE: &str = "LD_PRELOAD";
/// The variable with the path of the record that a process writes to.
pub(crate) const RECORD_VARIABLE: &str = "GFXPACK_RECORD";

/// A program's whole environment.
pub type Environment = Vec<(OsString, OsString)>;

/// A compiler's environment: the given one, with the library. If the library has no path, the
/// compiler runs without it.
pub fn environment(given: &[(OsString, OsString)]) -> Environment {
    let mut environment = given.to_vec();
    if let Ok(path) = path() {
        set(&mut environment, PRELOAD_VARIABLE, path);
    }
    environment
}

/// Makes programs with this environment fork servers. Each job of a server may have a record; the
/// server has none.
///
/// # Errors
/// If the system has no files in memory or no /proc.
pub fn fork_server_into(environment: &mut Environment) -> io::Result<()> {
    environment.retain(|(name, _)| name != RECORD_VARIABLE);
    set(environment, PRELOAD_VARIABLE, FORK_SERVER.path()?);
    Ok(())
}

/// An empty file in memory. Some systems allow only files that can't be executed
/// (`vm.memfd_noexec`), and older kernels do not know that flag. Libraries can be loaded from
/// either kind.
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    let made = match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, MemfdFlags::CLOEXEC)?,
        made => made?,
    };
    Ok(made.into())
}

/// The path of an open file of this process, for child processes. The process number is read from
/// /proc, which may show the numbers of another namespace.
pub(crate) fn own_file(file: &File) -> io::Result<PathBuf> {
    const PROC: &str = "/proc";
    let with_path =
        |error: io::Error| io::Error::new(error.kind(), format!("`/proc/self`: {error}"));
    let number = fs::read_link(Path::new(PROC).join("self")).map_err(with_path)?;
    Ok(Path::new(PROC).join(number).join("fd").join(file.as_raw_fd().to_string()))
}

fn set(environment: &mut Environment, name: &str, value: &OsStr) {
    environment.retain(|(other, _)| other != name);
    environment.push((name.into(), value.into()));
}

struct Library {
    name: &'static str,
    bytes: &'static [u8],
    path: OnceLock<Result<(OsString, OwnedFd), String>>,
}

impl Library {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, bytes, path: OnceLock::new() }
    }

    /// The library's path: a file in memory, which no other process can change and which vanishes
    /// with this process.
    fn path(&self) -> io::Result<&OsStr> {
        let make = || -> io::Result<(OsString, OwnedFd)> {
            let mut file = memory_file(self.name)?;
            file.write_all(self.bytes)?;
            Ok((own_file(&file)?.into(), file.into()))
        };
        let made = self.path.get_or_init(|| make().map_err(|error| error.to_string()));
        made.as_ref()
            .map(|(path, _)| path.as_os_str())
            .map_err(|reason| io::Error::other(reason.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Cancel, Program, run};

    /// The output of a shell script that runs with the library.
    fn printed(script: &str) -> String {
        let path = [("PATH".into(), "/usr/bin:/bin".into())];
        let environment = environment(&path);
        let program = Program {
            path: Path::new("/usr/bin/python3"),
            arguments: vec!["-c".into(), format!("{HEAP}{script}").into()],
            directory: Path::new("/"),
            environment: &environment,
            temp_dir: Path::new("/tmp"),
            time_limit: Duration::from_secs(600),
            record: None,
        };
        let output = run(&program, &Cancel::default()).unwrap();
        assert!(output.ok() && output.stderr.is_empty(), "{}", output.stderr);
        output.stdout
    }

    const HEAP: &str = "
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = c.realloc.restype = c.calloc.restype = ctypes.c_void_p
c.malloc.argtypes = [ctypes.c_size_t]
c.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
c.aligned_alloc.restype = ctypes.c_void_p
c.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
c.malloc_usable_size.argtypes = [ctypes.c_void_p]
c.malloc_usable_size.restype = ctypes.c_size_t
";

    /// The offsets of blocks of one size, after blocks of odd sizes were allocated and freed.
    fn offsets(before: usize) -> Vec<u64> {
        let script = format!(
            "
for size in range({before}): c.malloc(size)
for size in (4096, 4096, 8192, 65536, 1 << 20):
    block = c.malloc(size)
    ctypes.memset(block, 7, size)
    assert c.malloc_usable_size(block) == size
    block = c.realloc(block, size + 1)
    assert ctypes.string_at(block, size) == b'\\x07' * size
    c.free(block)
    other = c.malloc(size)
    ctypes.memset(other, 8, size)
    print(other)
    print(c.aligned_alloc(16, size))
"
        );
        printed(&script).lines().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn offsets_of_large_blocks_do_not_depend_on_earlier_blocks() {
        for before in [0, 1000] {
            let blocks = offsets(before);
            assert_eq!(blocks.len(), 10);
            assert!(blocks.iter().all(|block| block % (64 << 10) == 0), "{blocks:?}");
        }
    }

    #[test]
    fn blocks_keep_their_content() {
        let script = "
import random
random.seed(5)
held = {}
def fill(block, size, mark):
    assert block % 16 == 0 and c.malloc_usable_size(block) >= size
    ctypes.memset(block, mark, size)
    held[block] = (size, mark)
def check(block):
    size, mark = held.pop(block)
    assert ctypes.string_at(block, size) == bytes([mark]) * size
for turn in range(20000):
    size = random.choice((random.randrange(300), random.randrange(40000), 1 << random.randrange(21)))
    mark = 1 + turn % 255
    what = random.randrange(9)
    if what < 3 or not held:
        fill(c.malloc(size), size, mark)
    elif what < 4:
        block = c.calloc(size, 1)
        assert ctypes.string_at(block, size) == bytes(size)
        fill(block, size, mark)
    elif what < 5:
        alignment = 1 << random.randrange(18)
        block = c.aligned_alloc(alignment, size)
        assert block % alignment == 0
        fill(block, size, mark)
    elif what < 6:
        block = random.choice(list(held))
        old, kept = held.pop(block)
        block = c.realloc(block, size + 1)
        assert ctypes.string_at(block, min(old, size)) == bytes([kept]) * min(old, size)
        fill(block, size + 1, mark)
    else:
        block = random.choice(list(held))
        check(block)
        c.free(block)
for block in list(held): check(block)
print('whole')
";
        assert_eq!(printed(script), "whole\n");
    }
}
