//! The tokens of a Rust source that paths are made of, its tests left out.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// What paths are read from; everything else is [`Token::Other`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// `::`
    PathSeparator,
    /// Any other character that is no part of a literal.
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

/// The tokens of a source without comments, literals and what `#[cfg(test)]`
/// stands before. None for what is no Rust: a compiler tells.
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

/// Whether an item ends here, in braces, or by a semicolon or comma.
fn ends_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => [';', ','].contains(&punct.as_char()),
        _ => false,
    }
}
