//! Finds MIOpen's version from the source tree that kernels are built from.

use std::path::{Path, PathBuf};

/// How many levels the top of the tree may be above the directory of sources:
/// MIOpen's kernels are in `src/kernels`.
const LEVELS: usize = 4;

/// The file with MIOpen's version that `gfxpack miopen --sources` writes beside
/// the sources.
pub const VERSION_FILE: &str = "miopen-version";

/// The file with the prefix below which the MIOpen of these sources looks for kernels.
pub const PREFIX_FILE: &str = "miopen-prefix";

/// The prefix below which the MIOpen whose sources are in these directories looks for kernels, if
/// `gfxpack miopen --sources` wrote them.
pub(crate) fn miopen_prefix(source_dirs: &[PathBuf]) -> Option<String> {
    let texts = source_dirs.iter().map(|dir| std::fs::read_to_string(dir.join(PREFIX_FILE)));
    let mut prefixes = texts.flatten().map(|text| text.trim().to_owned());
    prefixes.find(|prefix| prefix.starts_with('/'))
}

/// The version of the MIOpen whose sources are in these directories, from the
/// source tree around them or from [`VERSION_FILE`].
///
/// Source: MIOpen, `CMakeLists.txt`, `rocm_setup_version`.
pub(crate) fn miopen_version(source_dirs: &[PathBuf]) -> Option<String> {
    source_dirs.iter().find_map(|dir| {
        let dir = std::fs::canonicalize(dir).ok()?;
        let beside = std::fs::read_to_string(dir.join(VERSION_FILE)).ok();
        let beside = beside.map(|text| text.trim().to_owned()).filter(|text| is_version(text));
        beside.or_else(|| dir.ancestors().take(LEVELS).find_map(version_in))
    })
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').all(is_number)
}

fn version_in(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("CMakeLists.txt")).ok()?;
    let project = arguments(&text, "project")?;
    if project.split_whitespace().next() != Some("MIOpen") {
        return None;
    }
    let setup = arguments(&text, "rocm_setup_version")?;
    let version = setup.split_whitespace().skip_while(|word| *word != "VERSION").nth(1)?;
    is_version(version).then(|| version.to_owned())
}

/// The text in the parentheses of the first call of a CMake command.
fn arguments<'t>(text: &'t str, command: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix(command)?.trim_start().strip_prefix('(')?;
        Some(rest.split(')').next().unwrap_or(rest))
    })
}
