//! The stand-ins as a library that is preloaded into MIOpenDriver, an unmodified program that is
//! linked to libMIOpen.
//!
//! Environment variables control it:
//!
//! | variable | meaning |
//! | --- | --- |
//! | `GFXPACK_PRELOAD_DEVICE` | the device to claim: architecture, blank, compute units |
//! | `GFXPACK_PRELOAD_NOTES` | the file that notes are appended to |
//! | `GFXPACK_PRELOAD_SQLITE` | the real SQLite; without it, the stand-in has every kernel |
//! | `GFXPACK_PRELOAD_WITHHELD` | a file that says which kernels it has not (the module `withheld`) |
//!
//! Notes are as in the `protocol` module of the probe.
#![expect(unsafe_code, reason = "runs when it is loaded, before the program itself")]

mod notes;
mod withheld;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::path::Path;

use gfxpack_standin::{KernelDatabases, SimulatedGpu};

use crate::withheld::Withheld;

/// Run by the dynamic loader.
#[used]
// SAFETY: the section contains functions without parameters that run before `main`.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// If the library is preloaded into a program by mistake, the program runs without a device, and
/// nothing is recorded.
extern "C" fn start() {
    let Some(gpu) = variable("GFXPACK_PRELOAD_DEVICE").and_then(|device| gpu(&device)) else {
        return;
    };
    let Some(path) = variable("GFXPACK_PRELOAD_NOTES") else { return };
    let Ok(file) = File::options().append(true).create(true).open(path) else { return };
    // SAFETY: requests a signal for the end of the thread that waits for this program.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    gfxpack_standin::simulate_gpu(gpu);
    gfxpack_standin::set_recorder(notes::record);
    notes::begin(file);
    notes::step("driver", '-');
    if let Some(path) = variable("GFXPACK_PRELOAD_WITHHELD") {
        match withheld(Path::new(&path)) {
            Ok(withheld) => gfxpack_standin::withhold(move |key| withheld.has(key)),
            Err(error) => notes::note(&[b"unanswered", error.to_string().as_bytes()]),
        }
    }
    if let Some(sqlite) = variable("GFXPACK_PRELOAD_SQLITE") {
        match gfxpack_standin::load_sqlite(Path::new(&sqlite)) {
            Ok(()) => gfxpack_standin::kernel_databases(KernelDatabases::RealThenAnswered),
            Err(reason) => notes::note(&[b"unanswered", reason.as_bytes()]),
        }
    }
}

fn withheld(path: &Path) -> std::io::Result<Withheld> {
    let mut withheld = Withheld::default();
    for line in std::fs::read(path)?.split_inclusive(|&byte| byte == b'\n') {
        let fields = gfxpack_model::probe_line::fields(line);
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        withheld.take(&fields).ok_or(std::io::ErrorKind::InvalidData)?;
    }
    Ok(withheld)
}

#[expect(clippy::disallowed_methods, reason = "the one module of this library that reads them")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn gpu(device: &OsString) -> Option<SimulatedGpu> {
    let (architecture, count) = device.to_str()?.split_once(' ')?;
    Some(SimulatedGpu {
        architecture: CString::new(architecture).ok()?,
        compute_units: count.parse().ok()?,
    })
}
