//! The state of one wave: registers that know whether they are initialised, memory with bounds, and
//! the waits that the hardware leaves to assembly programmers.

use anyhow::{Context as _, Result, bail, ensure};

use super::instruction::{EXEC, Instruction, Operand, VCC};

const SCALARS: usize = 128;
const VECTORS: usize = 256;

/// Bytes at an address of the GPU.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) writable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Memory(pub(crate) Vec<Region>);

impl Memory {
    pub(crate) fn slice(&mut self, address: u64, count: usize, write: bool) -> Result<&mut [u8]> {
        let found = self.0.iter_mut().find_map(|region| {
            let at = usize::try_from(address.checked_sub(region.base)?).ok()?;
            let bytes = region.bytes.get_mut(at..at.checked_add(count)?)?;
            (region.writable || !write).then_some(bytes)
        });
        let what = if write { "write" } else { "read" };
        found.with_context(|| {
            format!("failed to {what} {count} bytes at {address:#x}: not the kernel's")
        })
    }
}

/// A register's 32 bits, where it has been written.
type Bits = Option<u32>;

/// When and how a register was last written, in wait states since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// By a vector instruction.
    by_vector: Option<u64>,
    /// By a load that has not been waited for: its counter.
    pending: Option<&'static str>,
}

pub(crate) struct Wave {
    pub(crate) lanes: usize,
    generation: u32,
    scalars: [Bits; SCALARS],
    vectors: Vec<Vec<Bits>>,
    pub(crate) scc: bool,
    scalar_written: [Written; SCALARS],
    vector_written: [Written; VECTORS],
    /// Counts wait states.
    clock: u64,
    /// Scalars that a memory instruction on its way may still read (gfx10).
    read_by_memory: Vec<usize>,
    /// One more than the highest register used.
    pub(crate) used_scalars: usize,
    pub(crate) used_vectors: usize,
}

impl Wave {
    pub(crate) fn new(lanes: usize, generation: u32) -> Self {
        let mut wave = Self {
            lanes,
            generation,
            scalars: [None; SCALARS],
            vectors: vec![vec![None; lanes]; VECTORS],
            scc: false,
            scalar_written: [Written::default(); SCALARS],
            vector_written: [Written::default(); VECTORS],
            clock: 0,
            read_by_memory: Vec::new(),
            used_scalars: 0,
            used_vectors: 0,
        };
        wave.scalars[EXEC] = Some(u32::MAX);
        wave.scalars[EXEC + 1] = Some(if lanes == 64 { u32::MAX } else { 0 });
        wave
    }

    /// Sets a register before the wave starts.
    pub(crate) fn preset_scalar(&mut self, register: usize, value: u32) {
        self.scalars[register] = Some(value);
    }

    pub(crate) fn preset_vector(&mut self, register: usize, values: impl Iterator<Item = u32>) {
        self.vectors[register] = values.map(Some).collect();
    }

    pub(crate) fn exec(&self) -> u64 {
        let word = |register: usize| u64::from(self.scalars[register].unwrap_or_default());
        let mask = word(EXEC) | word(EXEC + 1) << 32;
        if self.lanes == 64 { mask } else { mask & u64::from(u32::MAX) }
    }

    pub(crate) fn active(&self) -> impl Iterator<Item = usize> + use<> {
        let exec = self.exec();
        (0..self.lanes).filter(move |lane| exec >> lane & 1 == 1)
    }

    fn scalar_register(&mut self, register: usize) -> Result<u32> {
        ensure!(register < SCALARS, "there is no s{register}");
        if register < VCC {
            self.used_scalars = self.used_scalars.max(register + 1);
        }
        if let Some(counter) = self.scalar_written[register].pending {
            bail!("s{register} is read before a wait for {counter}");
        }
        self.scalars[register].with_context(|| format!("s{register} is read but never written"))
    }

    /// The first 32 bits of a scalar operand.
    pub(crate) fn scalar(&mut self, operand: Operand) -> Result<u32> {
        match operand {
            Operand::Constant(bits) => Ok(bits),
            Operand::Null => Ok(0),
            Operand::Scalar { first, .. } => self.scalar_register(first),
            Operand::Vector { .. } => bail!("a vector register where a scalar is wanted"),
        }
    }

    /// 64 bits: a pair, or a constant, whose sign is extended.
    pub(crate) fn scalar64(&mut self, operand: Operand) -> Result<u64> {
        match operand {
            Operand::Scalar { first, count: 2 } => {
                ensure!(first % 2 == 0, "s{first} begins a pair but is odd");
                let low = self.scalar_register(first)?;
                Ok(u64::from(low) | u64::from(self.scalar_register(first + 1)?) << 32)
            }
            Operand::Constant(bits) => Ok(i64::from(bits as i32) as u64),
            _ => bail!("no 64 bits in {operand:?}"),
        }
    }

