//! The completion script as bash uses it.

use crate::support::project::{Project, tool};

/// Calls bash's completion function for words, of which the last is being
/// written, and prints what it offers.
const ASK: &str = r#"
source ./gfxpack.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_gfxpack gfxpack "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_commands_targets_and_files() {
    let project = Project::new();
    let script = project.run(&["completions", "bash"]).expect_code(0).stdout;
    project.write("gfxpack.bash", &script);
    project.write("keys.jsonl", "");
    project.write("kernels/conv.cl", "");
    project.write("kernels.toml", "");
    let offered = |args: &[&str]| -> Vec<String> {
        let args = [&["--norc", "-c", ASK, "bash", "gfxpack"], args].concat();
        tool("bash", &args, project.path()).lines().map(str::to_owned).collect()
    };
    let has = |args: &[&str], expected: &str| {
        let offered = offered(args);
        assert!(offered.iter().any(|one| one == expected), "{args:?}: {offered:?}");
        offered
    };
    has(&["di"], "dist");
    has(&["kdb", "me"], "merge");
    for command in ["dist", "lookup", "doctor", "ask"] {
        has(&[command, "--target", "gfx90"], "gfx90a");
        has(&[command, "--target", "gfx90a"], "gfx90a@104");
    }
    has(&["dist", "--keys", "key"], "keys.jsonl");
    has(&["dist", "--manifest", "ker"], "kernels.toml");
    // Nothing of the script's own: it asks bash for directories.
    assert_eq!(offered(&["dist", "--source-dir", "ker"]), [""]);
    assert!(script.contains("compopt -o plusdirs"));
    has(&["dist", "--layout", "de"], "debian");
}
