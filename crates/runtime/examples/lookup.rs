//! Finds a kernel for the first GPU, or for a given target:
//!
//!     lookup KERNEL_NAME KERNEL_ARGS [TARGET [COMPILED_FILE]]
//!     lookup conv.cl.o " -DX=1 -mcpu=gfx90a" gfx90a@104 conv.o
//!
//! COMPILED_FILE takes the place of a compiler: it holds the compiled kernel.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;

use gfxpack_runtime::device::{Inputs, detect};
use gfxpack_runtime::{Config, Environment, KernelCache, KernelKey};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(kernel_name), Some(kernel_args)) = (args.next(), args.next()) else {
        return Err("usage: lookup KERNEL_NAME KERNEL_ARGS [TARGET [COMPILED_FILE]]".into());
    };
    let environment = Environment::read();
    let target = match args.next() {
        Some(target) => target.parse()?,
        None => {
            let found = detect(&Inputs::from_environment(&environment));
            found.devices.first().ok_or("there is no GPU: name a target")?.target()
        }
    };
    let compiled = args.next();

    let cache = KernelCache::open(Config::from_environment(target, &environment));
    let key = KernelKey { kernel_name, kernel_args };
    // A program would run its compiler here.
    let kernel = cache.get_or_compile(&key, || match compiled {
        Some(file) => std::fs::read(file).map_err(|error| error.to_string()),
        None => Err("there is no compiler in this example".to_owned()),
    })?;
    println!("{} bytes {}", kernel.code_object.len(), kernel.origin);
    for miss in &kernel.misses {
        println!("not in {}: {}", miss.file.display(), miss.reason);
    }
    if let Some(error) = &kernel.not_stored {
        println!("not saved: {error}");
    }
    Ok(())
}
