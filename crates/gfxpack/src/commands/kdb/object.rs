//! `kdb disasm|symbols`: what is in one code object.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

use gfxpack_model::{KernelKey, Language, code_object};
use gfxpack_pipeline::cache::Cache;
use gfxpack_pipeline::error::Error;
use gfxpack_pipeline::options::Purpose;
use gfxpack_toolchain::Disassembler;
use object::elf::{FileHeader64, SHN_UNDEF};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolFlags};
use serde_json::{Value, json};

use crate::args::{CacheArgs, MaxObject, SelectObject, ToolchainArgs};
use crate::environment::Environment;
use crate::fail::{self, Failure, Result};
use crate::options::{cache_options, search};
use crate::output::Output;

/// Notes of a code object that hold what its kernels need: MessagePack since
/// code object version 3, YAML in version 2.
///
/// Source: LLVM, `AMDGPUUsage`, "ELF Note Records".
const NT_AMDGPU_METADATA: (&[u8], u32) = (b"AMDGPU", 32);
const NT_AMD_HSA_METADATA: (&[u8], u32) = (b"AMD", 10);

/// Types of symbols; the last is that of kernels in code object version 2.
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// The code object of one kernel.
///
/// # Errors
/// Where the file can't be read, or does not have it.
pub(super) fn find(select: &SelectObject, max_object: MaxObject) -> Result<Vec<u8>> {
    let SelectObject { file, name, args } = select;
    let key = KernelKey { kernel_name: name.clone(), kernel_args: args.clone() };
    let found = super::open(file, max_object)?.get(&key)?;
    found.ok_or_else(|| {
        let (key, file) = (Box::new(key), file.clone());
        Error::NoSuchKernel { key, file }.into()
    })
}

/// What is wrong with a code object that a kdb has.
fn unreadable(select: &SelectObject, error: impl std::fmt::Display) -> Failure {
    fail::usage(
        format!("failed to read the code object of `{}`: {error}", select.name),
        "`gfxpack kdb verify` says what else is wrong with the file",
    )
}

/// Prints the disassembly.
pub(super) fn disasm(
    select: &SelectObject,
    max_object: MaxObject,
    args: &ToolchainArgs,
    cache: &CacheArgs,
    environment: &Environment,
    output: &Output,
) -> Result {
    let bytes = find(select, max_object)?;
    let files = code_object::elf_files(&bytes).map_err(|error| unreadable(select, error))?;
    let cancel = crate::commands::cancel_on_signal(output)?;
    let search = search(args, environment);
    let cache = Cache::open_for(&cache_options(cache, environment)?, Purpose::Look)?;
    let toolchain = cache.toolchains(&search, &cancel).and_then(|mut found| {
        // Any of them tells where LLVM is; that for assembly needs least.
        found.choose(&files[0].0, &BTreeSet::from([Language::Assembly]))
    });
    let toolchain = match toolchain {
        Ok(toolchain) => Some(toolchain),
        Err(error) if !args.hipcc.is_empty() || !args.clang.is_empty() => return Err(error.into()),
        // The disassembler may be there without the compiler.
        Err(_) => None,
    };
    let disassembler = Disassembler::find(&search, toolchain.as_ref())?;
    for (target, file) in files {
        let text = disassembler.run(file, target.processor(), &cancel)?;
        // The scratch file's name says nothing.
        let lines = BufReader::new(text).split(b'\n').skip_while(|line| {
            line.as_ref().is_ok_and(|line| line.is_empty() || line.starts_with(b"kernel.o:"))
        });
        if !output.json {
            output.data(&format!("# {} for {target}", select.name));
        }
        for line in lines {
            let line = line.map_err(fail::io("read", Path::new("the disassembly")))?;
            let line = String::from_utf8_lossy(&line);
            if output.json {
                output.message("line", &json!({ "target": target.to_string(), "text": line }));
            } else {
                output.data(&line);
            }
            if output.is_broken() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Prints symbols and what kernels need.
pub(super) fn symbols(select: &SelectObject, max_object: MaxObject, output: &Output) -> Result {
    let bytes = find(select, max_object)?;
    let files = code_object::elf_files(&bytes).map_err(|error| unreadable(select, error))?;
    for (target, file) in files {
        let found = read(file).map_err(|error| unreadable(select, error))?;
        if output.json {
            let body = json!({
                "target": target.to_string(), "symbols": found.symbols, "metadata": found.metadata,
            });
            output.message("symbols", &body);
            continue;
        }
        output.data(&format!("{} for {target}, {} bytes", select.name, file.len()));
        for kernel in found.kernels() {
            output.data(&format!("  {kernel}"));
        }
        if let Value::String(yaml) = &found.metadata {
            yaml.lines().for_each(|line| output.data(&format!("  {line}")));
        }
        output.data(&format!("  {:>18} {:>9}  {:<8} symbol", "address", "bytes", "kind"));
        for Symbol { name, kind, address, size } in &found.symbols {
            output.data(&format!("  {address:#018x} {size:>9}  {kind:<8} {name}"));
        }
    }
    Ok(())
}

#[derive(Debug, serde::Serialize)]
struct Symbol {
    name: String,
    kind: &'static str,
    address: u64,
    size: u64,
}

struct Found {
    symbols: Vec<Symbol>,
    /// What the note says; a string where it is YAML, null where there is none.
    metadata: Value,
}

impl Found {
    /// A line for each kernel that the metadata describes.
    fn kernels(&self) -> Vec<String> {
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
                // What most kernels have none of is told where it is not so.
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

fn read(bytes: &[u8]) -> Result<Found, object::Error> {
    let file = ElfFile64::<LittleEndian>::parse(bytes)?;
    let mut symbols: Vec<Symbol> = Vec::new();
    // Stripped objects have the dynamic ones alone.
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
    Ok(Found { symbols, metadata: metadata(bytes)? })
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
