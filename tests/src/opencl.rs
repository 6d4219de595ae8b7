//! Runs OpenCL kernels on the CPU by PoCL: programs, guarded memory, launches.
//!
//! Kernels access raw memory, so wrong accesses are found in two ways: every allocation lies
//! between guards that are checked after each launch, and inputs must be unchanged.

#![expect(unsafe_code, reason = "OpenCL is a C interface")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem as _};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_mem};

/// The size of the guards before and after every allocation in bytes; a multiple of PoCL's
/// alignment of sub-buffers.
const GUARD: usize = 1024;
/// The content of outputs before a launch, and of inputs' guards: NaN as a float of any width, so
/// that results computed from it are NaN.
const NAN_BYTE: u8 = 0xff;
/// The guards of memory that is written: no result of NaN, and of no use for a kernel that reads
/// them.
const GUARD_BYTE: u8 = 0x7f;

const SETUP: &str = "PoCL and an OpenCL loader are needed; `cargo xtask test --setup` installs \
                     them (packages pocl-opencl-icd and ocl-icd-libopencl1)";

/// PoCL's CPU device with a context of its own, so that several threads can compile in parallel.
pub struct Gpu {
    context: Context,
    queue: CommandQueue,
}

/// A program built for the device.
pub struct Built<'a> {
    gpu: &'a Gpu,
    program: Program,
    launched: RefCell<BTreeSet<String>>,
}

/// Device memory between two guards.
pub struct Memory {
    whole: Buffer<u8>,
    inner: Buffer<u8>,
    len: usize,
    guard: u8,
    /// The content that an input must still have after every launch.
    unchanged: Option<Vec<u8>>,
}

/// A kernel whose arguments are being set.
pub struct Launch<'a> {
    built: &'a Built<'a>,
    name: String,
    kernel: Kernel,
    memories: Vec<&'a Memory>,
    given: u32,
}

/// Types that can be passed to a kernel by value: plain data without padding.
pub trait Plain: Copy {}
impl Plain for u32 {}
impl Plain for i32 {}
impl Plain for u64 {}
impl Plain for f32 {}
impl<T: Plain, const N: usize> Plain for [T; N] {}

fn failed(what: &str) -> impl Fn(ClError) -> anyhow::Error {
    move |error| anyhow!("failed to {what}: {error}")
}

fn find_device() -> Result<Device> {
    let platforms = get_platforms()
        .map_err(failed("list the OpenCL platforms"))
        .with_context(|| format!("failed to use OpenCL: {SETUP}"))?;
    let platform = platforms
        .into_iter()
        .find(|platform| platform.name().is_ok_and(|name| name.contains("Portable Computing")))
        .with_context(|| format!("failed to find PoCL among the OpenCL platforms: {SETUP}"))?;
    let devices =
        platform.get_devices(CL_DEVICE_TYPE_ALL).map_err(failed("list PoCL's devices"))?;
    let id = devices.first().with_context(|| format!("failed to find a device: {SETUP}"))?;
    Ok(Device::new(*id))
}

impl Gpu {
    /// Opens PoCL's device.
    ///
    /// # Errors
    /// There is no OpenCL loader, no PoCL, or PoCL has no device; the error says how to install
    /// them.
    pub fn open() -> Result<Self> {
        // Initialised once: if two threads do it at the same time, one may find PoCL partly set up.
        static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();
        let device = DEVICE.get_or_init(|| find_device().map_err(|error| format!("{error:#}")));
        let device = device.as_ref().map_err(|error| anyhow!("{error}"))?;
        let id = device.id();
        let context = Context::from_device(device).map_err(failed("open PoCL's device"))?;
        // SAFETY: the device is the one that the context was made of.
        let queue = unsafe { CommandQueue::create_with_properties(&context, id, 0, 0) }
            .map_err(failed("create a command queue"))?;
        Ok(Self { context, queue })
    }

