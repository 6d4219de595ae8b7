//! Kernel keys: the name and arguments with which MIOpen looks a code object
//! up, byte for byte. Kernels of other libraries have such keys only within
//! gfxpack.

use std::fmt::{self, Write as _};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Hasher};
use crate::error::Error;

/// The key with which MIOpen looks a code object up; kernels of other libraries
/// are planned by such keys too. Opaque: never trimmed, sorted or normalised.
/// Ordered by name, then by arguments, bytewise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(deny_unknown_fields))]
pub struct KernelKey {
    /// Source file name and `.o`: `MIOpenConvDirUni.cl.o`.
    pub kernel_name: String,
    /// The options as the solver wrote them, and ` -mcpu=<device>`.
    pub kernel_args: String,
}

/// The language of a source, by its file extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Language {
    /// HIP C++ (`.cpp`).
    Hip,
    /// OpenCL C (`.cl`).
    OpenclC,
    /// AMDGCN assembly (`.s`).
    Assembly,
}

/// Why MIOpen can't find or compile a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// MIOpen splices the key into SQL text unescaped.
    #[error("failed to accept key `{0}`: it holds a `'`, so MIOpen could never find it")]
    Quote(String),
    /// SQLite would cut the text, or MIOpen could not look it up.
    #[error("failed to accept key `{0}`: it holds a NUL byte")]
    Nul(String),
    /// The name does not end in `.o` after a known source extension.
    #[error("failed to accept kernel name `{0}`: it is no source name with `.o` after it")]
    Name(String),
    /// The device has features, as `gfx90a:sramecc+:xnack-`.
    #[error(
        "failed to accept the arguments of `{0}`: they are of MIOpen before 3.0, with features in -mcpu="
    )]
    Features(String),
    /// The arguments do not end in ` -mcpu=<device>`.
    #[error("failed to accept the arguments of `{0}`: they do not end in ` -mcpu=<device>`")]
    Device(String),
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::usage(&error, error.hint())
    }
}

impl KeyError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Quote(_) => "write string defines with \" quotes, or without quotes",
            Self::Nul(_) => "check how the keys were written: no option holds a NUL byte",
            Self::Name(_) => "MIOpen's kernel names look like conv.cpp.o, conv.cl.o or conv.s.o",
            Self::Features(_) => {
                "no later MIOpen looks it up: take the keys from the log of a current one"
            }
            Self::Device(_) => {
                "MIOpen appends the device to the options of every kernel; take the key from its log \
                 or database unchanged"
            }
        }
    }
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hip, Self::OpenclC, Self::Assembly];

    /// The language of a source file, by its extension.
    pub fn of_source(file_name: &str) -> Option<Self> {
        let (stem, extension) = file_name.rsplit_once('.')?;
        match extension {
            _ if stem.is_empty() => None,
            "cpp" => Some(Self::Hip),
            "cl" => Some(Self::OpenclC),
            "s" => Some(Self::Assembly),
            _ => None,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hip => "HIP",
            Self::OpenclC => "OpenCL C",
            Self::Assembly => "assembly",
        })
    }
}

impl KernelKey {
    /// The key with which MIOpen looks up a source file built with `options`
    /// for `processor`.
    ///
    /// Options begin with a blank, as MIOpen writes them: keys are compared byte
    /// for byte. ` -mcpu=` with the processor is added here. So
    /// `("conv.cl", " -DX=1", "gfx90a")` gives the kernel `conv.cl.o` with the
    /// arguments ` -DX=1 -mcpu=gfx90a`.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `LoadBinary`/`SaveBinary` in binary_cache.cpp.
    pub fn for_source(source_file_name: &str, options: &str, processor: &str) -> Self {
        Self {
            kernel_name: format!("{source_file_name}.o"),
            kernel_args: format!("{options} -mcpu={processor}"),
        }
    }

    /// Names the key in a few bytes, where keys themselves would take too many.
    pub fn digest(&self) -> Digest {
        let hasher = Hasher::new("gfxpack key 1").field(self.kernel_name.as_bytes());
        hasher.field(self.kernel_args.as_bytes()).finish()
    }

    /// The source file's name: the kernel name without its last `.o`.
    pub fn source_name(&self) -> Option<&str> {
        self.kernel_name.strip_suffix(".o")
    }

    /// The processor after the last ` -mcpu=`, and the options before it.
    pub fn split_device(&self) -> Option<(&str, &str)> {
        let (options, device) = self.kernel_args.rsplit_once(" -mcpu=")?;
        let plain = !device.is_empty() && device.bytes().all(|b| b.is_ascii_alphanumeric());
        plain.then_some((options, device))
    }

