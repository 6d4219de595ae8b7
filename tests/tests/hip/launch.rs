//! One launch of a kernel with its arguments and the expected results, and the request to the
//! simulator.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::build::command;
use super::numbers::{Element, close};

/// What may differ between GPUs, and between two runs on one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Lanes per wave.
    wave: u32,
    /// The last thread of a block runs first.
    backwards: bool,
    /// Buffers lie against a guard page with their start, not their end.
    guard_before: bool,
}

/// Both wave sizes that AMD GPUs have, both orders, both ends of the buffers.
pub(crate) const MANNERS: [Manner; 2] = [
    Manner { wave: 64, backwards: false, guard_before: false },
    Manner { wave: 32, backwards: true, guard_before: true },
];

/// A kernel, its grid, and its arguments in the order of its parameters.
pub(crate) struct Launch {
    pub(crate) kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<Argument>,
}

struct Argument {
    /// As the simulator spells types.
    spelling: String,
    bytes: Vec<u8>,
    wanted: Option<Wanted>,
}

struct Wanted {
    element: Element,
    values: Vec<f64>,
    absolute: f64,
}

impl Launch {
    pub(crate) fn new(kernel: &'static str, grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { kernel, grid, block, arguments: Vec::new() }
    }

    /// A launch of blocks along one dimension.
    pub(crate) fn blocks(kernel: &'static str, blocks: usize, threads: u32) -> Self {
        let blocks = u32::try_from(blocks).expect("tests are small");
        Self::new(kernel, [blocks, 1, 1], [threads, 1, 1])
    }

    fn argument(mut self, spelling: String, bytes: Vec<u8>, wanted: Option<Wanted>) -> Self {
        self.arguments.push(Argument { spelling, bytes, wanted });
        self
    }

    /// A buffer that the kernel only reads.
    pub(crate) fn input(self, element: Element, values: &[f64]) -> Self {
        self.argument(format!("in:{}", element.spelling()), element.encode(values), None)
    }

    /// A buffer of `i64` that the kernel only reads.
    pub(crate) fn integers(self, values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.argument("in:i64".to_owned(), bytes, None)
    }

    /// A buffer that the kernel writes without having read it. Holds NaN, or
    /// -1 as an integer, before.
    pub(crate) fn output(self, element: Element, wanted: Vec<f64>, absolute: f64) -> Self {
        let before = vec![0xff; wanted.len() * element.size()];
        let wanted = Wanted { element, values: wanted, absolute };
        self.argument(format!("out:{}", element.spelling()), before, Some(wanted))
    }

    /// A buffer that the kernel reads and writes, or writes in part.
    pub(crate) fn update(
        self,
        element: Element,
        before: &[f64],
        wanted: Vec<f64>,
        absolute: f64,
    ) -> Self {
        let wanted = Wanted { element, values: wanted, absolute };
        let spelling = format!("out:{}", element.spelling());
        self.argument(spelling, element.encode(before), Some(wanted))
    }

    pub(crate) fn i32(self, value: usize) -> Self {
        let value = i32::try_from(value).expect("tests are small");
        self.argument("i32".to_owned(), value.to_le_bytes().to_vec(), None)
    }

    pub(crate) fn i64(self, value: i64) -> Self {
        self.argument("i64".to_owned(), value.to_le_bytes().to_vec(), None)
    }

    pub(crate) fn f32(self, value: f64) -> Self {
        self.argument("f32".to_owned(), (value as f32).to_le_bytes().to_vec(), None)
    }

    /// A structure of 32-bit fields, passed by value.
    pub(crate) fn structure(self, fields: impl IntoIterator<Item = [u8; 4]>) -> Self {
        let bytes: Vec<u8> = fields.into_iter().flatten().collect();
        self.argument(format!("bytes{}", bytes.len()), bytes, None)
    }

    /// The simulator's request; its source describes the format.
    fn encode(&self, manner: Manner, request: &mut Vec<u8>) {
        let text = |request: &mut Vec<u8>, bytes: &[u8]| {
            request.extend((bytes.len() as u64).to_le_bytes());
            request.extend(bytes);
        };
        text(request, self.kernel.as_bytes());
        let how = [manner.wave, manner.backwards.into(), manner.guard_before.into()];
        let count = u32::try_from(self.arguments.len()).expect("kernels have few parameters");
        for number in self.grid.into_iter().chain(self.block).chain(how).chain([count]) {
            request.extend(number.to_le_bytes());
        }
        for argument in &self.arguments {
            text(request, argument.spelling.as_bytes());
            text(request, &argument.bytes);
        }
    }
}

/// Runs the launches and compares every buffer that a kernel can write.
pub(crate) fn run(program: &Path, launches: &[Launch], manner: Manner) -> Result<()> {
    let mut request = Vec::new();
    for launch in launches {
        launch.encode(manner, &mut request);
    }
    // A file, so that neither side can block the other.
    let path = program.with_extension("request");
    std::fs::write(&path, request).context("failed to write the simulator's request")?;
    let stdin = File::open(&path).context("failed to open the simulator's request")?;
    let output = command(program).stdin(stdin).output().context("failed to start the simulator")?;
    ensure!(
        output.status.success(),
        "the simulator stopped ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let mut left = &output.stdout[..];
    for launch in launches {
        for (number, argument) in launch.arguments.iter().enumerate() {
            let Some(wanted) = &argument.wanted else { continue };
            let (bytes, rest) = left
                .split_at_checked(argument.bytes.len())
                .context("the simulator's answer is cut short")?;
            left = rest;
            close(wanted.element, &wanted.element.decode(bytes), &wanted.values, wanted.absolute)
                .with_context(|| format!("{}, argument {number}", launch.kernel))?;
        }
    }
    ensure!(left.is_empty(), "the simulator's answer is {} bytes too long", left.len());
    Ok(())
}