    /// Builds OpenCL C.
    ///
    /// # Errors
    /// The compiler's output.
    pub fn build(&self, source: &str, options: &str) -> Result<Built<'_>> {
        let program = Program::create_and_build_from_source(&self.context, source, options)
            .map_err(|log| anyhow!("failed to build with `{options}`: {log}"))?;
        Ok(Built { gpu: self, program, launched: RefCell::default() })
    }

    /// Memory that a kernel only reads; a launch that changes it fails.
    ///
    /// # Errors
    /// An error of OpenCL.
    pub fn input(&self, bytes: &[u8]) -> Result<Memory> {
        let mut memory = self.guarded(bytes, NAN_BYTE)?;
        memory.unchanged = Some(bytes.to_vec());
        Ok(memory)
    }

    /// Memory that a kernel writes, filled with NaN, so that elements that it reads or leaves out
    /// are found.
    ///
    /// # Errors
    /// An error of OpenCL.
    pub fn output(&self, len: usize) -> Result<Memory> {
        self.memory(&vec![NAN_BYTE; len])
    }

    /// Memory that a kernel reads and writes.
    ///
    /// # Errors
    /// An error of OpenCL.
    pub fn memory(&self, bytes: &[u8]) -> Result<Memory> {
        self.guarded(bytes, GUARD_BYTE)
    }

    fn guarded(&self, bytes: &[u8], guard: u8) -> Result<Memory> {
        ensure!(!bytes.is_empty(), "failed to allocate memory: OpenCL has no empty buffers");
        let mut content = vec![guard; bytes.len() + 2 * GUARD];
        content[GUARD..GUARD + bytes.len()].copy_from_slice(bytes);
        let len = bytes.len();
        // SAFETY: no host pointer is given; the part lies in the whole.
        let (mut whole, inner) = unsafe {
            let null = std::ptr::null_mut();
            let whole = Buffer::<u8>::create(&self.context, CL_MEM_READ_WRITE, content.len(), null)
                .map_err(failed("allocate memory"))?;
            let inner = whole
                .create_sub_buffer(CL_MEM_READ_WRITE, GUARD, len)
                .map_err(failed("leave room for guards"))?;
            (whole, inner)
        };
        // SAFETY: blocking, and of the buffer's own length.
        unsafe { self.queue.enqueue_write_buffer(&mut whole, CL_BLOCKING, 0, &content, &[]) }
            .map_err(failed("write to memory"))?;
        Ok(Memory { whole, inner, len, guard, unchanged: None })
    }

    /// The content of a memory.
    ///
    /// # Errors
    /// An error of OpenCL.
    pub fn read(&self, memory: &Memory) -> Result<Vec<u8>> {
        let mut content = self.read_whole(memory)?;
        content.truncate(GUARD + memory.len);
        Ok(content.split_off(GUARD))
    }

    fn read_whole(&self, memory: &Memory) -> Result<Vec<u8>> {
        let mut content = vec![0; memory.len + 2 * GUARD];
        // SAFETY: blocking, and of the buffer's own length.
        unsafe { self.queue.enqueue_read_buffer(&memory.whole, CL_BLOCKING, 0, &mut content, &[]) }
            .map_err(failed("read memory"))?;
        Ok(content)
    }

    fn check(&self, memory: &Memory) -> Result<()> {
        let content = self.read_whole(memory)?;
        let (before, rest) = content.split_at(GUARD);
        let (inner, behind) = rest.split_at(memory.len);
        if let Some(at) = before.iter().rposition(|byte| *byte != memory.guard) {
            bail!("wrote {} bytes before its memory", GUARD - at);
        }
        if let Some(at) = behind.iter().position(|byte| *byte != memory.guard) {
            bail!("wrote {at} bytes behind its memory of {}", memory.len);
        }
        if memory.unchanged.as_ref().is_some_and(|bytes| bytes != inner) {
            bail!("changed its input");
        }
        Ok(())
    }
}

impl Built<'_> {
    /// The kernels of the program that were not launched yet.
    #[must_use]
    pub fn never_launched(&self) -> Vec<String> {
        let launched = self.launched.borrow();
        let names = self.program.kernel_names().split(';').map(str::to_owned);
        names.filter(|name| !name.is_empty() && !launched.contains(name)).collect()
    }

    /// Begins to set a kernel's arguments, in their order.
    ///
    /// # Errors
    /// There is no kernel with that name.
    pub fn kernel(&self, name: &str) -> Result<Launch<'_>> {
        CString::new(name).context("failed to name a kernel")?;
        let kernel = Kernel::create(&self.program, name)
            .map_err(failed(&format!("find kernel `{name}`")))?;
        Ok(Launch { built: self, name: name.to_owned(), kernel, memories: Vec::new(), given: 0 })
    }
}

impl<'a> Launch<'a> {
    /// The next argument: memory.
    ///
    /// # Errors
    /// OpenCL's error, for an argument that is no pointer.
    pub fn memory(mut self, memory: &'a Memory) -> Result<Self> {
        let handle: cl_mem = memory.inner.get();
        self.set(&handle)?;
        self.memories.push(memory);
        Ok(self)
    }

    /// The next argument: a value.
    ///
    /// # Errors
    /// OpenCL's error, for a value of another size than the argument's.
    pub fn value<T: Plain>(mut self, value: T) -> Result<Self> {
        self.set(&value)?;
        Ok(self)
    }

    fn set<T>(&mut self, value: &T) -> Result<()> {
        // SAFETY: OpenCL checks index and size, and copies the value.
        unsafe { self.kernel.set_arg(self.given, value) }.map_err(|error| {
            anyhow!("failed to give `{}` its argument {}: {error}", self.name, self.given)
        })?;
        self.given += 1;
        Ok(())
    }

    /// Runs this many work-groups of the size that the kernel requires, and waits for them.
    ///
    /// # Errors
    /// A wrong number of arguments, a kernel without required size, changed guards or inputs, and
    /// errors of OpenCL.
    pub fn run(self, groups: [usize; 3]) -> Result<()> {
        let queue = &self.built.gpu.queue;
        let wanted = self.kernel.num_args().map_err(failed("count arguments"))?;
        ensure!(
            wanted == self.given,
            "failed to launch `{}`: it takes {wanted} arguments, not {}",
            self.name,
            self.given
        );
        let device = self.built.gpu.context.default_device();
        let local = self
            .kernel
            .get_compile_work_group_size(device)
            .map_err(failed("ask for the work-group size"))?;
        ensure!(
            local.len() == 3 && !local.contains(&0) && !groups.contains(&0),
            "failed to launch `{}`: groups {groups:?} of {local:?}",
            self.name
        );
        let global: Vec<usize> = groups.iter().zip(&local).map(|(n, size)| n * size).collect();
        // SAFETY: sizes point to three numbers each and all arguments are set; the kernel's memory
        // accesses are what is tested.
        unsafe {
            queue.enqueue_nd_range_kernel(
                self.kernel.get(),
                3,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            )
        }
        .map_err(failed(&format!("launch `{}`", self.name)))?;
        queue.finish().map_err(failed(&format!("finish `{}`", self.name)))?;
        for (index, memory) in self.memories.iter().enumerate() {
            let check = self.built.gpu.check(memory);
            check.with_context(|| format!("`{}`, memory argument {index}", self.name))?;
        }
        self.built.launched.borrow_mut().insert(self.name);
        Ok(())
    }
}
