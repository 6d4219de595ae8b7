//! Makes a file smaller: what other GPUs need is taken out.
//!
//! In a library, the bundles are packed at the beginning of their section, and the segment that
//! holds it is split around the addresses that became free, which stay reserved. All that follows
//! moves down in the file, not in memory. The table of program headers has to keep its size and
//! place, since GNU strip and elfutils do not follow it elsewhere: two other segments are joined.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use gfxpack_model::TargetId;

use crate::bundle::Bundle;
use crate::bytes::Bytes;
use crate::elf::{HEADER, PF_W, SECTION, SEGMENT, SHT_DYNSYM, SHT_SYMTAB, Section, Segment};
use crate::error::{Error, layout};
use crate::library::Library;

/// What was taken out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slimmed {
    /// Bytes of the file before.
    pub before: u64,
    /// Bytes of the file now.
    pub after: u64,
    /// The names of the bundles' entries that were taken out.
    pub removed: BTreeSet<String>,
}

/// Writes `file` without the code that no device of these targets needs to `out`, which is empty;
/// `None`, and nothing is written, if there is nothing to take out.
///
/// # Errors
/// [`Error::Layout`] if the file is not understood, and [`Error::NoCode`] if a part of it would
/// be left without code.
pub fn slim(file: &File, out: &File, targets: &[TargetId]) -> Result<Option<Slimmed>, Error> {
    let bytes = Bytes::of(file)?;
    let header = bytes.read(0, HEADER.min(bytes.size))?;
    if Bundle::begins(&header) {
        return slim_bundle_file(&bytes, out, targets);
    }
    match Library::of(&bytes, &header)? {
        Some(library) if !library.bundles.is_empty() => {
            slim_library(&bytes, &header, &library, out, targets)
        }
        _ => Ok(None),
    }
}

/// The entries to keep, by index, of each bundle.
fn kept<'a>(
    bundles: impl Iterator<Item = &'a Bundle>,
    targets: &[TargetId],
) -> Result<(Vec<Vec<usize>>, BTreeSet<String>), Error> {
    let (mut kept, mut removed, mut without) = (Vec::new(), BTreeSet::new(), 0);
    for bundle in bundles {
        let serves = |index: &usize| {
            let entry = &bundle.entries[*index];
            entry.target.is_none() || targets.iter().any(|target| entry.serves(target))
        };
        let keep: Vec<usize> = (0..bundle.entries.len()).filter(serves).collect();
        let has_code = keep.iter().any(|index| bundle.entries[*index].target.is_some());
        without += usize::from(!has_code);
        let others = (0..bundle.entries.len()).filter(|index| !keep.contains(index));
        removed.extend(others.map(|index| bundle.entries[index].id.clone()));
        kept.push(keep);
    }
    if without > 0 {
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        return Err(Error::NoCode { without, of: kept.len(), targets: targets.join(", ") });
    }
    Ok((kept, removed))
}

fn slim_bundle_file(
    bytes: &Bytes<'_>,
    out: &File,
    targets: &[TargetId],
) -> Result<Option<Slimmed>, Error> {
    let bundle = Bundle::read(bytes, 0, bytes.size)?;
    if bundle.size != bytes.size {
        return layout("something follows its offload bundle");
    }
    let (keep, removed) = kept([&bundle].into_iter(), targets)?;
    if removed.is_empty() {
        return Ok(None);
    }
    let after = bundle.write(bytes, &keep[0], out, 0)?;
    out.set_len(after)?;
    Ok(Some(Slimmed { before: bytes.size, after, removed }))
}

fn slim_library(
    bytes: &Bytes<'_>,
    header: &[u8],
    library: &Library,
    out: &File,
    targets: &[TargetId],
) -> Result<Option<Slimmed>, Error> {
    let section = library.section.as_ref().expect("there are bundles");
    let symbols = check(bytes, library, section)?;
    let (keep, removed) = kept(library.bundles.values(), targets)?;
    if removed.is_empty() {
        return Ok(None);
    }
    // The bundles, packed.
    bytes.copy(0, section.offset, out, 0)?;
    let (mut end, mut addresses) = (0, BTreeMap::new());
    let alignment = library
        .bundles
        .keys()
        .fold(4096, |all, address| all.min(1 << address.trailing_zeros().min(62)));
    for ((address, bundle), keep) in library.bundles.iter().zip(&keep) {
        let to = (section.address + end).next_multiple_of(alignment);
        addresses.insert(*address, to);
        end = to - section.address;
        end += bundle.write(bytes, keep, out, section.offset + end)?;
    }
    let Some(layout) = Layout::of(bytes, library, section, end)? else { return Ok(None) };
    // What follows them.
    for (index, (at, shift)) in layout.pieces.iter().enumerate() {
        let next = layout.pieces.get(index + 1).map_or(bytes.size, |(at, _)| *at);
        bytes.copy(*at, next - at, out, at - shift)?;
    }
    let after = layout.moved(bytes.size);
    out.set_len(after)?;
    let freed = layout.moved(section.offset + section.size);
    let tail = layout.pieces[0].0 - layout.pieces[0].1;
    out.write_all_at(&vec![0; (freed - tail) as usize], tail)?;
    layout.write(header, library, bytes, end, out)?;
    for (at, old) in library.pointers.iter().chain(&symbols) {
        out.write_all_at(&addresses[old].to_le_bytes(), layout.moved(*at))?;
    }
    Ok(Some(Slimmed { before: bytes.size, after, removed }))
}

