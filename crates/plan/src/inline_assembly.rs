//! What the assembly inside of C++ and OpenCL C reads, told by the text around
//! it: no compiler lists such files.

use crate::include::Include;

/// The files that a source's assembly reads, in order.
///
/// # Errors
/// Where that can't be told, in words that complete "its assembly ...".
pub fn reads(text: &[u8]) -> Result<Vec<Include>, String> {
    let mut found = Vec::new();
    // Most sources have none, and reading them takes longer than hashing them.
    let hint = |four: &[u8]| {
        let is = |part: &[u8]| four.eq_ignore_ascii_case(part);
        four.starts_with(b"asm") || is(b".inc") || is(b"incb")
    };
    if !text.windows(4).any(hint) {
        return Ok(found);
    }
    let mut add = |path: Vec<u8>| -> Result<(), String> {
        let path = String::from_utf8(path).ok().filter(|path| !path.contains('\\'));
        let path = path.ok_or("reads a file whose name its text does not tell")?;
        let include = Include { path, quoted: true };
        if !found.contains(&include) {
            found.push(include);
        }
        Ok(())
    };
    // Outside of strings only where a macro makes one of it: `.incbin "x"`.
    let (mut dot, mut directive) = (false, false);
    // What an ordinary string ends with, which a macro behind it may go on with.
    let mut open: Option<String> = None;
    let mut place = Place::default();
    let mut reader = Reader::of(text);
    while let Some(piece) = reader.next() {
        let (after_dot, after_directive) = (dot, directive);
        (dot, directive) = (false, false);
        let is_assembly = place.is_assembly(&piece, reader.in_directive);
        if let (Some(reason), Piece::Word(_)) = (open.take(), &piece) {
            return Err(reason);
        }
        match piece {
            Piece::Text(path) if after_directive => add(path)?,
            Piece::Word(_) if after_directive => {
                return Err("reads a file whose name its text does not tell".to_owned());
            }
            Piece::Text(text) => {
                let Named { paths, unclear, end } = in_assembly(&text)?;
                for path in paths {
                    add(path)?;
                }
                if is_assembly && let Some(reason) = unclear.or(end.clone()) {
                    return Err(reason);
                }
                open = end;
            }
            Piece::Mark(mark) => dot = mark == b'.',
            Piece::Word(word) => {
                let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
                directive = after_dot && DIRECTIVES.iter().any(|name| is(&name[1..]));
            }
            Piece::Odd => return Err("can't be told from its text".to_owned()),
        }
    }
    Ok(found)
}

const DIRECTIVES: [&str; 2] = [".include", ".incbin"];

/// Where in a source a piece stands.
#[derive(Default)]
struct Place {
    /// Behind the keyword.
    keyword: bool,
    /// Parentheses that are open behind it.
    depth: usize,
    /// In a directive, whether it defines a macro; its first word says that.
    directive: Option<bool>,
}

