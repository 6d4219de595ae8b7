//! Writes any number of keys of small assembly kernels.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// Number of sources.
pub(super) const SOURCES: usize = 40;
/// Number of symbols that each key defines, as MIOpen's assembly keys do.
pub(super) const SYMBOLS: usize = 12;
const SOURCE: &str = ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n    s_endpgm\n.size k, .-k\n\
    .section .rodata,\"a\",@progbits\n.p2align 6\n.amdhsa_kernel k\n    .amdhsa_next_free_vgpr 4\n    \
    .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel\n";

/// Writes keys and their sources, and returns the length of the arguments.
pub(super) fn write_keys(dir: &Path, jobs: usize) -> anyhow::Result<usize> {
    for source in 0..SOURCES {
        let text = format!("// {source}\n{SOURCE}");
        fs::write(dir.join(format!("src/conv{source:02}.s")), text)?;
    }
    let mut out = BufWriter::new(fs::File::create(dir.join("keys.jsonl"))?);
    let mut length = 0;
    for job in 0..jobs {
        let mut args = String::new();
        for symbol in 0..SYMBOLS {
            // The first symbol distinguishes jobs; the values of the others are
            // like sizes.
            let value = if symbol == 0 { job } else { 16 << (job >> symbol & 3) };
            write!(args, " -Wa,-defsym,symbol_{symbol:02}={value}")?;
        }
        args.push_str(" -mcpu=gfx906");
        length = args.len();
        writeln!(
            out,
            "{{\"kernel_name\":\"conv{:02}.s.o\",\"kernel_args\":\"{args}\"}}",
            job % SOURCES
        )?;
    }
    out.flush()?;
    Ok(length)
}
