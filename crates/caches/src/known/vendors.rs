//! AMD's code object manager and rocFFT, CUDA, Mesa.

use super::cache::{Cache, CacheDirectory, Item, holds_only, is_hex, is_made_of, is_sqlite, names};
use crate::location_variable::LocationVariable;
use crate::switch::{Switch, rules};
use crate::user_environment::UserEnvironment;

/// The effect of a switch for a whole cache.
const NOTHING: &str = "nothing is read or kept";

pub(super) fn rocm(environment: &UserEnvironment) -> [Cache; 2] {
    [
        Cache {
            name: "comgr",
            about: "what the ROCm runtime compiled",
            directories: comgr(environment).into_iter().collect(),
            switches: vec![Switch::new("AMD_COMGR_CACHE", "0", rules::COMGR, NOTHING)],
            disable_note: "",
            location_variables: vec![LocationVariable::dir("AMD_COMGR_CACHE_DIR", "comgr")],
            location_note: "",
        },
        Cache {
            name: "rocfft",
            about: "kernels that rocFFT compiled",
            directories: rocfft(environment).into_iter().collect(),
            switches: vec![
                Switch::new("ROCFFT_RTC_CACHE_READ_DISABLE", "1", rules::ROCFFT, "it is not read"),
                Switch::new(
                    "ROCFFT_RTC_CACHE_WRITE_DISABLE",
                    "1",
                    rules::ROCFFT,
                    "nothing is added to it",
                ),
            ],
            disable_note: "the kernels that rocFFT ships are not read either; where \
                           ROCFFT_RTC_CACHE_PATH is set, the file is made, and stays empty",
            location_variables: vec![LocationVariable::file(
                "ROCFFT_RTC_CACHE_PATH",
                "rocfft/kernels.db",
            )],
            location_note: "without the variable it keeps nothing",
        },
    ]
}

/// Source: ROCm/llvm-project, `getCacheDirectory` in
/// amd/comgr/src/comgr-env.cpp; LLVM, `cache_directory` in
/// lib/Support/Unix/Path.inc, for which a variable that is set counts.
fn comgr(environment: &UserEnvironment) -> Option<CacheDirectory> {
    if environment.value("AMD_COMGR_CACHE_DIR").is_some() {
        let dir = environment.absolute("AMD_COMGR_CACHE_DIR")?;
        return Some(CacheDirectory::new(dir, "AMD_COMGR_CACHE_DIR", is_llvm));
    }
    let (dir, rule) = match environment.raw("XDG_CACHE_HOME") {
        Some(_) => (environment.absolute("XDG_CACHE_HOME")?, "XDG_CACHE_HOME"),
        None => (environment.home()?.join(".cache"), "HOME"),
    };
    Some(CacheDirectory::new(dir.join("comgr"), rule, is_llvm))
}

/// A file, not a directory. Without the variable rocFFT keeps kernels only in
/// memory.
///
/// Source: ROCm/rocFFT, `rtccache_db_user_paths` in library/src/rtc_cache.cpp.
fn rocfft(environment: &UserEnvironment) -> Option<CacheDirectory> {
    let file = environment.absolute("ROCFFT_RTC_CACHE_PATH")?;
    let name = file.file_name()?.to_str()?.to_owned();
    let dir = file.parent()?.to_owned();
    let directory = CacheDirectory::new(dir, "ROCFFT_RTC_CACHE_PATH", is_database);
    Some(CacheDirectory { only: Some(name), ..directory })
}

/// Source: NVIDIA, CUDA C++ Programming Guide, "CUDA Environment Variables".
pub(super) fn cuda(environment: &UserEnvironment) -> Cache {
    let directory = if environment.value("CUDA_CACHE_PATH").is_some() {
        let dir = environment.absolute("CUDA_CACHE_PATH");
        dir.map(|dir| CacheDirectory {
            beside: Some(is_indexed),
            ..CacheDirectory::new(dir, "CUDA_CACHE_PATH", is_cuda)
        })
    } else {
        let home = environment.home();
        home.map(|home| CacheDirectory::new(home.join(".nv/ComputeCache"), "HOME", is_cuda))
    };
    Cache {
        name: "cuda",
        about: "code that the CUDA driver compiled",
        directories: directory.into_iter().collect(),
        switches: vec![Switch::new("CUDA_CACHE_DISABLE", "1", rules::ONE, NOTHING)],
        disable_note: "",
        location_variables: vec![LocationVariable::dir("CUDA_CACHE_PATH", "cuda")],
        location_note: "",
    }
}

