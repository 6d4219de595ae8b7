//! Triton and TorchInductor.

use std::path::PathBuf;

use super::{Cache, Item, Place, is_hex, is_made_of};
use crate::surroundings::Surroundings;

pub(super) fn caches(surroundings: &Surroundings) -> [Cache; 2] {
    [
        Cache {
            name: "triton",
            about: "compiled Triton kernels",
            places: triton(surroundings).into_iter().collect(),
            disable: &[],
            disable_note: "Triton's cache has no switch: TRITON_ALWAYS_COMPILE=1 only ignores what \
                           is there",
        },
        Cache {
            name: "inductor",
            about: "what torch.compile generated and compiled",
            places: inductor(surroundings).into_iter().collect(),
            disable: &[("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")],
            disable_note: "it compiles in the same directory all the same",
        },
    ]
}

/// Source: triton-lang/triton, `FileCacheManager` and `default_cache_dir` in
/// python/triton/runtime/cache.py: empty counts as unset.
fn triton(surroundings: &Surroundings) -> Option<Place> {
    if surroundings.value("TRITON_CACHE_DIR").is_some() {
        let dir = surroundings.absolute("TRITON_CACHE_DIR")?;
        return Some(Place::new(dir, "TRITON_CACHE_DIR", is_triton));
    }
    let (home, rule) = match surroundings.raw("TRITON_HOME") {
        Some(_) => (surroundings.absolute("TRITON_HOME")?, "TRITON_HOME"),
        None => (surroundings.home()?, "HOME"),
    };
    Some(Place::new(home.join(".triton/cache"), rule, is_triton))
}

/// Source: pytorch/pytorch, torch/_inductor/runtime/cache_dir_utils.py.
fn inductor(surroundings: &Surroundings) -> Option<Place> {
    if surroundings.raw("TORCHINDUCTOR_CACHE_DIR").is_some() {
        let dir = surroundings.absolute("TORCHINDUCTOR_CACHE_DIR")?;
        return Some(Place::new(dir, "TORCHINDUCTOR_CACHE_DIR", is_inductor));
    }
    let user = surroundings.python_user()?;
    let plain = |c: char| if r#"\/:*?"<>|"#.contains(c) { '_' } else { c };
    let name: String = user.chars().map(plain).collect();
    let dir: PathBuf = surroundings.python_temp_dir().join(format!("torchinductor_{name}"));
    Some(Place::new(dir, "the temporary directory", is_inductor))
}

/// A directory named by a digest, as base32 today and in hexadecimal before.
fn is_triton(item: &Item<'_>) -> bool {
    let base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
    item.is_dir
        && (is_made_of(item.name, 52..=52, base32)
            || [32, 64].iter().any(|count| is_made_of(item.name, *count..=*count, is_hex)))
}

/// Two characters of a digest, and the directories of its parts.
fn is_inductor(item: &Item<'_>) -> bool {
    const PARTS: [&str; 9] = [
        "aotautograd",
        "cache",
        "cutlass",
        "fxgraph",
        "global_cache",
        "local_cache",
        "locks",
        "precompiled_headers",
        "triton",
    ];
    let small = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    item.is_dir && (is_made_of(item.name, 2..=2, small) || PARTS.contains(&item.name))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, owns};
    use crate::surroundings::Platform;

    #[test]
    fn triton_is_below_its_home() {
        let linux = |variables: &[(&str, &str)], expected: &[&str]| {
            check(Platform::Linux, variables, "triton", expected);
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
            check(Platform::Linux, variables, "inductor", expected);
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
    fn only_their_directories_are_known() {
        assert!(owns("triton", &"AB2".repeat(20)[..52], true));
        assert!(owns("triton", &"0f".repeat(32), true) && owns("triton", &"0f".repeat(16), true));
        assert!(!owns("triton", "mine", true) && !owns("triton", &"AB2".repeat(20)[..52], false));
        assert!(owns("inductor", "zk", true) && owns("inductor", "fxgraph", true));
        assert!(!owns("inductor", "src", true) && !owns("inductor", "zk", false));
    }
}
