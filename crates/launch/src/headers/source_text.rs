//! The lines and identifiers of a C source, where all compilers see the same.

/// What parts words on a line.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\x0b', '\x0c'];

/// The identifier that a text begins with. To a compiler `$`, letters beyond
/// ASCII and `\u00e4` are parts of one.
pub(super) fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    let goes_on = after.starts_with(|c: char| matches!(c, '$' | '\\') || !c.is_ascii());
    (!goes_on && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()))
        .then_some(name)
}

/// Whether a line is one that means the same to every compiler, told to know
/// trigraphs or not: neither these, nor digraphs of `#`, nor raw strings, nor
/// what only some compilers take for blanks.
pub(super) fn is_plain(line: &str) -> bool {
    let odd = |c: char| !c.is_ascii_graphic() && !BLANKS.contains(&c);
    !line.contains(odd) && !line.starts_with("%:") && !line.contains("??") && !line.contains("R\"")
}

/// The lines with continuations joined and comments made blank; `None` for
/// text that can't be read so: no UTF-8, an unclosed comment, lines that only
/// some compilers end or join.
pub(super) fn logical_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if has_odd_ends(text) {
        return None;
    }
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['/', '"', '\'']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let (inside, after) = comment.split_once("*/")?;
            plain.push(' ');
            // A directive ends with its line, also inside of a comment.
            plain.extend(inside.matches('\n').map(|_| ' '));
            rest = after;
        } else if rest.starts_with('/') {
            plain.push('/');
            rest = &rest[1..];
        } else {
            // A string or character ends on its line or the rest is not read.
            let quote = rest.chars().next()?;
            let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
            let mut escaped = false;
            let end = line.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == quote && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            // An apostrophe may separate digits instead.
            if quote == '\'' && ends_with_number(&plain) && line.contains(['"', '*']) {
                return None;
            }
            let end = end.map_or(line.len(), |(at, c)| at + c.len_utf8());
            plain.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    plain.push_str(rest);
    Some(plain.lines().map(str::to_owned).collect())
}

/// Whether lines end or go on where not all compilers have them do so: at a
/// carriage return alone, and by a backslash with blanks after it or written
/// as a trigraph.
fn has_odd_ends(text: &str) -> bool {
    let lone = |(at, _): (usize, &str)| !text[at + 1..].starts_with('\n');
    let mut lines = text.split_inclusive('\n');
    text.contains("??/")
        || text.match_indices('\r').any(lone)
        || lines.any(|line| {
            let end = line.strip_suffix('\n').unwrap_or(line);
            let end = end.strip_suffix('\r').unwrap_or(end);
            let text = end.trim_end_matches(BLANKS);
            text.len() < end.len() && text.ends_with('\\')
        })
}

/// Whether a text ends within a number.
fn ends_with_number(text: &str) -> bool {
    let inside = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '\'');
    let start = text.rfind(inside).map_or(0, |at| at + 1);
    text[start..].trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit())
}
