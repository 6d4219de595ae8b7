//! Interprets what gpg, gpgv and sqv say about signatures.

use std::collections::BTreeMap;

use gfxpack_process::{SystemTool, ToolOutput};

use crate::finding::Finding;

pub(super) const GPG: SystemTool =
    SystemTool { program: "gpg", provided_by: "gnupg (gnupg2 on Fedora and openSUSE)" };

/// Who minds a weak key.
pub(super) const REFUSED: &str = "apt 3 and RHEL 9 refuse its signatures";

/// The last line of gpg's output, or `nothing`. The number of keys processed is
/// skipped, since it explains nothing.
pub(super) fn last_line(text: &str, nothing: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches("gpg: ").trim_start_matches("gpgv: ").trim());
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("Total number processed");
    lines.rev().find(is_reason).unwrap_or(nothing).to_owned()
}

/// Why no signature is good; `None` if one is good and none is bad. Keys that are `weak`, by
/// fingerprint with what is wrong with them, make no good ones. The exit code does not tell: it is 0
/// for revoked keys, but not 0 for a signature by an unknown key beside a good one.
///
/// Source: GnuPG, doc/DETAILS, "Format of the --status-fd output"; apt's
/// methods/gpgv.cc, which decides alike.
pub(super) fn refused(
    status: &str,
    stderr: &str,
    weak: &BTreeMap<String, String>,
) -> Option<Finding> {
    if !status.contains("[GNUPG:] NEWSIG") {
        // The file is not a signature, so the key is not to blame. What follows is advice.
        return Some(last_line(stderr.lines().next().unwrap_or_default(), "no signature").into());
    }
    let mut good = false;
    let mut reasons = Vec::new();
    for signature in status.split("[GNUPG:] NEWSIG").skip(1) {
        let line = |name: &str| {
            signature.lines().find(|line| {
                let rest = line.strip_prefix("[GNUPG:] ").and_then(|rest| rest.strip_prefix(name));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
        };
        let who = |line: &str| line.split(' ').skip(2).collect::<Vec<_>>().join(" ");
        if let Some(line) = line("BADSIG") {
            return Some(format!("the signature of {} is bad", who(line)).into());
        }
        let flaws = [
            ("REVKEYSIG", "is revoked"),
            ("EXPKEYSIG", "has expired"),
            ("EXPSIG", "made a signature that has expired"),
        ];
        let flaw = flaws.into_iter().find_map(|(name, flaw)| Some((line(name)?, flaw)));
        let valid = line("GOODSIG").zip(line("VALIDSIG"));
        // gpgv may know such a key for bad, and not say why.
        let by = line("VALIDSIG").or_else(|| line("ERRSIG"));
        let weakness = by.and_then(|line| line.split(' ').find_map(|word| weak.get(word)));
        match (flaw, by, weakness) {
            (Some((line, flaw)), ..) => reasons.push(format!("the key {} {flaw}", who(line))),
            (_, Some(by), Some(flaw)) => {
                let key = by.split(' ').nth(2).unwrap_or_default();
                reasons.push(format!("the key {key} {flaw}: {REFUSED}"));
            }
            _ => good |= valid.is_some(),
        }
    }
    let why = || reasons.into_iter().next().unwrap_or_else(|| last_line(stderr, "no signature"));
    (!good).then(|| Finding::unsigned(why()))
}

/// Like [`refused()`], as sqv decides: it does not mind a bad signature beside a good one, nor a
/// key that has expired since.
pub(super) fn refused_by_sqv(sqv: &ToolOutput) -> Option<Finding> {
    if sqv.status.success() {
        return None;
    }
    let lines: Vec<&str> =
        sqv.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let why = lines.join("; ");
    // It could not be read as a signature, or is of something else.
    let is_damage = why.starts_with("Error:") || why.contains("manipulated");
    Some(if is_damage { why.into() } else { Finding::unsigned(why) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_signature_is_enough_unless_another_one_is_bad() {
        let status = |blocks: &[&str]| {
            let lines = blocks.iter().map(|block| format!("[GNUPG:] NEWSIG\n{block}\n"));
            let weak = BTreeMap::from([("5F".to_owned(), "is a DSA key".to_owned())]);
            refused(&lines.collect::<String>(), "gpg: Can't check signature\n", &weak)
        };
        let weak = "[GNUPG:] GOODSIG 5 E\n[GNUPG:] VALIDSIG 5F 2026-01-01";
        let good = "[GNUPG:] GOODSIG 1 A\n[GNUPG:] VALIDSIG 1";
        let unknown = "[GNUPG:] ERRSIG 2 1\n[GNUPG:] NO_PUBKEY 2";
        let expired = "[GNUPG:] EXPKEYSIG 3 C <c@d>\n[GNUPG:] VALIDSIG 3";
        let bad = "[GNUPG:] BADSIG 4 D";
        for accepted in
            [&[good][..], &[good, unknown], &[unknown, good], &[expired, good], &[weak, good]]
        {
            assert_eq!(status(accepted), None, "{accepted:?}");
        }
        for (blocks, why) in [
            (&[unknown][..], "Can't check signature"),
            (&[expired], "the key 3 C <c@d> has expired"),
            (&[unknown, expired], "the key 3 C <c@d> has expired"),
            (&[good, bad], "the signature of 4 D is bad"),
            (&[weak], "the key 5F is a DSA key: apt 3 and"),
            (&["[GNUPG:] ERRSIG 5 1 8 00 1 4 5F"], "the key 5 is a DSA key: apt 3 and"),
            (&["[GNUPG:] GOODSIG 1 A"], "Can't check signature"),
            (&["[GNUPG:] VALIDSIG 1"], "Can't check signature"),
            (&[], "Can't check signature"),
        ] {
            let refused = status(blocks).expect("refused").detail;
            assert!(refused.starts_with(why), "{blocks:?}: {refused}");
        }
    }
}
