//! The tokens of a Rust source that paths are made of, its tests left out.

/// What paths are read from; everything else is [`Token::Other`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// `::`
    PathSeparator,
    /// Any other character that is neither blank nor part of a text.
    Other(char),
}

impl Token {
    pub(super) fn is(&self, character: char) -> bool {
        *self == Token::Other(character)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// The tokens of a source without comments, texts and what `#[cfg(test)]`
/// stands before.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    without_tests(all(source))
}

fn all(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        if first == '/' && next == Some('/') {
            at = end_of_line(&chars, at);
        } else if first == '/' && next == Some('*') {
            at = end_of_comment(&chars, at);
        } else if first == '"' {
            at = end_of_text(&chars, at);
        } else if let Some(end) = end_of_raw_text(&chars, at) {
            at = end;
        } else if first == '\'' {
            at = end_of_character(&chars, at);
        } else if first.is_alphabetic() || first == '_' {
            let length = chars[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_');
            let end = at + length.count();
            tokens.push(Token::Name(chars[at..end].iter().collect()));
            at = end;
        } else if first == ':' && next == Some(':') {
            tokens.push(Token::PathSeparator);
            at += 2;
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Other(first));
            }
            at += 1;
        }
    }
    tokens
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length)
}

/// Comments may hold comments.
fn end_of_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_text(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of `r#"…"#`, where one begins here.
fn end_of_raw_text(chars: &[char], at: usize) -> Option<usize> {
    let rest = chars[at..].strip_prefix(&['b']).unwrap_or(&chars[at..]);
    let rest = rest.strip_prefix(&['r'])?;
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    let text = rest[hashes..].strip_prefix(&['"'])?;
    let mut end = vec!['"'];
    end.resize(hashes + 1, '#');
    let length = text.windows(end.len()).position(|window| window == end)?;
    Some(chars.len() - text.len() + length + end.len())
}

/// Past `'a'`, or past the quote of a lifetime.
fn end_of_character(chars: &[char], at: usize) -> usize {
    match chars[at + 1..] {
        ['\\', _, ..] => {
            let rest = &chars[at + 3..];
            at + 4 + rest.iter().position(|c| *c == '\'').unwrap_or(rest.len())
        }
        [_, '\'', ..] => at + 3,
        _ => at + 1,
    }
}

fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_mark(&tokens[at..]) {
            at = end_of_item(&tokens, at + TEST_MARK.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

const TEST_MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

fn is_test_mark(tokens: &[Token]) -> bool {
    tokens.len() >= TEST_MARK.len()
        && tokens.iter().zip(TEST_MARK).all(|(token, expected)| match token {
            Token::Name(name) => name == expected,
            Token::Other(character) => expected.chars().eq([*character]),
            Token::PathSeparator => false,
        })
}

/// Past the braces of an item, or past its semicolon or comma.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            Token::Other('{' | '(' | '[') => depth += 1,
            Token::Other('}' | ')' | ']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.is('}') {
                    break;
                }
            }
            Token::Other(';' | ',') if depth == 0 => break,
            _ => {}
        }
    }
    at
}
