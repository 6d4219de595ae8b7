//! Which code serves which GPU.

use std::fmt;

use gfxpack_model::{TargetId, code_object};

/// A target of code that runs on several processors.
struct Generic {
    name: &'static str,
    mach: u32,
    processors: &'static [&'static str],
}

/// Source: LLVM 22, `AMDGPUUsage`, "Generic processors" and "ELF header".
const GENERIC: &[Generic] = &[
    Generic {
        name: "gfx9-generic",
        mach: 0x51,
        processors: &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    },
    Generic {
        name: "gfx9-4-generic",
        mach: 0x5f,
        processors: &["gfx940", "gfx941", "gfx942", "gfx950"],
    },
    Generic {
        name: "gfx10-1-generic",
        mach: 0x52,
        processors: &["gfx1010", "gfx1011", "gfx1012", "gfx1013"],
    },
    Generic {
        name: "gfx10-3-generic",
        mach: 0x53,
        processors: &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    },
    Generic {
        name: "gfx11-generic",
        mach: 0x54,
        processors: &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
        ],
    },
    Generic { name: "gfx12-generic", mach: 0x59, processors: &["gfx1200", "gfx1201"] },
    Generic { name: "gfx12-5-generic", mach: 0x5b, processors: &["gfx1250", "gfx1251"] },
];

/// What the compiler calls SPIR-V for any GPU.
const SPIRV: &str = "amdgcnspirv";

/// What code was built for: a processor or a generic target, with features, or any GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeTarget(TargetId);

impl CodeTarget {
    /// The target of a spelling as compilers use it, `gfx90a:xnack-`, or as names of files have
    /// it, `gfx90a-xnack-`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.replace("-xnack", ":xnack").replace("-sramecc", ":sramecc");
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let known = name == SPIRV
            || GENERIC.iter().any(|generic| generic.name == name)
            || name.strip_prefix("gfx").is_some_and(|digits| {
                digits.len() >= 3 && digits.bytes().all(|b| b.is_ascii_hexdigit())
            });
        let (mut sramecc, mut xnack) = (None, None);
        for feature in parts {
            let on = feature.ends_with('+');
            match feature.strip_suffix(['+', '-'])? {
                "sramecc" => sramecc = Some(on),
                "xnack" => xnack = Some(on),
                _ => return None,
            }
        }
        known.then(|| Self(TargetId::new(name).with_features(sramecc, xnack)))
    }

    /// The GPUs of a bundle's entry by its identifier, `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`;
    /// `None` if it is the host's, or anything else that HIP does not load.
    ///
    /// Source: LLVM 22, clang `OffloadBundler.cpp`, `OffloadTargetInfo`.
    pub(crate) fn of_entry(id: &str) -> Option<Self> {
        let mut parts = id.splitn(6, '-');
        parts.next().filter(|kind| matches!(*kind, "hip" | "hipv4"))?;
        parts.nth(4).and_then(Self::parse)
    }

    /// Whether HIP may load the code on a device of this target. A feature that the device leaves
    /// open fits either way.
    ///
    /// Source: ROCm/clr 6.2 and 7.2, `hip_fatbin.cpp`, `isCodeObjectCompatibleWithDevice`.
    pub fn serves(&self, device: &TargetId) -> bool {
        let name = self.0.processor();
        let (sramecc, xnack) = (self.0.sramecc(), self.0.xnack());
        let fits = name == SPIRV
            || name == device.processor()
            || GENERIC.iter().any(|generic| {
                generic.name == name && generic.processors.contains(&device.processor())
            });
        let same = TargetId::new(device.processor()).with_features(sramecc, xnack);
        fits && same.serves(device)
    }

    /// Whether an ELF header, of 64 bytes, is that of code for this target; for other forms of
    /// code there is nothing to compare.
    pub fn is_of(&self, header: &[u8]) -> Option<bool> {
        if !code_object::begins(header) || header.len() < 64 {
            return (self.0.processor() == SPIRV).then_some(true);
        }
        let mach = u32::from(header[48]);
        if let Some(generic) = GENERIC.iter().find(|generic| generic.name == self.0.processor()) {
            return Some(generic.mach == mach);
        }
        let found = code_object::targets(header).ok()?.pop()?;
        Some(found.serves(&self.0))
    }
}

impl fmt::Display for CodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_serves_its_processor_with_the_features_that_it_names() {
        let check = |code: &str, device: &str, expected: bool| {
            let parsed = CodeTarget::parse(code).expect(code);
            assert_eq!(parsed.serves(&device.parse().expect(device)), expected, "{code} {device}");
        };
        check("gfx90a", "gfx90a:xnack+", true);
        check("gfx90a:xnack-", "gfx90a:xnack+", false);
        check("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", true);
        check("gfx90a-xnack+", "gfx90a", true);
        check("gfx90a-xnack+", "gfx90a:xnack-", false);
        check("gfx9-generic", "gfx906", true);
        check("gfx9-generic:xnack-", "gfx906:xnack+", false);
        check("gfx9-generic", "gfx90a", false);
        check("gfx9-4-generic", "gfx942", true);
        check("gfx10-3-generic", "gfx1036", true);
        check("gfx11-generic", "gfx1151", true);
        check("gfx11-generic", "gfx1201", false);
        check("amdgcnspirv", "gfx1201", true);
        for text in ["gfx", "gfx90", "gfx9-bogus", "gfx90a:speed+", "gfx90a:xnack", "amdgcn"] {
            assert_eq!(CodeTarget::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_spelling_of_an_entry_is_recognised() {
        let check = |id: &str, expected: Option<&str>| {
            let target = expected.map(|text| CodeTarget::parse(text).expect(text));
            assert_eq!(CodeTarget::of_entry(id), target, "{id}");
        };
        check("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", Some("gfx90a:xnack-"));
        check("hip-amdgcn-amd-amdhsa-gfx900", None);
        check("hip-amdgcn-amd-amdhsa-unknown-gfx9-4-generic", Some("gfx9-4-generic"));
        check("hip-spirv64-amd-amdhsa--amdgcnspirv", Some("amdgcnspirv"));
        check("openmp-amdgcn-amd-amdhsa--gfx906", None);
        check("host-x86_64-unknown-linux--", None);
        check("host-x86_64-unknown-linux-gnu-", None);
    }
}
