//! Uses a kernel like an application that got it as bytes: loads it on PoCL's device, runs it, and
//! reads the result.
//!
//! Each application is a process of its own, with a PoCL that has compiled nothing before.

#![expect(unsafe_code, reason = "OpenCL is a C interface")]

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use gfxpack_plan::{expand, manifest};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem as _};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;

use crate::project::workspace;

/// The gfx target under whose name PoCL's code is stored in a kdb: a CPU has none, and the tests do
/// not depend on it.
pub const STAND_IN: &str = "gfx906_60";

/// Options of PoCL's compiler besides the key's own.
const OPTIONS: &str = "-cl-kernel-arg-info -cl-denorms-are-zero";

/// A kernel of the built-in library, by its source and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The options of its key, with the leading blank.
    pub options: String,
}

impl Source {
    /// The source's only variant whose options contain all of `wanted`.
    ///
    /// # Errors
    /// The manifest has none, or several.
    pub fn find(file_name: &str, wanted: &[&str]) -> Result<Self> {
        let library = workspace().join("packaging/kernels");
        let text = std::fs::read_to_string(library.join("kernels.toml"))
            .context("failed to read the built-in manifest")?;
        let manifest = manifest::parse("kernels.toml", &text)?;
        let has = |options: &str, wanted: &str| options.split(' ').any(|option| option == wanted);
        let mut found: Vec<Self> = expand::expand(&manifest, "gfx906")?
            .into_iter()
            .filter(|request| request.source.file_name().is_some_and(|name| name == file_name))
            .filter(|request| wanted.iter().all(|option| has(request.options(), option)))
            .map(|request| Self {
                options: request.options().to_owned(),
                path: library.join(request.source),
            })
            .collect();
        let count = found.len();
        found.pop().filter(|_| count == 1).with_context(|| {
            format!("failed to choose among {count} variants of `{file_name}` with {wanted:?}")
        })
    }

    /// `softmax.cl`.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// PoCL's device, opened like an application does.
pub struct App {
    context: Context,
    queue: CommandQueue,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// Numbers for the kernel to read.
    Input(&'a [f32]),
    /// This many numbers for the kernel to write; all NaN before. One per launch.
    Output(usize),
    /// A 32-bit number.
    U32(u32),
    /// A 64-bit number.
    U64(u64),
    /// A real number.
    F32(f32),
}

fn failed(what: &str) -> impl Fn(ClError) -> anyhow::Error {
    move |error| anyhow!("failed to {what}: {error}")
}

impl App {
    /// Opens the device.
    ///
    /// # Errors
    /// There is no OpenCL loader or no PoCL; the error says how to install them.
    pub fn open() -> Result<Self> {
        let setup = "`cargo xtask test --setup` installs PoCL and an OpenCL loader";
        let platform = get_platforms()
            .map_err(failed("list the OpenCL platforms"))
            .context(setup)?
            .into_iter()
            .find(|platform| platform.name().is_ok_and(|name| name.contains("Portable Computing")))
            .with_context(|| format!("failed to find PoCL: {setup}"))?;
        let devices =
            platform.get_devices(CL_DEVICE_TYPE_ALL).map_err(failed("list PoCL's devices"))?;
        let id = *devices.first().context("failed to find a device of PoCL")?;
        let context =
            Context::from_device(&Device::new(id)).map_err(failed("open PoCL's device"))?;
        // SAFETY: the device is the one that the context was made of.
        let queue = unsafe { CommandQueue::create_with_properties(&context, id, 0, 0) }
            .map_err(failed("create a command queue"))?;
        Ok(Self { context, queue })
    }

    /// Compiles a source, by `clBuildProgram`.
    ///
    /// # Errors
    /// The compiler's output.
    pub fn build(&self, source: &Source) -> Result<Program> {
        let text = std::fs::read_to_string(&source.path)
            .with_context(|| format!("failed to read `{}`", source.path.display()))?;
        let include = workspace().join("packaging/kernels/include");
        let options = format!("{OPTIONS} -I{}{}", include.display(), source.options);
        Program::create_and_build_from_source(&self.context, &text, &options)
            .map_err(|log| anyhow!("failed to build `{}`: {log}", source.path.display()))
    }

