//! Scripts in front of compilers.
//!
//! A driver is asked once for all commands that differ in macros and source
//! alone. That says enough of a driver that passes these on unread. A compiler
//! does, a script need not: one that is not known has to run every command.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_process::watch::{Record, What};

/// What hipcc is written in, up to ROCm 6, besides the script that is started.
const PERL_PART: &str = "hipcc.pl";

/// Scripts that pass macros on unread, but for those that [`reads_macro`]
/// tells: SHA-256.
const KNOWN: [(&str, &str); 7] = [
    ("hipcc of Debian's 5.2.3", "d1a2d0b635e10e4fc049d75cce68863a1262f68e58b1c8b469835b2c0a1f95ed"),
    (
        "hipcc.pl of Debian's 5.2.3",
        "8f0a65ca5cd2710e21764ade7e9f9cc8a11b9b0da26087ca492a0ef692e5557b",
    ),
    ("hipcc of Debian's 5.7.1", "e79478ef75a4bf5da4fa143dea06d051e799be2c25ce65a2df5d87666d3be254"),
    (
        "hipcc.pl of Debian's 5.7.1",
        "926664cc90b17f4ac79a7a0abf1bcdf52814643a7eb96cd75e01d7d1c56bc4b7",
    ),
    (
        "hipcc of ROCm 5.6 to 6.0",
        "0a133b0bb538abd5e8b31b3502680ace1562fe4151fca964b2e032c691ecd14e",
    ),
    (
        "hipcc.pl of ROCm 5.6 and 5.7",
        "c5613eb01ede187b2e39aed395fc689371a504874286a4bd88981090a3c662de",
    ),
    ("hipcc.pl of ROCm 6.0", "81e41fd947461e437983acdfe6322077cfbe558743008195a8b0cf2db08ff72e"),
];

/// The first script that ran when `program` was started, and is not known.
pub(crate) fn unknown(program: &Path, record: Option<&Record>) -> Option<PathBuf> {
    let asks = record.into_iter().flat_map(|record| &record.asks);
    let ran = asks.filter(|ask| ask.error.is_none()).filter(|ask| match ask.what {
        What::Execute => true,
        What::Open { .. } => ask.path.file_name() == Some(OsStr::new(PERL_PART)),
        _ => false,
    });
    let ran = ran.map(|ask| ask.path.as_path());
    [program].into_iter().chain(ran).find(|path| !is_known(path)).map(Path::to_owned)
}

/// Whether a file is a program, or a script that is known.
fn is_known(path: &Path) -> bool {
    /// How programs begin.
    const ELF: &[u8] = b"\x7fELF";
    /// Longer than any script that is known.
    const LONGEST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    let Ok(file) = File::open(path) else { return false };
    if file.take(LONGEST).read_to_end(&mut bytes).is_err() {
        return false;
    }
    let is_listed = || {
        let digest = Digest::of(&bytes).to_string();
        KNOWN.iter().any(|(_, known)| *known == digest)
    };
    bytes.starts_with(ELF) || is_listed()
}

/// Whether a known script might take a macro for something else: they look
/// for options and names of libraries anywhere in a word, and give words to a
/// shell, which drops line ends.
///
/// Source: `hipcc.pl` of these versions, and `hipBin_amd.h` of ROCm 6.0.
pub(crate) fn reads_macro(word: &str) -> bool {
    let has_option = word
        .split('-')
        .skip(2)
        .any(|rest| rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_alphabetic()));
    has_option || word.ends_with(".a") || word.ends_with(".lo") || word.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_and_scripts_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("hipcc");
        std::fs::write(&script, "#!/bin/sh\nexec /usr/bin/hipcc \"$@\"\n").unwrap();
        assert_eq!(unknown(&script, None), Some(script.clone()));
        assert_eq!(unknown(&std::env::current_exe().unwrap(), None), None);
        let absent = dir.path().join("absent");
        assert_eq!(unknown(&absent, None), Some(absent.clone()));
    }
    #[test]
    fn macros_that_look_like_options_are_left_to_the_script() {
        for word in ["-DX=--genco", "-DX=\"-fopenmp-targets=x\"", "-DX=lib.a", "-DX=a\nb", "-UX.lo"]
        {
            assert!(reads_macro(word), "{word}");
        }
        for word in ["-DX", "-DX=1", "-DX=-1", "-DX=\"a.h\"", "-DX=(float)1.5", "-DX=a+b.c"] {
            assert!(!reads_macro(word), "{word}");
        }
    }
}
