//! Checks that files have code for every device, and that it is that device's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use gfxpack_model::TargetId;

use crate::bundle::{Bundle, HEAD};
use crate::bytes::{Bytes, u16_at};
use crate::error::Error;
use crate::kpack::{self, Archive, Reference, normal};
use crate::library::{Library, Wrapper};
use crate::msgpack::Value;
use crate::names::named_target;

/// Beginnings of names of which a directory has one file for each GPU: Tensile's lists, and code
/// that each user of Tensile loads.
const FAMILIES: [&str; 3] = [LIST, "Kernels.so-000-", "extop_"];
/// Tensile's list of files that are loaded when they are needed.
const LIST: &str = "TensileLibrary_lazy_";
/// Any file that such a list names.
const NAMED: &str = "TensileLibrary_";
/// `e_machine` of code for AMD's GPUs.
const AMDGPU: u16 = 0xe0;
/// Most bytes of a list; the largest has some megabytes.
const LIST_MAX: u64 = 64 << 20;

/// Something that a device lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// The file, as it was given.
    pub path: PathBuf,
    /// The device, or none if the file is wrong for every one.
    pub target: Option<TargetId>,
    /// What is missing or wrong, as a phrase.
    pub detail: String,
}

/// What a file named for a kernel type needs beside it.
#[derive(Debug, Clone, Copy, Default)]
struct Needs {
    /// Code from assembly, in a `.co`.
    assembled: bool,
    /// Code from sources, in a `.hsaco`.
    compiled: bool,
}

/// Checks files one by one; what files say of one another is compared at the end.
#[derive(Debug, Default)]
pub struct Checker<'a> {
    devices: &'a [TargetId],
    gaps: Vec<Gap>,
    /// All files.
    names: BTreeSet<PathBuf>,
    /// Tensile's lists: the device, and what the list names.
    lists: BTreeMap<PathBuf, (TargetId, BTreeSet<String>)>,
    types: BTreeMap<PathBuf, Needs>,
    archives: BTreeMap<PathBuf, Archive>,
    references: BTreeMap<PathBuf, (Reference, Vec<u32>)>,
    /// Files with device code.
    pub with_code: u64,
}

impl<'a> Checker<'a> {
    /// A checker for devices. One that leaves XNACK open has it off, as drivers do.
    pub fn new(devices: &'a [TargetId]) -> Self {
        Self { devices, ..Self::default() }
    }

    /// Notes that there is a file, or a link to one, that need not be looked at.
    pub fn name(&mut self, path: &Path) {
        self.names.insert(normal(path));
    }

