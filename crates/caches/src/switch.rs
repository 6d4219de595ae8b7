//! The variables that switch a cache off, and the values that do.

use std::ffi::OsStr;

use crate::user_environment::UserEnvironment;

/// A variable that switches a cache, or a part of it, off.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Switch {
    /// `POCL_KERNEL_CACHE`.
    pub name: &'static str,
    /// A value that switches it off: `0`.
    pub value: &'static str,
    /// The effect of this value; completes "off: …".
    pub effect: &'static str,
    /// Whether this is the recommended variable. The others have an older name,
    /// or only prevent reading the cache.
    pub usual: bool,
    rule: Rule,
}

/// Which values count, by the tool's own rules.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// One of these, ignoring case.
    Words(&'static [&'static str]),
    /// Anything but the empty text, even `0`.
    NotEmpty,
    /// Anything that does not begin with `1`.
    NotOne,
}

/// A variable that is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwitchedOff {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The effect; completes "off: …".
    pub effect: &'static str,
}

impl Switch {
    pub(crate) const fn new(
        name: &'static str,
        value: &'static str,
        rule: Rule,
        effect: &'static str,
    ) -> Self {
        Self { name, value, effect, usual: true, rule }
    }

    /// A switch that `env` does not use.
    pub(crate) const fn unusual(self) -> Self {
        Self { usual: false, ..self }
    }

    /// The variable, if its value switches the cache off.
    pub(crate) fn in_effect(&self, environment: &UserEnvironment) -> Option<SwitchedOff> {
        let value = environment.raw(self.name)?;
        self.rule.holds(value).then(|| SwitchedOff {
            name: self.name,
            value: value.to_string_lossy().into_owned(),
            effect: self.effect,
        })
    }
}

impl Rule {
    fn holds(self, value: &OsStr) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            Self::NotEmpty => !value.is_empty(),
            Self::NotOne => !value.as_encoded_bytes().starts_with(b"1"),
        }
    }
}

/// Every variable that can switch a cache off, by its tool's own rules.
///
/// Source: see each rule.
pub(crate) mod rules {
    use super::Rule;

    /// Source: ROCm/MIOpen 2d1fd997a, `IsEnabled` in env.hpp.
    pub(crate) const MIOPEN: Rule = Rule::Words(&["1", "enable", "enabled", "yes", "on", "true"]);
    /// Source: ROCm/llvm-project, `getCacheDirectory` in
    /// amd/comgr/src/comgr-env.cpp.
    pub(crate) const COMGR: Rule = Rule::Words(&["0"]);
    /// Source: ROCm/rocFFT, library/src/rtc_cache.cpp.
    pub(crate) const ROCFFT: Rule = Rule::NotEmpty;
    /// Source: pytools, `strtobool`, by loopy's options.py and PyOpenCL's
    /// `__init__.py`.
    pub(crate) const PYTOOLS: Rule = Rule::Words(&["y", "yes", "t", "true", "on", "1"]);
    /// Source: pocl 3.1 to 6.0, `pocl_get_bool_option` in
    /// lib/CL/pocl_runtime_config.c.
    pub(crate) const POCL: Rule = Rule::NotOne;
    /// Source: NVIDIA, CUDA C++ Programming Guide, "CUDA Environment
    /// Variables"; pytorch/pytorch, torch/_inductor/config.py.
    pub(crate) const ONE: Rule = Rule::Words(&["1"]);
    /// Source: triton-lang/triton, `env_bool` in python/triton/knobs.py.
    pub(crate) const TRITON: Rule = Rule::Words(&["1", "true", "yes", "on", "y"]);
    /// Source: Mesa, `debug_parse_bool_option` in src/util/u_debug.c.
    pub(crate) const MESA: Rule = Rule::Words(&["1", "y", "yes", "t", "true"]);
}

#[cfg(test)]
mod tests {
    use crate::user_environment::UserEnvironment;

    #[track_caller]
    fn check(cache: &str, variable: (&str, &str), expected: &[&str]) {
        let environment = UserEnvironment::new([variable], None);
        let caches = crate::known(&environment);
        let cache = caches.iter().find(|one| one.name == cache).expect(cache);
        let off = cache.switched_off(&environment);
        let names: Vec<&str> = off.iter().map(|off| off.name).collect();
        assert_eq!(names, expected, "{variable:?}");
    }

    #[test]
    fn each_tool_has_its_own_rules_for_values() {
        for (cache, name, off, on) in [
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
            for value in off {
                check(cache, (name, value), &[name]);
            }
            for value in on {
                check(cache, (name, value), &[]);
            }
        }
    }

    #[test]
    fn the_printed_values_switch_the_caches_off() {
        let environment = UserEnvironment::new([("HOME", "/h")], None);
        for cache in crate::known(&environment) {
            for switch in cache.switches {
                check(cache.name, (switch.name, switch.value), &[switch.name]);
            }
        }
    }
}