    /// Loads the result of [`binary`] by `clCreateProgramWithBinary`.
    ///
    /// # Errors
    /// PoCL does not accept it.
    pub fn load(&self, binary: &[u8]) -> Result<Program> {
        Program::create_and_build_from_binary(&self.context, &[binary], "")
            .map_err(failed("load the binary"))
    }

    /// Runs a kernel with this many work-groups of the size that it requires, and returns its
    /// output.
    ///
    /// # Errors
    /// An error of OpenCL.
    pub fn run(
        &self,
        program: &Program,
        name: &str,
        arguments: &[Argument<'_>],
        groups: [usize; 3],
    ) -> Result<Vec<f32>> {
        let failed = |what| move |error: ClError| anyhow!("failed to {what} `{name}`: {error}");
        let kernel = Kernel::create(program, name).map_err(failed("find kernel"))?;
        let device = self.context.default_device();
        let local = kernel.get_compile_work_group_size(device).map_err(failed("measure"))?;
        ensure!(local.len() == 3 && !local.contains(&0), "`{name}` requires no work-group size");
        let mut buffers = Vec::new();
        let mut output = None;
        for (index, argument) in (0..).zip(arguments) {
            // SAFETY: OpenCL checks index and size, and copies the value; buffers live until
            // the queue is done.
            unsafe {
                match *argument {
                    Argument::U32(value) => kernel.set_arg(index, &value),
                    Argument::U64(value) => kernel.set_arg(index, &value),
                    Argument::F32(value) => kernel.set_arg(index, &value),
                    Argument::Input(values) => {
                        let buffer = self.buffer(values)?;
                        let set = kernel.set_arg(index, &buffer.get());
                        buffers.push(buffer);
                        set
                    }
                    Argument::Output(count) => {
                        let buffer = self.buffer(&vec![f32::NAN; count])?;
                        let set = kernel.set_arg(index, &buffer.get());
                        output = Some((buffers.len(), count));
                        buffers.push(buffer);
                        set
                    }
                }
            }
            .map_err(failed("give an argument to"))?;
        }
        let global: Vec<usize> = groups.iter().zip(&local).map(|(n, size)| n * size).collect();
        // SAFETY: sizes point to three numbers each and all arguments are set; the kernel's memory
        // accesses are tested elsewhere, between guards.
        unsafe {
            let (global, local) = (global.as_ptr(), local.as_ptr());
            self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                3,
                std::ptr::null(),
                global,
                local,
                &[],
            )
        }
        .map_err(failed("launch"))?;
        self.queue.finish().map_err(failed("finish"))?;
        let (index, count) = output.with_context(|| format!("`{name}` has no output"))?;
        let mut values = vec![0.0; count];
        // SAFETY: blocking, and of the buffer's own length.
        unsafe {
            self.queue.enqueue_read_buffer(&buffers[index], CL_BLOCKING, 0, &mut values, &[])
        }
        .map_err(failed("read the output of"))?;
        Ok(values)
    }

    fn buffer(&self, values: &[f32]) -> Result<Buffer<f32>> {
        let null = std::ptr::null_mut();
        // SAFETY: no host pointer is given; the write is blocking and of the buffer's length.
        unsafe {
            let mut buffer = Buffer::create(&self.context, CL_MEM_READ_WRITE, values.len(), null)
                .map_err(failed("allocate memory"))?;
            self.queue
                .enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, values, &[])
                .map_err(failed("write to memory"))?;
            Ok(buffer)
        }
    }
}

/// The code compiled for the device, by `clGetProgramInfo`.
///
/// # Errors
/// PoCL has none.
pub fn binary(program: &Program) -> Result<Vec<u8>> {
    let binaries = program.get_binaries().map_err(failed("ask for the binary"))?;
    let binary = binaries.into_iter().next().filter(|binary| !binary.is_empty());
    binary.context("failed to get a binary of the program")
}

/// An empty system for dpkg.
///
/// # Errors
/// The directories can't be made.
pub fn make_dpkg_root(root: &Path) -> Result<()> {
    for dir in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(root.join("var/lib/dpkg").join(dir))?;
    }
    for file in ["status", "available"] {
        std::fs::write(root.join("var/lib/dpkg").join(file), "")?;
    }
    Ok(())
}
