//! `kdb disasm|symbols`: shows the contents of one code object.

use std::io::{BufRead, BufReader};
use std::path::Path;

use gfxpack_model::{KernelKey, code_object};
use gfxpack_pipeline::text::key_in_words;
use gfxpack_pipeline::toolchains::disassembler;
use gfxpack_toolchain::{ObjectInfo, Symbol};
use serde_json::Value;

use crate::args::{CompilerArgs, MaxObject, SelectObject};
use crate::context::Context;
use crate::fail::{self, Error, ErrorKind, Result};
use crate::options::compiler_options;
use crate::output::{Output, message};

/// The code object of one kernel.
///
/// # Errors
/// If the file can't be read, or does not have the kernel.
pub(super) fn find(select: &SelectObject, max_object: MaxObject) -> Result<Vec<u8>> {
    let SelectObject { file, name, args } = select;
    let key = KernelKey { kernel_name: name.clone(), kernel_args: args.clone() };
    let found = max_object.open(file)?.get(&key)?;
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("failed to find {} in `{}`", key_in_words(&key), file.display()),
            "keys are compared byte for byte, leading blanks and ` -mcpu=` included; `gfxpack kdb \
             list --filter TEXT` shows them",
        )
    })
}

/// The error for a code object that can't be read.
fn unreadable(select: &SelectObject, error: impl std::fmt::Display) -> Error {
    fail::usage(
        format!("failed to read the code object of `{}`: {error}", select.name),
        "`gfxpack kdb verify` says what else is wrong with the file",
    )
}

/// Prints the disassembly.
pub(super) fn disasm(
    select: &SelectObject,
    max_object: MaxObject,
    compilers: &CompilerArgs,
    context: &Context,
) -> Result {
    let Context { environment, output, .. } = context;
    let bytes = find(select, max_object)?;
    let files = code_object::elf_files(&bytes).map_err(|error| unreadable(select, error))?;
    let cancel = &context.cancellable()?.cancel;
    let (search, cache) = compiler_options(compilers, environment)?;
    let disassembler = disassembler(&search, &cache, &files[0].0, cancel)?;
    for (target, file) in files {
        let text = disassembler.run(file, target.processor(), cancel)?;
        // The name of the scratch file means nothing to the user.
        let lines = BufReader::new(text).split(b'\n').skip_while(|line| {
            line.as_ref().is_ok_and(|line| line.is_empty() || line.starts_with(b"kernel.o:"))
        });
        output.text(&format!("# {} for {target}", select.name));
        for line in lines {
            let line = line.map_err(fail::io("read", Path::new("the disassembly")))?;
            let line = String::from_utf8_lossy(&line);
            message!(output, "line", { "target": target.to_string(), "text": line });
            output.text(&line);
            if output.is_broken() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Prints symbols and the resources that kernels need.
pub(super) fn symbols(select: &SelectObject, max_object: MaxObject, output: &Output) -> Result {
    let bytes = find(select, max_object)?;
    let files = code_object::elf_files(&bytes).map_err(|error| unreadable(select, error))?;
    for (target, file) in files {
        let found = ObjectInfo::read(file).map_err(|error| unreadable(select, error))?;
        message!(output, "symbols", {
            "target": target.to_string(), "symbols": found.symbols, "metadata": found.metadata,
        });
        output.text(&format!("{} for {target}, {} bytes", select.name, file.len()));
        for kernel in found.kernels() {
            output.text(&format!("  {kernel}"));
        }
        if let Value::String(yaml) = &found.metadata {
            yaml.lines().for_each(|line| output.text(&format!("  {line}")));
        }
        output.text(&format!("  {:>18} {:>9}  {:<8} symbol", "address", "bytes", "kind"));
        for Symbol { name, kind, address, size, .. } in &found.symbols {
            output.text(&format!("  {address:#018x} {size:>9}  {kind:<8} {name}"));
        }
    }
    Ok(())
}
