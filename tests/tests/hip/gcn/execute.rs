//! The effect of each instruction that the library's kernels use; any other is an error.
//!
//! Source: AMD, "Vega" and "RDNA 2" Instruction Set Architecture reference
//! guides, chapter "Instructions".

use anyhow::{Context as _, Result, bail, ensure};
use half::f16;

use super::instruction::{EXEC, Instruction, Operand};
use super::machine::{Memory, Wave};

/// Lanes in a row, within which DPP shifts.
const ROW: usize = 16;
/// More instructions than any test's wave executes.
const LIMIT: usize = 1_000_000;

/// Runs the wave from `entry` to its `s_endpgm`.
pub(crate) fn run(
    code: &[Instruction],
    entry: u64,
    wave: &mut Wave,
    memory: &mut Memory,
) -> Result<()> {
    let index = |address: u64| {
        code.binary_search_by_key(&address, |instruction| instruction.address)
            .ok()
            .with_context(|| format!("failed to find an instruction at {address:#x}"))
    };
    let mut at = index(entry)?;
    for _ in 0..LIMIT {
        let instruction = code.get(at).context("execution runs past the code")?;
        let flow = wave
            .check_hazards(instruction)
            .and_then(|()| step(instruction, wave, memory))
            .with_context(|| {
            format!("failed at {:#x}: {}", instruction.address, instruction.text)
        })?;
        at = match flow {
            Flow::Next => at + 1,
            Flow::Jump(distance) => {
                // In dwords from the end of the branch, 16 bits with sign.
                let target = instruction.address.wrapping_add_signed(4 + 4 * i64::from(distance));
                index(target)?
            }
            Flow::End => return Ok(()),
        };
    }
    bail!("no end after {LIMIT} instructions")
}

enum Flow {
    Next,
    Jump(i16),
    End,
}

fn step(instruction: &Instruction, wave: &mut Wave, memory: &mut Memory) -> Result<Flow> {
    let name = instruction.name.as_str();
    let operands = &instruction.operands[..];
    let mut flow = Flow::Next;
    let mut time = 1;
    match (name, operands) {
        ("s_endpgm", []) => flow = Flow::End,
        ("s_nop", &[Operand::Constant(count)]) => time = u64::from(count) + 1,
        ("s_waitcnt", []) => wave.wait(&instruction.waits),
        ("s_waitcnt_depctr", []) => {}
        ("s_branch" | "s_cbranch_scc0" | "s_cbranch_scc1" | "s_cbranch_execz", _) => {
            let &[Operand::Constant(distance)] = operands else {
                bail!("a branch has one operand")
            };
            let taken = match name {
                "s_branch" => true,
                "s_cbranch_scc0" => !wave.scc,
                "s_cbranch_scc1" => wave.scc,
                _ => wave.exec() == 0,
            };
            if taken {
                flow = Flow::Jump(distance as u16 as i16);
            }
        }
        (load, &[to, base, offset]) if load.starts_with("s_load_dword") => {
            let address = wave.scalar64(base)? + u64::from(wave.scalar(offset)?);
            let bytes = memory.slice(address, 4 * dwords(load)?, false)?;
            let values: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
            if let Operand::Scalar { first, count } = to {
                ensure!(first % count.min(4) == 0, "s{first} can't begin {count} registers");
            }
            wave.set_scalars(to, &values, Some("lgkmcnt"))?;
        }
        (_, &[to, offset, base]) if name.starts_with("global_load_") => {
            let Operand::Vector { first, .. } = to else { bail!("loads go to vector registers") };
            for (lane, address) in addresses(wave, offset, base)? {
                let bytes = memory.slice(address, bytes(name)?, false)?.to_vec();
                for (register, part) in (first..).zip(bytes.chunks(4)) {
                    wave.set_lane(register, lane, word(part), Some("vmcnt"))?;
                }
            }
        }
        (_, &[offset, from, base]) if name.starts_with("global_store_") => {
            let Operand::Vector { first, .. } = from else { bail!("stores take vector registers") };
            for (lane, address) in addresses(wave, offset, base)? {
                let size = bytes(name)?;
                for (register, at) in (first..).zip((0..size).step_by(4)) {
                    let value = wave.vector_register(register, lane)?.to_le_bytes();
                    let count = 4.min(size - at);
                    memory
                        .slice(address + at as u64, count, true)?
                        .copy_from_slice(&value[..count]);
                }
            }
        }
        _ if name.starts_with("s_") => scalar(name, operands, wave)?,
        _ if name.starts_with("v_") => vector(instruction, wave)?,
        _ => bail!("the interpreter does not know it"),
    }
    wave.pass(time);
    Ok(flow)
}

