//! The AMD GPU processors that ROCm supports: names, ELF machine numbers,
//! features, and product names.

mod table;

/// One processor (gfx target without features) that the tools know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The gfx name, as `gfx90a`.
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in the low byte of an ELF code object's `e_flags`.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "ELF header", table of `EF_AMDGPU_MACH`
    /// values; `gfx940` and `gfx941`, since removed, as LLVM 15 and 19 have them.
    pub mach: u32,
    /// Whether target IDs of this processor may carry `:xnack+` or `:xnack-`.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "Processors", column "Target Features".
    pub xnack: bool,
    /// Whether target IDs of this processor may carry `:sramecc+` or `:sramecc-`.
    ///
    /// Source: as for [`xnack`](Self::xnack).
    pub sramecc: bool,
    /// The architecture's family, as `CDNA 2`.
    pub family: &'static str,
    /// The compute-unit counts of the products sold, as in kdb names;
    /// ascending.
    ///
    /// Up to gfx9 these are compute units. From gfx10 on they are work-group
    /// processors, of two compute units each: HIP counts those, so MIOpen looks
    /// for `gfx1030_40` on a Radeon RX 6900 XT, which is sold with 80. One
    /// device of a product with two dies (MI250) is one die.
    ///
    /// Source: ROCm documentation, "AMD GPU specifications"; for products it
    /// leaves out, AMD GPUOpen `device_info`, `DeviceInfo.cpp`, and published
    /// product specifications. ROCm/MIOpen issue 1999 for the halving.
    pub compute_units: &'static [u32],
    /// Product names, shortened if a series shares one.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "Processors"; libdrm, `amdgpu.ids`.
    pub products: &'static [&'static str],
    /// Public PCI device IDs (vendor 1002), ascending.
    ///
    /// An ID that revisions of two processors share is listed for the one that
    /// most of them have: 15d8 and 15dd for gfx902 (gfx909 has them too), 73ff
    /// for gfx1032 (one board has a gfx1031). IDs on which the sources disagree
    /// are left out.
    ///
    /// Source: ROCm/ROCR-Runtime, `libhsakmt/src/topology.c`,
    /// `gfxip_lookup_table`; AMD GPUOpen `device_info`, `DeviceInfo.cpp`; for
    /// what is newer, `pci.ids` and libdrm's `amdgpu.ids`.
    pub pci_ids: &'static [u16],
}

impl Processor {
    /// The compute-unit counts of a part of one device, where it can be divided (the modes DPX, QPX
    /// and CPX of an MI300X or MI355X): HIP shows each part as a device of its own. Ascending.
    ///
    /// Source: ROCm/k8s-device-plugin issue 157; ROCm/rocm-libraries issue 3522.
    pub fn partitions(&self) -> &'static [u32] {
        match self.name {
            "gfx942" => &[38, 76, 114, 152],
            "gfx950" => &[32, 64, 128],
            _ => &[],
        }
    }
}

/// Every known processor, ordered by name length and then by name.
pub const PROCESSORS: &[Processor] = table::TABLE;

/// The processor of that name, if known.
pub fn by_name(name: &str) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.name == name)
}

/// The processor with that `EF_AMDGPU_MACH`, if known.
pub fn by_mach(mach: u32) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.mach == mach)
}

/// The processor of a product, by its name as people write it: `MI210`,
/// `rx 6800`, `RX7900XTX`. Case, blanks, hyphens, and the words AMD, Radeon, RX and Instinct are
/// ignored, and so is a grade after the name, as in RX 7900 XTX. `None` if no
/// product matches, or products of several processors do.
pub fn by_product(name: &str) -> Option<&'static Processor> {
    let name = plain(name);
    let mut wanted = name.as_str();
    loop {
        let is_one_of = |processor: &&Processor| {
            processor.products.iter().any(|product| plain(product) == wanted)
        };
        let mut found = PROCESSORS.iter().filter(is_one_of);
        if let Some(first) = found.next() {
            return found.next().is_none().then_some(first);
        }
        wanted = GRADES.iter().find_map(|grade| wanted.strip_suffix(grade))?;
    }
}