/// Checks that nothing but wrappers and symbols leads to the bundles, and that there is nothing
/// else in their section. Returns where symbols' values are that name bundles.
fn check(
    bytes: &Bytes<'_>,
    library: &Library,
    section: &Section,
) -> Result<Vec<(u64, u64)>, Error> {
    if library.strays > 0 {
        return layout(format!("{} relocations lead into its offload bundles", library.strays));
    }
    let (low, high) = library.range();
    let mut symbols = Vec::new();
    library.elf.symbols(bytes, SHT_DYNSYM, &mut |_, value, at| {
        if library.bundles.contains_key(&value) {
            symbols.push((at, value));
        } else if (low..high).contains(&value) {
            return layout("a symbol that it exports leads into its offload bundles");
        }
        Ok(())
    })?;
    library.elf.symbols(bytes, SHT_SYMTAB, &mut |_, value, at| {
        if library.bundles.contains_key(&value) {
            symbols.push((at, value));
        }
        Ok(())
    })?;
    let mut at = section.offset;
    for bundle in library.bundles.values() {
        gap_is_empty(bytes, at, bundle.at)?;
        at = bundle.at + bundle.size;
    }
    gap_is_empty(bytes, at, section.offset + section.size)?;
    let crosses = |offset: u64, size: u64| {
        size > 0 && offset < section.offset + section.size && section.offset < offset + size
    };
    let sections = library.elf.sections.iter();
    if sections.filter(|it| crosses(it.offset, it.file_size())).count() > 1 {
        return layout("another section overlaps its offload bundles");
    }
    let mut tables = library.elf.segments.iter().filter(|it| !it.is_loaded());
    let elf = &library.elf;
    if tables.any(|it| crosses(it.offset, it.file_size))
        || crosses(elf.segments_at, SEGMENT * elf.segments.len() as u64)
        || crosses(elf.sections_at, SECTION * elf.sections.len() as u64)
    {
        return layout("a table overlaps its offload bundles");
    }
    Ok(symbols)
}

/// Checks that between bundles there is only padding.
fn gap_is_empty(bytes: &Bytes<'_>, from: u64, to: u64) -> Result<(), Error> {
    if from > to || bytes.read(from, to - from)?.iter().any(|byte| *byte != 0) {
        return layout("there is something between its offload bundles");
    }
    Ok(())
}

/// Where the parts of the smaller file are.
struct Layout {
    segments: Vec<Segment>,
    /// From which offset on bytes move down, and by how much, ascending.
    pieces: Vec<(u64, u64)>,
}

/// Two segments that can be one, by index, and how much farther apart they have to be in the file.
struct Join {
    first: usize,
    second: usize,
    padding: u64,
}

