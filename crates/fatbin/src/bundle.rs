//! Offload bundles: what is in them, and writing them with fewer entries.
//!
//! Source: LLVM 22, clang "Clang Offload Bundler", and `OffloadBundle.h` for the compressed form.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use gfxpack_model::TargetId;
use gfxpack_model::code_object::BUNDLE_MAGIC;
use md5::{Digest, Md5};

use crate::bytes::{Bytes, u16_at, u32_at, u64_at};
use crate::code::CodeTarget;
use crate::error::{Error, layout};

/// First bytes of a compressed bundle.
const COMPRESSED_MAGIC: &[u8; 4] = b"CCOB";
/// The method of compression, of which zlib is the other one: no build of clang for AMD's GPUs
/// is without zstd.
const ZSTD: u16 = 1;
/// Largest window of compressed data, as a power of two; clang writes up to this one.
const WINDOW_LOG_MAX: u32 = 27;
/// How well is compressed. Above this level, the code of one GPU gains less than a percent.
const LEVEL: i32 = 12;
/// More entries, and longer names, than any compiler writes.
const ENTRIES_MAX: u64 = 1024;
const ID_MAX: u64 = 1024;
/// Bytes of a code object that say what it is for.
pub(crate) const HEAD: u64 = 64;
/// HIP maps code objects from where they are.
const PAGE: u64 = 4096;

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, as `hipv4-amdgcn-amd-amdhsa--gfx1030`.
    pub id: String,
    /// The GPUs that it serves, if it is code that HIP loads.
    pub target: Option<CodeTarget>,
    /// Where its code begins in the uncompressed bundle, in bytes.
    pub offset: u64,
    /// How many bytes of code it has.
    pub size: u64,
}

impl Entry {
    /// Whether HIP may load it on this device.
    pub fn serves(&self, device: &TargetId) -> bool {
        self.size > 0 && self.target.as_ref().is_some_and(|target| target.serves(device))
    }
}

/// A bundle in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Where it begins in the file, in bytes.
    pub at: u64,
    /// How many bytes of the file it has.
    pub size: u64,
    /// Its entries, in the order in which HIP looks.
    pub entries: Vec<Entry>,
    compressed: Option<Compressed>,
}

/// The header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compressed {
    version: u16,
    header: u64,
    /// Bytes of the uncompressed bundle.
    unpacked: u64,
}

