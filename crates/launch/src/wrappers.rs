//! Recognises wrappers: scripts and programs in front of compilers.
//!
//! A driver is asked once for all commands that differ only in macros and source. The answer is
//! valid for all of them if every program involved is a compiler, or is known to pass macros and
//! sources on unread. Any other program may look at anything, so the driver has to run every
//! command then.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_process::watch::{Operation, Record};
use gfxpack_toolchain::Toolchain;

/// SHA-256 of those parts of hipcc that are scripts. They pass macros and sources on unread, except
/// for arguments for which [`reads_arg`] is true. Since ROCm 7, hipcc is a program.
const KNOWN: [&str; 6] = [
    // Debian's 5.2.3: hipcc, hipcc.pl, hipvars.pm.
    "d1a2d0b635e10e4fc049d75cce68863a1262f68e58b1c8b469835b2c0a1f95ed",
    "8f0a65ca5cd2710e21764ade7e9f9cc8a11b9b0da26087ca492a0ef692e5557b",
    "1e5ccd58e8f141a760c8e45aa6892b66a9307688b4b85f2e567d6c5bac5d4d08",
    // Debian's 5.7.1: the same.
    "e79478ef75a4bf5da4fa143dea06d051e799be2c25ce65a2df5d87666d3be254",
    "926664cc90b17f4ac79a7a0abf1bcdf52814643a7eb96cd75e01d7d1c56bc4b7",
    "f209946912b8e22ad37c3ffeb86f05204d122aef487ed81a97144152a836690c",
];

/// The interpreters of these scripts, which also start compilers.
const INTERPRETERS: [&str; 2] = ["/bin/sh", "/usr/bin/perl"];

/// The first file with a part in a driver's answer that is neither the toolchain's compiler nor
/// known to pass everything on. The record is of all programs that ran when `program` was asked. A
/// program that starts that compiler itself is taken for hipcc, which does the same.
pub(crate) fn stranger(program: &Path, toolchain: &Toolchain, record: &Record) -> Option<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let program = real(program);
    let clang = real(&toolchain.clang);
    let interpreters = INTERPRETERS.map(|path| real(Path::new(path)));
    // A program that starts the scripts is a wrapper.
    let is_program = is_elf(&program);
    let is_part = |path: &PathBuf| {
        if is_program {
            *path == program || *path == clang && is_elf(path)
        } else {
            *path == clang && is_elf(path) || is_known(path)
        }
    };
    let done = || record.accesses.iter().filter(|access| access.error.is_none());
    let started = done()
        .filter(|access| access.operation == Operation::Execute)
        .map(|access| real(&access.path));
    let started = started.filter(|path| !interpreters.contains(path));
    // A file beside a script may be a part of it.
    let read = done().filter(|access| matches!(access.operation, Operation::Open { .. }));
    let read = read.map(|access| real(&access.path)).filter(|path| {
        let module = path.extension().is_some_and(|it| ["pl", "pm"].iter().any(|end| it == *end));
        module && path.parent() == program.parent()
    });
    [program.clone()].into_iter().chain(started).chain(read).find(|path| !is_part(path))
}

pub(crate) fn is_elf(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == *b"\x7fELF"
}

fn is_known(path: &Path) -> bool {
    /// Longer than any of the known scripts.
    const LONGEST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.is_ok() && KNOWN.contains(&&*Digest::of(&bytes).to_string())
}

/// Whether hipcc might misread a macro or a source's name. It looks for options and names of
/// libraries anywhere in an argument, and passes arguments to a shell, which drops line ends.
///
/// Source: `hipcc.pl` of the known versions; `hipBin_amd.h` of ROCm 6.0, of
/// which later ones are made.
pub(crate) fn reads_arg(arg: &str) -> bool {
    const WITHIN: [&str; 4] = ["--", "-fopenmp-targets=", "-Wl,", "\n"];
    const ENDS: [&str; 2] = [".a", ".lo"];
    WITHIN.iter().any(|part| arg.contains(part)) || ENDS.iter().any(|end| arg.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_look_like_options_are_left_to_hipcc() {
        for arg in ["-DX=--genco", "-DX=\"-fopenmp-targets=x\"", "-DX=lib.a", "-DX=a\nb", "-UX.lo"]
        {
            assert!(reads_arg(arg), "{arg}");
        }
        assert!(reads_arg("a--genco.cpp"));
        for arg in ["-DX", "-DX=1", "-DX=-1", "-DX=\"a.h\"", "-DX=(float)1.5", "-DX=a+b", "a-b.cpp"]
        {
            assert!(!reads_arg(arg), "{arg}");
        }
    }
}
