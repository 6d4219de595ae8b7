//! Recognises the entries of each tool: by name and kind, and if the names are common
//! also by content.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::cache::Item;

/// `3.3.0.`: a directory of one version's kernels.
pub(crate) fn is_version(item: &Item<'_>) -> bool {
    let mut parts = item.name.split('.');
    let numbers = parts.by_ref().take(3).filter(|part| is_made_of(part, 1..=6, is_digit)).count();
    item.is_dir && numbers == 3 && parts.all(|part| is_made_of(part, 0..=40, is_plain))
}

/// In a directory that the user chose: kernels themselves, or directories of
/// versions with kernels.
pub(crate) fn is_kernels(item: &Item<'_>) -> bool {
    is_kernel_file(item) || is_old_kernel(item) || (is_version(item) && holds_kernels(item.path))
}

fn holds_kernels(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| (entry.file_name(), entry.path()));
    names.any(|(name, path)| {
        let Some(name) = name.to_str() else { return false };
        let item = Item { path: &path, name, is_dir: path.is_dir() };
        is_kernel_file(&item) || is_old_kernel(&item)
    })
}

/// `gfx906_60.ukdb`.
pub(crate) fn is_kernel_file(item: &Item<'_>) -> bool {
    !item.is_dir && item.name.starts_with("gfx") && item.name.ends_with(".ukdb")
}

/// A directory of object files named by a digest: the layout before kdbs.
fn is_old_kernel(item: &Item<'_>) -> bool {
    item.is_dir
        && is_made_of(item.name, 32..=32, is_hex)
        && holds_only(item.path, |name| name.ends_with(".o"))
}

pub(crate) fn is_tuning(item: &Item<'_>) -> bool {
    let ends = [".udb.txt", ".ufdb.txt", ".udb"];
    !item.is_dir && item.name.contains("gfx") && ends.iter().any(|end| item.name.ends_with(end))
}

