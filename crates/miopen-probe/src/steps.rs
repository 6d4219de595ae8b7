//! Runs the steps for a problem: searching, immediate mode, records of a find database, and the
//! library's own choice.

use core::ffi::{c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::convolution::{Convolution, Direction, Tensor};
use crate::load::Loaded;
use crate::miopen::{ConvAlgoPerf, DirectionApi, MiOpen, Object, Solution, Status};
use crate::notes::{note, step};
use crate::protocol::number;

/// The size of the workspace in bytes: more than any solver needs.
const WORKSPACE: usize = 64 << 30;
/// The most results of a search.
const WANTED: usize = 10;

/// `miopenConvolutionFindModeNormal`, and the hybrid mode.
const MODE_NORMAL: c_int = 1;
const MODE_HYBRID: c_int = 3;
/// `miopenStatusBadParm`.
const BAD_PARAMETER: Status = 3;

/// A step for a problem, in each of its directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `search`: a search through all applicable solvers.
    Search,
    /// `immediate`: after a search, each of its solutions in immediate mode.
    Immediate,
    /// `hit`: after a search, the record of the find database instead of the search's.
    Hit,
    /// `mode-N`: like a program that searches in find mode N, twice.
    Mode(c_int),
    /// `unprepared`: like a program that does not search.
    Unprepared,
    /// `bias`: adding the bias, which no solver of convolutions does.
    Bias,
}

impl Step {
    /// Steps separated by commas.
    pub(crate) fn parse_list(text: &[u8]) -> Option<Vec<Self>> {
        text.split(|&byte| byte == b',').map(Self::parse).collect()
    }

    fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"search" => Self::Search,
            b"immediate" => Self::Immediate,
            b"hit" => Self::Hit,
            b"unprepared" => Self::Unprepared,
            b"bias" => Self::Bias,
            _ => Self::Mode(number(text.strip_prefix(b"mode-")?)?),
        })
    }
}

/// A problem as objects of MIOpen.
struct Problem<'a> {
    loaded: &'a Loaded,
    convolution: &'a Convolution,
    descriptor: Object,
    input: Buffer,
    filter: Buffer,
    output: Buffer,
    workspace: *mut c_void,
}

/// A tensor on the device.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    descriptor: Object,
    address: *mut c_void,
}

/// A call failed, was noted, and ended its step.
struct Refused;

/// Notes a call if it failed.
fn check(call: &str, status: Status) -> Result<(), Refused> {
    if status == 0 {
        return Ok(());
    }
    note(&[b"refused", call.as_bytes(), status.to_string().as_bytes()]);
    Err(Refused)
}

/// Runs the steps in this process, which changes it. The current directory is the library's user
/// directory.
pub(crate) fn run(loaded: &Loaded, convolution: &Convolution, steps: &[Step]) {
    step("prepare", '-');
    // The failed call has been noted.
    let Ok(problem) = Problem::new(loaded, convolution) else { return };
    for step in steps {
        match step {
            Step::Search => problem.each("search", |direction| {
                problem.find(loaded.handles[0], direction, MODE_NORMAL).map(drop)
            }),
            Step::Immediate => problem.each("immediate", |direction| {
                problem.immediate(loaded.handles[1], direction, usize::MAX)
            }),
            Step::Hit => problem.hit(),
            Step::Mode(mode) => problem.mode(*mode),
            Step::Unprepared => {
                let handle = loaded.new_handle();
                problem.each("unprepared", |direction| problem.immediate(handle, direction, 1));
            }
            Step::Bias => problem.bias(),
        }
    }
}

impl<'a> Problem<'a> {
    fn new(loaded: &'a Loaded, convolution: &'a Convolution) -> Result<Self, Refused> {
        let api = &loaded.api;
        let axes = c_int::try_from(convolution.pad.len()).expect("2 or 3");
        let mut descriptor = ptr::null_mut();
        // SAFETY: the descriptor is written to a valid place; the arrays have one number per axis.
        unsafe {
            check(
                "miopenCreateConvolutionDescriptor",
                (api.create_convolution)(&raw mut descriptor),
            )?;
            check(
                "miopenInitConvolutionNdDescriptor",
                (api.init_convolution)(
                    descriptor,
                    axes,
                    convolution.pad.as_ptr(),
                    convolution.stride.as_ptr(),
                    convolution.dilation.as_ptr(),
                    c_int::from(convolution.transposed),
                ),
            )?;
            check(
                "miopenSetConvolutionGroupCount",
                (api.set_groups)(descriptor, convolution.groups),
            )?;
            if convolution.output_pad.iter().any(|&pad| pad != 0) {
                check(
                    "miopenSetTransposeConvNdOutputPadding",
                    (api.set_output_pad)(descriptor, axes, convolution.output_pad.as_ptr()),
                )?;
            }
        }
        Ok(Self {
            loaded,
            convolution,
            descriptor,
            input: Buffer::new(api, &convolution.input, convolution.input_type)?,
            filter: Buffer::new(api, &convolution.filter, convolution.input_type)?,
            output: Buffer::new(api, &convolution.output, convolution.output_type)?,
            workspace: allocate(WORKSPACE)?,
        })
    }

