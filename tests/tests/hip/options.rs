//! The definitions in a variant's options.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::numbers::Element;

/// The defines among a key's options; there must be nothing else.
pub(crate) struct Options(BTreeMap<String, String>);

impl Options {
    pub(crate) fn parse(options: &str) -> Result<Self> {
        let mut defines = BTreeMap::new();
        for option in options.split_whitespace() {
            let define = option
                .strip_prefix("-D")
                .or_else(|| option.strip_prefix("-Wa,-defsym,"))
                .with_context(|| format!("failed to understand option `{option}`"))?;
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            defines.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self(defines))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn number(&self, name: &str) -> Result<usize> {
        let text = self.0.get(name).with_context(|| format!("failed to find -D{name}="))?;
        text.parse().with_context(|| format!("failed to read the number in -D{name}={text}"))
    }

    /// The number that a source falls back to is `default`.
    pub(crate) fn number_or(&self, name: &str, default: usize) -> Result<usize> {
        if self.flag(name) { self.number(name) } else { Ok(default) }
    }

    /// Threads per block.
    pub(crate) fn group(&self) -> Result<u32> {
        Ok(u32::try_from(self.number_or("WG", 256)?)?)
    }

    pub(crate) fn element(&self) -> Result<Element> {
        Element::of_data_type(self.number("DATA_TYPE")?)
    }
}
