//! The name of the package with a target's kernels, made from a template.

use crate::target::Target;

/// The name of AMD's newer packages; `{gfx}` is replaced by the target.
pub const DEFAULT_NAME_TEMPLATE: &str = "miopen-hip-{gfx}kdb";

/// The package's name for a target, without any ROCm version.
pub fn for_target(template: &str, target: &Target) -> String {
    expand(template, &target.package_suffix(), "")
}

/// Replaces `{gfx}` and `{rocm}`. If the template has no `{rocm}`, the version
/// is appended, as in AMD's `miopen-hip-gfx942kdb6.3.4`.
pub fn expand(template: &str, gfx: &str, rocm: &str) -> String {
    let end = if template.contains("{rocm}") { "" } else { rocm };
    let name = template.replace("{gfx}", gfx).replace("{rocm}", rocm);
    // Removes separators that would precede or follow a version.
    let name = if rocm.is_empty() { name.trim_matches(['-', '.', '_']) } else { &name };
    format!("{name}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_replaces_its_placeholder_or_is_appended() {
        let check = |template: &str, expected: &str| {
            assert_eq!(expand(template, "gfx942", "6.3.4"), expected);
        };
        check(DEFAULT_NAME_TEMPLATE, "miopen-hip-gfx942kdb6.3.4");
        check("kernels{rocm}-{gfx}", "kernels6.3.4-gfx942");
        let target = "gfx90a@104".parse().unwrap();
        assert_eq!(for_target("kernels{rocm}-{gfx}", &target), "kernels-gfx90a-104");
        assert_eq!(expand("k-{gfx}-{rocm}", "gfx942", ""), "k-gfx942");
        assert_eq!(expand("{rocm}-k-{gfx}", "gfx942", ""), "k-gfx942");
    }
}
