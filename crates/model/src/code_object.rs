//! Reads compiled kernels: ELF code objects and clang offload bundles, and the
//! gfx targets in their headers.

use crate::processors;
use crate::target::TargetId;

/// First bytes of a clang offload bundle.
///
/// Source: LLVM, clang "Clang Offload Bundler", bundled code object layout.
pub const BUNDLE_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Largest code object, in bytes, that is compiled, stored in a kdb or read,
/// unless a reader sets another limit: 256 MiB. Those of MIOpen's kernels stay
/// below 32 MiB.
pub const MAX_BYTES: u64 = 256 << 20;
const ELF_MAGIC: &[u8; 4] = b"\x7fELF";
const EM_AMDGPU: u16 = 0xe0;
/// More entries than any compiler writes: limits the effect of a bad header.
const MAX_BUNDLE_ENTRIES: u64 = 4096;

/// Why bytes are not a code object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// The bytes begin with neither magic.
    #[error("failed to recognise a code object: {0} bytes, neither ELF nor an offload bundle")]
    Unknown(usize),
    /// The header or a bundle entry points outside the bytes.
    #[error("failed to read the {0}: it is cut short")]
    Truncated(&'static str),
    /// An ELF file for another machine.
    #[error("failed to accept the ELF file: machine {0:#x} is not AMDGPU (0xe0)")]
    Machine(u16),
    /// A processor number that is not in the table.
    #[error("failed to name the gfx target of the ELF file: unknown processor number {0:#x}")]
    Processor(u32),
    /// A bundle without any AMDGPU code object in it.
    #[error("failed to find a code object in the offload bundle")]
    EmptyBundle,
}

/// Why a device can't load the bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// More bytes than [`MAX_BYTES`].
    #[error("failed to take the code object: it has {0} bytes, the limit is {MAX_BYTES}")]
    TooLarge(u64),
    /// The bytes are not a code object.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// The code is for other devices.
    #[error("the code object is for {}, not {needed}", spelled(.found))]
    OtherTarget {
        /// The targets of the code.
        found: Vec<TargetId>,
        /// The target that should load it.
        needed: TargetId,
    },
}

/// Target IDs separated by commas; only the first few if a bundle has very
/// many.
pub fn spelled(ids: &[TargetId]) -> String {
    const SHOWN: usize = 20;
    ids.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The devices that search a kdb of this target. Devices with XNACK on look for
/// another file name, so unspecified XNACK means off.
///
/// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::InitDbId`.
pub fn loaded_by(id: &TargetId) -> TargetId {
    let has_xnack = processors::by_name(id.processor()).is_some_and(|known| known.xnack);
    let xnack = id.xnack().or(has_xnack.then_some(false));
    id.clone().with_features(id.sramecc(), xnack)
}

/// Checks that a device can load the bytes. Used for what a compiler made
/// before it is kept, and for every row of a kdb, with the result of
/// [`loaded_by`] for the kdb's target.
pub fn check(bytes: &[u8], device: &TargetId) -> Result<(), UnfitError> {
    let found = targets(bytes)?;
    if found.iter().any(|target| target.serves(device)) {
        Ok(())
    } else {
        Err(UnfitError::OtherTarget { found, needed: device.clone() })
    }
}

/// The same for bytes that go into a kdb of `target`; checks their size too.
pub fn check_for_kdb(bytes: &[u8], target: &TargetId) -> Result<(), UnfitError> {
    let size = bytes.len() as u64;
    if size > MAX_BYTES {
        return Err(UnfitError::TooLarge(size));
    }
    check(bytes, &loaded_by(target))
}

/// Whether the bytes begin like a code object or a bundle.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC) || bytes.starts_with(BUNDLE_MAGIC)
}

/// The gfx targets of the code in the bytes: one for an ELF code object, one
/// per device entry for an offload bundle.
pub fn targets(bytes: &[u8]) -> Result<Vec<TargetId>, CodeObjectError> {
    Ok(elf_files(bytes)?.into_iter().map(|(target, _)| target).collect())
}

/// The ELF code objects in the bytes, each with its gfx target.
pub fn elf_files(bytes: &[u8]) -> Result<Vec<(TargetId, &[u8])>, CodeObjectError> {
    if bytes.starts_with(ELF_MAGIC) {
        return Ok(vec![(elf_target(bytes)?, bytes)]);
    }
    if !bytes.starts_with(BUNDLE_MAGIC) {
        return Err(CodeObjectError::Unknown(bytes.len()));
    }
    let mut files = Vec::new();
    let mut at = BUNDLE_MAGIC.len();
    let entries = u64_at(bytes, &mut at)?;
    for _ in 0..entries.min(MAX_BUNDLE_ENTRIES) {
        let offset = u64_at(bytes, &mut at)?;
        let size = u64_at(bytes, &mut at)?;
        let id_len = u64_at(bytes, &mut at)?;
        slice(bytes, at as u64, id_len)?;
        at += id_len as usize;
        let entry = slice(bytes, offset, size)?;
        // Host entries are empty or for the host's machine.
        if entry.starts_with(ELF_MAGIC) && elf_machine(entry)? == EM_AMDGPU {
            files.push((elf_target(entry)?, entry));
        }
    }
    if files.is_empty() { Err(CodeObjectError::EmptyBundle) } else { Ok(files) }
}

fn slice(bytes: &[u8], offset: u64, size: u64) -> Result<&[u8], CodeObjectError> {
    let start = usize::try_from(offset).ok();
    let end = offset.checked_add(size).and_then(|end| usize::try_from(end).ok());
    start
        .zip(end)
        .and_then(|(start, end)| bytes.get(start..end))
        .ok_or(CodeObjectError::Truncated("offload bundle"))
}

