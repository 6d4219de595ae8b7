//! Triton and TorchInductor.

use std::path::{Path, PathBuf};

use super::cache::{Cache, CacheDirectory, Item, is_hex, is_made_of, names};
use crate::location_variable::LocationVariable;
use crate::switch::{Switch, rules};
use crate::user_environment::UserEnvironment;

const UNREAD: &str = "what an earlier process compiled is not read";

pub(super) fn caches(environment: &UserEnvironment) -> [Cache; 2] {
    [
        Cache {
            name: "triton",
            about: "compiled Triton kernels",
            directories: triton(environment).into_iter().collect(),
            switches: vec![
                Switch::new(
                    "TRITON_ALWAYS_COMPILE",
                    "1",
                    rules::TRITON,
                    "it is not read, but still added to",
                )
                .unusual(),
            ],
            disable_note: "Triton's cache has no switch: TRITON_ALWAYS_COMPILE=1 only ignores what \
                           is there",
            location_variables: vec![LocationVariable::dir("TRITON_CACHE_DIR", "triton")],
            location_note: "",
        },
        Cache {
            name: "inductor",
            about: "what torch.compile generated and compiled",
            directories: inductor(environment).into_iter().collect(),
            switches: vec![
                Switch::new("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1", rules::ONE, UNREAD),
                Switch::new("TORCH_COMPILE_FORCE_DISABLE_CACHES", "1", rules::ONE, UNREAD)
                    .unusual(),
            ],
            disable_note: "it compiles in the same directory all the same",
            location_variables: vec![LocationVariable::dir("TORCHINDUCTOR_CACHE_DIR", "inductor")],
            location_note: "",
        },
    ]
}

/// Source: triton-lang/triton, `FileCacheManager` and `default_cache_dir` in
/// python/triton/runtime/cache.py: empty counts as unset.
fn triton(environment: &UserEnvironment) -> Option<CacheDirectory> {
    if environment.value("TRITON_CACHE_DIR").is_some() {
        let dir = environment.absolute("TRITON_CACHE_DIR")?;
        return Some(CacheDirectory::new(dir, "TRITON_CACHE_DIR", is_triton));
    }
    let (home, rule) = match environment.raw("TRITON_HOME") {
        Some(_) => (environment.absolute("TRITON_HOME")?, "TRITON_HOME"),
        None => (environment.home()?, "HOME"),
    };
    Some(CacheDirectory::new(home.join(".triton/cache"), rule, is_triton))
}

/// Source: pytorch/pytorch, torch/_inductor/runtime/cache_dir_utils.py.
fn inductor(environment: &UserEnvironment) -> Option<CacheDirectory> {
    if environment.raw("TORCHINDUCTOR_CACHE_DIR").is_some() {
        let dir = environment.absolute("TORCHINDUCTOR_CACHE_DIR")?;
        let directory = CacheDirectory::new(dir, "TORCHINDUCTOR_CACHE_DIR", is_inductor);
        return Some(CacheDirectory { beside: Some(is_among_parts), ..directory });
    }
    let user = environment.python_user()?;
    let plain = |c: char| if r#"\/:*?"<>|"#.contains(c) { '_' } else { c };
    let name: String = user.chars().map(plain).collect();
    let dir: PathBuf = environment.python_temp_dir().join(format!("torchinductor_{name}"));
    Some(CacheDirectory::new(dir, "the temporary directory", is_inductor))
}

/// A directory named by a digest, in base32 now and hexadecimal earlier, with a
/// file that Triton writes.
fn is_triton(item: &Item<'_>) -> bool {
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
fn is_inductor(item: &Item<'_>) -> bool {
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
fn is_among_parts(item: &Item<'_>) -> bool {
    if !PARTS.contains(&item.name) {
        return true;
    }
    let Some(dir) = item.path.parent() else { return false };
    let names = names(dir);
    let own = |name: &str| OWN_PARTS.contains(&name) || is_digests(name, &dir.join(name));
    names.iter().any(|name| own(name))
        && names.iter().all(|name| PARTS.contains(&name.as_str()) || own(name))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, found, owns};

    #[test]
    fn triton_is_below_its_home() {
        let linux = |variables: &[(&str, &str)], expected: &[&str]| {
            check(variables, "triton", expected);
        };
        linux(&[("HOME", "/h")], &["/h/.triton/cache"]);
        linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], &["/h/.triton/cache"]);
        linux(&[("HOME", "/h"), ("TRITON_HOME", "/t")], &["/t/.triton/cache"]);
        linux(&[("HOME", "/h"), ("TRITON_HOME", "")], &[]);
        linux(&[("TRITON_CACHE_DIR", "/c"), ("TRITON_HOME", "/t")], &["/c"]);
        linux(&[("HOME", "/h"), ("TRITON_CACHE_DIR", "")], &["/h/.triton/cache"]);
        linux(&[("HOME", "/h"), ("TRITON_CACHE_DIR", "c")], &[]);
    }

    #[test]
    fn inductor_is_in_the_temporary_directory_of_the_user() {
        let linux = |variables: &[(&str, &str)], expected: &[&str]| {
            check(variables, "inductor", expected);
        };
        linux(&[], &["/tmp/torchinductor_ada"]);
        linux(&[("USER", "bob")], &["/tmp/torchinductor_bob"]);
        linux(&[("USER", "bob"), ("LOGNAME", "c/d")], &["/tmp/torchinductor_c_d"]);
        linux(&[("TMPDIR", "/t"), ("USER", "")], &["/t/torchinductor_ada"]);
        linux(&[("TMPDIR", ""), ("TEMP", "/u")], &["/u/torchinductor_ada"]);
        linux(&[("TORCHINDUCTOR_CACHE_DIR", "/c")], &["/c"]);
        linux(&[("TORCHINDUCTOR_CACHE_DIR", "")], &[]);
    }

    #[test]
    fn only_their_directories_are_recognised() {
        let digests = ["AB2".repeat(20)[..52].to_owned(), "0f".repeat(32), "0f".repeat(16)];
        for digest in &digests {
            let at = |file: &str| format!("{digest}/{file}");
            for file in ["kernel.hsaco", "__grp__kernel.json", "cuda_utils.so"] {
                let files = [at(file), at("mine"), "mine/kernel.json".to_owned()];
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                assert_eq!(found("triton", "TRITON_CACHE_DIR", &files), [digest.as_str()]);
            }
            assert!(found("triton", "TRITON_CACHE_DIR", &[&at("mine")]).is_empty());
            assert!(!owns("triton", digest, false));
        }
        assert!(owns("inductor", "triton", true) && owns("inductor", "fxgraph", true));
        assert!(!owns("inductor", "src", true) && !owns("inductor", "locks", false));
    }

    #[test]
    fn in_a_custom_directory_the_contents_decide() {
        let found = |files: &[&str]| found("inductor", "TORCHINDUCTOR_CACHE_DIR", files);
        let own = ["zk/czk2.py", "zk/0123.best_config", "triton/0/x", "locks/x.lock"];
        assert_eq!(found(&own), ["locks", "triton", "zk"]);
        assert_eq!(found(&["fxgraph/x", "triton/0/x"]), ["fxgraph", "triton"]);
        let checkouts = ["cache/x", "triton/setup.py", "locks/x", "cutlass/README.md"];
        assert!(found(&checkouts).is_empty());
        assert_eq!(found(&[&checkouts[..], &own, &["mine"]].concat()), ["zk"]);
        assert!(found(&["ml/model", "db/cdb.py", "db/notes"]).is_empty());
    }
}
