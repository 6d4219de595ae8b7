//! Parts of a plan that concern compilers: placeholders for directories, and
//! macros with the time.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// In planned arguments: the directory of the device libraries. A job's
/// identity depends on its content, not on its path.
pub const DEVICE_LIBS: &str = "{device-libs}";
/// In planned arguments: the directory that contains HIP's `include`.
pub const ROCM: &str = "{rocm}";

/// The macros that give a source the time of compilation.
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

/// Properties of a compiler that the arguments of jobs depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CompilerFacts {
    /// The program for HIP jobs; clang runs those of other languages.
    pub hip_program: Program,
    /// HIP's major, minor and patch version, if known.
    pub hip_version: Option<[u32; 3]>,
}

/// A module with one constant that the device libraries lack; it is generated
/// instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SuppliedConstant {
    /// The file that contains the constant in device libraries of a newer
    /// release.
    pub file: String,
    /// The constant.
    pub symbol: String,
    /// Its 32-bit value.
    pub value: u32,
    /// The only processor that it is for; `None` if it is for all.
    pub gfx: Option<String>,
}

/// Whether a compiler argument defines or undefines a macro with the time.
pub fn is_of_clock(word: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = word.strip_prefix("-D").or_else(|| word.strip_prefix("-U"));
    text.is_some_and(|text| {
        let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
        CLOCK_MACROS.contains(&&text[..end])
    })
}
