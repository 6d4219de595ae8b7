//! Parses gpg's list of secret keys, and chooses which part of a key signs.

/// Why a key can't sign that could again.
pub(super) const EXPIRED: &str = "it has expired";

/// A secret key, or a subkey of one.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) fingerprint: String,
    validity: String,
    pub(super) created: u64,
    pub(super) algorithm: u8,
    /// What it may be used for, one letter each.
    usage: String,
    /// Whether the secret, or a card with it, is available.
    here: bool,
}

/// The keys of a listing, each followed by its subkeys.
///
/// Source: GnuPG, doc/DETAILS, "Format of the colon listings".
pub(super) fn secret_keys(listed: &str) -> Vec<Vec<Part>> {
    let mut keys: Vec<Vec<Part>> = Vec::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |number: usize| fields.get(number - 1).copied().unwrap_or_default();
        match field(1) {
            kind @ ("sec" | "ssb") => {
                let part = Part {
                    fingerprint: String::new(),
                    validity: field(2).to_owned(),
                    created: field(6).parse().unwrap_or(0),
                    algorithm: field(4).parse().unwrap_or(0),
                    usage: field(12).to_owned(),
                    here: field(15) != "#",
                };
                match keys.last_mut() {
                    Some(key) if kind == "ssb" => key.push(part),
                    _ => keys.push(vec![part]),
                }
            }
            "fpr" => {
                if let Some(part) = keys.last_mut().and_then(|key| key.last_mut()) {
                    part.fingerprint = field(10).to_owned();
                }
            }
            _ => {}
        }
    }
    keys
}

/// The part of a key that signs: the newest subkey that may sign, else the key
/// itself; or the part whose ID was given with `!`, as in gpg.
pub(super) fn signing_part<'a>(key: &'a [Part], asked: &str) -> Result<&'a Part, &'static str> {
    let invalid = |part: &Part| match &*part.validity {
        "e" => Some(EXPIRED),
        "r" => Some("it is revoked"),
        "i" | "n" | "d" => Some("gpg holds it for invalid"),
        _ => None,
    };
    if let Some(why) = invalid(&key[0]) {
        return Err(why);
    }
    let exactly = asked.strip_suffix('!').map(|id| id.trim_start_matches("0x").to_uppercase());
    let asked_for = |part: &&Part| {
        part.usage.contains('s')
            && exactly.as_ref().is_none_or(|id| part.fingerprint.ends_with(id.as_str()))
    };
    let (primary, subkeys) = key.split_at(1);
    let mut parts: Vec<&Part> = subkeys.iter().filter(asked_for).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.created));
    parts.extend(primary.iter().filter(asked_for));
    let usable = parts.iter().find(|part| part.here && invalid(part).is_none());
    let none = "it has no part that can sign";
    usable.copied().ok_or_else(|| parts.iter().find_map(|part| invalid(part)).unwrap_or(none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_part_that_may_sign_signs() {
        let part = |line: &str, fpr: &str| format!("{line}\nfpr:::::::::{fpr}:\n");
        let sec = part("sec:u:255:22:AA:100:::u:::scSC:::+:::23::0:", "AA");
        let old = part("ssb:u:255:22:BB:200::::::s:::+:::23::", "BB");
        let new = part("ssb:u:255:19:CC:300::::::s:::+:::23::", "CC");
        let secret = part("ssb:u:255:18:DD:400::::::e:::+:::23::", "DD");
        let check = |listed: &[&str], asked: &str, expected: Result<&str, &str>| {
            let keys = secret_keys(&listed.concat());
            assert_eq!(keys.len(), 1, "{listed:?}");
            let found = signing_part(&keys[0], asked).map(|part| &*part.fingerprint);
            assert_eq!(found, expected, "{listed:?} {asked}");
        };
        check(&[&sec], "a", Ok("AA"));
        check(&[&sec, &old, &new, &secret], "a", Ok("CC"));
        check(&[&sec, &old, &new], "0xbb!", Ok("BB"));
        check(&[&sec, &old, &new.replace("ssb:u", "ssb:e")], "a", Ok("BB"));
        check(&[&sec, &new.replace(":+:", ":#:")], "a", Ok("AA"));
        let certifies = sec.replace("scSC", "cSC");
        check(&[&certifies, &new.replace("ssb:u", "ssb:e")], "a", Err(EXPIRED));
        check(&[&sec.replace("sec:u", "sec:r"), &new], "a", Err("it is revoked"));
        check(&[&certifies, &secret], "a", Err("it has no part that can sign"));
        assert_eq!(secret_keys(&[&*sec, &sec].concat()).len(), 2);
    }
}
