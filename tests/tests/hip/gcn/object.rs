//! Assembles with clang, and reads a code object's kernel: header, descriptor, metadata,
//! instructions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use gfxpack_model::compiler::{CompilerFacts, Program};
use gfxpack_model::{Language, TargetId, code_object};
use gfxpack_plan::arguments;
use gfxpack_plan::clock::Clock;
use tempfile::TempDir;

use super::super::build::{command, run};
use super::super::library;
use super::instruction::Instruction;

/// What distributions and AMD put before and after the tools' names; the first
/// of which all tools are there is taken.
const NAMES: &[(&str, &str)] = &[
    ("", "-15"),
    ("", "-16"),
    ("", "-17"),
    ("", "-18"),
    ("", "-19"),
    ("", "-20"),
    ("", "-21"),
    ("", "-22"),
    ("/opt/rocm/llvm/bin/", ""),
    ("", ""),
];

/// clang and the tools that belong to it.
pub(crate) struct Tools {
    prefix: &'static str,
    suffix: &'static str,
    directory: TempDir,
    assembled: AtomicUsize,
}

/// An assembled kernel.
pub(crate) struct Object {
    target: TargetId,
    bytes: Vec<u8>,
    metadata: String,
    pub(crate) code: Vec<Instruction>,
    pub(crate) entry: u64,
    kernel: String,
    descriptor_address: u64,
    descriptor: Vec<u8>,
}

impl Tools {
    /// Finds the tools.
    pub(crate) fn find() -> Result<Self> {
        let works = |&&(prefix, suffix): &&(&str, &str)| {
            ["clang", "llvm-objdump", "llvm-readelf"].iter().all(|tool| {
                run(command(format!("{prefix}{tool}{suffix}")).arg("--version")).is_ok()
            })
        };
        let &(prefix, suffix) = NAMES.iter().find(works).context(
            "failed to find clang, llvm-objdump and llvm-readelf of one version; \
             `cargo xtask test --setup` installs what tests need",
        )?;
        let directory = tempfile::tempdir().context("failed to create a directory to build in")?;
        Ok(Self { prefix, suffix, directory, assembled: AtomicUsize::new(0) })
    }

    fn run(&self, tool: &str, args: &[&str], file: &Path) -> Result<Vec<u8>> {
        run(command(format!("{}{tool}{}", self.prefix, self.suffix)).args(args).arg(file))
    }

    /// Assembles a source of the library as a build would.
    pub(crate) fn assemble(&self, source: &Path, options: &str, id: &TargetId) -> Result<Object> {
        let facts = CompilerFacts { hip_program: Program::Clang, hip_version: None };
        let main = library().join(source);
        let include = library().join("include").display().to_string();
        let own = arguments::parse(Language::Assembly, options)?;
        let (_, frame) = arguments::around_options(
            Language::Assembly,
            &own,
            id,
            &facts,
            &main.display().to_string(),
            &[include],
            &Clock::at(0),
        );
        let number = self.assembled.fetch_add(1, Ordering::Relaxed);
        let path: PathBuf = self.directory.path().join(number.to_string());
        let [before, after] = frame.parts();
        let mut args: Vec<&str> = before.iter().chain(own.iter()).chain(after.iter()).collect();
        args.push("-o");
        self.run("clang", &args, &path)?;

        let text = |bytes| String::from_utf8(bytes).context("failed to read a tool's output");
        let dumped = text(self.run("llvm-objdump", &["-s", "-d"], &path)?)?;
        let metadata = text(self.run("llvm-readelf", &["--notes"], &path)?)?;
        let (contents, disassembly) = dumped
            .split_once("Disassembly of section")
            .context("failed to find a disassembly in llvm-objdump's output")?;
        let (entry, kernel) = label(disassembly)?;
        let (descriptor_address, descriptor) = section(contents, ".rodata")?;
        let mut code = Vec::new();
        for line in disassembly.lines() {
            code.extend(Instruction::parse(line)?);
        }
        Ok(Object {
            target: arguments::compile_target(Language::Assembly, id),
            bytes: std::fs::read(&path).context("failed to read the code object")?,
            metadata,
            code,
            entry,
            kernel,
            descriptor_address,
            descriptor,
        })
    }
}

/// The address and name of the first label.
fn label(disassembly: &str) -> Result<(u64, String)> {
    disassembly
        .lines()
        .find_map(|line| {
            let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
            Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
        })
        .context("failed to find a label in the disassembly")
}

/// The address and bytes of a section: lines of an address, four groups of
/// hexadecimal digits, and the same as text.
fn section(contents: &str, name: &str) -> Result<(u64, Vec<u8>)> {
    let mut start = None;
    let mut bytes = Vec::new();
    let heading = format!("Contents of section {name}:");
    let lines = contents.lines().skip_while(|line| *line != heading).skip(1);
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let (address, rest) = line.trim_start().split_once(' ').context("failed to read a dump")?;
        start = start.or(u64::from_str_radix(address, 16).ok());
        let digits: String = rest.chars().take(35).filter(char::is_ascii_hexdigit).collect();
        for pair in digits.as_bytes().chunks(2) {
            bytes.push(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
        }
    }
    Ok((start.with_context(|| format!("failed to find {name}"))?, bytes))
}