/// Source: Mesa, `disk_cache_generate_cache_dir` in src/util/disk_cache_os.c.
pub(super) fn mesa(environment: &UserEnvironment) -> Cache {
    let set = ["MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", "XDG_CACHE_HOME"]
        .into_iter()
        .find(|name| environment.raw(name).is_some());
    // A variable that is set but empty leaves Mesa without a place.
    let directory = match set {
        Some(name) => environment.absolute(name).map(|dir| (dir, name)),
        None => environment.home().map(|home| (home.join(".cache"), "HOME")),
    };
    Cache {
        name: "mesa",
        about: "shaders that graphics drivers compiled",
        directories: directory
            .map(|(dir, rule)| CacheDirectory::new(dir, rule, is_mesa))
            .into_iter()
            .collect(),
        switches: vec![Switch::new("MESA_SHADER_CACHE_DISABLE", "1", rules::MESA, NOTHING)],
        disable_note: "",
        location_variables: vec![LocationVariable::dir("MESA_SHADER_CACHE_DIR", "mesa")],
        location_note: "",
    }
}

/// Source: LLVM, `localCache` in lib/Support/Caching.cpp and `pruneCache` in
/// lib/Support/CachePruning.cpp.
fn is_llvm(item: &Item<'_>) -> bool {
    !item.is_dir && (item.name.starts_with("llvmcache-") || item.name == "llvmcache.timestamp")
}

fn is_database(item: &Item<'_>) -> bool {
    !item.is_dir && is_sqlite(item.path)
}

/// A digit of a digest with directories of the next digit, and the index.
fn is_cuda(item: &Item<'_>) -> bool {
    let digit = |name: &str| is_made_of(name, 1..=1, is_hex);
    if item.is_dir {
        digit(item.name) && holds_only(item.path, digit)
    } else {
        item.name == "index"
    }
}

/// In a directory that the user chose: only with both the index and digits.
fn is_indexed(item: &Item<'_>) -> bool {
    let Some(dir) = item.path.parent() else { return false };
    let digits = |name: &String| is_cuda(&Item { path: &dir.join(name), name, is_dir: true });
    dir.join("index").is_file() && names(dir).iter().any(digits)
}

fn is_mesa(item: &Item<'_>) -> bool {
    let names = ["mesa_shader_cache", "mesa_shader_cache_sf", "mesa_shader_cache_db"];
    item.is_dir && names.contains(&item.name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, found, owns};

    #[test]
    fn each_cache_follows_its_rules() {
        let linux = |name: &str, variables: &[(&str, &str)], expected: &[&str]| {
            check(variables, name, expected);
        };
        let (home, xdg, empty) = (("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("XDG_CACHE_HOME", ""));
        linux("comgr", &[home], &["/h/.cache/comgr"]);
        linux("comgr", &[home, xdg], &["/x/comgr"]);
        linux("comgr", &[home, empty], &[]);
        linux("comgr", &[home, xdg, ("AMD_COMGR_CACHE_DIR", "/c")], &["/c"]);
        linux("comgr", &[home, xdg, ("AMD_COMGR_CACHE_DIR", "")], &["/x/comgr"]);
        linux("rocfft", &[home, xdg], &[]);
        linux("rocfft", &[("ROCFFT_RTC_CACHE_PATH", "/d/f.db")], &["/d"]);
        linux("rocfft", &[("ROCFFT_RTC_CACHE_PATH", "f.db")], &[]);
        linux("cuda", &[home, xdg], &["/h/.nv/ComputeCache"]);
        linux("cuda", &[home, ("CUDA_CACHE_PATH", "/c")], &["/c"]);
        linux("cuda", &[home, ("CUDA_CACHE_PATH", "")], &["/h/.nv/ComputeCache"]);
        linux("mesa", &[home], &["/h/.cache"]);
        linux("mesa", &[home, xdg], &["/x"]);
        linux("mesa", &[home, empty], &[]);
        linux("mesa", &[home, xdg, ("MESA_SHADER_CACHE_DIR", "/m")], &["/m"]);
        linux("mesa", &[home, xdg, ("MESA_GLSL_CACHE_DIR", "/g")], &["/g"]);
    }

    #[test]
    fn only_their_files_are_recognised() {
        assert!(
            owns("comgr", "llvmcache-0F3A", false) && owns("comgr", "llvmcache.timestamp", false)
        );
        assert!(!owns("comgr", "notes.txt", false) && !owns("comgr", "llvmcache-0F3A", true));
        assert!(owns("cuda", "index", false) && !owns("cuda", "a", false));
        let cuda = |files: &[&str]| found("cuda", "CUDA_CACHE_PATH", files);
        assert_eq!(cuda(&["index", "a/0/x", "b/mine", "ab/0/x"]), ["a", "index"]);
        assert!(cuda(&["a/0/x"]).is_empty() && cuda(&["index", "a/mine"]).is_empty());
        assert!(owns("mesa", "mesa_shader_cache_db", true));
        assert!(!owns("mesa", "mesa_shader_cache.old", true) && !owns("mesa", "pip", true));
    }
}
