//! Instructions as llvm-objdump prints them.

use anyhow::{Context as _, Result, bail};

/// The scalar registers that have names of their own.
pub(crate) const VCC: usize = 106;
pub(crate) const EXEC: usize = 126;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The first of `count` scalar registers.
    Scalar {
        first: usize,
        count: usize,
    },
    Vector {
        first: usize,
        count: usize,
    },
    /// An inline constant or a literal, as 32 bits.
    Constant(u32),
    /// No register: an offset of 0.
    Null,
}

#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub(crate) address: u64,
    /// Without the encoding's suffix, and with gfx9's names for memory.
    pub(crate) name: String,
    pub(crate) operands: Vec<Operand>,
    /// `row_shr` of a DPP instruction, all rows and banks on, no bound_ctrl.
    pub(crate) row_shift: Option<usize>,
    /// What `s_waitcnt` waits for to become 0: `vmcnt`, `lgkmcnt`.
    pub(crate) waits: Vec<String>,
    /// The line, for messages.
    pub(crate) text: String,
}

impl Instruction {
    /// Reads a line of a disassembly; `None` for lines without instruction.
    pub(crate) fn parse(line: &str) -> Result<Option<Self>> {
        let Some((text, comment)) = line.split_once("//") else { return Ok(None) };
        let text = text.trim();
        let address = comment.trim().split(':').next().unwrap_or_default();
        let address = u64::from_str_radix(address, 16)
            .with_context(|| format!("failed to find an address in `{line}`"))?;
        let (mnemonic, rest) = text.split_once(' ').unwrap_or((text, ""));
        let stem = ["_e32", "_e64", "_dpp"].iter().find_map(|end| mnemonic.strip_suffix(end));
        let mut found = Self {
            address,
            name: gfx9_name(stem.unwrap_or(mnemonic)),
            operands: Vec::new(),
            row_shift: None,
            waits: Vec::new(),
            text: text.to_owned(),
        };
        if found.name == "s_waitcnt" {
            for wait in rest.split_whitespace() {
                let counter = wait.strip_suffix("(0)");
                let counter = counter.with_context(|| format!("failed to read wait `{wait}`"))?;
                found.waits.push(counter.to_owned());
            }
            return Ok(Some(found));
        }
        if found.name == "s_waitcnt_depctr" {
            return Ok(Some(found));
        }
        for (number, part) in rest.split(',').enumerate() {
            let mut words = part.split_whitespace();
            let Some(first) = words.next() else { continue };
            found.operands.push(
                operand(first)
                    .with_context(|| format!("failed to read operand {number} of `{text}`"))?,
            );
            for word in words {
                found.modifier(word).with_context(|| format!("failed to read `{text}`"))?;
            }
        }
        if mnemonic.ends_with("_dpp") && found.row_shift.is_none() {
            bail!("failed to read `{text}`: a DPP control other than row_shr");
        }
        Ok(Some(found))
    }

    fn modifier(&mut self, word: &str) -> Result<()> {
        match word.split_once(':') {
            Some(("row_shr", distance)) => self.row_shift = Some(distance.parse()?),
            Some(("row_mask" | "bank_mask", "0xf")) => {}
            _ => bail!("failed to understand `{word}`"),
        }
        Ok(())
    }
}

/// gfx11 counts bits where gfx9 and gfx10 count dwords.
fn gfx9_name(name: &str) -> String {
    const NAMES: &[(&str, &str)] = &[
        ("s_load_b32", "s_load_dword"),
        ("s_load_b64", "s_load_dwordx2"),
        ("s_load_b128", "s_load_dwordx4"),
        ("global_load_u16", "global_load_ushort"),
        ("global_load_b32", "global_load_dword"),
        ("global_load_b64", "global_load_dwordx2"),
        ("global_load_b128", "global_load_dwordx4"),
        ("global_store_b16", "global_store_short"),
        ("global_store_b32", "global_store_dword"),
        ("global_store_b64", "global_store_dwordx2"),
        ("global_store_b128", "global_store_dwordx4"),
    ];
    let old = NAMES.iter().find(|(new, _)| *new == name).map_or(name, |(_, old)| old);
    old.to_owned()
}

fn operand(word: &str) -> Result<Operand> {
    // LLVM 20 and later name the lower half of a gfx11 register, which stands
    // for the whole of it in instructions on 16 bits before.
    let word = word.strip_suffix(".l").unwrap_or(word);
    let scalar = |first, count| Operand::Scalar { first, count };
    Ok(match word {
        "vcc" => scalar(VCC, 2),
        "vcc_lo" => scalar(VCC, 1),
        "exec" => scalar(EXEC, 2),
        "exec_lo" => scalar(EXEC, 1),
        "null" => Operand::Null,
        _ => {
            if let Some(number) = word.strip_prefix('s').map(range).transpose()?.flatten() {
                scalar(number.0, number.1)
            } else if let Some(number) = word.strip_prefix('v').map(range).transpose()?.flatten() {
                Operand::Vector { first: number.0, count: number.1 }
            } else {
                Operand::Constant(constant(word)?)
            }
        }
    })
}

/// `4` or `[4:7]`: the first register and how many.
fn range(text: &str) -> Result<Option<(usize, usize)>> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let (first, last) = inner.split_once(':').context("failed to read a register range")?;
        let (first, last): (usize, usize) = (first.parse()?, last.parse()?);
        return Ok(Some((first, last + 1 - first)));
    }
    Ok(text.parse().ok().map(|number| (number, 1)))
}

fn constant(word: &str) -> Result<u32> {
    if let Some(hex) = word.strip_prefix("0x") {
        return Ok(u32::from_str_radix(hex, 16)?);
    }
    if word.contains('.') {
        return Ok(word.parse::<f32>()?.to_bits());
    }
    let number: i64 = word.parse().with_context(|| format!("failed to read `{word}`"))?;
    Ok(number as u32)
}