impl Bundle {
    /// Whether bytes begin like a bundle.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(BUNDLE_MAGIC) || bytes.starts_with(COMPRESSED_MAGIC)
    }

    /// Reads the bundle that begins at `at` and ends before `end`.
    pub(crate) fn read(bytes: &Bytes<'_>, at: u64, end: u64) -> Result<Self, Error> {
        let end = end.min(bytes.size);
        if at.checked_add(4).is_none_or(|after| after > end) {
            return layout("an offload bundle is cut short");
        }
        if bytes.read(at, 4)? == COMPRESSED_MAGIC {
            return Self::read_compressed(bytes, at, end);
        }
        let size = end - at;
        let (entries, header) = entries(&mut BufReader::new(bytes.span(at, end)), size)?;
        let last = entries.iter().map(|entry| entry.offset + entry.size).max();
        Ok(Self { at, size: last.unwrap_or(0).max(header), entries, compressed: None })
    }

    fn read_compressed(bytes: &Bytes<'_>, at: u64, end: u64) -> Result<Self, Error> {
        let head = bytes.read(at, 32.min(end - at))?;
        if head.len() < 32 || u16_at(&head, 6) != ZSTD {
            return layout("a compressed offload bundle is not compressed by zstd");
        }
        let version = u16_at(&head, 4);
        let (header, total, unpacked) = match version {
            1 => (20, None, u64::from(u32_at(&head, 8))),
            2 => (24, Some(u64::from(u32_at(&head, 8))), u64::from(u32_at(&head, 12))),
            3 => (32, Some(u64_at(&head, 8)), u64_at(&head, 16)),
            _ => return layout(format!("compressed offload bundles of version {version}")),
        };
        let end = match total {
            Some(total) if total > header && total <= end - at => at + total,
            Some(_) => return layout("a compressed offload bundle is cut short"),
            None => end,
        };
        let compressed = Compressed { version, header, unpacked };
        let (entries, size) = {
            let mut stream = unpacked_stream(bytes, at + header, end)?;
            let (entries, _) = entries(&mut stream, unpacked)?;
            let size = match total {
                Some(total) => total,
                // Only the end of the compressed data says where the bundle ends.
                None => {
                    io::copy(&mut (&mut stream).take(unpacked + 1), &mut io::sink())
                        .map_err(|error| unreadable(&error))?;
                    let rest = stream.finish();
                    rest.get_ref().at - rest.buffer().len() as u64 - at
                }
            };
            (entries, size)
        };
        Ok(Self { at, size, entries, compressed: Some(compressed) })
    }

    /// The first bytes of each entry's code, in the order of the entries.
    pub(crate) fn heads(&self, bytes: &Bytes<'_>) -> Result<Vec<Vec<u8>>, Error> {
        let Some(compressed) = &self.compressed else {
            let head = |entry: &Entry| bytes.read(self.at + entry.offset, entry.size.min(HEAD));
            return self.entries.iter().map(head).collect();
        };
        let mut heads = vec![Vec::new(); self.entries.len()];
        let mut stream = self.stream(bytes, compressed)?;
        let mut at = 0;
        for index in self.by_offset() {
            let entry = &self.entries[index];
            if entry.size == 0 {
                continue;
            }
            pass(&mut stream, &mut io::sink(), entry.offset - at)?;
            let head = entry.size.min(HEAD);
            pass(&mut stream, &mut heads[index], head)?;
            at = entry.offset + head;
        }
        Ok(heads)
    }

    fn stream<'a>(
        &self,
        bytes: &Bytes<'a>,
        compressed: &Compressed,
    ) -> Result<Unpacked<'a>, Error> {
        unpacked_stream(bytes, self.at + compressed.header, self.at + self.size)
    }

    /// The indices of the entries, in the order of their code.
    fn by_offset(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|index| (self.entries[*index].offset, self.entries[*index].size));
        order
    }

    /// Writes the bundle with only these entries, given by index, to `to` in `out`, and returns
    /// how many bytes it has there: never more than here.
    pub(crate) fn write(
        &self,
        bytes: &Bytes<'_>,
        keep: &[usize],
        out: &File,
        to: u64,
    ) -> Result<u64, Error> {
        if keep.len() == self.entries.len() {
            bytes.copy(self.at, self.size, out, to)?;
            return Ok(self.size);
        }
        let smaller = self.with_only(keep);
        let Some(compressed) = &self.compressed else {
            if smaller.size > self.size {
                return layout("the entries of an offload bundle are in no order");
            }
            out.write_all_at(&smaller.header, to)?;
            for (index, offset) in keep.iter().zip(&smaller.offsets) {
                let entry = &self.entries[*index];
                bytes.copy(self.at + entry.offset, entry.size, out, to + offset)?;
            }
            return Ok(smaller.size);
        };
        let with_code = keep.iter().map(|index| &self.entries[*index]).filter(|it| it.size > 0);
        let is_sorted = with_code.is_sorted_by_key(|entry| entry.offset);
        if !is_sorted || smaller.size > compressed.unpacked {
            return layout("the entries of an offload bundle are in no order");
        }
        let written = self.write_compressed(bytes, compressed, keep, &smaller, out, to)?;
        if written > self.size {
            out.set_len(to)?;
            bytes.copy(self.at, self.size, out, to)?;
            return Ok(self.size);
        }
        Ok(written)
    }

    fn write_compressed(
        &self,
        bytes: &Bytes<'_>,
        compressed: &Compressed,
        keep: &[usize],
        smaller: &Smaller,
        mut out: &File,
        to: u64,
    ) -> Result<u64, Error> {
        out.seek(SeekFrom::Start(to + compressed.header))?;
        let mut digest = Md5::new();
        let mut packer = zstd::stream::write::Encoder::new(out, LEVEL)?;
        packer.set_pledged_src_size(Some(smaller.size))?;
        let mut write = |piece: &[u8]| {
            digest.update(piece);
            packer.write_all(piece)
        };
        write(&smaller.header)?;
        let mut written = smaller.header.len() as u64;
        let (mut stream, mut at) = (self.stream(bytes, compressed)?, 0);
        let mut buffer = vec![0; 256 << 10];
        for (index, offset) in keep.iter().zip(&smaller.offsets) {
            let entry = &self.entries[*index];
            let padding = offset - written;
            write(&vec![0; padding as usize])?;
            written = offset + entry.size;
            if entry.size == 0 {
                continue;
            }
            pass(&mut stream, &mut io::sink(), entry.offset - at)?;
            let mut left = entry.size;
            while left > 0 {
                let most = left.min(buffer.len() as u64) as usize;
                let read = stream.read(&mut buffer[..most]).map_err(|e| unreadable(&e))?;
                if read == 0 {
                    return layout("a compressed offload bundle is cut short");
                }
                write(&buffer[..read])?;
                left -= read as u64;
            }
            at = entry.offset + entry.size;
        }
        let mut out = packer.finish()?;
        let total = out.stream_position()? - to;
        let mut header = COMPRESSED_MAGIC.to_vec();
        header.extend(compressed.version.to_le_bytes());
        header.extend(ZSTD.to_le_bytes());
        match compressed.version {
            1 => header.extend((smaller.size as u32).to_le_bytes()),
            2 => {
                header.extend((total as u32).to_le_bytes());
                header.extend((smaller.size as u32).to_le_bytes());
            }
            _ => {
                header.extend(total.to_le_bytes());
                header.extend(smaller.size.to_le_bytes());
            }
        }
        header.extend(&digest.finalize()[..8]);
        out.write_all_at(&header, to)?;
        Ok(total)
    }

    /// The header of a bundle with only these entries, and where their code goes: no later than
    /// here, as far as it can be aligned in the same way.
    fn with_only(&self, keep: &[usize]) -> Smaller {
        let alignment =
            self.entries.iter().filter(|entry| entry.size > 0).fold(PAGE, |all, entry| {
                if entry.offset == 0 {
                    all
                } else {
                    all.min(1 << entry.offset.trailing_zeros().min(63))
                }
            });
        let ids = keep.iter().map(|index| 24 + self.entries[*index].id.len() as u64);
        let mut at = (BUNDLE_MAGIC.len() + 8) as u64 + ids.sum::<u64>();
        let mut smaller = Smaller { header: BUNDLE_MAGIC.to_vec(), offsets: Vec::new(), size: at };
        smaller.header.extend((keep.len() as u64).to_le_bytes());
        for index in keep {
            let entry = &self.entries[*index];
            let offset = at.next_multiple_of(alignment);
            for number in [offset, entry.size, entry.id.len() as u64] {
                smaller.header.extend(number.to_le_bytes());
            }
            smaller.header.extend(entry.id.as_bytes());
            smaller.offsets.push(offset);
            at = offset + entry.size;
            smaller.size = at;
        }
        smaller
    }
}