    /// Calls `act` for each direction; if one is refused, the others are still run.
    fn each(&self, name: &str, mut act: impl FnMut(Direction) -> Result<(), Refused>) {
        for &direction in &self.convolution.directions {
            step(name, direction.letter());
            let _ = act(direction);
        }
    }

    fn functions(&self, direction: Direction) -> &'a DirectionApi {
        &self.loaded.directions[direction as usize]
    }

    /// The tensors in the order of searching and running.
    fn tensors(&self, direction: Direction) -> [Buffer; 3] {
        match direction {
            Direction::Forward => [self.input, self.filter, self.output],
            Direction::BackwardData => [self.output, self.filter, self.input],
            Direction::BackwardWeights => [self.output, self.input, self.filter],
        }
    }

    /// The tensors in the order of immediate mode.
    fn tensors_immediate(&self, direction: Direction) -> [Buffer; 3] {
        let [a, b, c] = self.tensors(direction);
        if direction == Direction::Forward { [b, a, c] } else { [a, b, c] }
    }

    /// Searches in that find mode; returns the best algorithm.
    fn find(&self, handle: Object, direction: Direction, mode: c_int) -> Result<c_int, Refused> {
        let [a, b, c] = self.tensors(direction);
        let mut found = [ConvAlgoPerf::default(); WANTED];
        let mut count = 0;
        // SAFETY: all objects are the library's own, the device buffers have the sizes in their
        // descriptors, and the results have room for the requested number.
        unsafe {
            check(
                "miopenSetConvolutionFindMode",
                (self.loaded.api.set_find_mode)(self.descriptor, mode),
            )?;
            check(
                "miopenFindConvolution",
                (self.functions(direction).find)(
                    handle,
                    a.descriptor,
                    a.address,
                    b.descriptor,
                    b.address,
                    self.descriptor,
                    c.descriptor,
                    c.address,
                    c_int::try_from(WANTED).expect("small"),
                    &raw mut count,
                    found.as_mut_ptr(),
                    self.workspace,
                    WORKSPACE,
                    false,
                ),
            )?;
        }
        Ok(found[0].algorithm)
    }

    /// Runs the algorithm that a search found.
    fn run(&self, handle: Object, direction: Direction, algorithm: c_int) -> Result<(), Refused> {
        let [a, b, c] = self.tensors(direction);
        let (one, zero) = (1.0_f32, 0.0_f32);
        // SAFETY: as for a search; the factors are floating-point numbers in host memory.
        check("miopenConvolution", unsafe {
            (self.functions(direction).run)(
                handle,
                (&raw const one).cast(),
                a.descriptor,
                a.address,
                b.descriptor,
                b.address,
                self.descriptor,
                algorithm,
                (&raw const zero).cast(),
                c.descriptor,
                c.address,
                self.workspace,
                WORKSPACE,
            )
        })
    }

    /// Runs the first `most` solutions in immediate mode.
    fn immediate(&self, handle: Object, direction: Direction, most: usize) -> Result<(), Refused> {
        let functions = self.functions(direction);
        let [a, b, c] = self.tensors_immediate(direction);
        let (conv, mut count) = (self.descriptor, 0);
        // SAFETY: all objects are the library's own.
        check("miopenConvolutionGetSolutionCount", unsafe {
            let count = &raw mut count;
            (functions.count)(handle, a.descriptor, b.descriptor, conv, c.descriptor, count)
        })?;
        let mut solutions = vec![Solution::default(); count.min(most)];
        // SAFETY: as before; the array has room for the requested number.
        check("miopenConvolutionGetSolution", unsafe {
            (functions.get)(
                handle,
                a.descriptor,
                b.descriptor,
                conv,
                c.descriptor,
                solutions.len(),
                &raw mut count,
                solutions.as_mut_ptr(),
            )
        })?;
        solutions.truncate(count);
        let mut result = Ok(());
        for solution in solutions {
            // SAFETY: as before; the library returned the solution.
            let compiled = check("miopenConvolutionCompileSolution", unsafe {
                let compile = functions.compile;
                compile(handle, a.descriptor, b.descriptor, conv, c.descriptor, solution.id)
            });
            let run = compiled.and_then(|()| {
                // SAFETY: as for a search.
                check("miopenConvolutionImmediate", unsafe {
                    (functions.immediate)(
                        handle,
                        a.descriptor,
                        a.address,
                        b.descriptor,
                        b.address,
                        conv,
                        c.descriptor,
                        c.address,
                        self.workspace,
                        WORKSPACE,
                        solution.id,
                    )
                })
            });
            // If one is refused, the others are still run.
            result = result.and(run);
        }
        result
    }

    /// Does what a program does that searches in this mode, runs the result, and is started again
    /// after the library has recorded it.
    fn mode(&self, mode: c_int) {
        // SAFETY: the descriptor is the library's own.
        let status = unsafe { (self.loaded.api.set_find_mode)(self.descriptor, mode) };
        if status == BAD_PARAMETER {
            // This release lacks the mode, so no program searches in it.
            return;
        }
        for name in [format!("mode-{mode}"), format!("mode-{mode}-again")] {
            let handle = self.loaded.new_handle();
            self.each(&name, |direction| {
                let algorithm = self.find(handle, direction, mode)?;
                self.run(handle, direction, algorithm)?;
                self.immediate(handle, direction, 1)
            });
        }
    }

    /// Does what programs do that find the problem in the find database.
    fn hit(&self) {
        let recorded = match self.record() {
            Ok(recorded) => recorded,
            Err(error) => {
                note(&[b"unanswered", format!("find database: {error}").as_bytes()]);
                return;
            }
        };
        self.each("hit", |direction| {
            if !recorded.contains(&direction.letter()) {
                note(&[b"unrecorded", direction.letter().to_string().as_bytes()]);
                return Ok(());
            }
            let handle = self.loaded.handles[2];
            let algorithm = self.find(handle, direction, MODE_HYBRID)?;
            self.run(handle, direction, algorithm)?;
            self.immediate(handle, direction, 1)
        });
    }

    /// Writes the find database's records of the problem into the user's, in place of those of the
    /// search before. Returns the directions that the database contains.
    fn record(&self) -> std::io::Result<Vec<char>> {
        let Some(database) = &self.loaded.find_db else { return Ok(Vec::new()) };
        let (mut recorded, mut lines) = (Vec::new(), Vec::new());
        let Some(file) = user_find_db(Path::new("."))? else { return Ok(recorded) };
        for line in fs::read(&file)?.split(|&byte| byte == b'\n') {
            let key = line.split(|&byte| byte == b'=').next().unwrap_or_default();
            if let Some(line) = database.line(key) {
                // A key ends with its direction, or with its direction and groups.
                let direction = key.rsplit(|&byte| byte == b'-').next().unwrap_or_default();
                recorded.extend(direction.first().map(|&letter| char::from(letter)));
                lines.extend(line);
            }
        }
        fs::write(&file, &lines)?;
        // The library reads the file again only if this time is later than that of its last read.
        let mut time = file.into_os_string();
        time.push(".time");
        fs::write(PathBuf::from(time), i64::MAX.to_string())?;
        Ok(recorded)
    }

    fn bias(&self) {
        let api = &self.loaded.api;
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let channels = self.convolution.output.lengths[1];
        let mut lengths = vec![1; self.convolution.output.lengths.len()];
        lengths[1] = channels;
        let mut strides = vec![1; lengths.len()];
        strides[0] = channels;
        let handle = self.loaded.handles[0];
        let data_type = self.convolution.output_type;
        step("bias", '-');
        let Ok(bias) = Buffer::new(api, &Tensor { lengths, strides }, data_type) else { return };
        let (output, bias) = (self.output, bias);
        let directions = &self.convolution.directions;
        if directions.contains(&Direction::Forward) {
            // SAFETY: all objects are the library's own, and the factors are numbers in host
            // memory.
            let status = unsafe {
                let (to, from) =
                    ((output.descriptor, output.address), (bias.descriptor, bias.address));
                (api.forward_bias)(handle, one, from.0, from.1, zero, to.0, to.1)
            };
            let _ = check("miopenConvolutionForwardBias", status);
        }
        if directions.contains(&Direction::BackwardWeights) {
            // SAFETY: as before.
            let status = unsafe {
                let (to, from) =
                    ((bias.descriptor, bias.address), (output.descriptor, output.address));
                (api.backward_bias)(handle, one, from.0, from.1, zero, to.0, to.1)
            };
            let _ = check("miopenConvolutionBackwardBias", status);
        }
    }
}

