//! Runs librocfft behind the stand-ins: creates plans, and reports the programs that it compiles
//! with hipRTC for them.
//!
//! The settings are those of [`crate::settings`], and:
//!
//! | line | meaning |
//! | --- | --- |
//! | `rocfft DIRECTORY` | the library is librocfft; where the programs' texts go, each into a file called after its number |
//! | `plan NUMBERS` | a plan, its numbers separated by blanks: placement, transform and precision as in `rocfft.h`, batch, how many lengths, and these, the fastest first; for a layout that rocFFT does not choose by itself, of the input and then of the output: type as in `rocfft.h`, two offsets, distance, strides |
//!
//! The answers over the same socket:
//!
//! | line | meaning |
//! | --- | --- |
//! | `ready VERSION ROCFFT` | this program's version, and the library's |
//! | `program NUMBER OPTION…` | a program was compiled with these options |
//! | `unanswered WHAT` | a stand-in has no answer |
//! | `plan NUMBER STATUS` | what creating this plan came to; 0 is success |
//! | `end` | the library has written all that it keeps |

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gfxpack_model::probe_line::line;
use gfxpack_standin::{Event, interface};

use crate::load;
use crate::protocol::{Answer, failed, number};
use crate::settings::Settings;

/// A plan, as `rocfft_plan_create` takes it.
struct Plan {
    placement: c_int,
    transform: c_int,
    precision: c_int,
    batch: usize,
    lengths: Vec<usize>,
    /// The layouts of input and output, if they are not rocFFT's defaults.
    layout: Option<[Array; 2]>,
}

/// The layout of an array's values.
#[derive(Debug, PartialEq)]
struct Array {
    kind: c_int,
    offsets: [usize; 2],
    distance: usize,
    strides: Vec<usize>,
}

/// The most lengths of a plan.
const DIMENSIONS: usize = 3;

interface! {
    /// Source: rocFFT, `rocfft.h`.
    RocFft {
        setup: "rocfft_setup" = fn() -> c_int;
        cleanup: "rocfft_cleanup" = fn() -> c_int;
        version: "rocfft_get_version_string" = fn(*mut c_char, usize) -> c_int;
        create: "rocfft_plan_create" = fn(
            *mut *mut c_void, c_int, c_int, c_int, usize, *const usize, usize, *const c_void
        ) -> c_int;
        destroy: "rocfft_plan_destroy" = fn(*mut c_void) -> c_int;
        describe: "rocfft_plan_description_create" = fn(*mut *mut c_void) -> c_int;
        set_layout: "rocfft_plan_description_set_data_layout" = fn(
            *mut c_void, c_int, c_int, *const usize, *const usize, usize, *const usize, usize,
            usize, *const usize, usize
        ) -> c_int;
        destroy_description: "rocfft_plan_description_destroy" = fn(*mut c_void) -> c_int;
    }
}

/// The connection to gfxpack.
struct Connection {
    socket: Mutex<UnixStream>,
    sources: PathBuf,
}

/// The fields of a setting.
type Line = Vec<Vec<u8>>;

/// Splits settings into the lines for this module, if the library is librocfft, and the others.
pub(crate) fn split(lines: Vec<Line>) -> (Option<Vec<Line>>, Vec<Line>) {
    let is_own = |line: &Line| matches!(line[0].as_slice(), b"rocfft" | b"plan");
    let (own, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(is_own);
    (Some(own).filter(|own| !own.is_empty()), others)
}

/// Creates all plans, and reports over the socket.
///
/// # Errors
/// The answer that says why the library can't be used, or the end of the socket.
pub(crate) fn run(socket: &UnixStream, own: &[Line], settings: &Settings) -> Result<(), Answer> {
    let io = |error: io::Error| failed(error.to_string());
    let (mut sources, mut plans) = (PathBuf::new(), Vec::new());
    for line in own {
        match line.as_slice() {
            [name, directory] if name == b"rocfft" => {
                sources = PathBuf::from(std::ffi::OsStr::from_bytes(directory));
            }
            [_, text] => plans.push(Plan::parse(text).ok_or_else(|| {
                failed(format!("can't read the plan `{}`", String::from_utf8_lossy(text)))
            })?),
            _ => return Err(failed("a setting has too many fields")),
        }
    }
    gfxpack_standin::simulate_gpu(settings.gpu.clone());
    gfxpack_standin::compile_to_stand_ins();
    let socket = Mutex::new(socket.try_clone().map_err(io)?);
    let connection = Arc::new(Connection { socket, sources });
    let recorder = Arc::clone(&connection);
    gfxpack_standin::set_recorder(move |event| recorder.record(event));
    let loaded = load::load_all(settings).map_err(failed)?;
    let api =
        RocFft::find(loaded, "").map_err(|symbol| vec![b"missing".to_vec(), symbol.into()])?;
    // SAFETY: rocFFT declares the functions with these types. Nothing else uses the library.
    unsafe {
        match (api.setup)() {
            0 => {}
            status => return Err(failed(format!("rocfft_setup failed with status {status}"))),
        }
        connection.send(&[b"ready", env!("CARGO_PKG_VERSION").as_bytes(), &api.version_text()]);
        for (index, plan) in plans.iter().enumerate() {
            let status = plan.create(&api);
            connection.send(&[
                b"plan",
                index.to_string().as_bytes(),
                status.to_string().as_bytes(),
            ]);
        }
        (api.cleanup)();
    }
    connection.send(&[b"end"]);
    Ok(())
}

impl Connection {
    /// Sends a line. If this fails, the client is gone, and this process ends.
    fn send(&self, fields: &[&[u8]]) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if socket.write_all(&line(fields)).and_then(|()| socket.flush()).is_err() {
            std::process::exit(1);
        }
    }

    fn record(&self, event: Event<'_>) {
        match event {
            Event::Compiled { number, source, options } => {
                let path = self.sources.join(number.to_string());
                if let Err(error) = fs::write(path, source) {
                    self.send(&[b"failed", error.to_string().as_bytes()]);
                    std::process::exit(1);
                }
                let number = number.to_string();
                let fields = [&[b"program", number.as_bytes()], options].concat();
                self.send(&fields);
            }
            Event::Unanswered(what) => self.send(&[b"unanswered", what.as_bytes()]),
            _ => {}
        }
    }
}

