//! Splits a Rust source into the tokens that matter for paths, without tests.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A token. Everything that is not part of a path is [`Token::Other`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// `::`
    PathSeparator,
    /// Any other character that is not part of a literal.
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

/// The tokens of a source without comments, literals and items with
/// `#[cfg(test)]`. Empty if the source is not valid Rust, which a compiler
/// reports.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(source.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    let mut after_colon = false;
    while let Some(tree) = trees.next() {
        let is_colon = matches!(&tree, TokenTree::Punct(punct)
            if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                if trees.peek().is_some_and(is_test_mark) {
                    trees.by_ref().find(ends_item);
                }
            }
            TokenTree::Punct(punct) if after_colon && punct.as_char() == ':' => {
                tokens.pop();
                tokens.push(Token::PathSeparator);
            }
            TokenTree::Punct(punct) => tokens.push(Token::Other(punct.as_char())),
            TokenTree::Ident(name) => tokens.push(Token::Name(name.to_string())),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket => ('[', ']'),
                    Delimiter::Parenthesis | Delimiter::None => ('(', ')'),
                };
                tokens.push(Token::Other(open));
                flatten(group.stream(), tokens);
                tokens.push(Token::Other(close));
            }
        }
        after_colon = is_colon;
    }
}

/// Whether an attribute is `[cfg(test)]`.
fn is_test_mark(tree: &TokenTree) -> bool {
    let text = tree.to_string();
    text.split_whitespace().collect::<String>() == "[cfg(test)]"
}

/// Whether an item ends here: with braces, a semicolon or a comma.
fn ends_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => [';', ','].contains(&punct.as_char()),
        _ => false,
    }
}
