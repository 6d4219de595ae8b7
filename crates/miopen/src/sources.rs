//! The kernel sources in a libMIOpen, with the names that its keys use.
//!
//! Source: MIOpen 3.3 (2d1fd997a), src/CMakeLists.txt, `add_kernels`;
//! src/kernels/kernel.cpp.in and kernel_includes.cpp.in. The texts are data
//! symbols called after the file, in capitals and without its ending; the
//! names themselves are strings in a table that is built at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use gfxpack_model::{Error, Result, io_hint};
use gfxpack_stock_library::{ElfFile, Library};

const PREFIX: &str = "MIOPEN_KERNEL_";
const INCLUDE: &str = "_INCLUDE";
const SIZE: &str = "_SIZE";
/// A function that a library calls if it compiles with hipRTC.
const HIPRTC: &str = "hiprtcCompileProgram";
/// Text that hipRTC puts before a source; line numbers start after it.
///
/// Source: ROCm/MIOpen 2d1fd997a, comgr.cpp, where hipRTC is told
/// `-DMIOPEN_DONT_USE_HIP_RUNTIME_HEADERS`, so that no text includes it.
const RUNTIME_HEADER: &[u8] = b"#include <hip/hip_runtime.h>\n#line 1\n";

/// File extensions of kernels.
const KERNEL_ENDINGS: &[&str] = &["cl", "cpp", "s"];
/// File extensions of included files.
const INCLUDE_ENDINGS: &[&str] = &["h", "hpp", "inc"];

/// Includes are expanded up to this depth.
const DEPTH_MAX: usize = 32;

/// Kernel sources of one version of MIOpen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Kernels by file name: `naive_conv.cpp`. In `.cl` and `.s` files, includes are already
    /// expanded; a `.cpp` needs `includes`.
    pub kernels: BTreeMap<String, Vec<u8>>,
    /// Included files, by the name in the include.
    pub includes: BTreeMap<String, Vec<u8>>,
    /// Symbols of texts for which the library contains no file name, or several.
    pub unnamed: Vec<String>,
    /// Whether the library compiles HIP kernels with hipRTC.
    pub by_hiprtc: bool,
}

/// The error for a file or directory that can't be written.
fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let message = format!("failed to write `{}`", path.display());
        Error::internal(message, io_hint(&source)).caused_by(source)
    }
}

/// Whether Debian leaves a source out of its package of MIOpen: assembly, and files that it
/// includes, are not in the form that its authors edit.
///
/// Source: Debian, miopen 6.4.3+dfsg-1, debian/copyright, `Files-Excluded`.
pub fn is_left_out_by_debian(name: &str) -> bool {
    matches!(ending(name), "s" | "inc")
}

impl Sources {
    /// The sources in a library; empty if its symbols were stripped.
    pub fn in_library(library: &Library) -> Result<Self> {
        let open = ElfFile::open(&library.file)?;
        let symbols: BTreeMap<String, Vec<u8>> = open.data_symbols(PREFIX)?.into_iter().collect();
        let names = FileNames::among(&open.constants()?);
        let damaged = |stem: &str| {
            let file = library.file.display();
            let hint = "check that the libMIOpen is undamaged and may be read, or fetch it again";
            Error::internal(
                format!("failed to read the text `{PREFIX}{stem}` out of `{file}`"),
                hint,
            )
        };
        let object = open.shared_object()?;
        let by_hiprtc = object.undefined.iter().any(|symbol| symbol.name == HIPRTC);
        let mut sources = Self { by_hiprtc, ..Self::default() };
        let mut unsettled = Vec::new();
        for (stem, text) in &symbols {
            let Some(size) = symbols.get(&format!("{stem}{SIZE}")) else { continue };
            let size = size.as_slice().try_into().map(u64::from_le_bytes).ok();
            let size = size.and_then(|size| usize::try_from(size).ok());
            let text = size.and_then(|size| text.get(..size)).ok_or_else(|| damaged(stem))?;
            let mut found = names.for_symbol(stem);
            match found.len() {
                0 => sources.unnamed.push(format!("{PREFIX}{stem}")),
                1 => sources.add(found.remove(0), text),
                _ => unsettled.push((stem, found, text)),
            }
        }
        let included = sources.included();
        for (stem, names, text) in unsettled {
            // The name by which other texts include it is the right one.
            let mut used = names.into_iter().filter(|name| included.contains(name));
            match (used.next(), used.next()) {
                (Some(name), None) => sources.add(name, text),
                _ => sources.unnamed.push(format!("{PREFIX}{stem}")),
            }
        }
        Ok(sources)
    }

