//! The differences between versions of MIOpen, in one table.

use gfxpack_model::Target;

use crate::version::numbers;

/// The rules of a range of versions of MIOpen.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MiopenRules {
    /// The versions: `3.3 to 3.4`.
    pub versions: &'static str,
    /// The first version: major and minor.
    since: [u64; 2],
    /// Whether MIOPEN_CUSTOM_CACHE_DIR holds a directory for each version, as
    /// `~/.cache/miopen` does. Otherwise it is the user's kernel cache itself.
    pub versioned_custom_cache: bool,
    /// Devices whose performance and find databases may be named by hardware
    /// compute units in hexadecimal. The names of kdbs do not differ.
    pub hex_databases: &'static [&'static str],
    /// Values of MIOPEN_FIND_MODE with their names.
    pub find_modes: &'static [(u8, &'static str)],
    /// Whether MIOPEN_SEARCH_CUTOFF exists.
    pub search_cutoff: bool,
    /// Whether a performance or find database of the system for another count of compute units
    /// serves if there is none for the device's own.
    pub nearest_database: bool,
}

/// Find modes from 3.5 on.
const FIND_MODES: &[(u8, &str)] = &[
    (1, "NORMAL"),
    (2, "FAST"),
    (3, "HYBRID"),
    (5, "DYNAMIC_HYBRID"),
    (6, "TRUST_VERIFY"),
    (7, "TRUST_VERIFY_FULL"),
];

/// The oldest first.
///
/// Source: ROCm/MIOpen 2d1fd997a (3.3.0), read, and Debian's libMIOpen 3.4.0,
/// observed. ROCm/rocm-libraries, projects/miopen (3.5, of ROCm 7): at
/// 01e83b64b `ComputeUserCachePath` in binary_cache.cpp; at 7552ef203
/// `Handle::GetDbBasename` in handle.hpp; docs/reference/env_variables.rst on
/// find modes; `MIOPEN_SEARCH_CUTOFF` in conv/solver_finders.cpp, since 3.5.1.
static TABLE: [MiopenRules; 3] = [
    MiopenRules {
        versions: "3.3 to 3.4",
        since: [0, 0],
        versioned_custom_cache: false,
        hex_databases: &[],
        find_modes: &[(1, "NORMAL"), (2, "FAST"), (3, "HYBRID"), (5, "DYNAMIC_HYBRID")],
        search_cutoff: false,
        nearest_database: false,
    },
    MiopenRules {
        versions: "3.5",
        since: [3, 5],
        versioned_custom_cache: true,
        hex_databases: &["gfx1100", "gfx1102", "gfx1201"],
        find_modes: FIND_MODES,
        search_cutoff: true,
        nearest_database: false,
    },
    MiopenRules {
        versions: "3.6",
        since: [3, 6],
        versioned_custom_cache: true,
        hex_databases: &["gfx1100", "gfx1102", "gfx1151", "gfx1200", "gfx1201"],
        find_modes: FIND_MODES,
        search_cutoff: true,
        nearest_database: true,
    },
];

impl MiopenRules {
    /// The rules of a version, given as its directory's name: `3.4.0.`. Other
    /// versions get the rules of the nearest known one.
    pub fn of_version(version: &str) -> &'static Self {
        let of = major_and_minor(version);
        TABLE.iter().rev().find(|rules| rules.since <= of).unwrap_or(&TABLE[0])
    }

    /// What to say of a version that is newer than all with rules of their own.
    pub fn stands_in_for(&self, version: &str) -> Option<String> {
        let of = major_and_minor(version);
        let newest = &TABLE[TABLE.len() - 1];
        (newest.since < of).then(|| {
            format!(
                "MIOpen {}.{} has no rules of its own here: those of {} are taken",
                of[0], of[1], newest.versions
            )
        })
    }

    /// Why these versions ignore a variable with this value; `None` if they use
    /// it, or if all versions treat it the same.
    pub fn ignores(&self, variable: &str, value: &str) -> Option<String> {
        let names_mode = |(number, name): &(u8, &str)| {
            value == number.to_string() || value.eq_ignore_ascii_case(name)
        };
        let versions = self.versions;
        match variable {
            "MIOPEN_FIND_MODE" if !self.find_modes.iter().any(names_mode) => {
                Some(format!("none: MIOpen {versions} has no such find mode"))
            }
            "MIOPEN_SEARCH_CUTOFF" if !self.search_cutoff => {
                Some(format!("none: MIOpen {versions} does not know it"))
            }
            _ => None,
        }
    }

    /// The beginnings of names of performance and find databases, in the order
    /// of the search.
    pub fn database_names(&self, target: &Target) -> Vec<String> {
        let plain = target.db_basename();
        let is_hex = self.hex_databases.contains(&target.id().db_id().as_str());
        let hex = target.hex_database_name().filter(|_| is_hex);
        hex.into_iter().chain([plain]).collect()
    }
}

fn major_and_minor(version: &str) -> [u64; 2] {
    let (numbers, _) = numbers(version);
    [0, 1].map(|at| numbers.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_rules() {
        for (version, rules) in [
            ("", "3.3 to 3.4"),
            ("0.1.0", "3.3 to 3.4"),
            ("2.20.0.", "3.3 to 3.4"),
            ("3.4.0.", "3.3 to 3.4"),
            ("3.5.0", "3.5"),
            ("3.5.1.5b2d", "3.5"),
            ("3.6.2.", "3.6"),
            ("3.10.0", "3.6"),
            ("4.0.0", "3.6"),
        ] {
            let found = MiopenRules::of_version(version);
            assert_eq!(found.versions, rules, "{version}");
            let is_newer = ["3.10.0", "4.0.0"].contains(&version);
            assert_eq!(found.stands_in_for(version).is_some(), is_newer, "{version}");
        }
    }

    #[test]
    fn variables_that_a_version_ignores_are_reported() {
        let ignores = |version: &str, variable: &str, value: &str| {
            MiopenRules::of_version(version).ignores(variable, value).is_some()
        };
        for mode in ["1", "normal", "5", "DYNAMIC_HYBRID"] {
            assert!(!ignores("3.4.0", "MIOPEN_FIND_MODE", mode), "{mode}");
        }
        for mode in ["6", "TRUST_VERIFY_FULL"] {
            assert!(ignores("3.4.0", "MIOPEN_FIND_MODE", mode), "{mode}");
            assert!(!ignores("3.5.1", "MIOPEN_FIND_MODE", mode), "{mode}");
        }
        assert!(ignores("3.4.0", "MIOPEN_SEARCH_CUTOFF", "1"));
        assert!(!ignores("3.5.1", "MIOPEN_SEARCH_CUTOFF", "1"));
        assert!(!ignores("3.4.0", "MIOPEN_FIND_ENFORCE", "9"));
    }

    #[test]
    fn names_of_databases_follow_the_version() {
        let names = |version: &str, target: &str| {
            MiopenRules::of_version(version).database_names(&target.parse().expect("a target"))
        };
        assert_eq!(names("3.4.0", "gfx1100@48"), ["gfx1100_48"]);
        assert_eq!(names("3.5.1", "gfx1100@48"), ["gfx110060", "gfx1100_48"]);
        assert_eq!(names("3.5.1", "gfx1151@20"), ["gfx1151_20"]);
        assert_eq!(names("3.6.0", "gfx1151@20"), ["gfx115128", "gfx1151_20"]);
        assert_eq!(names("3.5.1", "gfx906@60"), ["gfx906_60"]);
    }
}