impl Place {
    /// Whether a piece is within `asm(…)` or the body of a macro, which may
    /// be put there: elsewhere a string is most likely a message.
    fn is_assembly(&mut self, piece: &Piece<'_>, in_directive: bool) -> bool {
        self.directive = match (in_directive, self.directive, piece) {
            (false, ..) => None,
            (true, None | Some(false), Piece::Word(b"define")) => Some(true),
            (true, state, _) => state.or(Some(false)),
        };
        match piece {
            Piece::Word(b"asm" | b"__asm" | b"__asm__") if self.depth == 0 => self.keyword = true,
            Piece::Mark(b'(') if self.keyword || self.depth > 0 => self.depth += 1,
            Piece::Mark(b')') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        // `volatile` and the like may stand in between.
        self.keyword &= matches!(piece, Piece::Word(_));
        self.depth > 0 || self.directive == Some(true)
    }
}

/// What a string would name, were it assembly.
#[derive(Default)]
struct Named {
    paths: Vec<Vec<u8>>,
    /// Why that is not all, if it is assembly.
    unclear: Option<String>,
    /// The same of its end, which something behind it may go on with.
    end: Option<String>,
}

/// The paths of a string's directives, if it is assembly.
///
/// # Errors
/// Where it has a path that does not end, which is nothing else.
fn in_assembly(text: &[u8]) -> Result<Named, String> {
    let lower = text.to_ascii_lowercase();
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$@".contains(&byte);
    let begins = |at: usize| at == 0 || !of_name(lower[at - 1]);
    let mut named = Named::default();
    for directive in DIRECTIVES {
        let mut from = 0;
        while let Some(at) = find(&lower, directive.as_bytes(), from) {
            from = at + directive.len();
            if !begins(at) || lower.get(from).is_some_and(|next| of_name(*next)) {
                continue;
            }
            let rest = text[from..].trim_ascii_start();
            let unclear =
                || format!("has `{directive}` of a file whose name its text does not tell");
            match rest.strip_prefix(b"\"") {
                Some(rest) => {
                    let end = rest.iter().position(|byte| *byte == b'"').ok_or_else(unclear)?;
                    named.paths.push(rest[..end].to_vec());
                }
                None if rest.is_empty() => named.end = Some(unclear()),
                None => named.unclear = Some(unclear()),
            }
        }
    }
    // The rest of a directive's name is a macro's.
    let last = lower.iter().rposition(|byte| *byte == b'.').filter(|at| begins(*at));
    if let Some(at) = last
        && lower.len() - at > 3
        && DIRECTIVES
            .iter()
            .any(|name| name.len() > lower.len() - at && name.as_bytes().starts_with(&lower[at..]))
    {
        named.end = Some("has a directive whose name its text does not tell".to_owned());
    }
    Ok(named)
}

fn find(text: &[u8], part: &[u8], from: usize) -> Option<usize> {
    text[from..].windows(part.len()).position(|window| window == part).map(|at| at + from)
}

/// A piece of C++ or OpenCL C.
enum Piece<'a> {
    /// The content of a string literal, of neighbours joined.
    Text(Vec<u8>),
    /// An identifier or a number.
    Word(&'a [u8]),
    /// Anything else.
    Mark(u8),
    /// Something that can't be read.
    Odd,
}

/// The pieces of a text, without comments, characters and line markers.
#[derive(Clone)]
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line_begins: bool,
    in_directive: bool,
}

impl<'a> Iterator for Reader<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            self.blanks();
            let first = *self.text.get(self.at)?;
            if first == b'#' && self.line_begins {
                if self.is_marker() {
                    self.rest_of_line();
                    continue;
                }
                self.in_directive = true;
            }
            self.line_begins = false;
            if first == b'\'' {
                self.quoted(b'\'');
                continue;
            }
            let mut joined = match self.string() {
                Some(Ok(text)) => text,
                Some(Err(())) => {
                    self.at = self.text.len();
                    return Some(Piece::Odd);
                }
                None if is_of_word(first) => return Some(Piece::Word(self.word())),
                None => {
                    self.at += 1;
                    return Some(Piece::Mark(first));
                }
            };
            loop {
                let here = self.clone();
                self.blanks();
                while self.line_begins && self.is_marker() {
                    self.rest_of_line();
                    self.blanks();
                }
                let ended = here.in_directive && !self.in_directive;
                match self.string().filter(|_| !ended) {
                    Some(Ok(more)) => joined.extend(more),
                    _ => {
                        *self = here;
                        return Some(Piece::Text(joined));
                    }
                }
                self.line_begins = false;
            }
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Reader<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0, line_begins: true, in_directive: false }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    /// Passes white space and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            if let Some(long) = spliced(rest) {
                self.at += long;
            } else if rest.starts_with(b"//") {
                self.rest_of_line();
            } else if rest.starts_with(b"/*") {
                self.at = find(self.text, b"*/", self.at + 2).map_or(self.text.len(), |at| at + 2);
            } else if rest.first() == Some(&b'\n') {
                self.at += 1;
                (self.line_begins, self.in_directive) = (true, false);
            } else if rest.first().is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// Up to the line's end, which stays.
    fn rest_of_line(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match spliced(self.rest()) {
                Some(long) => self.at += long,
                None if byte == b'\n' => return,
                None => self.at += 1,
            }
        }
    }

    /// `# 12 "file"`, which the preprocessor writes.
    fn is_marker(&self) -> bool {
        let rest = self.rest().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        rest.is_some_and(|rest| {
            rest.first().is_some_and(u8::is_ascii_digit) || rest.starts_with(b"line ")
        })
    }

    fn word(&mut self) -> &'a [u8] {
        let from = self.at;
        let number = self.text[from].is_ascii_digit();
        while let Some(&byte) = self.text.get(self.at) {
            let next = self.text.get(self.at + 1);
            // Marks between digits.
            let mark = number && byte == b'\'' && next.is_some_and(|next| is_of_word(*next));
            if !is_of_word(byte) && !mark {
                break;
            }
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    /// Passes a literal that may have escapes, and gives its content decoded.
    fn quoted(&mut self, quote: u8) -> Vec<u8> {
        let mut content = Vec::new();
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            if let Some(long) = spliced(self.rest()) {
                self.at += long;
            } else if byte == b'\\' {
                let (byte, long) = escape(&self.rest()[1..]);
                content.push(byte);
                self.at += 1 + long;
            } else if byte == b'\n' {
                break;
            } else {
                self.at += 1;
                if byte == quote {
                    break;
                }
                content.push(byte);
            }
        }
        content
    }

    /// A string literal, if one begins here.
    fn string(&mut self) -> Option<Result<Vec<u8>, ()>> {
        let rest = self.rest();
        let quote = rest.iter().take(4).position(|byte| *byte == b'"')?;
        let raw = match &rest[..quote] {
            b"" | b"L" | b"u" | b"U" | b"u8" => false,
            b"R" | b"LR" | b"uR" | b"UR" | b"u8R" => true,
            _ => return None,
        };
        self.at += quote;
        if !raw {
            return Some(Ok(self.quoted(b'"')));
        }
        let from = self.at + 1;
        let open = self.text[from..].iter().take(17).position(|byte| *byte == b'(');
        let Some(open) = open else { return Some(Err(())) };
        let close = [b")", &self.text[from..from + open], b"\""].concat();
        let content = from + open + 1;
        let Some(end) = find(self.text, &close, content) else { return Some(Err(())) };
        self.at = end + close.len();
        Some(Ok(self.text[content..end].to_vec()))
    }
}