    /// Writes consecutive scalars, as a scalar instruction does; `pending`
    /// names the counter of a load.
    pub(crate) fn set_scalars(
        &mut self,
        operand: Operand,
        values: &[u32],
        pending: Option<&'static str>,
    ) -> Result<()> {
        let Operand::Scalar { first, count } = operand else {
            bail!("{operand:?} can't be written")
        };
        ensure!(count == values.len(), "{count} registers for {} values", values.len());
        for (register, &value) in (first..).zip(values) {
            ensure!(
                !self.read_by_memory.contains(&register),
                "s{register} is written while gfx10 may still read it for a memory instruction"
            );
            self.write_scalar(register, value, Written { by_vector: None, pending })?;
        }
        Ok(())
    }

    /// Writes one scalar, or a mask of lanes, as a vector instruction does.
    pub(crate) fn set_scalar_by_vector(&mut self, operand: Operand, value: u64) -> Result<()> {
        let Operand::Scalar { first, count } = operand else {
            bail!("{operand:?} can't be written")
        };
        let written = Written { by_vector: Some(self.clock), pending: None };
        self.write_scalar(first, value as u32, written)?;
        if count == 2 {
            self.write_scalar(first + 1, (value >> 32) as u32, written)?;
        }
        Ok(())
    }

    fn write_scalar(&mut self, register: usize, value: u32, written: Written) -> Result<()> {
        ensure!(register < SCALARS, "there is no s{register}");
        if let Some(counter) = self.scalar_written[register].pending {
            bail!("s{register} is written before a wait for {counter}");
        }
        if register < VCC {
            self.used_scalars = self.used_scalars.max(register + 1);
        }
        self.scalars[register] = Some(value);
        self.scalar_written[register] = written;
        Ok(())
    }

    /// The bits of a vector instruction's operand in one lane.
    pub(crate) fn lane(&mut self, operand: Operand, lane: usize) -> Result<u32> {
        let Operand::Vector { first, .. } = operand else { return self.scalar(operand) };
        self.vector_register(first, lane)
    }

    pub(crate) fn vector_register(&mut self, register: usize, lane: usize) -> Result<u32> {
        self.used_vectors = self.used_vectors.max(register + 1);
        if let Some(counter) = self.vector_written[register].pending {
            bail!("v{register} is read before a wait for {counter}");
        }
        self.vectors[register][lane]
            .with_context(|| format!("v{register} is read in lane {lane} but never written"))
    }

    /// Writes a vector register in one lane.
    pub(crate) fn set_lane(
        &mut self,
        register: usize,
        lane: usize,
        value: u32,
        pending: Option<&'static str>,
    ) -> Result<()> {
        self.used_vectors = self.used_vectors.max(register + 1);
        if pending.is_none()
            && let Some(counter) = self.vector_written[register].pending
        {
            bail!("v{register} is written before a wait for {counter}");
        }
        let by_vector = pending.is_none().then_some(self.clock);
        self.vectors[register][lane] = Some(value);
        self.vector_written[register] = Written { by_vector, pending };
        Ok(())
    }

    /// Ends the waits for the counters that the instruction names.
    pub(crate) fn wait(&mut self, counters: &[String]) {
        for written in self.scalar_written.iter_mut().chain(&mut self.vector_written) {
            if written.pending.is_some_and(|pending| counters.iter().any(|name| name == pending)) {
                written.pending = None;
            }
        }
    }

    /// Time that an instruction takes at least.
    pub(crate) fn pass(&mut self, states: u64) {
        self.clock += states;
    }

    /// Rules that the hardware does not enforce, before an instruction runs.
    ///
    /// Source: LLVM, `GCNHazardRecognizer`, `checkDPPHazards`,
    /// `checkVMEMHazards` and `fixVMEMtoScalarWriteHazards`.
    pub(crate) fn check_hazards(&mut self, instruction: &Instruction) -> Result<()> {
        let since = |written: Written| written.by_vector.map(|then| self.clock - then - 1);
        let vector = instruction.name.starts_with("v_");
        let memory = instruction.name.starts_with("global_");
        for operand in &instruction.operands[1.min(instruction.operands.len())..] {
            match *operand {
                Operand::Vector { first, .. } if instruction.row_shift.is_some() => ensure!(
                    since(self.vector_written[first]).is_none_or(|states| states >= 2),
                    "DPP reads v{first} less than 2 wait states after it was written"
                ),
                Operand::Scalar { first, count } if memory => {
                    for register in first..first + count {
                        ensure!(
                            since(self.scalar_written[register]).is_none_or(|states| states >= 5),
                            "memory uses s{register} less than 5 wait states after it was written"
                        );
                    }
                }
                _ => {}
            }
        }
        if vector || instruction.name == "s_waitcnt_depctr" {
            self.read_by_memory.clear();
        }
        if memory && self.generation == 10 {
            self.read_by_memory.extend([EXEC, EXEC + 1]);
            for operand in &instruction.operands {
                if let Operand::Scalar { first, count } = *operand {
                    self.read_by_memory.extend(first..first + count);
                }
            }
        }
        Ok(())
    }
}
