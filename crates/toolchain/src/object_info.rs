//! The content of a code object: its symbols, and the resources of its kernels.

use object::elf::{FileHeader64, SHN_UNDEF};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolFlags};
use serde::Serialize;
use serde_json::Value;

/// Notes with the resources of a code object's kernels: MessagePack since code object version 3,
/// YAML in version 2.
///
/// Source: LLVM, `AMDGPUUsage`, "ELF Note Records".
const NT_AMDGPU_METADATA: (&[u8], u32) = (b"AMDGPU", 32);
const NT_AMD_HSA_METADATA: (&[u8], u32) = (b"AMD", 10);

/// Types of symbols; the last is that of kernels in code object version 2.
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// A function, a kernel or an object of a code object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// `function`, `object`, or `kernel` in code object version 2.
    pub kind: &'static str,
    /// Its address when loaded.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// The symbols and metadata of a code object.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// The symbols that it defines, by address.
    pub symbols: Vec<Symbol>,
    /// The metadata of its kernels; a string if it is YAML, null if there is none.
    pub metadata: Value,
}

/// A code object that can't be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ObjectInfoError(#[from] object::Error);

impl ObjectInfo {
    /// Reads an ELF file for one processor.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, ObjectInfoError> {
        Ok(Self { symbols: symbols(bytes)?, metadata: metadata(bytes)? })
    }

    /// One line for each kernel in the metadata, with its registers and memory.
    #[must_use]
    pub fn kernels(&self) -> Vec<String> {
        let kernels = self.metadata.get("amdhsa.kernels").and_then(Value::as_array);
        let line = |kernel: &Value| {
            let number = |name: &str| kernel.get(name).and_then(Value::as_u64);
            let mut line = kernel.get(".name").and_then(Value::as_str).unwrap_or("?").to_owned();
            for (label, name) in [
                ("VGPRs", ".vgpr_count"),
                ("AGPRs", ".agpr_count"),
                ("SGPRs", ".sgpr_count"),
                ("bytes LDS", ".group_segment_fixed_size"),
                ("bytes scratch", ".private_segment_fixed_size"),
                ("bytes of arguments", ".kernarg_segment_size"),
                ("spilled VGPRs", ".vgpr_spill_count"),
            ] {
                // These are zero for most kernels, and then left out.
                let usual = matches!(name, ".agpr_count" | ".vgpr_spill_count");
                if let Some(number) = number(name).filter(|number| !usual || *number > 0) {
                    line.push_str(&format!(", {number} {label}"));
                }
            }
            if let Some(lanes) = number(".wavefront_size") {
                line.push_str(&format!(", wave{lanes}"));
            }
            line
        };
        kernels.into_iter().flatten().map(line).collect()
    }
}

fn symbols(bytes: &[u8]) -> Result<Vec<Symbol>, object::Error> {
    let file = ElfFile64::<LittleEndian>::parse(bytes)?;
    let mut symbols: Vec<Symbol> = Vec::new();
    // Stripped objects have only dynamic symbols.
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let kind = match st_info & 0xf {
            STT_FUNC => "function",
            STT_OBJECT => "object",
            STT_AMDGPU_HSA_KERNEL => "kernel",
            _ => continue,
        };
        if symbol.elf_symbol().st_shndx.get(LittleEndian) == SHN_UNDEF {
            continue;
        }
        let name = symbol.name().unwrap_or("?").to_owned();
        if !symbols.iter().any(|known| known.name == name && known.address == symbol.address()) {
            symbols.push(Symbol { name, kind, address: symbol.address(), size: symbol.size() });
        }
    }
    symbols.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    Ok(symbols)
}

/// The note that describes the kernels, from the segments or, in relocatable
/// objects, from the sections.
fn metadata(bytes: &[u8]) -> Result<Value, object::Error> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let segments = header.program_headers(endian, bytes)?;
    let sections = header.section_headers(endian, bytes)?;
    let of_segments = segments.iter().filter_map(|segment| segment.notes(endian, bytes).ok()?);
    let of_sections = sections.iter().filter_map(|section| section.notes(endian, bytes).ok()?);
    for mut notes in of_segments.chain(of_sections) {
        while let Some(note) = notes.next()? {
            let kind = (note.name(), note.n_type(endian));
            if kind == NT_AMDGPU_METADATA {
                return Ok(rmp_serde::from_slice(note.desc()).unwrap_or(Value::Null));
            }
            if kind == NT_AMD_HSA_METADATA {
                let text = String::from_utf8_lossy(note.desc());
                return Ok(text.trim_end_matches('\0').into());
            }
        }
    }
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kernels_are_listed_with_registers_and_memory() {
        let kernels = json!({ "amdhsa.kernels": [
            {
                ".name": "conv", ".vgpr_count": 24, ".sgpr_count": 30, ".agpr_count": 0,
                ".group_segment_fixed_size": 1024, ".wavefront_size": 64,
            },
            { ".vgpr_spill_count": 2 },
        ] });
        let info = ObjectInfo { symbols: Vec::new(), metadata: kernels };
        let lines = ["conv, 24 VGPRs, 30 SGPRs, 1024 bytes LDS, wave64", "?, 2 spilled VGPRs"];
        assert_eq!(info.kernels(), lines);
    }

    #[test]
    fn what_is_no_code_object_is_an_error() {
        assert!(ObjectInfo::read(b"\x7fELF").is_err());
    }
}
