//! One launch of an assembly kernel, and the expected results.

use anyhow::{Context as _, Result, ensure};

use super::execute;
use super::machine::{Memory, Region, Wave};
use super::object::Object;

/// Where buffers lie: just below a multiple of 4 GiB, so that every sum of
/// an address carries into its upper half.
const FIRST_BUFFER: u64 = 0x7f12_ffff_ff00;
const BUFFER_DISTANCE: u64 = 1 << 40;
const KERNARG: u64 = 0x1000;

/// Elements of a buffer, counted from its start: the first, and the one after
/// the last.
pub(crate) type Piece = (u64, u64);

/// A launch: arguments in order, and which groups run.
pub(crate) struct Launch {
    kernarg: Vec<u8>,
    pointers: u64,
    regions: Vec<Region>,
    /// What the regions should hold afterwards, for those that are written.
    wanted: Vec<Option<Wanted>>,
    groups: Vec<u32>,
}

struct Wanted {
    values: Vec<u8>,
    /// Whether fp32 values differ by no more than this; 0 compares bits.
    allowed: f32,
}

impl Launch {
    pub(crate) fn new(groups: impl IntoIterator<Item = u32>) -> Self {
        let groups = groups.into_iter().collect();
        Self { kernarg: Vec::new(), pointers: 0, regions: Vec::new(), wanted: Vec::new(), groups }
    }

    /// A pointer to elements of `size` bytes, of which only those in `pieces`
    /// exist; `bytes` and what is wanted hold them one piece after another.
    fn pointer(
        mut self,
        pieces: &[Piece],
        size: u64,
        bytes: &[u8],
        wanted: Option<Wanted>,
    ) -> Self {
        self.pointers += 1;
        let address = FIRST_BUFFER + BUFFER_DISTANCE * self.pointers;
        self.kernarg.resize(self.kernarg.len().next_multiple_of(8), 0);
        self.kernarg.extend(address.to_le_bytes());
        let mut left = bytes;
        let mut left_wanted = wanted.as_ref().map(|wanted| &wanted.values[..]);
        for (start, end) in pieces {
            let length = ((end - start) * size) as usize;
            let (bytes, rest) = left.split_at(length);
            left = rest;
            self.regions.push(Region {
                base: address + start * size,
                bytes: bytes.to_vec(),
                writable: wanted.is_some(),
            });
            self.wanted.push(wanted.as_ref().zip(left_wanted).map(|(wanted, values)| {
                let (values, rest) = values.split_at(length);
                left_wanted = Some(rest);
                Wanted { values: values.to_vec(), allowed: wanted.allowed }
            }));
        }
        self
    }

    pub(crate) fn input(self, pieces: &[Piece], size: u64, bytes: &[u8]) -> Self {
        self.pointer(pieces, size, bytes, None)
    }

    /// A buffer that should hold exactly `wanted` afterwards.
    pub(crate) fn output(
        self,
        pieces: &[Piece],
        size: u64,
        before: &[u8],
        wanted: Vec<u8>,
    ) -> Self {
        self.pointer(pieces, size, before, Some(Wanted { values: wanted, allowed: 0.0 }))
    }

    /// A buffer of fp32 that should hold about `wanted` afterwards.
    pub(crate) fn about(self, pieces: &[Piece], wanted: &[f32], allowed: f32) -> Self {
        let before = vec![0xff; 4 * wanted.len()];
        let values = wanted.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.pointer(pieces, 4, &before, Some(Wanted { values, allowed }))
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.kernarg.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.u32(value.to_bits())
    }

    /// Runs all waves of the groups and compares.
    pub(crate) fn check(mut self, object: &Object, group_size: u32) -> Result<()> {
        ensure!(
            self.kernarg.len() == object.kernarg_bytes(),
            "the descriptor says {} bytes of arguments, the test gives {}",
            object.kernarg_bytes(),
            self.kernarg.len()
        );
        self.regions.push(Region { base: KERNARG, bytes: self.kernarg, writable: false });
        let mut memory = Memory(self.regions);
        let lanes = object.lanes();
        for &group in &self.groups {
            for wave_start in (0..group_size).step_by(lanes) {
                let mut wave = Wave::new(lanes, object.generation());
                wave.preset_scalar(0, KERNARG as u32);
                wave.preset_scalar(1, (KERNARG >> 32) as u32);
                wave.preset_scalar(2, group);
                wave.preset_vector(0, wave_start..wave_start + lanes as u32);
                execute::run(&object.code, object.entry, &mut wave, &mut memory)
                    .with_context(|| format!("group {group}, work-items from {wave_start}"))?;
                check_registers(object, &wave)?;
            }
        }
        for (number, (region, wanted)) in memory.0.iter().zip(&self.wanted).enumerate() {
            if let Some(wanted) = wanted {
                compare(&region.bytes, wanted).with_context(|| format!("argument {number}"))?;
            }
        }
        Ok(())
    }
}

/// No register beyond those that the code object asks for.
fn check_registers(object: &Object, wave: &Wave) -> Result<()> {
    let vectors = object.metadata_number(".vgpr_count")?;
    ensure!(
        wave.used_vectors <= vectors,
        "v{} is used, {vectors} are asked for",
        wave.used_vectors - 1
    );
    let scalars = object.metadata_number(".sgpr_count")?.min(object.allocated_scalars());
    ensure!(
        wave.used_scalars <= scalars,
        "s{} is used, {scalars} are asked for",
        wave.used_scalars - 1
    );
    Ok(())
}

fn compare(got: &[u8], wanted: &Wanted) -> Result<()> {
    if wanted.allowed == 0.0 {
        let differs = got.iter().zip(&wanted.values).position(|(got, wanted)| got != wanted);
        ensure!(differs.is_none() && got.len() == wanted.values.len(), "byte {differs:?} is wrong");
        return Ok(());
    }
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    for (at, (got, want)) in got.chunks_exact(4).zip(wanted.values.chunks_exact(4)).enumerate() {
        let (got, want) = (float(got), float(want));
        ensure!(
            got == want || (got - want).abs() <= wanted.allowed,
            "element {at} is {got}, should be {want}"
        );
    }
    Ok(())
}
