//! How MIOpen is made to tune: by scripts for MIOpenDriver's commands, one after another,
//! which can be resumed, or by the environment of a program that tunes for its own computations.

use std::fmt::Write as _;

use crate::log::DriverCommand;

/// The way in which MIOpen tunes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// Searches for what is in neither the system's nor the user's databases.
    Incremental,
    /// Searches for everything again.
    Exhaustive,
}

impl Tuning {
    /// Its name in messages, and in the names of its lists beside the script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Incremental => "incremental",
            Self::Exhaustive => "exhaustive",
        }
    }

    /// The environment that MIOpen needs.
    ///
    /// Source: ROCm/MIOpen, docs/conceptual/tuningdb.rst, and perfdb.rst on
    /// which find mode is safe with an enforced update; find_db.hpp and
    /// find_controls.hpp at 2d1fd997a on what would keep it from searching or
    /// from noting the result.
    fn environment(self) -> &'static str {
        match self {
            Self::Incremental => {
                "\
# Incremental: what neither the system's databases nor these have.
export MIOPEN_FIND_ENFORCE=3
unset MIOPEN_FIND_MODE MIOPEN_FIND_MODE_FUSION
"
            }
            Self::Exhaustive => {
                "\
# Exhaustive: everything anew. Only find mode NORMAL is safe with that.
export MIOPEN_FIND_ENFORCE=4
export MIOPEN_FIND_MODE=1 MIOPEN_FIND_MODE_FUSION=1
"
            }
        }
    }
}

/// A script that makes MIOpen tune for the commands, all of which should be
/// [tunable](DriverCommand::is_tunable). It keeps everything in its own
/// directory, which may be moved: lists of finished and failed commands, and
/// databases. Each way of tuning has its own, since MIOpen searches for nothing
/// that is in the user's find database.
pub fn tuning(commands: &[DriverCommand], tuning: Tuning) -> String {
    let name = tuning.name();
    let environment = tuning.environment();
    let total = commands.len();
    let mut text = format!(
        "\
#!/bin/sh
# Tunes MIOpen for these problems, on the GPU that the results are for. They go
# to this script's directory, for `gfxpack tune collect`.
# What is done is noted, and not done again by the next run; what fails is
# listed, and tried again. MIOPEN_DRIVER says where MIOpenDriver is.
# Written by gfxpack {version}.
set -u
total={total}
dir=$(cd \"$(dirname \"$0\")\" && pwd) || exit
done=$dir/{name}.done
failures=$dir/{name}.failed

{environment}\
export MIOPEN_USER_DB_PATH=\"$dir/{name}-db\"
# These would keep MIOpen from searching, from noting what it finds, or from
# keeping what it compiles. MIOPEN_SYSTEM_DB_PATH stays as it is.
unset MIOPEN_DEBUG_DISABLE_FIND_DB MIOPEN_DEBUG_FIND_ONLY_SOLVER
unset MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK MIOPEN_DISABLE_CACHE
mkdir -p \"$MIOPEN_USER_DB_PATH\" || exit

driver=${{MIOPEN_DRIVER:-}}
if [ -z \"$driver\" ]; then
    driver=$(command -v MIOpenDriver) || driver=/opt/rocm/bin/MIOpenDriver
fi
if [ ! -x \"$driver\" ]; then
    echo \"error: failed to find MIOpenDriver\" >&2
    echo \"hint: install it (miopen-hip), or say where it is with MIOPEN_DRIVER\" >&2
    exit 127
fi
touch \"$done\" || exit
: >\"$failures\" || exit
number=0
failed=0
trap 'exit 130' INT
trap 'exit 143' TERM

MIOpenDriver() {{
    number=$((number + 1))
    if grep -Fqx -e \"$*\" \"$done\"; then
        return
    fi
    echo \"[$number/$total] MIOpenDriver $*\" >&2
    if \"$driver\" \"$@\"; then
        echo \"$*\" >>\"$done\"
    else
        code=$?
        # Somebody wants all of it to end.
        case $code in 130 | 143) exit $code ;; esac
        echo \"warning: it ended with $code\" >&2
        echo \"$code MIOpenDriver $*\" >>\"$failures\"
        failed=$((failed + 1))
    fi
}}

",
        version = env!("CARGO_PKG_VERSION"),
    );
    for command in commands.iter().map(DriverCommand::for_tuning) {
        writeln!(text, "MIOpenDriver {command}").expect("a String takes all");
    }
    text.push_str(
        "
if [ $failed -gt 0 ]; then
    echo \"$failed of $total commands failed: $failures\" >&2
    exit 1
fi
",
    );
    text
}

/// A variable, and the value that it must have; `None` if it must be unset.
pub type Setting = (&'static str, Option<String>);

/// Variables that control MIOpen's search.
const SEARCH: [&str; 3] = ["MIOPEN_FIND_ENFORCE", "MIOPEN_FIND_MODE", "MIOPEN_FIND_MODE_FUSION"];

/// Variables that would prevent MIOpen from searching, from recording the
/// result, or from keeping compiled kernels.
const IN_THE_WAY: [&str; 4] = [
    "MIOPEN_DEBUG_DISABLE_FIND_DB",
    "MIOPEN_DEBUG_FIND_ONLY_SOLVER",
    "MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK",
    "MIOPEN_DISABLE_CACHE",
];

/// The environment that a program needs so that MIOpen tunes and writes the
/// results to the databases in that directory.
///
/// Both ways tune each problem once that the user's databases lack. Exhaustive
/// tuning also ignores the installed databases: neither their records nor the
/// models beside them prevent a search. Installed kdbs are not found either, so
/// kernels are compiled.
///
/// Source: ROCm/MIOpen, docs/conceptual/tuningdb.rst, "Incremental tuning" and
/// "Exhaustive tuning"; find_db.hpp and find_controls.hpp at 2d1fd997a.
pub fn settings(tuning: Tuning, databases: &str) -> Vec<Setting> {
    let set = |name, value: &str| (name, Some(value.to_owned()));
    let [enforce, mode, fusion_mode] = SEARCH;
    let mut settings = vec![set(enforce, "3"), unset(mode), unset(fusion_mode)];
    if tuning == Tuning::Exhaustive {
        settings.push(set("MIOPEN_SYSTEM_DB_PATH", databases));
    }
    settings.push(set("MIOPEN_USER_DB_PATH", databases));
    settings.extend(IN_THE_WAY.map(unset));
    settings
}

/// Undoes [`settings`]. The directory of the user's databases stays set, since
/// the results are in it.
pub fn unsettings() -> Vec<Setting> {
    SEARCH.into_iter().chain(["MIOPEN_SYSTEM_DB_PATH"]).map(unset).collect()
}

fn unset(name: &'static str) -> Setting {
    (name, None)
}
