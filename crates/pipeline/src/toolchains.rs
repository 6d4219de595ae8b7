//! Lists the toolchains of this machine, and what they can build.

use std::collections::BTreeMap;

use gfxpack_compile::{Cancel, FileDigests, landlock_abi};
use gfxpack_model::Language;
use gfxpack_plan::arguments;
use gfxpack_process::temporary_dir;
use gfxpack_toolchain::{Search, Toolchain, ToolchainReport, Toolchains};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::error::Result;
use crate::options::{CacheOptions, Purpose};
use crate::text::{display, language_word};

/// Probes all toolchains, in order of preference. Results are kept in the cache
/// directory, or in a temporary one if there is no cache.
///
/// # Errors
/// If a given program is not usable, or no toolchain is found.
pub fn survey(
    search: &Search,
    options: &CacheOptions,
    cancel: &Cancel,
) -> Result<Vec<ToolchainReport>> {
    let scratch = temporary_dir()?;
    let cache = options.directory().ok();
    let cache = cache.filter(|dir| std::fs::create_dir_all(dir.join("trials")).is_ok());
    let digests = match &cache {
        Some(dir) => options.file_digests(dir),
        None => FileDigests::in_memory(),
    };
    let cache = cache.as_deref().unwrap_or(scratch.path());
    let found = Toolchains::find(search, &digests, (cache, true), cache, arguments::plain, cancel);
    let listed = found?.list()?;
    digests.save();
    Ok(listed)
}

/// The clang versions of this machine's toolchains, in order of preference; empty
/// if there are none.
///
/// # Errors
/// If a given program is not usable, or the cache can't be opened.
pub fn clang_versions(
    search: &Search,
    cache: &CacheOptions,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let cache = Cache::open_for(cache, Purpose::Look)?;
    cache.toolchains(search, cancel)?.clang_versions()
}

/// The processors that a toolchain builds for from a language. The flag says
/// whether a constant must be supplied.
pub fn processors(listed: &ToolchainReport, language: Language) -> &[(&'static str, bool)] {
    let found = listed.builds.iter().find(|(other, _)| *other == language);
    found.map_or(&[], |(_, processors)| processors.as_slice())
}

/// A toolchain as a message.
pub fn message(listed: &ToolchainReport) -> Value {
    let builds: BTreeMap<String, Vec<Value>> = listed
        .builds
        .iter()
        .map(|(language, processors)| {
            let each = processors.iter();
            let each = each.map(|(gfx, supplied)| json!({ "gfx": gfx, "supplied": supplied }));
            (language_word(*language), each.collect())
        })
        .collect();
    let refused: BTreeMap<String, &String> =
        listed.refused.iter().map(|(language, words)| (language_word(*language), words)).collect();
    let toolchain = listed.toolchain.as_ref().ok();
    let version = |toolchain: &Toolchain| {
        toolchain.hip_version.map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"))
    };
    json!({
        "program": display(&listed.program),
        "identity": toolchain.map(Toolchain::identity),
        "unusable": listed.toolchain.as_ref().err(),
        "clang": toolchain.map(|toolchain| display(&toolchain.clang)),
        "clang_version": toolchain.map(|toolchain| &toolchain.clang_version),
        "hip_version": toolchain.and_then(version),
        "rocm": toolchain.map(|toolchain| display(&toolchain.rocm)),
        "device_libs": toolchain.map(|toolchain| display(&toolchain.installed_libs)),
        "digest": toolchain.map(|toolchain| toolchain.digest),
        "builds": builds,
        "refused": refused,
        "constants": listed.constants,
        "landlock": landlock_abi(),
    })
}

/// The languages from which some toolchain builds for a processor.
pub fn buildable(toolchains: &[ToolchainReport], processor: &str) -> Vec<Language> {
    let is_built = |language: &Language| {
        let mut all = toolchains.iter().flat_map(|listed| processors(listed, *language));
        all.any(|(gfx, _)| *gfx == processor)
    };
    Language::ALL.into_iter().filter(is_built).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(builds: Vec<(Language, Vec<(&'static str, bool)>)>) -> ToolchainReport {
        ToolchainReport {
            program: "/usr/bin/hipcc".into(),
            toolchain: Err("it is no compiler".to_owned()),
            builds,
            refused: Vec::new(),
            constants: Vec::new(),
        }
    }

    #[test]
    fn what_one_toolchain_lacks_another_may_build() {
        let toolchains = [
            listed(vec![(Language::Hip, vec![("gfx906", false), ("gfx90a", true)])]),
            listed(vec![(Language::Assembly, vec![("gfx906", false)])]),
        ];
        let built = |gfx| buildable(&toolchains, gfx);
        assert_eq!(built("gfx906"), [Language::Hip, Language::Assembly]);
        assert_eq!(built("gfx90a"), [Language::Hip]);
        assert!(built("gfx1030").is_empty());
    }

    #[test]
    fn a_toolchain_that_cannot_be_used_is_listed_with_the_reason() {
        let message = message(&listed(vec![(Language::OpenclC, vec![("gfx90a", true)])]));
        assert_eq!(message["unusable"], "it is no compiler");
        assert_eq!(message["identity"], Value::Null);
        assert_eq!(message["builds"]["opencl-c"][0], json!({ "gfx": "gfx90a", "supplied": true }));
    }
}
