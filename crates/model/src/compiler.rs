//! What plans say of compilers: placeholders for their directories, and macros
//! that ask for the time.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// In planned arguments: the directory of the device libraries. Where it
/// lies is not part of a job's identity, what it holds is.
pub const DEVICE_LIBS: &str = "{device-libs}";
/// In planned arguments: the directory that holds HIP's `include`.
pub const ROCM: &str = "{rocm}";

/// The macros by which a source asks for the time.
const CLOCK_MACROS: [&str; 3] = ["__DATE__", "__TIME__", "__TIMESTAMP__"];

/// Which program runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Program {
    /// The `hipcc` driver.
    Hipcc,
    /// The `clang` that belongs to it.
    Clang,
}

/// What the arguments of a job depend on besides the job itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CompilerFacts {
    /// Runs the HIP jobs; the other languages are clang's.
    pub hip_program: Program,
    /// HIP's major, minor and patch version, where it is known.
    pub hip_version: Option<[u32; 3]>,
}

/// A module of one constant that device libraries lack, made in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SuppliedConstant {
    /// The file that device libraries of a newer release have.
    pub file: String,
    /// The constant.
    pub symbol: String,
    /// Its value, of 32 bits.
    pub value: u32,
    /// The one processor that it is for; none where it is for all.
    pub gfx: Option<String>,
}

/// Whether a word of a compiler's defines or undefines a macro by which a source asks
/// for the time.
#[must_use]
pub fn is_of_clock(word: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = word.strip_prefix("-D").or_else(|| word.strip_prefix("-U"));
    text.is_some_and(|text| {
        let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
        CLOCK_MACROS.contains(&&text[..end])
    })
}
