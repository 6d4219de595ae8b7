//! The parts of an ELF file that decide where its bytes are: program headers, sections,
//! relocations.
//!
//! Source: System V ABI, "Object Files", "Program Loading and Dynamic Linking".

use crate::bytes::{Bytes, u16_at, u32_at, u64_at};
use crate::error::{Error, layout};

pub(crate) const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
pub(crate) const PF_W: u32 = 2;
pub(crate) const SHT_SYMTAB: u32 = 2;
pub(crate) const SHT_NOBITS: u32 = 8;
pub(crate) const SHT_DYNSYM: u32 = 11;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_REL: u64 = 17;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_ANDROID_REL: u64 = 0x6000_000f;
const DT_ANDROID_RELA: u64 = 0x6000_0011;

pub(crate) const HEADER: u64 = 64;
pub(crate) const SEGMENT: u64 = 56;
pub(crate) const SECTION: u64 = 64;
pub(crate) const SYMBOL: u64 = 24;
const RELA: u64 = 24;
/// Entries of a table that are read at once.
const CHUNK: u64 = 64 << 10;

/// A machine that programs run on, and its relocations of whole addresses.
#[derive(Debug, Clone, Copy)]
struct Machine {
    number: u16,
    relative: u32,
    absolute: u32,
}

/// Source: the ABI supplements of x86-64, AArch64, OpenPOWER and RISC-V.
const MACHINES: [Machine; 4] = [
    Machine { number: 62, relative: 8, absolute: 1 },
    Machine { number: 183, relative: 1027, absolute: 257 },
    Machine { number: 21, relative: 22, absolute: 38 },
    Machine { number: 243, relative: 3, absolute: 2 },
];

/// A program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) physical: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) alignment: u64,
}