/// The user's find database in that directory; the library chooses its name.
fn user_find_db(directory: &Path) -> std::io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.as_os_str().as_bytes().ends_with(b".ufdb.txt") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn allocate(bytes: usize) -> Result<*mut c_void, Refused> {
    gfxpack_standin::allocate(bytes).ok_or_else(|| {
        note(&[b"refused", b"hipMalloc", b"2"]);
        Refused
    })
}

impl Buffer {
    fn new(api: &MiOpen, tensor: &Tensor, data_type: c_int) -> Result<Self, Refused> {
        let (mut descriptor, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: the descriptor is written to a valid place; both arrays have one number per
        // dimension.
        unsafe {
            check("miopenCreateTensorDescriptor", (api.create_tensor)(&raw mut descriptor))?;
            check(
                "miopenSetTensorDescriptor",
                (api.set_tensor)(
                    descriptor,
                    data_type,
                    c_int::try_from(tensor.lengths.len()).expect("4 or 5"),
                    tensor.lengths.as_ptr(),
                    tensor.strides.as_ptr(),
                ),
            )?;
            check("miopenGetTensorNumBytes", (api.tensor_bytes)(descriptor, &raw mut bytes))?;
        }
        Ok(Self { descriptor, address: allocate(bytes)? })
    }
}