impl Layout {
    /// A layout with `used` bytes of the bundles' section; `None` if nothing is gained.
    fn of(
        bytes: &Bytes<'_>,
        library: &Library,
        section: &Section,
        used: u64,
    ) -> Result<Option<Self>, Error> {
        let segments = &library.elf.segments;
        let holds = |it: &Segment| {
            it.is_loaded()
                && it.address <= section.address
                && section.address + section.size <= it.address + it.file_size
        };
        let index = segments.iter().position(holds).expect("its section is loaded");
        let holder = segments[index];
        if holder.flags & PF_W != 0 || holder.file_size != holder.memory_size {
            return layout("its offload bundles are in a segment that can be written");
        }
        let page = segments.iter().filter(|it| it.is_loaded()).map(|it| it.alignment).max();
        let page = page.unwrap_or(1).max(4096);
        let begin = section.offset + used;
        // The first page that still holds something after the section.
        let address = (section.address + section.size) / page * page;
        let tail = section.offset + section.size - (section.address + section.size - address);
        let Some(shift) = tail.checked_sub(begin).map(|free| free / page * page) else {
            return Ok(None);
        };
        if shift == 0 {
            return Ok(None);
        }
        let head = Segment {
            file_size: begin - holder.offset,
            memory_size: begin - holder.offset,
            ..holder
        };
        let rest = Segment {
            offset: tail - shift,
            address,
            physical: holder.physical.wrapping_add(address - holder.address),
            file_size: holder.file_end() - tail,
            memory_size: holder.file_end() - tail,
            ..holder
        };
        let mut pieces = vec![(tail, shift)];
        let is_split = holder.file_end() > section.offset + section.size;
        let join = is_split.then(|| find_join(bytes, segments, index)).transpose()?;
        if let Some(join) = &join
            && join.padding > 0
        {
            if join.padding >= shift {
                return Ok(None);
            }
            pieces.push((segments[join.second].offset, shift - join.padding));
        }
        let mut layout = Self { segments: Vec::new(), pieces };
        for (at, segment) in segments.iter().enumerate() {
            let moved = Segment { offset: layout.moved(segment.offset), ..*segment };
            match &join {
                _ if at == index => {
                    layout.segments.push(head);
                    if is_split {
                        layout.segments.push(rest);
                    }
                }
                Some(join) if at == join.first => {
                    let second = &segments[join.second];
                    layout.segments.push(Segment {
                        flags: segment.flags | second.flags,
                        file_size: second.address + second.file_size - segment.address,
                        memory_size: second.memory_end() - segment.address,
                        alignment: segment.alignment.max(second.alignment),
                        ..moved
                    });
                }
                Some(join) if at == join.second => {}
                _ => layout.segments.push(moved),
            }
        }
        Ok(Some(layout))
    }

    /// Where an offset goes.
    fn moved(&self, offset: u64) -> u64 {
        let piece = self.pieces.iter().rev().find(|(at, _)| *at <= offset);
        offset - piece.map_or(0, |(_, shift)| *shift)
    }

    /// Writes the header and both tables.
    fn write(
        &self,
        header: &[u8],
        library: &Library,
        bytes: &Bytes<'_>,
        used: u64,
        out: &File,
    ) -> Result<(), Error> {
        let elf = &library.elf;
        let mut header = header.to_vec();
        header[32..40].copy_from_slice(&self.moved(elf.segments_at).to_le_bytes());
        header[40..48].copy_from_slice(&self.moved(elf.sections_at).to_le_bytes());
        out.write_all_at(&header, 0)?;
        let table: Vec<u8> = self.segments.iter().flat_map(Segment::bytes).collect();
        out.write_all_at(&table, self.moved(elf.segments_at))?;
        let mut table = bytes.read(elf.sections_at, SECTION * elf.sections.len() as u64)?;
        for (entry, section) in table.chunks_exact_mut(SECTION as usize).zip(&elf.sections) {
            entry[24..32].copy_from_slice(&self.moved(section.offset).to_le_bytes());
            if Some(section) == library.section.as_ref() {
                entry[32..40].copy_from_slice(&used.to_le_bytes());
            }
        }
        out.write_all_at(&table, self.moved(elf.sections_at))?;
        Ok(())
    }
}

/// Finds two neighbours, neither of which is the one at `holder`, that can be one segment.
fn find_join(bytes: &Bytes<'_>, segments: &[Segment], holder: usize) -> Result<Join, Error> {
    let loaded: Vec<usize> = (0..segments.len()).filter(|at| segments[*at].is_loaded()).collect();
    let mut joins = Vec::new();
    for pair in loaded.windows(2) {
        let (first, second) = (&segments[pair[0]], &segments[pair[1]]);
        let writes = (first.flags ^ second.flags) & PF_W != 0;
        let apart = second.address - first.address;
        let padding = apart.checked_sub(second.offset - first.offset);
        let page = first.alignment.max(second.alignment).max(1);
        let Some(padding) = padding else { continue };
        // What is padded has to be in the part of the file that moves.
        let moves = padding == 0 || pair[0] > holder;
        if writes || pair.contains(&holder) || padding > page || padding % page != 0 || !moves {
            continue;
        }
        if second.address - first.memory_end() > page {
            continue;
        }
        if first.memory_size > first.file_size {
            let gap = bytes.read(first.file_end(), second.offset - first.file_end())?;
            if gap.iter().any(|byte| *byte != 0) {
                continue;
            }
        }
        joins.push(Join { first: pair[0], second: pair[1], padding });
    }
    // What can't be written first.
    joins.sort_by_key(|join| segments[join.first].flags & PF_W);
    match joins.into_iter().next() {
        Some(join) => Ok(join),
        None => layout("it has no two segments that could be one"),
    }
}
