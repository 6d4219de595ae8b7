//! The wrappers of a library or program, and the bundles that they point to.
//!
//! Source: LLVM 22, clang `CGCUDANV.cpp`; ROCm/clr 7.2, `hip_fatbin.hpp`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use crate::bundle::Bundle;
use crate::bytes::{Bytes, u32_at, u64_at};
use crate::elf::{Elf, HEADER, SHT_DYNSYM, Section};
use crate::error::{Error, layout};

/// The section with wrappers, the one with their bundles, and the one of AMD's archives.
const WRAPPERS: &str = ".hipFatBinSegment";
const BUNDLES: &str = ".hip_fatbin";
const REFERENCE: &str = ".rocm_kpack_ref";
/// Bytes of a wrapper: a mark, a version, a pointer, and a number.
const WRAPPER: u64 = 24;
const HIPF: u32 = 0x4849_5046;
const HIPK: u32 = 0x4b50_4948;

/// One registration of device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// The bundle at this address.
    Bundle(u64),
    /// The object of this number in an archive beside the library.
    Archive(u32),
}

/// The device code of a library or program.
#[derive(Debug, Clone)]
pub struct Library {
    /// Every wrapper, in order.
    pub wrappers: Vec<Wrapper>,
    /// The bundles by address.
    pub bundles: BTreeMap<u64, Bundle>,
    /// What `.rocm_kpack_ref` holds, if it is there.
    pub reference: Option<Vec<u8>>,
    pub(crate) elf: Elf,
    pub(crate) section: Option<Section>,
    /// Where in the file a pointer to a bundle is, and the address that it is.
    pub(crate) pointers: Vec<(u64, u64)>,
    /// Addresses that the loader writes and that lead into the bundles, but are no wrapper's.
    pub(crate) strays: u64,
}

impl Library {
    /// Reads the device code of a file; `None` if it is no library or program, or has none.
    ///
    /// # Errors
    /// [`Error::Layout`] if what is in it can't be understood.
    pub fn read(file: &File) -> Result<Option<Self>, Error> {
        let bytes = Bytes::of(file)?;
        let header = bytes.read(0, HEADER.min(bytes.size))?;
        Self::of(&bytes, &header)
    }

    pub(crate) fn of(bytes: &Bytes<'_>, header: &[u8]) -> Result<Option<Self>, Error> {
        let Some(elf) = Elf::read(bytes, header)? else { return Ok(None) };
        let reference = elf.section(REFERENCE)?;
        let reference = reference.map(|it| bytes.read(it.offset, it.size)).transpose()?;
        let segment = elf.section(WRAPPERS)?.filter(|it| it.size > 0).cloned();
        let Some(segment) = segment else {
            return match elf.section(BUNDLES)?.filter(|it| it.size > 0) {
                Some(_) => layout(format!("it has no section `{WRAPPERS}`")),
                None => Ok(None),
            };
        };
        if segment.size % WRAPPER != 0
            || elf.offset_of(segment.address, segment.size) != Some(segment.offset)
        {
            return layout(format!("its section `{WRAPPERS}`"));
        }
        let section = elf.section(BUNDLES)?.cloned();
        let mut library = Self {
            wrappers: Vec::new(),
            bundles: BTreeMap::new(),
            reference,
            section,
            pointers: Vec::new(),
            strays: 0,
            elf,
        };
        let (address, offset) = (segment.address, segment.offset);
        let table = bytes.read(offset, segment.size)?;
        library.read_wrappers(bytes, &table, address, offset)?;
        library.read_bundles(bytes)?;
        Ok(Some(library))
    }

    /// Finds out where each wrapper points, as the loader would.
    fn read_wrappers(
        &mut self,
        bytes: &Bytes<'_>,
        table: &[u8],
        address: u64,
        offset: u64,
    ) -> Result<(), Error> {
        let (low, high) = self.range();
        let within = |value: u64| (low..high).contains(&value);
        let mut exported = BTreeMap::new();
        self.elf.symbols(bytes, SHT_DYNSYM, &mut |index, value, _| {
            if within(value) {
                exported.insert(index, value);
            }
            Ok(())
        })?;
        // By the place of a wrapper's pointer: the address, and where it is in the file.
        let mut moved: BTreeMap<u64, (u64, Option<u64>)> = BTreeMap::new();
        let mut strays = 0;
        let places = address + 8..address + table.len() as u64;
        self.elf.relocations(bytes, &mut |relocation| {
            let place = relocation.place;
            let is_pointer =
                places.contains(&place) && (place - places.start).is_multiple_of(WRAPPER);
            let symbol = (relocation.symbol > 0).then(|| exported.get(&relocation.symbol));
            match (symbol, is_pointer) {
                (None, true) => {
                    moved.insert(place, (relocation.value, relocation.addend_at));
                }
                // The symbol moves along with the bundle.
                (Some(Some(symbol)), true) if relocation.value == 0 => {
                    moved.insert(place, (*symbol, None));
                }
                (Some(Some(_)), false) if relocation.value == 0 => {}
                (Some(_), true) => return layout("a wrapper points to no bundle of its own file"),
                (None, false) if within(relocation.value) => strays += 1,
                (Some(Some(_)), false) => strays += 1,
                (None | Some(None), false) => {}
            }
            Ok(())
        })?;
        self.strays = strays;
        for (index, wrapper) in table.chunks_exact(WRAPPER as usize).enumerate() {
            let at = index as u64 * WRAPPER + 8;
            let (magic, in_place) = (u32_at(wrapper, 0), u64_at(wrapper, 8));
            let (target, addend) = moved.get(&(address + at)).copied().unwrap_or((in_place, None));
            match magic {
                HIPF if u32_at(wrapper, 4) == 1 && within(target) => {
                    self.wrappers.push(Wrapper::Bundle(target));
                    self.pointers.extend(addend.map(|addend| (addend, target)));
                    if in_place == target {
                        self.pointers.push((offset + at, target));
                    }
                }
                HIPK => self.wrappers.push(Wrapper::Archive(u32_at(wrapper, 16))),
                _ => return layout(format!("wrapper {index} of its section `{WRAPPERS}`")),
            }
        }
        Ok(())
    }

    fn read_bundles(&mut self, bytes: &Bytes<'_>) -> Result<(), Error> {
        let Some(section) = &self.section else { return Ok(()) };
        let (low, high) = self.range();
        let addresses: BTreeSet<u64> = self
            .wrappers
            .iter()
            .filter_map(|wrapper| match wrapper {
                Wrapper::Bundle(address) => Some(*address),
                Wrapper::Archive(_) => None,
            })
            .collect();
        if addresses.is_empty() {
            return Ok(());
        }
        if self.elf.offset_of(low, high - low) != Some(section.offset) {
            return layout(format!("its section `{BUNDLES}` is not loaded"));
        }
        let ends = addresses.iter().skip(1).copied().chain([high]);
        for (address, end) in addresses.iter().zip(ends) {
            let at = |address: u64| section.offset + (address - low);
            let bundle = Bundle::read(bytes, at(*address), at(end))?;
            self.bundles.insert(*address, bundle);
        }
        Ok(())
    }

    /// The addresses of the section with bundles.
    pub(crate) fn range(&self) -> (u64, u64) {
        self.section.as_ref().map_or((0, 0), |it| (it.address, it.address + it.size))
    }
}