    /// Whether there is no kernel.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Writes all files into one directory, as MIOpen itself does to compile. Creates the directory
    /// if it is missing.
    pub fn write(&self, dir: &Path) -> Result {
        fs::create_dir_all(dir).map_err(unwritable(dir))?;
        for (name, text) in self.kernels.iter().chain(&self.includes) {
            let path = dir.join(name);
            fs::write(&path, text).map_err(unwritable(&path))?;
        }
        Ok(())
    }

    /// As [`Self::write`], for a compiler that is started with a file. hipRTC adds HIP's runtime
    /// header before a text, so the texts of a library that uses it need not include the header;
    /// here it is added.
    pub fn write_to_compile(&self, dir: &Path) -> Result {
        self.write(dir)?;
        let hip = |(name, _): &(&String, &Vec<u8>)| self.by_hiprtc && ending(name) == "cpp";
        for (name, text) in self.kernels.iter().filter(hip) {
            let path = dir.join(name);
            fs::write(&path, [RUNTIME_HEADER, text].concat()).map_err(unwritable(&path))?;
        }
        Ok(())
    }

    /// The files that differ from those of another tree, whose files `other` reads by name. Empty
    /// lines are ignored, and includes in `.cl` and `.s` files are expanded, as they are in a
    /// library.
    pub fn differing(&self, other: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
        let files = self.kernels.iter().chain(&self.includes);
        let differing = files.filter(|(name, text)| {
            let Some(theirs) = other(name) else { return false };
            let theirs = match ending(name) {
                "cl" | "s" => expanded(&theirs, &other, DEPTH_MAX),
                _ => theirs,
            };
            !lines(text).eq(lines(&theirs))
        });
        differing.map(|(name, _)| name.clone()).collect()
    }

    fn add(&mut self, name: String, text: &[u8]) {
        let files = if KERNEL_ENDINGS.contains(&ending(&name)) {
            &mut self.kernels
        } else {
            &mut self.includes
        };
        files.insert(name, text.to_vec());
    }

    /// The names in all `#include "…"` of the texts.
    fn included(&self) -> BTreeSet<String> {
        let texts = self.kernels.values().chain(self.includes.values());
        let names = texts.flat_map(|text| text.split(|byte| *byte == b'\n')).filter_map(included);
        names.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect()
    }
}

/// Strings in a library that could be names of its sources.
struct FileNames(BTreeSet<String>);

impl FileNames {
    /// All strings that end like a source, back to a character that no file name contains.
    fn among(constants: &[u8]) -> Self {
        let mut names = BTreeSet::new();
        for text in constants.split(|byte| *byte == 0) {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(byte);
            let from = text.iter().rposition(|byte| !plain(byte)).map_or(0, |at| at + 1);
            let Ok(name) = std::str::from_utf8(&text[from..]) else { continue };
            if [KERNEL_ENDINGS, INCLUDE_ENDINGS].concat().contains(&ending(name)) {
                names.insert(name.to_owned());
            }
        }
        Self(names)
    }

    /// The names of the text whose symbol is `stem`.
    fn for_symbol(&self, stem: &str) -> Vec<String> {
        let include = stem.strip_suffix(INCLUDE).map(|stem| self.matching(stem, INCLUDE_ENDINGS));
        include
            .filter(|names| !names.is_empty())
            .unwrap_or_else(|| self.matching(stem, KERNEL_ENDINGS))
    }

    /// Whole strings count before ends of longer ones, since a linker stores `naive_conv.cpp` only
    /// as the end of `fp8_naive_conv.cpp`.
    fn matching(&self, stem: &str, endings: &[&str]) -> Vec<String> {
        let (mut whole, mut ends) = (BTreeSet::new(), BTreeSet::new());
        for name in self.0.iter().filter(|name| endings.contains(&ending(name))) {
            let base = name.split('.').next().unwrap_or(name);
            let Some(before) = base.len().checked_sub(stem.len()) else { continue };
            if !stem.is_empty() && identifier(&base[before..]) == stem {
                let found = if before == 0 { &mut whole } else { &mut ends };
                found.insert(name[before..].to_owned());
            }
        }
        if whole.is_empty() { ends } else { whole }.into_iter().collect()
    }
}