impl Segment {
    fn parse(bytes: &[u8]) -> Self {
        let number = |index: usize| u64_at(bytes, 8 + 8 * index);
        Self {
            kind: u32_at(bytes, 0),
            flags: u32_at(bytes, 4),
            offset: number(0),
            address: number(1),
            physical: number(2),
            file_size: number(3),
            memory_size: number(4),
            alignment: number(5),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(self.kind.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        for number in [
            self.offset,
            self.address,
            self.physical,
            self.file_size,
            self.memory_size,
            self.alignment,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.kind == PT_LOAD
    }

    pub(crate) fn file_end(&self) -> u64 {
        self.offset + self.file_size
    }

    pub(crate) fn memory_end(&self) -> u64 {
        self.address + self.memory_size
    }
}

/// A section header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    /// Its bytes in the file.
    pub(crate) fn file_size(&self) -> u64 {
        if self.kind == SHT_NOBITS { 0 } else { self.size }
    }
}

/// A relocation of a whole address.
pub(crate) struct Relocation {
    /// Where the address goes.
    pub(crate) place: u64,
    /// Where its addend is in the file, unless it is at its place.
    pub(crate) addend_at: Option<u64>,
    /// The address, or what is added to the symbol's.
    pub(crate) value: u64,
    pub(crate) symbol: u32,
}

/// Tables of an ELF file of 64 bits for a machine that programs run on.
#[derive(Debug, Clone)]
pub(crate) struct Elf {
    machine: Machine,
    pub(crate) segments_at: u64,
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections_at: u64,
    pub(crate) sections: Vec<Section>,
}

impl Elf {
    /// Reads the tables; `None` if it is no such file, or has no sections.
    pub(crate) fn read(bytes: &Bytes<'_>, header: &[u8]) -> Result<Option<Self>, Error> {
        if header.len() < HEADER as usize || !header.starts_with(b"\x7fELF\x02\x01") {
            return Ok(None);
        }
        let (kind, number) = (u16_at(header, 16), u16_at(header, 18));
        let machine = MACHINES.iter().find(|machine| machine.number == number);
        let (segments_at, sections_at) = (u64_at(header, 32), u64_at(header, 40));
        let [segment_size, segments, section_size, sections, names] =
            [54, 56, 58, 60, 62].map(|at| u64::from(u16_at(header, at)));
        let (Some(machine), 2 | 3) = (machine, kind) else { return Ok(None) };
        if sections == 0 || segments == 0 {
            return Ok(None);
        }
        if segment_size != SEGMENT || section_size != SECTION || names >= sections {
            return layout("its tables have entries of another size");
        }
        let table = bytes.read(segments_at, segments * SEGMENT)?;
        let segments: Vec<Segment> =
            table.chunks_exact(SEGMENT as usize).map(Segment::parse).collect();
        let table = bytes.read(sections_at, sections * SECTION)?;
        let field = |section: &[u8], index: usize| u64_at(section, 16 + 8 * index);
        let text = &table[(names * SECTION) as usize..];
        let text = bytes.read(field(text, 1), field(text, 2))?;
        let sections = table.chunks_exact(SECTION as usize).map(|section| {
            let name = text.get(u32_at(section, 0) as usize..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            Section {
                name: String::from_utf8_lossy(name).into_owned(),
                kind: u32_at(section, 4),
                address: field(section, 0),
                offset: field(section, 1),
                size: field(section, 2),
            }
        });
        let sections = sections.collect();
        let elf = Self { machine: *machine, segments_at, segments, sections_at, sections };
        elf.check(bytes.size)?;
        Ok(Some(elf))
    }

    /// Checks what all that follows relies on: segments and sections lie in the file, and what is
    /// loaded ascends and does not overlap, in memory and in the file.
    fn check(&self, size: u64) -> Result<(), Error> {
        let inside =
            |offset: u64, length: u64| offset.checked_add(length).is_some_and(|e| e <= size);
        let segments = self.segments.iter();
        let whole = |it: &Segment| {
            inside(it.offset, it.file_size)
                && it.address.checked_add(it.memory_size).is_some_and(|end| end < 1 << 62)
        };
        if !segments.clone().all(whole) {
            return layout("a segment lies outside of the file");
        }
        let sections = self.sections.iter();
        let in_file = |it: &Section| {
            inside(it.offset, it.file_size()) && it.address.checked_add(it.size).is_some()
        };
        if !sections.filter(|it| it.file_size() > 0).all(in_file) {
            return layout("a section lies outside of the file");
        }
        let loaded: Vec<&Segment> = segments.filter(|it| it.is_loaded()).collect();
        let good = |it: &Segment| {
            let (alignment, size) = (it.alignment.max(1), it.memory_size);
            alignment.is_power_of_two()
                && alignment <= 1 << 30
                && it.file_size <= size
                && it.address % alignment == it.offset % alignment
        };
        let ascends = |pair: &[&Segment]| {
            pair[0].memory_end() <= pair[1].address && pair[0].file_end() <= pair[1].offset
        };
        if !loaded.iter().all(|it| good(it)) || !loaded.windows(2).all(ascends) {
            return layout("its segments overlap, or are not aligned");
        }
        Ok(())
    }

    /// The only section of this name.
    pub(crate) fn section(&self, name: &str) -> Result<Option<&Section>, Error> {
        let mut found = self.sections.iter().filter(|section| section.name == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => layout(format!("it has more than one section `{name}`")),
            (first, None) => Ok(first),
        }
    }

    /// Where the bytes of these addresses are in the file.
    pub(crate) fn offset_of(&self, address: u64, length: u64) -> Option<u64> {
        let end = address.checked_add(length)?;
        let holds = |it: &&Segment| {
            it.is_loaded() && it.address <= address && end <= it.address + it.file_size
        };
        self.segments.iter().find(holds).map(|it| it.offset + (address - it.address))
    }

    fn loaded(&self, address: u64, length: u64) -> Result<u64, Error> {
        let found = self.offset_of(address, length);
        found.map_or_else(|| layout("a table that the loader reads is not in the file"), Ok)
    }

    /// Shows every relocation of a whole address that the loader applies.
    pub(crate) fn relocations(
        &self,
        bytes: &Bytes<'_>,
        see: &mut dyn FnMut(Relocation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(dynamic) = self.segments.iter().find(|it| it.kind == PT_DYNAMIC) else {
            return Ok(());
        };
        let table = bytes.read(dynamic.offset, dynamic.file_size)?;
        let entries = table.chunks_exact(16).map(|entry| (u64_at(entry, 0), u64_at(entry, 8)));
        let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != 0).collect();
        let value =
            |wanted| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        if [DT_REL, DT_ANDROID_REL, DT_ANDROID_RELA].into_iter().any(|tag| value(tag).is_some()) {
            return layout("relocations of a kind that no linker writes for this machine");
        }
        let symbols = self.sections.iter().find(|section| section.kind == SHT_DYNSYM);
        if value(DT_SYMTAB) != symbols.map(|section| section.address) {
            return layout("its symbols are not where the loader reads them");
        }
        if let (Some(address), Some(size)) = (value(DT_RELA), value(DT_RELASZ)) {
            let at = self.loaded(address, size)?;
            chunks(bytes, at, size, RELA, |at, entry| {
                let info = u64_at(entry, 8);
                let (kind, symbol) = (info as u32, (info >> 32) as u32);
                let (place, value) = (u64_at(entry, 0), u64_at(entry, 16));
                if kind == self.machine.relative || kind == self.machine.absolute {
                    let symbol = if kind == self.machine.relative { 0 } else { symbol };
                    see(Relocation { place, addend_at: Some(at + 16), value, symbol })?;
                }
                Ok(())
            })?;
        }
        if let (Some(address), Some(size)) = (value(DT_RELR), value(DT_RELRSZ)) {
            let at = self.loaded(address, size)?;
            let mut next = 0_u64;
            let mut show = |place: u64| {
                let word = bytes.read(self.loaded(place, 8)?, 8)?;
                see(Relocation { place, addend_at: None, value: u64_at(&word, 0), symbol: 0 })
            };
            chunks(bytes, at, size, 8, |_, word| {
                let word = u64_at(word, 0);
                if word & 1 == 0 {
                    next = word.wrapping_add(8);
                    return show(word);
                }
                for bit in (0..63).filter(|bit| word >> (bit + 1) & 1 == 1) {
                    show(next.wrapping_add(8 * bit))?;
                }
                next = next.wrapping_add(8 * 63);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Shows the index and the value of every symbol of this kind of table, and where the value is
    /// in the file.
    pub(crate) fn symbols(
        &self,
        bytes: &Bytes<'_>,
        kind: u32,
        see: &mut dyn FnMut(u32, u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for table in self.sections.iter().filter(|section| section.kind == kind) {
            let mut index = 0;
            chunks(bytes, table.offset, table.size, SYMBOL, |at, symbol| {
                let section = u16_at(symbol, 6);
                let result =
                    if section == 0 { Ok(()) } else { see(index, u64_at(symbol, 8), at + 8) };
                index += 1;
                result
            })?;
        }
        Ok(())
    }
}

/// Shows each entry of a table, and where it is.
fn chunks(
    bytes: &Bytes<'_>,
    at: u64,
    size: u64,
    entry: u64,
    mut see: impl FnMut(u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut done = 0;
    while size - done >= entry {
        let most = (size - done).min(CHUNK * entry) / entry * entry;
        let read = bytes.read(at + done, most)?;
        for (index, piece) in read.chunks_exact(entry as usize).enumerate() {
            see(at + done + index as u64 * entry, piece)?;
        }
        done += most;
    }
    Ok(())
}
