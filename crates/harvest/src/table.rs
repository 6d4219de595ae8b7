//! Keys in memory, without duplicates, with their counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gfxpack_model::KernelKey;
use gfxpack_model::key_record::Counts;

/// Memory that a key takes in addition to its text: its table entry, its
/// counts, and the overhead of an allocation.
const ENTRY_BYTES: usize = 192;

/// A key's bytes: the name, a NUL, the arguments. Their order is that of
/// [`KernelKey`].
pub(crate) type KeyBytes = Box<[u8]>;

/// The devices on which a key was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeenOn<'a> {
    /// The processor that the key names.
    ProcessorOfKey,
    /// These, given in the file.
    Targets(&'a [u32]),
}

/// A key with its data, ordered by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) key: KeyBytes,
    pub(crate) counts: Counts,
    /// Numbers in [`Targets`], without duplicates.
    pub(crate) targets: Vec<u32>,
}

impl Row {
    /// Adds the data of the same key from elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        for target in &other.targets {
            if !self.targets.contains(target) {
                self.targets.push(*target);
            }
        }
    }

    pub(crate) fn key(&self) -> KernelKey {
        let text = String::from_utf8_lossy(&self.key);
        let (name, args) = text.split_once('\0').unwrap_or((&text, ""));
        KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() }
    }
}

/// Writes the bytes of a key to the buffer, replacing its content.
pub(crate) fn put_key(buffer: &mut Vec<u8>, name: [&str; 2], args: &str) {
    buffer.clear();
    for part in name {
        buffer.extend_from_slice(part.as_bytes());
    }
    buffer.push(0);
    buffer.extend_from_slice(args.as_bytes());
}

/// The names of targets by number, shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<(Vec<String>, HashMap<String, u32>)>);

impl Targets {
    pub(crate) fn number(&self, name: &str) -> u32 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (names, numbers) = &mut *known;
        if let Some(number) = numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(names.len()).expect("fewer names than memory has bytes");
        names.push(name.to_owned());
        numbers.insert(name.to_owned(), number);
        number
    }

    /// The names, sorted.
    pub(crate) fn names(&self, numbers: &[u32]) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> =
            numbers.iter().map(|number| known.0[*number as usize].clone()).collect();
        names.sort();
        names
    }
}

#[derive(Debug, Default)]
struct Value {
    counts: Counts,
    of_key: bool,
    targets: Vec<u32>,
}

/// Keys by their bytes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    keys: HashMap<KeyBytes, Value>,
    bytes: usize,
}

impl Table {
    /// Adds counts of a key.
    pub(crate) fn add(&mut self, key: &[u8], counts: &Counts, origin: SeenOn<'_>) {
        let value = match self.keys.get_mut(key) {
            Some(value) => value,
            None => {
                self.bytes += key.len() + ENTRY_BYTES;
                self.keys.entry(key.into()).or_default()
            }
        };
        value.counts.add(counts);
        match origin {
            SeenOn::ProcessorOfKey => value.of_key = true,
            SeenOn::Targets(targets) => {
                for target in targets {
                    if !value.targets.contains(target) {
                        self.bytes += size_of::<u32>();
                        value.targets.push(*target);
                    }
                }
            }
        }
    }

    /// Estimated memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes all rows and returns them, sorted by key. With `retarget`, each
    /// is rewritten for these processors; a key may then occur several times.
    pub(crate) fn take(&mut self, retarget: &[String], targets: &Targets) -> Vec<Row> {
        self.bytes = 0;
        let mut rows = Vec::with_capacity(self.keys.len() * retarget.len().max(1));
        for (key, value) in std::mem::take(&mut self.keys) {
            let mut row = Row { key, counts: value.counts, targets: value.targets };
            if value.of_key {
                let key = row.key();
                if let Some((_, device)) = key.split_device() {
                    let number = targets.number(device);
                    if !row.targets.contains(&number) {
                        row.targets.push(number);
                    }
                }
            }
            if retarget.is_empty() {
                rows.push(row);
                continue;
            }
            let key = row.key();
            let is_for_any = key.split_device().is_none();
            for processor in &retarget[..if is_for_any { 1 } else { retarget.len() }] {
                let key = key.retargeted(processor);
                let mut bytes = Vec::new();
                put_key(&mut bytes, [&key.kernel_name, ""], &key.kernel_args);
                rows.push(Row { key: bytes.into(), ..row.clone() });
            }
        }
        rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}
