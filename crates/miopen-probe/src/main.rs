//! Loads libMIOpen, or librocfft ([`rocfft`]), behind stand-ins and reports the kernels that it
//! asks for.
//!
//! gfxpack starts this program with a socket as standard input; see [`protocol`] for the messages.
#![expect(unsafe_code, reason = "calls libMIOpen's C functions, and forks")]

mod convolution;
mod find_db;
mod load;
mod miopen;
mod notes;
mod process;
mod protocol;
mod rocfft;
mod settings;
mod steps;
mod withheld;
mod worker;

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use gfxpack_model::probe_line::{fields, line};

use crate::load::Loaded;
use crate::protocol::{Answer, failed};
use crate::settings::Settings;

fn main() -> ExitCode {
    if std::io::stdin().is_terminal() || std::env::args_os().len() > 1 {
        // Only gfxpack starts this program.
        let _ = writeln!(
            std::io::stderr(),
            "gfxpack-miopen-probe {} is started by gfxpack",
            env!("CARGO_PKG_VERSION")
        );
        return ExitCode::from(2);
    }
    // SAFETY: standard input is open, and nothing else reads it.
    let mut control = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    match start(&control) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(loaded)) => {
            let hello = [
                b"ready".to_vec(),
                env!("CARGO_PKG_VERSION").into(),
                loaded.version().into_bytes(),
            ];
            if control.write_all(&line(&hello)).is_err() {
                return ExitCode::FAILURE;
            }
            worker::serve_workers(&control, &loaded);
            ExitCode::SUCCESS
        }
        Err(answer) => {
            let _ = control.write_all(&line(&answer));
            ExitCode::FAILURE
        }
    }
}

/// Reads the settings, loads the library and warms it up. On failure, returns the answer with the
/// reason. If the library is librocfft, everything is done then, and there is no result.
fn start(control: &UnixStream) -> Result<Option<Loaded>, Answer> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(control);
    loop {
        let mut bytes = Vec::new();
        match reader.read_until(b'\n', &mut bytes) {
            Ok(0) => return Err(failed("the settings end early")),
            Ok(_) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        let fields = fields(&bytes);
        if fields == [b"start"] {
            break;
        }
        lines.push(fields);
    }
    let (rocfft, lines) = rocfft::split(lines);
    let settings = Settings::parse(&lines).map_err(failed)?;
    silence(1).map_err(|error| failed(error.to_string()))?;
    if let Some(own) = rocfft {
        return rocfft::run(control, &own, &settings).map(|()| None);
    }
    let loaded = Loaded::load(settings)?;
    // The library's errors for single problems are in the answers.
    silence(2).map_err(|error| failed(error.to_string()))?;
    Ok(Some(loaded))
}

/// Redirects a descriptor to /dev/null, since the libraries' output is not read.
fn silence(fd: i32) -> std::io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: both are open; only this program uses the replaced one.
    if unsafe { libc::dup2(null.as_raw_fd(), fd) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