impl Object {
    /// The number before the minor and stepping digits: 9, 10 or 11.
    pub(crate) fn generation(&self) -> u32 {
        let digits = self.target.processor().trim_start_matches("gfx");
        digits[..digits.len() - 2].parse().unwrap_or_default()
    }

    /// Lanes per wave, as the descriptor says.
    ///
    /// Source: LLVM, `AMDGPUUsage`, "Kernel Descriptor", bit 10 of the
    /// kernel code properties.
    pub(crate) fn lanes(&self) -> usize {
        if self.descriptor_u32(56) >> 10 & 1 == 1 { 32 } else { 64 }
    }

    fn descriptor_u32(&self, at: usize) -> u32 {
        let bytes = self.descriptor[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    }

    /// Bytes of the kernel's arguments, as the descriptor says.
    pub(crate) fn kernarg_bytes(&self) -> usize {
        self.descriptor_u32(8) as usize
    }

    /// A number of the kernel's metadata.
    pub(crate) fn metadata_number(&self, name: &str) -> Result<usize> {
        let value = self
            .metadata
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))
            .with_context(|| format!("failed to find {name} in the metadata"))?;
        Ok(value.trim().parse()?)
    }

    /// Vector registers that the descriptor allocates.
    ///
    /// Source: LLVM, `AMDGPUUsage`, `compute_pgm_rsrc1`,
    /// `GRANULATED_WORKITEM_VGPR_COUNT`.
    pub(crate) fn allocated_vectors(&self) -> usize {
        let granule = if self.lanes() == 32 || self.target.processor() == "gfx90a" { 8 } else { 4 };
        ((self.descriptor_u32(48) & 0x3f) as usize + 1) * granule
    }

    /// Scalar registers that the descriptor allocates, those with names of
    /// their own included; on gfx10 and later always all.
    ///
    /// Source: as above, `GRANULATED_WAVEFRONT_SGPR_COUNT`.
    pub(crate) fn allocated_scalars(&self) -> usize {
        if self.generation() >= 10 {
            return 106;
        }
        ((self.descriptor_u32(48) >> 6 & 0xf) as usize / 2 + 1) * 16
    }

    /// Whether header, descriptor and metadata agree with each other and with
    /// what was asked for.
    pub(crate) fn inspect(&self, group: u32) -> Result<()> {
        const ET_DYN: u16 = 3;
        ensure!(code_object::targets(&self.bytes)? == [self.target.clone()], "wrong target");
        ensure!(self.bytes[16..18] == ET_DYN.to_le_bytes(), "not linked: no shared object");
        ensure!(self.descriptor.len() == 64, "{} bytes of descriptor", self.descriptor.len());
        let entry = u64::from_le_bytes(self.descriptor[16..24].try_into()?);
        ensure!(
            self.descriptor_address.wrapping_add(entry) == self.entry,
            "the descriptor points elsewhere"
        );
        ensure!(self.entry.is_multiple_of(256), "the kernel begins at {:#x}", self.entry);

        // compute_pgm_rsrc2: no private segment, two user registers (the
        // arguments' address), the group's x and no other, the work-item's x.
        let rsrc2 = self.descriptor_u32(52);
        ensure!(rsrc2 & 1 == 0, "a private segment");
        ensure!(rsrc2 >> 1 & 0x1f == 2, "{} user registers", rsrc2 >> 1 & 0x1f);
        ensure!(rsrc2 >> 7 & 0x7 == 1, "group ids other than x alone");
        ensure!(rsrc2 >> 11 & 0x3 == 0, "work-item ids other than x alone");
        // Properties: of the user registers only the arguments' address.
        let properties = self.descriptor_u32(56) & 0xffff;
        ensure!(properties & 0x7f == 1 << 3, "user registers {properties:#x}");
        let wanted_lanes = if self.generation() >= 10 { 32 } else { 64 };
        ensure!(self.lanes() == wanted_lanes, "{} lanes", self.lanes());

        for (name, wanted) in [
            (".wavefront_size", self.lanes()),
            (".kernarg_segment_size", self.kernarg_bytes()),
            (".group_segment_fixed_size", self.descriptor_u32(0) as usize),
            (".private_segment_fixed_size", self.descriptor_u32(4) as usize),
            (".max_flat_workgroup_size", group as usize),
        ] {
            let declared = self.metadata_number(name)?;
            ensure!(declared == wanted, "{name} is {declared} in the metadata, should be {wanted}");
        }
        let names = [format!(".name:           {}", self.kernel), format!("{}.kd", self.kernel)];
        for name in names {
            ensure!(self.metadata.contains(&name), "failed to find `{name}` in the metadata");
        }
        let (vectors, scalars) =
            (self.metadata_number(".vgpr_count")?, self.metadata_number(".sgpr_count")?);
        ensure!(vectors <= self.allocated_vectors(), "{vectors} vector registers said");
        ensure!(scalars <= self.allocated_scalars(), "{scalars} scalar registers said");
        Ok(())
    }
}
