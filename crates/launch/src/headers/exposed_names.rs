//! Names in a header that a macro of its includer could change.

/// Calls `found` with every word in a header, comments and strings included. A
/// macro can change the header only if its name is one of these words, or if the
/// header builds it with `##`.
pub(crate) fn exposed_names(bytes: &[u8], found: &mut dyn FnMut(&str)) {
    let text = String::from_utf8_lossy(bytes);
    words(&text).for_each(&mut *found);
    // A name may also be split by a line continuation.
    let joined = Some(joined(&text)).filter(|joined| *joined != text);
    joined.iter().flat_map(|text| words(text)).for_each(found);
}

/// A text with all lines joined that end with a continuation, in the form of a trigraph too.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let text = text.replace("\r\n", "\n").replace("??/", "\\");
    for line in text.split_inclusive(['\n', '\r']) {
        match line.trim_end().strip_suffix('\\') {
            Some(before) => joined.push_str(before),
            None => joined.push_str(line),
        }
    }
    joined
}

/// The identifiers of a text, and parts of numbers that look like identifiers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut names = Vec::new();
        exposed_names(text.as_bytes(), &mut |name| names.push(name.to_owned()));
        assert_eq!(names, expected);
    }

    #[test]
    fn every_word_is_a_name_that_a_macro_could_change() {
        check("// OP\nint x = 1u;", &["OP", "int", "x"]);
        check("#if WG > 0x10\n\"s\"\n#endif", &["if", "WG", "s", "endif"]);
        check("f\\ \noo", &["f", "oo", "foo"]);
        check("f??/\r\noo\rb", &["f", "oo", "b", "foo", "b"]);
    }
}
