//! One built variant with the values of its options, and helpers to fill and read memory.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use gfxpack_tests::opencl::{Built, Gpu, Launch, Memory};

use super::numbers::Dtype;

/// A variant under test.
pub(crate) struct Case<'a> {
    gpu: &'a Gpu,
    built: &'a Built<'a>,
    defines: BTreeMap<String, String>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(gpu: &'a Gpu, built: &'a Built<'a>, options: &str) -> Result<Self> {
        let mut defines = BTreeMap::new();
        for option in options.split_whitespace() {
            let define = option
                .strip_prefix("-D")
                .with_context(|| format!("failed to understand option `{option}`"))?;
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            defines.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self { gpu, built, defines })
    }

    /// The number that the options define `name` as.
    pub(crate) fn number(&self, name: &str) -> Result<usize> {
        let text = self.defines.get(name).with_context(|| format!("failed to find -D{name}="))?;
        text.parse().with_context(|| format!("failed to read the number in -D{name}={text}"))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.defines.contains_key(name)
    }

    pub(crate) fn dtype(&self) -> Result<Dtype> {
        Dtype::from_number(self.number("DATA_TYPE")?)
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Launch<'_>> {
        self.built.kernel(name)
    }

    /// Memory that a kernel only reads.
    pub(crate) fn input(&self, dtype: Dtype, values: &[f64]) -> Result<Memory> {
        self.gpu.input(&dtype.encode(values))
    }

    pub(crate) fn input_bytes(&self, bytes: &[u8]) -> Result<Memory> {
        self.gpu.input(bytes)
    }

    /// Memory that a kernel reads and writes.
    pub(crate) fn memory(&self, dtype: Dtype, values: &[f64]) -> Result<Memory> {
        self.gpu.memory(&dtype.encode(values))
    }

    pub(crate) fn memory_bytes(&self, bytes: &[u8]) -> Result<Memory> {
        self.gpu.memory(bytes)
    }

    /// Memory that a kernel writes; NaN before.
    pub(crate) fn output(&self, dtype: Dtype, count: usize) -> Result<Memory> {
        self.gpu.output(count * dtype.size())
    }

    pub(crate) fn read(&self, dtype: Dtype, memory: &Memory) -> Result<Vec<f64>> {
        Ok(dtype.decode(&self.gpu.read(memory)?))
    }

    pub(crate) fn read_bytes(&self, memory: &Memory) -> Result<Vec<u8>> {
        self.gpu.read(memory)
    }
}