/// Source: CMake, `string(TOUPPER)` and `string(MAKE_C_IDENTIFIER)`.
fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The file that a line includes in quotes.
fn included(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let rest = match line.strip_prefix('#') {
        Some(rest) => rest.trim_start().strip_prefix("include")?,
        None => line.strip_prefix(".include")?,
    };
    rest.trim_start().strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

/// A text with its includes expanded.
///
/// Source: what MIOpen 3.4.0 carries, compared with the tree of 3.3: 34 of 51
/// `.cl` come out alike, the others were changed.
fn expanded(text: &[u8], read: &impl Fn(&str) -> Option<Vec<u8>>, depth: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let inner = included(line).filter(|_| depth > 0).and_then(read);
        match inner {
            Some(inner) => {
                out.extend(expanded(&inner, read, depth - 1));
                out.push(b'\n');
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// The lines that are not empty.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_that_hiprtc_adds_is_put_before_kernels() {
        let text = |name: &str| (name.to_owned(), name.as_bytes().to_vec());
        let kernels: BTreeMap<_, _> = [text("a.cpp"), text("b.cl")].into();
        let includes: BTreeMap<_, _> = [text("c.hpp")].into();
        for (by_hiprtc, expected) in
            [(true, "#include <hip/hip_runtime.h>\n#line 1\na.cpp"), (false, "a.cpp")]
        {
            let sources = Sources {
                kernels: kernels.clone(),
                includes: includes.clone(),
                unnamed: vec![],
                by_hiprtc,
            };
            let dir = tempfile::tempdir().unwrap();
            sources.write_to_compile(dir.path()).unwrap();
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
            assert_eq!((read("a.cpp").as_str(), read("b.cl").as_str()), (expected, "b.cl"));
            assert_eq!(read("c.hpp"), "c.hpp");
        }
    }

    #[test]
    fn names_are_found_among_the_strings_of_the_library() {
        let constants = b"\0fp8_naive_conv.cpp\0src/solver/conv_direct.cpp\0math.hpp\0math.h\0\
            static_kernel_Config.hpp\0config.hpp\0Gemm.cl\0x: gemm.s\0no.txt\0#include \"a.hpp\"\0";
        let names = FileNames::among(constants);
        let check = |stem: &str, expected: &[&str]| {
            let found = names.for_symbol(stem);
            assert_eq!(found, expected, "{stem}");
        };
        check("NAIVE_CONV", &["naive_conv.cpp"]);
        check("FP8_NAIVE_CONV", &["fp8_naive_conv.cpp"]);
        check("CONV_DIRECT", &["conv_direct.cpp"]);
        check("CONFIG_INCLUDE", &["config.hpp"]);
        check("STATIC_KERNEL_CONFIG_INCLUDE", &["static_kernel_Config.hpp"]);
        check("MATH_INCLUDE", &["math.h", "math.hpp"]);
        check("GEMM", &["Gemm.cl", "gemm.s"]);
        check("A_INCLUDE", &[]);
        check("NO", &[]);
        check("", &[]);
    }

    #[test]
    fn includes_of_a_cl_file_are_expanded() {
        let tree = BTreeMap::from([
            ("a.cl", "\n#include \"types.h\"\n#include <math.h>\nkernel void a();\n"),
            ("types.h", "#include \"half.h\"\ntypedef int t;\n"),
            ("half.h", "typedef short h;\n"),
            ("b.cpp", "#include \"types.h\"\n"),
            ("c.cl", "kernel void c();\n"),
        ]);
        let library = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        let kernels = BTreeMap::from([
            library(
                "a.cl",
                "typedef short h;\n\ntypedef int t;\n\n#include <math.h>\nkernel void a();\n",
            ),
            library("b.cpp", "#include \"types.h\"\n"),
            library("c.cl", "kernel void c(int);\n"),
            library("d.cl", "kernel void d();\n"),
        ]);
        let sources = Sources { kernels, ..Sources::default() };
        let read = |name: &str| tree.get(name).map(|text| text.as_bytes().to_vec());
        assert_eq!(sources.differing(read), ["c.cl"]);
    }
}