/// The length of a line break that counts for nothing.
fn spliced(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"\\\n") {
        Some(2)
    } else if text.starts_with(b"\\\r\n") {
        Some(3)
    } else {
        None
    }
}

/// What stands behind a backslash: the byte it means, and its length.
fn escape(text: &[u8]) -> (u8, usize) {
    let number = |text: &[u8], radix: u32, most: usize| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let digits = text.iter().take(most).take_while(is_digit);
        let values = digits.map(|byte| char::from(*byte).to_digit(radix).unwrap_or_default());
        values.fold((0_u8, 0), |(value, count), digit| {
            (value.wrapping_mul(radix as u8).wrapping_add(digit as u8), count + 1)
        })
    };
    match text.first() {
        Some(b'n' | b'r' | b't' | b'v' | b'f' | b'a' | b'b') => (b'\n', 1),
        Some(b'x') => {
            let (value, count) = number(&text[1..], 16, usize::MAX);
            (value, count + 1)
        }
        Some(b'0'..=b'7') => number(text, 8, 3),
        // Names of characters: nothing that assembly could be made of is lost
        // sight of, as a backslash stays.
        Some(b'u' | b'U' | b'N') => (b'\\', 1),
        Some(other) => (*other, 1),
        None => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_assembly_reads_are_told_or_refused() {
        let paths = |text: &str| -> Result<Vec<String>, String> {
            Ok(reads(text.as_bytes())?.into_iter().map(|include| include.path).collect())
        };
        for (text, expected) in [
            (r#"asm(".include \"code.inc\"\n .INCBIN \"/abs\", 4");"#, vec!["code.inc", "/abs"]),
            (r#"asm("l: .inc" "bin \"a\"");"#, vec!["a"]),
            (r##"asm(R"x(.incbin "a")x");"##, vec!["a"]),
            ("#define A \"s_nop 0\"\n#define B \".incbin \\\"b\\\"\"\n", vec!["b"]),
            ("#define A asm(STR(.incbin \"c\"))", vec!["c"]),
            ("x.include(\"a\"); puts(\"include it\"); // .incbin \"no\"", vec![]),
            ("asm(\"s_nop 0\"); log(\".include is not supported: .include x\" );", vec![]),
            ("#error \".include x\"\nasm volatile(\"s_nop 0\"); t(\"use .inc\");", vec![]),
            ("#if 0\nisn't \"\n#endif\nasm(\".incbin \\\"d\\\"\");", vec!["d"]),
        ] {
            assert_eq!(
                paths(text),
                Ok(expected.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
        for text in [
            r#"asm(".incbin \"" PATH "\"");"#,
            r#"asm(".inc" REST);"#,
            r#"asm(".macro m f\n.incbin \"\\f\"\n.endm");"#,
            "asm(STR(.incbin PATH));",
            r#"asm volatile(F(".include x"));"#,
            "#define A \".include x\"\n",
            r#"ASSEMBLE(".incbin " PATH);"#,
            r#"ASSEMBLE(".inc" REST);"#,
            r#"ASSEMBLE(".incbin \"" PATH "\"");"#,
        ] {
            assert!(paths(text).is_err(), "{text}");
        }
    }
}