/// A bundle that is to be written.
struct Smaller {
    header: Vec<u8>,
    /// Where the code of each entry begins.
    offsets: Vec<u64>,
    size: u64,
}

type Unpacked<'a> = zstd::stream::read::Decoder<'static, BufReader<crate::bytes::Span<'a>>>;

fn unpacked_stream<'a>(bytes: &Bytes<'a>, at: u64, end: u64) -> Result<Unpacked<'a>, Error> {
    let packed = BufReader::with_capacity(256 << 10, bytes.span(at, end));
    let mut stream = zstd::stream::read::Decoder::with_buffer(packed)?.single_frame();
    stream.window_log_max(WINDOW_LOG_MAX)?;
    Ok(stream)
}

fn unreadable(error: &io::Error) -> Error {
    Error::Layout(format!("an offload bundle can't be read: {error}"))
}

/// Passes so many bytes on.
fn pass(from: &mut impl Read, to: &mut impl Write, length: u64) -> Result<(), Error> {
    let passed = io::copy(&mut from.take(length), to).map_err(|error| unreadable(&error))?;
    if passed == length { Ok(()) } else { layout("an offload bundle is cut short") }
}

/// The entries of an uncompressed bundle of at most `size` bytes, and the length of its header.
/// Their code does not overlap.
fn entries(from: &mut impl Read, size: u64) -> Result<(Vec<Entry>, u64), Error> {
    let mut exactly = |length: usize| -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).map_err(|error| unreadable(&error))?;
        Ok(bytes)
    };
    let head = exactly(32)?;
    if !head.starts_with(BUNDLE_MAGIC) {
        return layout("an offload bundle begins with no known mark");
    }
    let count = u64_at(&head, 24);
    if count > ENTRIES_MAX {
        return layout(format!("an offload bundle of {count} entries"));
    }
    let (mut entries, mut header) = (Vec::new(), 32);
    for _ in 0..count {
        let numbers = exactly(24)?;
        let [offset, length, id] = [0, 8, 16].map(|at| u64_at(&numbers, at));
        if id > ID_MAX {
            return layout("the name of an offload bundle's entry is too long");
        }
        let id = String::from_utf8(exactly(id as usize)?);
        let Ok(id) = id else { return layout("the name of an offload bundle's entry is no text") };
        header += 24 + id.len() as u64;
        let target = CodeTarget::of_entry(&id);
        entries.push(Entry { id, target, offset, size: length });
    }
    let mut spans: Vec<(u64, u64)> = entries
        .iter()
        .filter(|entry| entry.size > 0)
        .map(|entry| (entry.offset, entry.offset.saturating_add(entry.size)))
        .collect();
    spans.sort_unstable();
    let mut at = header;
    for (begin, end) in spans {
        if begin < at || end > size {
            return layout("the entries of an offload bundle overlap, or lie outside of it");
        }
        at = end;
    }
    // Where nothing is does not matter.
    entries.iter_mut().filter(|entry| entry.size == 0).for_each(|entry| entry.offset = header);
    Ok((entries, header))
}
