//! The known caches.

use crate::cache::Base::{Absolute, File, Fixed, Miopen, NotEmpty, NotIf, Set, Temp, Tilde, Torch};
use crate::cache::Values::{NotEmpty as AnyText, NotOne, Words};
use crate::cache::{Cache, Place, Switch, Values};
use crate::patterns::{
    is_among_parts, is_compiler_cache, is_cuda, is_database, is_dictionary, is_indexed,
    is_inductor, is_kernel_file, is_kernels, is_llvm, is_lock, is_mesa, is_pocl, is_triton,
    is_tuning, is_version,
};

const NOTHING: &str = "nothing is read or kept";
const UNREAD: &str = "what an earlier process compiled is not read";
const LOOPY: &str = "loopy's part is not used";
const EVERYTHING: &str = "XDG_CACHE_HOME moves the caches of all programs that use it, since \
                          there is no variable for this one alone";
const NETWORK: &str = "the temporary directory, for HOME on a network file system";

/// Source: ROCm/MIOpen 2d1fd997a, `IsEnabled` in env.hpp.
const MIOPEN: Values = Words(&["1", "enable", "enabled", "yes", "on", "true"]);
/// Source: pytools, `strtobool`, by loopy's options.py and PyOpenCL's
/// `__init__.py`.
const PYTOOLS: Values = Words(&["y", "yes", "t", "true", "on", "1"]);

const fn switch(
    name: &'static str,
    value: &'static str,
    values: Values,
    effect: &'static str,
) -> Switch {
    Switch { name, value, values, effect, usual: true }
}

/// A switch that `env` does not use.
const fn unusual(name: &'static str, values: Values, effect: &'static str) -> Switch {
    Switch { name, value: "1", values, effect, usual: false }
}

/// A place of results of tuning.
const fn tuning(place: Place) -> Place {
    Place { tuning: true, ..place }
}

/// A place in a directory that many users share, by a rule of its own.
const fn shared(place: Place, rule: &'static str) -> Place {
    Place { shared: true, rule, ..place }
}