fn word(bytes: &[u8]) -> u32 {
    let mut whole = [0; 4];
    whole[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(whole)
}

fn dwords(name: &str) -> Result<usize> {
    match name.rsplit_once("dword").context("no dwords")?.1 {
        "" => Ok(1),
        count => Ok(count.trim_start_matches('x').parse()?),
    }
}

fn bytes(name: &str) -> Result<usize> {
    if name.ends_with("short") { Ok(2) } else { Ok(4 * dwords(name)?) }
}

/// The active lanes' addresses: a scalar base, and an unsigned offset per lane.
fn addresses(wave: &mut Wave, offset: Operand, base: Operand) -> Result<Vec<(usize, u64)>> {
    let base = wave.scalar64(base)?;
    wave.active().map(|lane| Ok((lane, base + u64::from(wave.lane(offset, lane)?)))).collect()
}

fn scalar(name: &str, operands: &[Operand], wave: &mut Wave) -> Result<()> {
    match *operands {
        [a, b] if name.starts_with("s_cmp_") => {
            let (a, b) = (wave.scalar(a)?, wave.scalar(b)?);
            wave.scc = match name {
                "s_cmp_eq_u32" => a == b,
                "s_cmp_lg_u32" => a != b,
                "s_cmp_ge_u32" => a >= b,
                _ => bail!("the interpreter does not know it"),
            };
            Ok(())
        }
        [to, from] => match name {
            "s_mov_b32" => {
                let value = wave.scalar(from)?;
                wave.set_scalars(to, &[value], None)
            }
            "s_mov_b64" => {
                let value = wave.scalar64(from)?;
                wave.set_scalars(to, &[value as u32, (value >> 32) as u32], None)
            }
            "s_and_saveexec_b32" | "s_and_saveexec_b64" => {
                let wide = name.ends_with("64");
                ensure!(wide == (wave.lanes == 64), "the mask has another width than the wave");
                let before = wave.exec();
                let mask = if wide { wave.scalar64(from)? } else { wave.scalar(from)?.into() };
                let words = |mask: u64| [mask as u32, (mask >> 32) as u32];
                let count = if wide { 2 } else { 1 };
                wave.set_scalars(to, &words(before)[..count], None)?;
                let exec = Operand::Scalar { first: EXEC, count };
                wave.set_scalars(exec, &words(before & mask)[..count], None)?;
                wave.scc = before & mask != 0;
                Ok(())
            }
            _ => bail!("the interpreter does not know it"),
        },
        [to, a, b] if name == "s_lshl_b64" => {
            let value = wave.scalar64(a)? << (wave.scalar(b)? & 63);
            wave.scc = value != 0;
            wave.set_scalars(to, &[value as u32, (value >> 32) as u32], None)
        }
        [to, a, b] => {
            let (a, b) = (wave.scalar(a)?, wave.scalar(b)?);
            let wide = u64::from(a) + u64::from(b);
            let (value, scc) = match name {
                "s_mul_i32" => (a.wrapping_mul(b), wave.scc),
                "s_mul_hi_u32" => (((u64::from(a) * u64::from(b)) >> 32) as u32, wave.scc),
                "s_cselect_b32" => (if wave.scc { a } else { b }, wave.scc),
                "s_add_u32" => (wide as u32, wide >> 32 != 0),
                "s_addc_u32" => {
                    let wide = wide + u64::from(wave.scc);
                    (wide as u32, wide >> 32 != 0)
                }
                "s_sub_u32" => (a.wrapping_sub(b), a < b),
                "s_min_u32" => (a.min(b), a <= b),
                "s_and_b32" => (a & b, a & b != 0),
                "s_lshl_b32" => (a << (b & 31), a << (b & 31) != 0),
                "s_lshr_b32" => (a >> (b & 31), a >> (b & 31) != 0),
                _ => bail!("the interpreter does not know it"),
            };
            wave.scc = scc;
            wave.set_scalars(to, &[value], None)
        }
        _ => bail!("the interpreter does not know it"),
    }
}

fn vector(instruction: &Instruction, wave: &mut Wave) -> Result<()> {
    let name = instruction.name.as_str();
    match (name, &instruction.operands[..]) {
        ("v_readfirstlane_b32", &[to, from]) => {
            let lane = wave.active().next().unwrap_or(0);
            let value = wave.lane(from, lane)?;
            wave.set_scalar_by_vector(to, value.into())
        }
        ("v_readlane_b32", &[to, from, lane]) => {
            let lane = wave.scalar(lane)? as usize;
            ensure!(lane < wave.lanes, "the wave has no lane {lane}");
            let value = wave.lane(from, lane)?;
            wave.set_scalar_by_vector(to, value.into())
        }
        ("v_cmp_gt_u32", &[to, a, b]) => {
            let mut mask = 0;
            for lane in wave.active() {
                mask |= u64::from(wave.lane(a, lane)? > wave.lane(b, lane)?) << lane;
            }
            wave.set_scalar_by_vector(to, mask)
        }
        (_, &[Operand::Vector { first: to, .. }, ref sources @ ..]) => {
            // All lanes read before any is written.
            let mut results = Vec::new();
            for lane in wave.active() {
                let mut values = Vec::new();
                for (number, &source) in sources.iter().enumerate() {
                    let from = match instruction.row_shift {
                        Some(distance) if number == 0 => {
                            let Some(from) = shifted(wave, lane, distance) else { break };
                            from
                        }
                        _ => lane,
                    };
                    values.push(wave.lane(source, from)?);
                }
                // Without a source lane the result is not written.
                if values.len() == sources.len() {
                    results.push((lane, lane_result(name, &values)?));
                }
            }
            for (lane, value) in results {
                wave.set_lane(to, lane, value, None)?;
            }
            Ok(())
        }
        _ => bail!("the interpreter does not know it"),
    }
}

/// The active lane `distance` below in the same row.
fn shifted(wave: &Wave, lane: usize, distance: usize) -> Option<usize> {
    let from = (lane % ROW).checked_sub(distance)? + lane / ROW * ROW;
    (wave.exec() >> from & 1 == 1).then_some(from)
}

fn lane_result(name: &str, values: &[u32]) -> Result<u32> {
    let float = f32::from_bits;
    Ok(match (name, values) {
        ("v_mov_b32", &[a]) => a,
        ("v_and_b32", &[a, b]) => a & b,
        ("v_lshlrev_b32", &[a, b]) => b << (a & 31),
        ("v_lshrrev_b32", &[a, b]) => b >> (a & 31),
        ("v_lshl_or_b32", &[a, b, c]) => a << (b & 31) | c,
        ("v_add_f32", &[a, b]) => (float(a) + float(b)).to_bits(),
        ("v_mul_f32", &[a, b]) => (float(a) * float(b)).to_bits(),
        // The number where one is NaN, as IEEE mode has it.
        ("v_max_f32", &[a, b]) => float(a).max(float(b)).to_bits(),
        ("v_min_f32", &[a, b]) => float(a).min(float(b)).to_bits(),
        ("v_fma_f32", &[a, b, c]) => float(a).mul_add(float(b), float(c)).to_bits(),
        // gfx10 keeps the upper half of the register: nothing may rely on 0.
        ("v_cvt_f16_f32", &[a]) => u32::from(f16::from_f32(float(a)).to_bits()) | 0xdead_0000,
        ("v_cvt_f32_f16", &[a]) => f16::from_bits(a as u16).to_f32().to_bits(),
        _ => bail!("the interpreter does not know it"),
    })
}
