//! gpg as a program.

use gfxpack_process::SystemTool;

pub(super) const GPG: SystemTool =
    SystemTool { program: "gpg", provided_by: "gnupg (gnupg2 on Fedora and openSUSE)" };

/// The last thing that gpg said, or `nothing`. How many keys it has seen is no
/// reason for anything.
pub(super) fn last_line(text: &str, nothing: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches("gpg: ").trim());
    let said = |line: &&str| !line.is_empty() && !line.starts_with("Total number processed");
    lines.rev().find(said).unwrap_or(nothing).to_owned()
}