    /// Whether the device has features, as `gfx90a:sramecc+:xnack-`: so MIOpen asked before 3.0.
    pub fn has_features(&self) -> bool {
        self.kernel_args.rsplit_once(" -mcpu=").is_some_and(|(_, device)| device.contains(':'))
    }

    /// The options, without the device; empty if there is no device.
    pub fn options(&self) -> &str {
        self.split_device().map_or("", |(options, _)| options)
    }

    /// Checks that MIOpen could find the key, and that it can be compiled. Returns
    /// the language of its source.
    ///
    /// # Errors
    /// [`KeyError`] for a `'` or NUL in either part, a name that is not a
    /// source's, or arguments without a device.
    pub fn check(&self) -> Result<Language, KeyError> {
        self.check_text()?;
        let is_path = self.kernel_name.contains(['/', '\\']);
        let language = self.source_name().filter(|_| !is_path).and_then(Language::of_source);
        let language = language.ok_or_else(|| KeyError::Name(self.kernel_name.clone()))?;
        match self.split_device() {
            Some(_) => Ok(language),
            None if self.has_features() => Err(KeyError::Features(self.kernel_name.clone())),
            None => Err(KeyError::Device(self.kernel_name.clone())),
        }
    }

    /// The part of [`KernelKey::check`] that applies to every row of a kdb,
    /// including those of unknown languages.
    ///
    /// # Errors
    /// [`KeyError::Quote`] or [`KeyError::Nul`].
    pub fn check_text(&self) -> Result<(), KeyError> {
        let holds = |c: char| self.kernel_name.contains(c) || self.kernel_args.contains(c);
        if holds('\'') {
            Err(KeyError::Quote(self.to_string()))
        } else if holds('\0') {
            Err(KeyError::Nul(self.to_string()))
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for KernelKey {
    /// For display, on one line: the name, a blank, then the arguments, with
    /// control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, args] = [&self.kernel_name, &self.kernel_args];
        let is_apart = name.is_empty() || args.is_empty() || args.starts_with(' ');
        let blank = if is_apart { "" } else { " " };
        let parts = [name, blank, args];
        for c in parts.into_iter().flat_map(str::chars) {
            if c.is_control() { write!(f, "{}", c.escape_default()) } else { f.write_char(c) }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, args: &str) -> KernelKey {
        KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() }
    }

    #[test]
    fn a_key_is_displayed_on_one_line() {
        let odd = key("a.cl.o", " -DX=\"ä\n::error::x\u{1b}[31m\r\" -mcpu=gfx906");
        let shown = "a.cl.o -DX=\"ä\\n::error::x\\u{1b}[31m\\r\" -mcpu=gfx906";
        assert_eq!(odd.to_string(), shown);
        assert_eq!(key("a.cl.o", "-DX").to_string(), "a.cl.o -DX");
    }

    #[test]
    fn for_source_keeps_the_options_unchanged() {
        let built = KernelKey::for_source("a.cl", "  -DX=1   -DY", "gfx906");
        assert_eq!(built, key("a.cl.o", "  -DX=1   -DY -mcpu=gfx906"));
        assert_eq!(built.split_device(), Some(("  -DX=1   -DY", "gfx906")));
        assert_eq!(KernelKey::for_source("a.s", "", "gfx906").kernel_args, " -mcpu=gfx906");
    }

    #[test]
    fn keys_that_miopen_could_not_find_are_rejected() {
        let check = |name: &str, args: &str| key(name, args).check();
        assert_eq!(check("a.cpp.o", " -DX=1 -mcpu=gfx906"), Ok(Language::Hip));
        assert!(matches!(check("a.cpp.o", " -DX='a' -mcpu=gfx906"), Err(KeyError::Quote(_))));
        assert!(matches!(check("a.cpp", " -mcpu=gfx906"), Err(KeyError::Name(_))));
        assert!(matches!(check("d/a.cpp.o", " -mcpu=gfx906"), Err(KeyError::Name(_))));
        assert!(matches!(check("a.f90.o", " -mcpu=gfx906"), Err(KeyError::Name(_))));
        assert!(matches!(check("a.cpp.o", " -DX=1"), Err(KeyError::Device(_))));
        assert!(matches!(check("a.cpp.o", " -DX\0 -mcpu=gfx906"), Err(KeyError::Nul(_))));
    }
}