/// Ends of product names with one processor, as in RX 7900 XTX.
const GRADES: [&str; 4] = ["gre", "series", "xt", "xtx"];

fn plain(product: &str) -> String {
    let text = product.replace([' ', '-', '_'], "").to_ascii_lowercase();
    ["amd", "instinct", "radeon", "rx"].iter().fold(text, |text, word| text.replace(word, ""))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn ascending<T: PartialOrd + std::fmt::Debug>(what: &str, items: &[T]) {
        assert!(items.is_sorted_by(|a, b| a < b), "{what} not ascending: {items:?}");
    }

    #[test]
    fn processors_are_sorted_and_unique() {
        let names: Vec<_> = PROCESSORS.iter().map(|p| (p.name.len(), p.name)).collect();
        ascending("names", &names);
        let mut machs = BTreeMap::new();
        for processor in PROCESSORS {
            let other = machs.insert(processor.mach, processor.name);
            assert_eq!(other, None, "{} has the machine number of another", processor.name);
            // Major in decimal, then minor and stepping as one hexadecimal digit each.
            let digits = processor.name.strip_prefix("gfx").unwrap();
            let (major, rest) = digits.split_at(digits.len() - 2);
            assert!(matches!(major.parse(), Ok(8..=12)), "{}", processor.name);
            assert!(u8::from_str_radix(rest, 16).is_ok(), "{}", processor.name);
            assert_eq!(by_name(processor.name), Some(processor));
            assert_eq!(by_mach(processor.mach), Some(processor));
        }
        assert_eq!(by_name("gfx9"), None);
        assert_eq!(by_mach(0), None);
    }

    #[test]
    fn a_product_name_gives_its_processor() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(by_product(name).map(|processor| processor.name), expected, "{name}");
        };
        for name in ["mi210", "MI210", "Instinct MI210", "amd instinct mi-210"] {
            check(name, Some("gfx90a"));
        }
        check("RX 6800", Some("gfx1030"));
        check("RX 6950 XT", Some("gfx1030"));
        for name in ["Radeon RX 7900 XTX", "rx7900xtx", "RX7900-XTX", "7900 gre"] {
            check(name, Some("gfx1100"));
        }
        check("rx-6700-xt", Some("gfx1031"));
        check("RX 7700S XT series", None);
        check("radeon vii", Some("gfx906"));
        for name in ["", "radeon", "gfx90a", "RX 99999"] {
            check(name, None);
        }
    }

    #[test]
    fn a_pci_id_belongs_to_one_processor() {
        let mut owners = BTreeMap::new();
        for processor in PROCESSORS {
            ascending(processor.name, processor.pci_ids);
            for id in processor.pci_ids {
                let other = owners.insert(id, processor.name);
                assert_eq!(other, None, "{id:04x} of {} has another owner", processor.name);
            }
        }
    }

    #[test]
    fn products_have_names_and_compute_units() {
        for processor in PROCESSORS {
            let name = processor.name;
            ascending(name, processor.compute_units);
            assert_eq!(processor.compute_units.is_empty(), processor.products.is_empty(), "{name}");
            assert!(processor.pci_ids.is_empty() || !processor.products.is_empty(), "{name}");
            assert!(processor.compute_units.iter().all(|&count| count > 0), "{name}");
            assert!(!processor.family.is_empty(), "{name}");
            // SRAM ECC comes with the compute families only, and never without XNACK.
            assert!(processor.xnack || !processor.sramecc, "{name}");
        }
    }

    #[test]
    fn compute_unit_counts_are_those_of_miopens_file_names() {
        // The kdb names of AMD's own packages, and the reports of users without one.
        for (name, count) in
            [("gfx900", 56), ("gfx906", 60), ("gfx908", 120), ("gfx90a", 104), ("gfx90a", 110)]
        {
            assert!(by_name(name).unwrap().compute_units.contains(&count), "{name}@{count}");
        }
        let rx6900xt = by_name("gfx1030").unwrap().compute_units;
        assert!(rx6900xt.contains(&40) && !rx6900xt.contains(&80), "work-group processors");
    }
}