impl Plan {
    fn parse(text: &[u8]) -> Option<Self> {
        let words: Vec<usize> =
            text.split(|&byte| byte == b' ').map(number).collect::<Option<_>>()?;
        let [placement, transform, precision, batch, dimensions, ref rest @ ..] = words[..] else {
            return None;
        };
        (1..=DIMENSIONS).contains(&dimensions).then_some(())?;
        let (lengths, rest) = rest.split_at_checked(dimensions)?;
        let layout = match rest.split_at(rest.len() / 2) {
            ([], []) => None,
            (input, output) => {
                Some([Array::parse(input, dimensions)?, Array::parse(output, dimensions)?])
            }
        };
        Some(Self {
            placement: c_int::try_from(placement).ok()?,
            transform: c_int::try_from(transform).ok()?,
            precision: c_int::try_from(precision).ok()?,
            batch,
            lengths: lengths.to_vec(),
            layout,
        })
    }

    /// Creates the plan and destroys it again.
    ///
    /// # Safety
    /// The library must be set up.
    unsafe fn create(&self, api: &RocFft) -> c_int {
        let (mut plan, mut description) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the lengths and strides have the given numbers of elements, and plan and
        // description are written to valid places.
        unsafe {
            let mut status = 0;
            if let Some([input, output]) = &self.layout {
                status = (api.describe)(&raw mut description);
                if status == 0 {
                    status = (api.set_layout)(
                        description,
                        input.kind,
                        output.kind,
                        input.offsets.as_ptr(),
                        output.offsets.as_ptr(),
                        input.strides.len(),
                        input.strides.as_ptr(),
                        input.distance,
                        output.strides.len(),
                        output.strides.as_ptr(),
                        output.distance,
                    );
                }
            }
            if status == 0 {
                status = (api.create)(
                    &raw mut plan,
                    self.placement,
                    self.transform,
                    self.precision,
                    self.lengths.len(),
                    self.lengths.as_ptr(),
                    self.batch,
                    description,
                );
            }
            if !plan.is_null() {
                (api.destroy)(plan);
            }
            if !description.is_null() {
                (api.destroy_description)(description);
            }
            status
        }
    }
}

impl Array {
    fn parse(words: &[usize], dimensions: usize) -> Option<Self> {
        let [kind, first, second, distance, strides @ ..] = words else { return None };
        (strides.len() == dimensions).then_some(())?;
        Some(Self {
            kind: c_int::try_from(*kind).ok()?,
            offsets: [*first, *second],
            distance: *distance,
            strides: strides.to_vec(),
        })
    }
}

impl RocFft {
    fn version_text(&self) -> Vec<u8> {
        let mut text: [u8; 256] = [0; 256];
        // SAFETY: the text has the given length, and its last byte stays zero.
        unsafe { (self.version)(text.as_mut_ptr().cast(), text.len() - 1) };
        text.iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_parsed_from_numbers() {
        let plan = Plan::parse(b"1 0 1 8 2 64 32").unwrap();
        assert_eq!((plan.placement, plan.transform, plan.precision), (1, 0, 1));
        assert_eq!((plan.batch, plan.lengths, plan.layout), (8, vec![64, 32], None));
        let plan = Plan::parse(b"1 2 1 8 1 64 2 0 0 70 1 3 5 6 40 2").unwrap();
        let [input, output] = plan.layout.unwrap();
        assert_eq!((input.kind, input.distance, input.strides), (2, 70, vec![1]));
        assert_eq!((output.offsets, output.strides), ([5, 6], vec![2]));
        for none in [&b"1 0 1 8 0"[..], b"1 0 1 8 4 1 2 3 4", b"1 0 1 x 1 64", b"1 0 1 8 2 64", b""]
        {
            assert!(Plan::parse(none).is_none(), "{none:?}");
        }
        assert!(Plan::parse(b"1 2 1 8 1 64 2 0 0 70 1 3 5 6 40").is_none());
    }
}
