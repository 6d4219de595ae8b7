//! Parses and compares version names.

/// The numbers in a name, in order: `3.4.0.` gives 3, 4 and 0. The name itself
/// makes versions with equal numbers distinct.
pub(crate) fn numbers(name: &str) -> (Vec<u64>, String) {
    let numbers = name
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(u64::MAX))
        .collect();
    (numbers, name.to_owned())
}

/// Whether a directory's name is a version as MIOpen writes it: `3.4.0.`,
/// `3.3.0.d12`.
pub(crate) fn is_version(name: &str) -> bool {
    let mut parts = name.split('.');
    let numeric = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    numeric(parts.next())
        && numeric(parts.next())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_recognised_and_ordered() {
        for name in ["3.4.0.", "3.3.0.d12ab", "2.20.0.8103-rocm", "0.1.0"] {
            assert!(is_version(name), "{name}");
        }
        for name in ["", "3", ".gfxpack-locks", "notes", "3.x", "x.3", "3.4/..", "v3.4.0"] {
            assert!(!is_version(name), "{name}");
        }
        assert!(numbers("3.10.0.") > numbers("3.9.0."));
        assert!(numbers("6.4.1") > numbers("6.4"));
    }
}