/// `<digest>_gfx906_60.HIP.3_3_0_.ufdb.txt.lock`.
pub(crate) fn is_lock(item: &Item<'_>) -> bool {
    let parts = item.name.strip_suffix(".lock").and_then(|name| name.split_once('_'));
    !item.is_dir && parts.is_some_and(|(digest, _)| is_made_of(digest, 32..=32, is_hex))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Source: LLVM, `localCache` in lib/Support/Caching.cpp and `pruneCache` in
/// lib/Support/CachePruning.cpp.
pub(crate) fn is_llvm(item: &Item<'_>) -> bool {
    !item.is_dir && (item.name.starts_with("llvmcache-") || item.name == "llvmcache.timestamp")
}

pub(crate) fn is_database(item: &Item<'_>) -> bool {
    !item.is_dir && is_sqlite(item.path)
}

/// A digit of a digest with directories of the next digit, and the index.
pub(crate) fn is_cuda(item: &Item<'_>) -> bool {
    let digit = |name: &str| is_made_of(name, 1..=1, is_hex);
    if item.is_dir {
        digit(item.name) && holds_only(item.path, digit)
    } else {
        item.name == "index"
    }
}

/// In a directory that the user chose: only with both the index and digits.
pub(crate) fn is_indexed(item: &Item<'_>) -> bool {
    let Some(dir) = item.path.parent() else { return false };
    let digits = |name: &String| is_cuda(&Item { path: &dir.join(name), name, is_dir: true });
    dir.join("index").is_file() && names(dir).iter().any(digits)
}

pub(crate) fn is_mesa(item: &Item<'_>) -> bool {
    let names = ["mesa_shader_cache", "mesa_shader_cache_sf", "mesa_shader_cache_db"];
    item.is_dir && names.contains(&item.name)
}

/// `pdict-v5-<identifier>-3.11.7.final.0.sqlite`; a directory before version 5.
pub(crate) fn is_dictionary(item: &Item<'_>) -> bool {
    let rest = item.name.strip_prefix("pdict-v");
    let version = rest.and_then(|rest| rest.split_once('-')).map(|(version, _)| version);
    version.is_some_and(|version| is_made_of(version, 1..=3, |byte| byte.is_ascii_digit()))
        && (item.is_dir || item.name.ends_with(".sqlite"))
}

/// `pyopencl-compiler-cache-v2-py3.11.7.final.0`.
pub(crate) fn is_compiler_cache(item: &Item<'_>) -> bool {
    item.is_dir && item.name.starts_with("pyopencl-compiler-cache-v")
}

/// Two letters of a digest that is spelled with the first sixteen letters, with
/// directories named by the rest of it (PoCL 3.1 overwrites one of 40 by the
/// slash); and leftovers of a compilation: a fixed word and six characters of
/// `mkstemp`.
pub(crate) fn is_pocl(item: &Item<'_>) -> bool {
    let letters = |byte: u8| (b'A'..=b'P').contains(&byte);
    let left = |begin: &str| {
        let rest = item.name.strip_prefix(begin);
        let rest = rest.map(|rest| rest.strip_prefix('_').unwrap_or(rest));
        rest.and_then(|rest| rest.split_at_checked(6)).is_some_and(|(random, suffix)| {
            is_made_of(random, 6..=6, |b| b.is_ascii_alphanumeric())
                && (suffix.is_empty() || suffix.starts_with(['.', '_', '-']))
                && is_made_of(suffix, 0..=18, |b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
    };
    if item.is_dir {
        let digests = || holds_only(item.path, |name| is_made_of(name, 37..=62, letters));
        (is_made_of(item.name, 2..=2, letters) && digests()) || left("tempdir") || left("_UNCACHED")
    } else {
        left("tempfile")
    }
}

/// A directory named by a digest, in base32 now and hexadecimal earlier, with a
/// file that Triton writes.
pub(crate) fn is_triton(item: &Item<'_>) -> bool {
    let base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
    let ends = [".json", ".hsaco", ".cubin", ".so", ".ptx", ".ttir"];
    let written =
        |name: &String| name.starts_with("__grp__") || ends.iter().any(|end| name.ends_with(end));
    item.is_dir
        && (is_made_of(item.name, 52..=52, base32)
            || [32, 64].iter().any(|count| is_made_of(item.name, *count..=*count, is_hex)))
        && names(item.path).iter().any(written)
}

/// Directory names that only Inductor uses.
const OWN_PARTS: [&str; 2] = ["aotautograd", "fxgraph"];

/// Directory names that others use too.
const PARTS: [&str; 7] =
    ["cache", "cutlass", "global_cache", "local_cache", "locks", "precompiled_headers", "triton"];

/// Two characters of a digest, and the directories of its parts.
pub(crate) fn is_inductor(item: &Item<'_>) -> bool {
    let part = OWN_PARTS.contains(&item.name) || PARTS.contains(&item.name);
    item.is_dir && (part || is_digests(item.name, item.path))
}

/// `zk` with `czk….py` in it: these are the characters after the first, which
/// shows the kind. Results of tuning are named by another digest.
fn is_digests(name: &str, dir: &Path) -> bool {
    let small = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    if !is_made_of(name, 2..=2, small) {
        return false;
    }
    let (same, other): (Vec<String>, Vec<String>) =
        names(dir).into_iter().partition(|child| child.get(1..3) == Some(name));
    !same.is_empty() && other.iter().all(|child| child.ends_with(".best_config"))
}

/// In a directory that the user chose, `triton` may be a checkout: names that
/// others use too count only if everything else there is Inductor's.
pub(crate) fn is_among_parts(item: &Item<'_>) -> bool {
    if !PARTS.contains(&item.name) {
        return true;
    }
    let Some(dir) = item.path.parent() else { return false };
    let names = names(dir);
    let own = |name: &str| OWN_PARTS.contains(&name) || is_digests(name, &dir.join(name));
    names.iter().any(|name| own(name))
        && names.iter().all(|name| PARTS.contains(&name.as_str()) || own(name))
}

/// Whether the file begins like an SQLite database.
pub(crate) fn is_sqlite(path: &Path) -> bool {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let regular = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut first = [0; 16];
    regular
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == *MAGIC
}

/// The names in a directory; empty if it can't be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    // Names that are not UTF-8, or can't be read, become empty, which no tool
    // uses.
    entries
        .map(|entry| entry.map(|entry| entry.file_name().into_string().unwrap_or_default()))
        .map(Result::unwrap_or_default)
        .collect()
}

/// Whether the directory is not empty, and all its names match.
fn holds_only(dir: &Path, named: impl Fn(&str) -> bool) -> bool {
    let names = names(dir);
    !names.is_empty() && names.iter().all(|name| named(name))
}

/// Whether a text has a length in `count` and consists of matching bytes.
fn is_made_of(text: &str, count: std::ops::RangeInclusive<usize>, of: fn(u8) -> bool) -> bool {
    count.contains(&text.len()) && text.bytes().all(of)
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CACHES;
    use crate::user_environment::UserEnvironment;

    /// Whether an entry of this name in the tool's usual place belongs to it.
    fn owns(cache: &str, name: &str, is_dir: bool) -> bool {
        let user = UserEnvironment::new([("HOME", "/h")], Some("ada".to_owned()));
        let cache = CACHES.iter().find(|one| one.name == cache).expect(cache);
        let item = Item { path: Path::new("/no/such"), name, is_dir };
        cache.directories(&user)[0].owns(&item)
    }

    /// The entries found in a directory that the variable names and that has
    /// these files.
    fn found(cache: &str, variable: &str, files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a directory");
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let user = UserEnvironment::new([(variable, dir.path())], None);
        let cache = CACHES.iter().find(|one| one.name == cache).expect(cache);
        let directories = cache.directories(&user);
        let directory = directories.iter().find(|directory| directory.dir == dir.path());
        let scan = directory.expect("a place").scan().expect("readable");
        let name = |path: &Path| path.file_name().expect("a name").display().to_string();
        scan.entries.iter().map(|entry| name(&entry.path)).collect()
    }

    #[test]
    fn entries_are_recognised_by_name_and_kind() {
        let digests = ["AB2".repeat(20)[..52].to_owned(), "0f".repeat(32), "0f".repeat(16)];
        let loopy = "pdict-v5-loopy-invoker-cache-v10-3.11.7.final.0.sqlite";
        for (cache, name, is_dir) in [
            ("miopen", "3.3.0.", true),
            ("miopen", "3.4.0", true),
            ("miopen", "2.20.0.5", true),
            ("miopen", "3.3.0.4d52ee7-dirty", true),
            ("comgr", "llvmcache-0F3A", false),
            ("comgr", "llvmcache.timestamp", false),
            ("pytools", loopy, false),
            ("pytools", "pdict-v2-loopy-cache-py3.8", true),
            ("pyopencl", "pyopencl-compiler-cache-v2-py3.11.7.final.0", true),
            ("pocl", "tempfile_mm0IbA", false),
            ("pocl", "tempfile_mm0IbA.bc", false),
            ("cuda", "index", false),
            ("inductor", "triton", true),
            ("inductor", "fxgraph", true),
            ("mesa", "mesa_shader_cache_db", true),
        ] {
            assert!(owns(cache, name, is_dir), "{cache}: {name}");
        }
        for (cache, name, is_dir) in [
            ("miopen", "", true),
            ("miopen", "3.3", true),
            ("miopen", "latest", true),
            ("miopen", "3.3.x", true),
            ("miopen", "..", true),
            ("miopen", "3.3.0.a b", true),
            ("miopen", "3.3.0.", false),
            ("comgr", "notes.txt", false),
            ("comgr", "llvmcache-0F3A", true),
            ("pytools", "pdict-v5-x.txt", false),
            ("pytools", "notes", true),
            ("pyopencl", "work", true),
            ("pocl", "PP", false),
            ("pocl", "tempfile", false),
            ("pocl", "tempfile.py", false),
            ("pocl", "tempfile_backups", false),
            ("pocl", "tempfile/../x", false),
            ("pocl", "src", true),
            ("pocl", "tempdir", true),
            ("cuda", "a", false),
            ("triton", &digests[0], false),
            ("triton", &digests[1], true),
            ("inductor", "src", true),
            ("inductor", "locks", false),
            ("mesa", "mesa_shader_cache.old", true),
            ("mesa", "pip", true),
        ] {
            assert!(!owns(cache, name, is_dir), "{cache}: {name}");
        }
        for digest in &digests {
            let at = |file: &str| format!("{digest}/{file}");
            for file in ["kernel.hsaco", "__grp__kernel.json", "cuda_utils.so"] {
                let files = [&at(file), &at("mine"), "mine/kernel.json"];
                assert_eq!(found("triton", "TRITON_CACHE_DIR", &files), [digest.as_str()]);
            }
            assert!(found("triton", "TRITON_CACHE_DIR", &[&at("mine")]).is_empty());
        }
    }

    #[test]
    fn in_a_custom_directory_the_contents_decide() {
        let [a, b] = ["a", "b"].map(|digit| digit.repeat(32));
        let files = [
            "gfx906_60.ukdb",
            "3.3.0/gfx906_60.ukdb",
            "3.4.0/mine",
            &format!("{a}/MIOpenConv.cl.o"),
            &format!("{b}/x.o"),
            &format!("{b}/mine"),
        ];
        let expected = ["3.3.0", &a, "gfx906_60.ukdb"];
        assert_eq!(found("miopen", "MIOPEN_CUSTOM_CACHE_DIR", &files), expected);

        let cuda = |files: &[&str]| found("cuda", "CUDA_CACHE_PATH", files);
        assert_eq!(cuda(&["index", "a/0/x", "b/mine", "ab/0/x"]), ["a", "index"]);
        assert!(cuda(&["a/0/x"]).is_empty() && cuda(&["index", "a/mine"]).is_empty());

        // As PoCL 3.1 makes it, and one letter longer.
        let digest = "DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA";
        let files = [
            &format!("AH/{digest}/program.bc"),
            &format!("AI/{digest}A/program.bc"),
            &format!("QQ/{digest}/program.bc"),
            &format!("ML/{digest}/program.bc"),
            "ML/model.bin",
            "DB/mine",
        ];
        assert_eq!(found("pocl", "POCL_CACHE_DIR", &files), ["AH", "AI"]);

        let inductor = |files: &[&str]| found("inductor", "TORCHINDUCTOR_CACHE_DIR", files);
        let own = ["zk/czk2.py", "zk/0123.best_config", "triton/0/x", "locks/x.lock"];
        assert_eq!(inductor(&own), ["locks", "triton", "zk"]);
        assert_eq!(inductor(&["fxgraph/x", "triton/0/x"]), ["fxgraph", "triton"]);
        let checkouts = ["cache/x", "triton/setup.py", "locks/x", "cutlass/README.md"];
        assert!(inductor(&checkouts).is_empty());
        assert_eq!(inductor(&[&checkouts[..], &own, &["mine"]].concat()), ["zk"]);
        assert!(inductor(&["ml/model", "db/cdb.py", "db/notes"]).is_empty());
    }
}