fn u64_at(bytes: &[u8], at: &mut usize) -> Result<u64, CodeObjectError> {
    let field = slice(bytes, *at as u64, 8)?;
    *at += 8;
    Ok(u64::from_le_bytes(field.try_into().expect("eight bytes")))
}

fn elf_machine(elf: &[u8]) -> Result<u16, CodeObjectError> {
    let field = elf.get(18..20).ok_or(CodeObjectError::Truncated("ELF header"))?;
    Ok(u16::from_le_bytes(field.try_into().expect("two bytes")))
}

/// Parses `e_flags`, whose feature bits changed with code object version 4.
///
/// Source: LLVM, `AMDGPUUsage`, "ELF header", `e_flags` for V3 and for V4 on.
fn elf_target(elf: &[u8]) -> Result<TargetId, CodeObjectError> {
    // The 64-byte header of ELFCLASS64; code objects have no other class.
    if elf.len() < 64 {
        return Err(CodeObjectError::Truncated("ELF header"));
    }
    let machine = elf_machine(elf)?;
    if machine != EM_AMDGPU {
        return Err(CodeObjectError::Machine(machine));
    }
    const ABI_VERSION_V4: u8 = 2;
    let flags = u32::from_le_bytes(elf[48..52].try_into().expect("four bytes"));
    let mach = flags & 0xff;
    let processor = processors::by_mach(mach).ok_or(CodeObjectError::Processor(mach))?;
    let (xnack, sramecc) = if elf[8] >= ABI_VERSION_V4 {
        let feature = |bits: u32| match bits & 3 {
            2 => Some(false),
            3 => Some(true),
            _ => None,
        };
        (feature(flags >> 8), feature(flags >> 10))
    } else {
        let feature = |supported: bool, bit: u32| supported.then_some(flags & bit != 0);
        (feature(processor.xnack, 0x100), feature(processor.sramecc, 0x200))
    };
    Ok(TargetId::new(processor.name).with_features(sramecc, xnack))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(abi_version: u8, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(ELF_MAGIC);
        bytes[8] = abi_version;
        bytes[18..20].copy_from_slice(&EM_AMDGPU.to_le_bytes());
        bytes[48..52].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut header = BUNDLE_MAGIC.to_vec();
        header.extend((entries.len() as u64).to_le_bytes());
        let mut offset = header.len() + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
        for (id, body) in entries {
            for number in [offset, body.len(), id.len()] {
                header.extend((number as u64).to_le_bytes());
            }
            header.extend(id.as_bytes());
            offset += body.len();
        }
        header.extend(entries.iter().flat_map(|(_, body)| body.iter()));
        header
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let ids: Vec<String> = targets(bytes).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(ids.join(" "), expected);
    }

    #[test]
    fn the_flags_give_the_target() {
        check(&elf(2, 0x52f), "gfx906");
        check(&elf(2, 0x63f), "gfx90a:xnack-");
        check(&elf(3, 0xb3f), "gfx90a:sramecc-:xnack+");
        check(&elf(2, 0x36), "gfx1030");
        check(&elf(1, 0x22f), "gfx906:sramecc+:xnack-");
    }

    #[test]
    fn the_entries_of_a_bundle_give_its_targets() {
        let code = elf(2, 0x36);
        check(
            &bundle(&[
                ("host-x86_64-unknown-linux--", b""),
                ("hipv4-amdgcn-amd-amdhsa--gfx1030", &code),
            ]),
            "gfx1030",
        );
        let empty = bundle(&[("host-x86_64-unknown-linux--", b"")]);
        assert_eq!(targets(&empty), Err(CodeObjectError::EmptyBundle));
    }

    #[test]
    fn check_for_kdb_accepts_what_its_devices_can_load() {
        let fits = |bytes: &[u8], target: &str| check_for_kdb(bytes, &target.parse().unwrap());
        let any = elf(2, 0x52f);
        for target in ["gfx906", "gfx906:xnack+", "gfx906:xnack-"] {
            assert_eq!(fits(&any, target), Ok(()), "{target}");
        }
        // Version 3 has no "any": a compiler without a setting turns XNACK on.
        let version_3 = elf(1, 0x32f);
        let refused = fits(&version_3, "gfx906").unwrap_err();
        let expected = "the code object is for gfx906:sramecc+:xnack+, not gfx906:xnack-";
        assert_eq!(refused.to_string(), expected);
        assert_eq!(fits(&version_3, "gfx906:xnack+"), Ok(()));
        assert_eq!(super::check(&version_3, &TargetId::new("gfx906")), Ok(()), "on some of them");
        let two = bundle(&[("a", &elf(2, 0x36)), ("b", &any)]);
        assert_eq!(fits(&two, "gfx906"), Ok(()));
        assert!(matches!(fits(&two, "gfx908"), Err(UnfitError::OtherTarget { .. })));
        assert!(matches!(fits(b"x", "gfx906"), Err(UnfitError::CodeObject(_))));
        let large = vec![0; usize::try_from(MAX_BYTES).unwrap() + 1];
        assert_eq!(fits(&large, "gfx906"), Err(UnfitError::TooLarge(MAX_BYTES + 1)));
    }

    #[test]
    fn every_truncation_is_an_error_without_panic() {
        let whole = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx1030", &elf(2, 0x36))]);
        for length in 0..whole.len() {
            assert!(targets(&whole[..length]).is_err(), "cut at {length}");
        }
        let mut huge = whole;
        huge[24..32].fill(0xff);
        assert!(targets(&huge).is_err());
        assert!(matches!(targets(&elf(2, 0xff)), Err(CodeObjectError::Processor(0xff))));
    }
}