    /// Whether a file has to be looked at, by its name and its first bytes.
    pub fn is_wanted(path: &Path, head: &[u8]) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        head.starts_with(b"\x7fELF")
            || Bundle::begins(head)
            || head.starts_with(kpack::MAGIC)
            || name.starts_with(NAMED) && name.ends_with(".dat")
    }

    /// Looks at a file. What can't be understood is a gap too.
    pub fn file(&mut self, path: &Path, file: &File) -> Result<(), Error> {
        self.name(path);
        match self.look(path, file) {
            Err(Error::Layout(why)) => {
                self.gap(path, None, format!("its layout is not understood: {why}"));
                Ok(())
            }
            other => other,
        }
    }

    fn look(&mut self, path: &Path, file: &File) -> Result<(), Error> {
        let bytes = Bytes::of(file)?;
        let head = bytes.read(0, HEAD.min(bytes.size))?;
        if !Self::is_wanted(path, &head) {
            return Ok(());
        }
        if Bundle::begins(&head) {
            let bundle = Bundle::read(&bytes, 0, bytes.size)?;
            return self.bundles(path, &bytes, &[&bundle]);
        }
        if head.starts_with(kpack::MAGIC) {
            let archive = Archive::read(file)?;
            self.archives.insert(normal(path), archive);
            return Ok(());
        }
        if !head.starts_with(b"\x7fELF") {
            return self.tensile(path, &bytes);
        }
        if head.len() as u64 == HEAD && u16_at(&head, 18) == AMDGPU {
            self.with_code += 1;
            let wrong = named_target(path).filter(|target| target.is_of(&head) == Some(false));
            if let Some(target) = wrong {
                self.gap(path, None, format!("its code is not for {target}, as its name says"));
            }
            return Ok(());
        }
        let Some(library) = Library::of(&bytes, &head)? else { return Ok(()) };
        if !library.bundles.is_empty() {
            self.bundles(path, &bytes, &library.bundles.values().collect::<Vec<_>>())?;
        }
        let objects = library.wrappers.iter().filter_map(|wrapper| match wrapper {
            Wrapper::Archive(number) => Some(*number),
            Wrapper::Bundle(_) => None,
        });
        let objects: Vec<u32> = objects.collect();
        if !objects.is_empty() {
            self.with_code += 1;
            let reference = Reference::parse(library.reference.as_deref().unwrap_or_default())?;
            let ordinals: BTreeSet<u32> = objects.iter().copied().collect();
            if ordinals.len() < objects.len() {
                self.gap(path, None, "two of its wrappers have the same object".to_owned());
            }
            self.references.insert(path.to_owned(), (reference, objects));
        }
        Ok(())
    }

    fn bundles(
        &mut self,
        path: &Path,
        bytes: &Bytes<'_>,
        bundles: &[&Bundle],
    ) -> Result<(), Error> {
        self.with_code += 1;
        let named = named_target(path);
        let wants = |device: &&TargetId| named.as_ref().is_none_or(|name| name.serves(device));
        for device in self.devices.iter().filter(wants) {
            let serves = |bundle: &&&Bundle| !bundle.entries.iter().any(|it| serves(it, device));
            let without = bundles.iter().filter(serves).count();
            if without > 0 {
                let of = bundles.len();
                let detail = match (without, of) {
                    (1, 1) => "no code for it".to_owned(),
                    _ => format!("no code for it in {without} of {of} offload bundles"),
                };
                self.gap(path, Some(device), detail);
            }
        }
        let mut wrong = BTreeSet::new();
        for bundle in bundles {
            for (entry, head) in bundle.entries.iter().zip(bundle.heads(bytes)?) {
                let is_other = |device: &TargetId| {
                    entry.serves(device)
                        && entry.target.as_ref().and_then(|it| it.is_of(&head)) == Some(false)
                };
                if self.devices.iter().any(is_other) {
                    wrong.insert(entry.id.clone());
                }
            }
        }
        for id in wrong {
            self.gap(path, None, format!("its entry `{id}` is not that GPU's code"));
        }
        Ok(())
    }

    /// Reads a list of Tensile's, or a file that such a list names, if a device needs it.
    fn tensile(&mut self, path: &Path, bytes: &Bytes<'_>) -> Result<(), Error> {
        let target = named_target(path);
        let device = self
            .devices
            .iter()
            .find(|device| target.as_ref().is_none_or(|target| target.serves(device)));
        let Some(device) = device.filter(|_| bytes.size <= LIST_MAX) else { return Ok(()) };
        let text = bytes.read(0, bytes.size)?;
        if !file_name(path).starts_with(LIST) {
            let has = |value: u8| {
                let key = [b"sourceKernel".as_slice(), &[value]].concat();
                memchr::memmem::find(&text, &key).is_some()
            };
            let needs = Needs { assembled: has(0xc2), compiled: has(0xc3) };
            self.types.insert(normal(path), needs);
        } else if target.is_some() {
            let mut named = BTreeSet::new();
            Value::parse(&text)?.texts(&mut |text| {
                if text.starts_with(NAMED) {
                    named.insert(text.to_owned());
                }
            });
            self.lists.insert(path.to_owned(), (device.clone(), named));
        }
        Ok(())
    }

    fn gap(&mut self, path: &Path, target: Option<&TargetId>, detail: String) {
        self.gaps.push(Gap { path: path.to_owned(), target: target.cloned(), detail });
    }

    /// Compares files with one another, and returns everything that was found.
    #[must_use]
    pub fn finish(mut self) -> Vec<Gap> {
        for (path, (device, named)) in std::mem::take(&mut self.lists) {
            for name in named {
                let missing = self.missing_beside(&path, &device, &name);
                for name in missing {
                    self.gap(
                        &path,
                        Some(&device),
                        format!("it names `{name}`, which is not there"),
                    );
                }
            }
        }
        for (path, (reference, objects)) in std::mem::take(&mut self.references) {
            for device in self.devices {
                let missing = reference.missing(&path, &objects, device, &self.archives);
                if !missing.is_empty() {
                    let (without, of) = (missing.len(), objects.len());
                    let detail =
                        format!("no code for it in kpack archives: {without} of {of} objects");
                    self.gap(&path, Some(device), detail);
                }
            }
        }
        self.families();
        self.gaps.sort();
        self.gaps.dedup();
        self.gaps
    }

    /// The files that a name in a list stands for and that are not there.
    fn missing_beside(&self, list: &Path, device: &TargetId, name: &str) -> Vec<String> {
        let is_there = |name: &str| self.names.contains(&normal(&list.with_file_name(name)));
        let data = format!("{name}.dat");
        if !is_there(&data) {
            return vec![data];
        }
        let needs = self.types.get(&normal(&list.with_file_name(&data))).copied();
        let needs = needs.unwrap_or_default();
        let processor = device.processor();
        let base = if named_target(Path::new(&data)).is_some() {
            name.to_owned()
        } else {
            format!("{name}_{processor}")
        };
        let sign = if device.xnack() == Some(true) { '+' } else { '-' };
        let (assembled, compiled) = (format!("{base}.co"), format!("{base}.hsaco"));
        let by_xnack = format!("{base}-xnack{sign}.hsaco");
        let has_compiled = is_there(&compiled) || is_there(&by_xnack);
        let mut missing = Vec::new();
        if needs.compiled && !has_compiled {
            let other = format!("{base}-xnack{}.hsaco", if sign == '+' { '-' } else { '+' });
            missing.push(if is_there(&other) { by_xnack } else { compiled });
        }
        if !is_there(&assembled) && (needs.assembled || !needs.compiled && !has_compiled) {
            missing.push(assembled);
        }
        missing
    }

    /// Directories that have files of a family, and none for a device.
    fn families(&mut self) {
        let mut targets: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
        for path in &self.names {
            let name = file_name(path);
            let family = FAMILIES.iter().find(|family| name.starts_with(**family));
            if let Some((family, target)) = family.zip(named_target(path)) {
                let ending = name.rsplit('.').next().unwrap_or_default();
                let of = path.with_file_name(format!("{family}*.{ending}"));
                targets.entry(of).or_default().push(target);
            }
        }
        for (path, targets) in targets {
            for device in self.devices {
                let device_is = with_xnack(device);
                if !targets.iter().any(|target| target.serves(&device_is)) {
                    self.gap(&path, Some(device), "no such file for it".to_owned());
                }
            }
        }
    }
}

/// Whether an entry has code for a device, whose XNACK is off if it is left open.
fn serves(entry: &crate::bundle::Entry, device: &TargetId) -> bool {
    entry.serves(&with_xnack(device))
}

fn with_xnack(device: &TargetId) -> TargetId {
    gfxpack_model::code_object::loaded_by(device)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
