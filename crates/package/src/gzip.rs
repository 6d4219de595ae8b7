//! Writes a stream in gzip's format with several threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use rayon::ThreadPool;

/// Number of input bytes per chunk. It determines the bytes, so it does not
/// depend on the number of threads.
const CHUNK: usize = 512 << 10;

/// How far back a match may reach: the end of one chunk is a dictionary for the
/// next.
const WINDOW: usize = 32 << 10;

/// An upper estimate of the memory for this number of threads, in bytes.
pub(crate) fn memory(threads: usize) -> u64 {
    (threads * (3 * 2 * CHUNK + (320 << 10))) as u64
}

/// Compresses chunks on several threads and writes them in order, as one gzip
/// member, like pigz.
///
/// Source: RFC 1952; RFC 1951, section 3.2.4 on stored blocks. Each chunk ends
/// with an empty one, so that the next begins at a byte boundary.
pub(crate) struct Gzip<W: Write> {
    out: W,
    level: u32,
    pool: ThreadPool,
    /// The results to come, in the order of the chunks.
    pending: VecDeque<Receiver<io::Result<Packed>>>,
    chunk: Vec<u8>,
    /// The end of the previous chunk.
    window: Vec<u8>,
    crc: Crc,
}

struct Packed {
    bytes: Vec<u8>,
    crc: Crc,
}

impl<W: Write> Gzip<W> {
    /// Writes the header.
    pub(crate) fn new(mut out: W, level: u32, threads: usize) -> io::Result<Self> {
        out.write_all(&header(level))?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
        Ok(Self {
            out,
            level,
            pool: pool.map_err(io::Error::other)?,
            pending: VecDeque::new(),
            chunk: Vec::with_capacity(CHUNK),
            window: Vec::new(),
            crc: Crc::new(),
        })
    }

    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.chunk.len() == CHUNK {
                self.submit(false)?;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(taken);
            bytes = rest;
        }
        Ok(())
    }

    /// Ends the stream, and returns the underlying writer.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.submit(true)?;
        while !self.pending.is_empty() {
            self.receive()?;
        }
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        self.out.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.out)
    }

    fn submit(&mut self, last: bool) -> io::Result<()> {
        if self.pending.len() >= 2 * self.pool.current_num_threads() {
            self.receive()?;
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let next = chunk[chunk.len().saturating_sub(WINDOW)..].to_vec();
        let (window, level) = (std::mem::replace(&mut self.window, next), self.level);
        let (send, receive) = sync_channel(1);
        self.pool.spawn(move || {
            // If writing has failed, nobody receives the result.
            send.send(pack(level, &window, &chunk, last)).ok();
        });
        self.pending.push_back(receive);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        let Some(next) = self.pending.pop_front() else { return Ok(()) };
        let packed = next.recv().map_err(io::Error::other)??;
        self.crc.combine(&packed.crc);
        self.out.write_all(&packed.bytes)
    }
}

fn pack(level: u32, window: &[u8], chunk: &[u8], last: bool) -> io::Result<Packed> {
    let mut crc = Crc::new();
    crc.update(chunk);
    let mut compress = Compress::new(Compression::new(level), false);
    if !window.is_empty() {
        compress.set_dictionary(window)?;
    }
    let mut bytes = Vec::with_capacity(chunk.len() + chunk.len() / 256 + 1024);
    let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let taken = compress.total_in() as usize;
        let status = compress.compress_vec(&chunk[taken..], &mut bytes, flush)?;
        let all = compress.total_in() as usize == chunk.len() && bytes.len() < bytes.capacity();
        if status == Status::StreamEnd || (!last && all) {
            return Ok(Packed { bytes, crc });
        }
        bytes.reserve(CHUNK);
    }
}

/// The header, without time and name.
fn header(level: u32) -> [u8; 10] {
    const DEFLATE: u8 = 8;
    const OS_UNIX: u8 = 3;
    let effort = match level {
        9.. => 2,
        0..=1 => 4,
        _ => 0,
    };
    [0x1f, 0x8b, DEFLATE, 0, 0, 0, 0, 0, effort, OS_UNIX]
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn noise(size: usize) -> Vec<u8> {
        let mut state = 5_u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        std::iter::repeat_with(next).take(size).collect()
    }

    fn packed(bytes: &[u8], threads: usize) -> Vec<u8> {
        let mut gzip = Gzip::new(Vec::new(), 6, threads).expect("threads start");
        gzip.write_all(bytes).expect("memory takes it");
        gzip.finish().expect("memory takes it")
    }

    #[test]
    fn a_reader_of_one_member_gets_all_bytes() {
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 7] {
            for bytes in [noise(size), vec![7; size]] {
                // This reader stops at the end of the first member.
                let stream = packed(&bytes, 3);
                let mut reader = flate2::bufread::GzDecoder::new(stream.as_slice());
                let mut read = Vec::new();
                reader.read_to_end(&mut read).expect("it is sound");
                assert!(read == bytes, "{size}");
                assert!(reader.into_inner().is_empty(), "{size}: nothing follows");
            }
        }
    }

    #[test]
    fn a_chunk_refers_to_the_end_of_the_previous_one() {
        let once = noise(WINDOW / 2);
        let repeated = once.repeat(4 * CHUNK / once.len());
        let apart = (repeated.len() / CHUNK) * once.len();
        assert!(packed(&repeated, 2).len() < apart, "each chunk would contain the bytes again");
    }
}
