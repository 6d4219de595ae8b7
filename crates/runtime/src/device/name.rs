//! Parses the names of devices: names with features, and version numbers.

use gfxpack_model::{TargetId, processors};

/// The largest count of compute units that is accepted.
pub(super) const MAX_COMPUTE_UNITS: u32 = 4095;

/// Parses a device name as HIP and `MIOPEN_DEVICE_ARCH` spell it,
/// `gfx90a:sramecc+:xnack-`; `None` if it is not a gfx processor.
///
/// Features that the processor does not have are left out: ROCm has been seen
/// to report `sramecc-` on gfx900.
///
/// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::Init` and its
/// WORKAROUND_ISSUE_1204.
pub fn parse_name(text: &str) -> Option<TargetId> {
    let mut parts = text.trim().split(':');
    let processor = parts.next()?;
    if processor.contains(['@', '_']) {
        return None;
    }
    let id: TargetId = processor.parse().ok()?;
    let known = processors::by_name(id.processor());
    let (mut sramecc, mut xnack) = (None, None);
    for part in parts {
        match part {
            "sramecc+" | "sramecc-" if known.is_none_or(|known| known.sramecc) => {
                sramecc = Some(part.ends_with('+'));
            }
            "xnack+" | "xnack-" if known.is_none_or(|known| known.xnack) => {
                xnack = Some(part.ends_with('+'));
            }
            _ => {}
        }
    }
    Some(id.with_features(sramecc, xnack))
}

/// The processor of the kernel driver's `gfx_target_version`, which is major *
/// 10000 + minor * 100 + stepping: 90010 is gfx90a.
///
/// Source: ROCm/ROCR-Runtime, `HSA_GET_GFX_VERSION_MAJOR` and its siblings;
/// the name's digits as in LLVM, `AMDGPUUsage`: minor and stepping hexadecimal.
pub(super) fn from_version(version: u64) -> Option<TargetId> {
    from_parts(version / 10_000, version / 100 % 100, version % 100)
}

/// The processor of `HSA_OVERRIDE_GFX_VERSION`: `10.3.0` is gfx1030.
pub(super) fn from_dotted_version(text: &str) -> Option<TargetId> {
    let parts: Vec<u64> =
        text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<_>>>()?;
    match parts[..] {
        [major, minor, stepping] => from_parts(major, minor, stepping),
        _ => None,
    }
}

fn from_parts(major: u64, minor: u64, stepping: u64) -> Option<TargetId> {
    // The driver's own limit for the major number; one hexadecimal digit for
    // the others.
    if !(1..=63).contains(&major) || minor > 15 || stepping > 15 {
        return None;
    }
    format!("gfx{major}{minor:x}{stepping:x}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_hip_writes_them() {
        for (text, expected) in [
            ("gfx90a:sramecc+:xnack-", Some("gfx90a:sramecc+:xnack-")),
            ("gfx906:sramecc+:xnack-", Some("gfx906:sramecc+:xnack-")),
            ("gfx900:sramecc-:xnack-", Some("gfx900:xnack-")),
            ("gfx1030", Some("gfx1030")),
            ("gfx1999", Some("gfx1999")),
            ("gfx90a:speed+", Some("gfx90a")),
            ("gfx906_60", None),
            ("gfx90a@104", None),
            ("Vega20", None),
            ("", None),
        ] {
            assert_eq!(parse_name(text).map(|id| id.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn driver_versions_give_processor_names() {
        for (version, expected) in [
            (90_010, Some("gfx90a")),
            (90_402, Some("gfx942")),
            (90_006, Some("gfx906")),
            (100_300, Some("gfx1030")),
            (110_001, Some("gfx1101")),
            (120_001, Some("gfx1201")),
            (0, None),
            (99_999, None),
            (u64::MAX, None),
        ] {
            let name = from_version(version).map(|id| id.to_string());
            assert_eq!(name.as_deref(), expected, "{version}");
        }
        for (text, expected) in [
            ("10.3.0", Some("gfx1030")),
            ("9.0.10", Some("gfx90a")),
            ("10.3", None),
            ("10.3.0.1", None),
            ("10.3.x", None),
            ("-9.0.0", None),
        ] {
            let name = from_dotted_version(text).map(|id| id.to_string());
            assert_eq!(name.as_deref(), expected, "{text}");
        }
    }
}
