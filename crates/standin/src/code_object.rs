//! Recognises the object at an address: the stand-in's own bytes, an ELF file, or a clang offload
//! bundle.

use std::collections::BTreeSet;
use std::slice;

use object::{Object as _, ObjectSymbol as _};

use crate::simulated_gpu::gpu;

/// The size of the stand-in's objects.
pub(crate) const STAND_IN_BYTES: usize = 64;
/// The beginning of such an object; the number of its key follows.
const STAND_IN_MAGIC: &[u8; 24] = b"gfxpack stand-in object\0";

/// The beginning of an offload bundle.
///
/// Source: LLVM, clang "Clang Offload Bundler", bundled code object layout.
const BUNDLE_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// More entries or bytes than any compiler writes: limits for invalid headers.
const MAX_ENTRIES: u64 = 4096;
const MAX_BYTES: u64 = 1 << 30;

/// The kind of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// One of the stand-in's, with its number.
    StandIn(u64),
    /// A real one, with the names of its dynamic symbols.
    Real(BTreeSet<Vec<u8>>),
    /// Neither.
    Unknown,
}

/// The stand-in's object with that number.
pub(crate) fn stand_in(id: u64) -> [u8; STAND_IN_BYTES] {
    let mut bytes = [0; STAND_IN_BYTES];
    bytes[..STAND_IN_MAGIC.len()].copy_from_slice(STAND_IN_MAGIC);
    bytes[STAND_IN_MAGIC.len()..][..8].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// Reads an object whose size is only in its own headers.
///
/// # Safety
/// `start` must point to a whole object of a kind above, or to bytes that
/// differ from the magic numbers of all of them.
pub(crate) unsafe fn read(start: *const u8) -> Image {
    // SAFETY: each byte is read only if those before equal the magic number's.
    let byte = |at: usize| unsafe { start.add(at).read() };
    let begins = |magic: &[u8]| magic.iter().enumerate().all(|(at, &wanted)| byte(at) == wanted);
    if begins(STAND_IN_MAGIC) {
        // SAFETY: the stand-in's objects have that size.
        let bytes = unsafe { slice::from_raw_parts(start, STAND_IN_BYTES) };
        return Image::StandIn(u64_at(bytes, STAND_IN_MAGIC.len()));
    }
    let elf = if begins(object::elf::ELFMAG.as_slice()) {
        Some(start)
    } else if begins(BUNDLE_MAGIC) {
        // SAFETY: the bundle is complete by contract.
        unsafe { bundled(start) }
    } else {
        None
    };
    // SAFETY: the file is complete by contract.
    elf.and_then(|start| unsafe { functions(start) }).map_or(Image::Unknown, Image::Real)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The entry for the claimed processor.
///
/// # Safety
/// `start` must point to a whole offload bundle.
unsafe fn bundled(start: *const u8) -> Option<*const u8> {
    let processor = gpu()?.architecture.to_str().ok()?.split(':').next()?.to_owned();
    let mut at = BUNDLE_MAGIC.len();
    let mut next = |bytes: usize| {
        // SAFETY: the header is complete by contract, and `at` stays in it.
        let slice = unsafe { slice::from_raw_parts(start.add(at), bytes) };
        at += bytes;
        slice
    };
    let entries = u64_at(next(8), 0);
    for _ in 0..entries.min(MAX_ENTRIES) {
        let header = next(24);
        let (offset, size, id) = (u64_at(header, 0), u64_at(header, 8), u64_at(header, 16));
        if size > MAX_BYTES || offset > MAX_BYTES || id > 1024 {
            return None;
        }
        let id = String::from_utf8_lossy(next(usize::try_from(id).ok()?));
        let device = id.split_once("--").map_or("", |(_, device)| device);
        if device.split(':').next() == Some(&processor) && size > 0 {
            // SAFETY: the entry lies in the bundle by contract.
            return Some(unsafe { start.add(usize::try_from(offset).ok()?) });
        }
    }
    None
}

/// The names in the dynamic symbol table of an ELF file.
///
/// # Safety
/// `start` must point to a whole 64-bit ELF file.
unsafe fn functions(start: *const u8) -> Option<BTreeSet<Vec<u8>>> {
    const HEADER_BYTES: usize = 64;
    // SAFETY: the header is complete by contract.
    let header = unsafe { slice::from_raw_parts(start, HEADER_BYTES) };
    let number = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    // The section headers come last: e_shoff, e_shentsize and e_shnum give the end of the file.
    let end = u64_at(header, 0x28).checked_add(number(0x3a) * number(0x3c))?;
    if !(HEADER_BYTES as u64..MAX_BYTES).contains(&end) {
        return None;
    }
    // SAFETY: the file is complete by contract, and ends after its section headers.
    let bytes = unsafe { slice::from_raw_parts(start, usize::try_from(end).ok()?) };
    let file = object::File::parse(bytes).ok()?;
    let defined = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    Some(defined.filter_map(|symbol| symbol.name_bytes().ok().map(<[u8]>::to_vec)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_the_stand_in_keep_their_number() {
        let bytes = stand_in(u64::MAX - 5);
        // SAFETY: the bytes are a whole object.
        assert_eq!(unsafe { read(bytes.as_ptr()) }, Image::StandIn(u64::MAX - 5));
    }

    #[test]
    fn unknown_bytes_are_no_object() {
        for bytes in [&b"x"[..], b"gfxpack stand-in", b"\x7fEL", b"__CLANG_"] {
            let bytes = [bytes, b"!"].concat();
            // SAFETY: the last byte differs from every magic number.
            assert_eq!(unsafe { read(bytes.as_ptr()) }, Image::Unknown);
        }
    }

    #[test]
    fn functions_of_an_elf_file_are_its_dynamic_symbols() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // SAFETY: the file is whole; the linker put the section headers last.
        let Image::Real(functions) = (unsafe { read(bytes.as_ptr()) }) else { panic!("ELF") };
        assert!(!functions.contains(&b"no_such_function"[..]));
    }
}