/// All caches, in the order of listings.
pub static CACHES: [Cache; 10] = [
    // Source: ROCm/MIOpen 2d1fd997a, `ComputeUserCachePath` in binary_cache.cpp,
    // `PrepareUserDbPath` in db_path.cpp.in, `LockFilePath` in lock_file.cpp.
    Cache {
        name: "miopen",
        about: "compiled kernels, and performance and find databases",
        places: &[
            &[
                Place::of(Miopen("MIOPEN_CUSTOM_CACHE_DIR"), "", is_kernels),
                Place::of(Tilde, ".cache/miopen", is_version),
            ],
            &[
                Place::of(NotIf("MIOPEN_CUSTOM_CACHE_DIR"), "", is_kernel_file),
                shared(Place::of(Temp, "", is_kernel_file), NETWORK),
            ],
            &[
                tuning(Place::of(Miopen("MIOPEN_USER_DB_PATH"), "", is_tuning)),
                tuning(Place::of(Tilde, ".config/miopen", is_tuning)),
            ],
            &[
                Place::of(NotIf("MIOPEN_USER_DB_PATH"), "", is_tuning),
                shared(tuning(Place::of(Temp, "", is_tuning)), NETWORK),
            ],
            &[shared(
                Place::of(Temp, "miopen-lockfiles", is_lock),
                "lock files in the temporary directory",
            )],
        ],
        switches: &[
            switch(
                "MIOPEN_DISABLE_CACHE",
                "1",
                MIOPEN,
                "kernels are neither read nor kept, and installed kdbs are not read",
            ),
            switch(
                "MIOPEN_DEBUG_DISABLE_FIND_DB",
                "1",
                MIOPEN,
                "the find database is neither read nor kept",
            ),
        ],
        disable_note: "MIOPEN_DISABLE_CACHE keeps the installed kdbs from being read too, and the \
                       user's performance database can't be switched off",
        location_variables: &[
            ("MIOPEN_CUSTOM_CACHE_DIR", "miopen/kernels"),
            ("MIOPEN_USER_DB_PATH", "miopen/db"),
        ],
        location_note: "up to MIOpen 3.4 all versions then share one directory of kernels; lock files \
                    stay in the temporary directory",
    },
    // Source: ROCm/llvm-project, `getCacheDirectory` in amd/comgr/src/comgr-env.cpp;
    // LLVM, `cache_directory` in lib/Support/Unix/Path.inc, for which a variable that
    // is set counts.
    Cache {
        name: "comgr",
        about: "what the ROCm runtime compiled",
        places: &[&[
            Place::of(NotEmpty("AMD_COMGR_CACHE_DIR"), "", is_llvm),
            Place::of(Set("XDG_CACHE_HOME"), "comgr", is_llvm),
            Place::of(Set("HOME"), ".cache/comgr", is_llvm),
        ]],
        switches: &[switch("AMD_COMGR_CACHE", "0", Words(&["0"]), NOTHING)],
        disable_note: "",
        location_variables: &[("AMD_COMGR_CACHE_DIR", "comgr")],
        location_note: "",
    },
    // A file. Source: ROCm/rocFFT, `rtccache_db_user_paths` in
    // library/src/rtc_cache.cpp.
    Cache {
        name: "rocfft",
        about: "kernels that rocFFT compiled",
        places: &[&[Place::of(File("ROCFFT_RTC_CACHE_PATH"), "", is_database)]],
        switches: &[
            switch("ROCFFT_RTC_CACHE_READ_DISABLE", "1", AnyText, "it is not read"),
            switch("ROCFFT_RTC_CACHE_WRITE_DISABLE", "1", AnyText, "nothing is added to it"),
        ],
        disable_note: "the kernels that rocFFT ships are not read either; where \
                       ROCFFT_RTC_CACHE_PATH is set, the file is made, and stays empty",
        location_variables: &[("ROCFFT_RTC_CACHE_PATH", "rocfft/kernels.db")],
        location_note: "without the variable it keeps nothing",
    },
    // Source: platformdirs 4.14, `user_cache_dir` in unix.py and `_xdg_dir` in
    // _xdg.py.
    Cache {
        name: "pytools",
        about: "what loopy generated, and PyOpenCL's invokers",
        places: &[&[
            Place::of(Absolute("XDG_CACHE_HOME"), "pytools", is_dictionary),
            Place::of(Set("HOME"), ".cache/pytools", is_dictionary),
        ]],
        switches: &[
            switch("LOOPY_NO_CACHE", "1", PYTOOLS, LOOPY),
            switch("CG_NO_CACHE", "1", PYTOOLS, LOOPY),
            switch("PYOPENCL_NO_CACHE", "1", PYTOOLS, "invokers are not kept"),
        ],
        disable_note: "loopy makes its databases all the same, and leaves them empty",
        location_variables: &[("XDG_CACHE_HOME", "xdg")],
        location_note: EVERYTHING,
    },
    Cache {
        name: "pyopencl",
        about: "binaries of OpenCL programs",
        places: &[&[
            Place::of(Absolute("XDG_CACHE_HOME"), "pyopencl", is_compiler_cache),
            Place::of(Set("HOME"), ".cache/pyopencl", is_compiler_cache),
        ]],
        switches: &[switch("PYOPENCL_NO_CACHE", "1", PYTOOLS, NOTHING)],
        disable_note: "",
        location_variables: &[("XDG_CACHE_HOME", "xdg")],
        location_note: EVERYTHING,
    },
    // Source: pocl 3.1 to 6.0, `pocl_cache_init_topdir` in lib/CL/pocl_cache.c and
    // `pocl_get_bool_option` in lib/CL/pocl_runtime_config.c.
    Cache {
        name: "pocl",
        about: "kernels compiled for the CPU",
        places: &[
            &[
                Place::of(NotEmpty("POCL_CACHE_DIR"), "", is_pocl),
                Place::of(NotEmpty("XDG_CACHE_HOME"), "pocl/kcache", is_pocl),
                Place::of(Absolute("HOME"), ".cache/pocl/kcache", is_pocl),
                Place::of(Fixed("/tmp/pocl/kcache"), "", is_pocl),
            ],
            &[
                Place::of(NotIf("POCL_CACHE_DIR"), "", is_pocl),
                Place::of(NotEmpty("XDG_CACHE_HOME"), "pocl/uncached", is_pocl),
                Place::of(Absolute("HOME"), ".cache/pocl/uncached", is_pocl),
                Place::of(Fixed("/tmp/pocl/uncached"), "", is_pocl),
            ],
        ],
        switches: &[switch("POCL_KERNEL_CACHE", "0", NotOne, NOTHING)],
        disable_note: "PoCL compiles in a directory `uncached` beside it, and cleans up there",
        location_variables: &[("POCL_CACHE_DIR", "pocl")],
        location_note: "",
    },
    // Source: NVIDIA, CUDA C++ Programming Guide, "CUDA Environment Variables".
    Cache {
        name: "cuda",
        about: "code that the CUDA driver compiled",
        places: &[&[
            Place {
                beside: Some(is_indexed),
                ..Place::of(NotEmpty("CUDA_CACHE_PATH"), "", is_cuda)
            },
            Place::of(Set("HOME"), ".nv/ComputeCache", is_cuda),
        ]],
        switches: &[switch("CUDA_CACHE_DISABLE", "1", Words(&["1"]), NOTHING)],
        disable_note: "",
        location_variables: &[("CUDA_CACHE_PATH", "cuda")],
        location_note: "",
    },
    // Source: triton-lang/triton, `FileCacheManager` and `default_cache_dir` in
    // python/triton/runtime/cache.py, and `env_bool` in python/triton/knobs.py.
    Cache {
        name: "triton",
        about: "compiled Triton kernels",
        places: &[&[
            Place::of(NotEmpty("TRITON_CACHE_DIR"), "", is_triton),
            Place::of(Set("TRITON_HOME"), ".triton/cache", is_triton),
            Place::of(Set("HOME"), ".triton/cache", is_triton),
        ]],
        switches: &[unusual(
            "TRITON_ALWAYS_COMPILE",
            Words(&["1", "true", "yes", "on", "y"]),
            "it is not read, but still added to",
        )],
        disable_note: "Triton's cache has no switch: TRITON_ALWAYS_COMPILE=1 only ignores what \
                       is there",
        location_variables: &[("TRITON_CACHE_DIR", "triton")],
        location_note: "",
    },
    // Source: pytorch/pytorch, torch/_inductor/runtime/cache_dir_utils.py and
    // torch/_inductor/config.py.
    Cache {
        name: "inductor",
        about: "what torch.compile generated and compiled",
        places: &[&[
            Place {
                beside: Some(is_among_parts),
                ..Place::of(Set("TORCHINDUCTOR_CACHE_DIR"), "", is_inductor)
            },
            Place::of(Torch, "", is_inductor),
        ]],
        switches: &[
            switch("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1", Words(&["1"]), UNREAD),
            unusual("TORCH_COMPILE_FORCE_DISABLE_CACHES", Words(&["1"]), UNREAD),
        ],
        disable_note: "it compiles in the same directory all the same",
        location_variables: &[("TORCHINDUCTOR_CACHE_DIR", "inductor")],
        location_note: "",
    },
    // A variable that is set but empty leaves Mesa without a place. Source: Mesa,
    // `disk_cache_generate_cache_dir` in src/util/disk_cache_os.c and
    // `debug_parse_bool_option` in src/util/u_debug.c.
    Cache {
        name: "mesa",
        about: "shaders that graphics drivers compiled",
        places: &[&[
            Place::of(Set("MESA_SHADER_CACHE_DIR"), "", is_mesa),
            Place::of(Set("MESA_GLSL_CACHE_DIR"), "", is_mesa),
            Place::of(Set("XDG_CACHE_HOME"), "", is_mesa),
            Place::of(Set("HOME"), ".cache", is_mesa),
        ]],
        switches: &[switch(
            "MESA_SHADER_CACHE_DISABLE",
            "1",
            Words(&["1", "y", "yes", "t", "true"]),
            NOTHING,
        )],
        disable_note: "",
        location_variables: &[("MESA_SHADER_CACHE_DIR", "mesa")],
        location_note: "",
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::user_environment::UserEnvironment;

    fn cache(name: &str) -> &'static Cache {
        CACHES.iter().find(|cache| cache.name == name).expect(name)
    }

    #[test]
    fn places_follow_each_tools_rules() {
        const H: (&str, &str) = ("HOME", "/h");
        const X: (&str, &str) = ("XDG_CACHE_HOME", "/x");
        const EMPTY: (&str, &str) = ("XDG_CACHE_HOME", "");
        const RELATIVE: (&str, &str) = ("XDG_CACHE_HOME", "x");
        let check = |name: &str, variables: &[(&str, &str)], expected: &[&str]| {
            let user = UserEnvironment::new(variables.iter().copied(), Some("ada".to_owned()));
            let found = cache(name).directories(&user);
            let found: Vec<_> = found.iter().map(|one| one.dir.display().to_string()).collect();
            assert_eq!(found, expected, "{name} with {variables:?}");
        };
        let usual =
            ["/h/.cache/miopen", "/tmp", "/h/.config/miopen", "/tmp", "/tmp/miopen-lockfiles"];
        check("miopen", &[H], &usual);
        check("miopen", &[H, X], &usual);
        check(
            "miopen",
            &[H, ("MIOPEN_CUSTOM_CACHE_DIR", "~/k"), ("MIOPEN_USER_DB_PATH", "/d")],
            &["/h/k", "/d", "/tmp/miopen-lockfiles"],
        );
        check(
            "miopen",
            &[("HOME", "/"), ("TMPDIR", "/t")],
            &["/t/.cache/miopen", "/t", "/t/.config/miopen", "/t", "/t/miopen-lockfiles"],
        );
        for (variables, temp) in [
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", "/b"), ("TMPDIR", "/a")], "/a"),
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", "/b"), ("TMPDIR", "")], "/b"),
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", ""), ("TMPDIR", "")], "/c"),
            ([("TEMPDIR", "/d"), ("TEMP", ""), ("TMP", ""), ("TMPDIR", "")], "/d"),
        ] {
            let moved = [("MIOPEN_CUSTOM_CACHE_DIR", "/k"), ("MIOPEN_USER_DB_PATH", "/u")];
            let locks = format!("{temp}/miopen-lockfiles");
            check("miopen", &[&variables[..], &moved].concat(), &["/k", "/u", &locks]);
        }
        check("comgr", &[H], &["/h/.cache/comgr"]);
        check("comgr", &[H, X], &["/x/comgr"]);
        check("comgr", &[H, EMPTY], &[]);
        check("comgr", &[H, X, ("AMD_COMGR_CACHE_DIR", "/c")], &["/c"]);
        check("comgr", &[H, X, ("AMD_COMGR_CACHE_DIR", "")], &["/x/comgr"]);
        check("rocfft", &[H, X], &[]);
        check("rocfft", &[("ROCFFT_RTC_CACHE_PATH", "/d/f.db")], &["/d"]);
        check("rocfft", &[("ROCFFT_RTC_CACHE_PATH", "f.db")], &[]);
        for name in ["pytools", "pyopencl"] {
            check(name, &[H], &[&format!("/h/.cache/{name}")]);
            check(name, &[H, X], &[&format!("/x/{name}")]);
            check(name, &[H, EMPTY], &[&format!("/h/.cache/{name}")]);
            check(name, &[H, RELATIVE], &[&format!("/h/.cache/{name}")]);
            check(name, &[], &[]);
        }
        check("pocl", &[H], &["/h/.cache/pocl/kcache", "/h/.cache/pocl/uncached"]);
        check("pocl", &[H, X], &["/x/pocl/kcache", "/x/pocl/uncached"]);
        check("pocl", &[H, EMPTY], &["/h/.cache/pocl/kcache", "/h/.cache/pocl/uncached"]);
        check("pocl", &[], &["/tmp/pocl/kcache", "/tmp/pocl/uncached"]);
        check("pocl", &[H, RELATIVE], &[]);
        check("pocl", &[X, ("POCL_CACHE_DIR", "/p")], &["/p"]);
        check("pocl", &[H, ("POCL_CACHE_DIR", "p")], &[]);
        check("cuda", &[H, X], &["/h/.nv/ComputeCache"]);
        check("cuda", &[H, ("CUDA_CACHE_PATH", "/c")], &["/c"]);
        check("cuda", &[H, ("CUDA_CACHE_PATH", "")], &["/h/.nv/ComputeCache"]);
        check("triton", &[H, X], &["/h/.triton/cache"]);
        check("triton", &[H, ("TRITON_HOME", "/t")], &["/t/.triton/cache"]);
        check("triton", &[H, ("TRITON_HOME", "")], &[]);
        check("triton", &[("TRITON_CACHE_DIR", "/c"), ("TRITON_HOME", "/t")], &["/c"]);
        check("triton", &[H, ("TRITON_CACHE_DIR", "")], &["/h/.triton/cache"]);
        check("triton", &[H, ("TRITON_CACHE_DIR", "c")], &[]);
        check("inductor", &[], &["/tmp/torchinductor_ada"]);
        check("inductor", &[("USER", "bob")], &["/tmp/torchinductor_bob"]);
        check("inductor", &[("USER", "bob"), ("LOGNAME", "c/d")], &["/tmp/torchinductor_c_d"]);
        check("inductor", &[("TMPDIR", "/t"), ("USER", "")], &["/t/torchinductor_ada"]);
        check("inductor", &[("TMPDIR", ""), ("TEMP", "/u")], &["/u/torchinductor_ada"]);
        check("inductor", &[("TORCHINDUCTOR_CACHE_DIR", "/c")], &["/c"]);
        check("inductor", &[("TORCHINDUCTOR_CACHE_DIR", "")], &[]);
        check("mesa", &[H], &["/h/.cache"]);
        check("mesa", &[H, X], &["/x"]);
        check("mesa", &[H, EMPTY], &[]);
        check("mesa", &[H, X, ("MESA_SHADER_CACHE_DIR", "/m")], &["/m"]);
        check("mesa", &[H, X, ("MESA_GLSL_CACHE_DIR", "/g")], &["/g"]);
    }

    #[test]
    fn no_place_is_relative_or_the_home_directory() {
        let names = CACHES.iter().flat_map(|cache| cache.places).flat_map(|rules| *rules);
        let names = names.map(|place| place.rule).filter(|rule| !rule.contains(' '));
        let names: Vec<&str> = names.chain(["TMPDIR", "TEMP", "TMP", "TEMPDIR"]).collect();
        for value in ["", "relative", ".", "~"] {
            for home in ["", "/h"] {
                let variables = names.iter().map(|name| (*name, value)).chain([("HOME", home)]);
                let user = UserEnvironment::new(variables, None);
                for directory in CACHES.iter().flat_map(|cache| cache.directories(&user)) {
                    let is_home = directory.dir == Path::new("/h");
                    assert!(directory.dir.is_absolute(), "{directory:?} with {value:?}");
                    assert!(!is_home || value == "~", "{directory:?}");
                }
            }
        }
    }

    #[track_caller]
    fn check_switch(cache: &Cache, variable: (&str, &str), expected: &[&str]) {
        let off = cache.switched_off(&UserEnvironment::new([variable], None));
        let names: Vec<&str> = off.iter().map(|(switch, _)| switch.name).collect();
        assert_eq!(names, expected, "{variable:?}");
    }

    #[test]
    fn each_tool_has_its_own_rules_for_values() {
        for (name, variable, off, on) in [
            ("miopen", "MIOPEN_DISABLE_CACHE", &["1", "YES", "on"][..], &["0", "", "2", "y"][..]),
            ("comgr", "AMD_COMGR_CACHE", &["0"], &["1", "", "off", "00"]),
            ("rocfft", "ROCFFT_RTC_CACHE_READ_DISABLE", &["1", "0"], &[""]),
            ("pytools", "LOOPY_NO_CACHE", &["1", "True", "t"], &["0", "", "enable"]),
            ("pyopencl", "PYOPENCL_NO_CACHE", &["1", "TRUE"], &["false"]),
            ("pocl", "POCL_KERNEL_CACHE", &["0", "", "yes"], &["1", "10"]),
            ("cuda", "CUDA_CACHE_DISABLE", &["1"], &["0", ""]),
            ("triton", "TRITON_ALWAYS_COMPILE", &["1", "y"], &["0", "t"]),
            ("inductor", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", &["1"], &["0", "true"]),
            ("mesa", "MESA_SHADER_CACHE_DISABLE", &["1", "true"], &["false", "on"]),
        ] {
            off.iter().for_each(|value| check_switch(cache(name), (variable, value), &[variable]));
            on.iter().for_each(|value| check_switch(cache(name), (variable, value), &[]));
        }
        for cache in &CACHES {
            for switch in cache.switches {
                check_switch(cache, (switch.name, switch.value), &[switch.name]);
            }
        }
    }
}
