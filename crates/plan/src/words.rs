//! A list of words in one piece of memory: a plan of many jobs holds millions.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Words of a command line. None holds a NUL byte: no program could be given
/// it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Words {
    /// Every word with a NUL after it.
    text: String,
    count: usize,
}

impl Words {
    /// Adds a word; what follows a NUL byte in it is lost, as it is to a
    /// program.
    pub fn push(&mut self, word: &str) {
        let end = word.bytes().position(|byte| byte == 0).unwrap_or(word.len());
        self.text.push_str(&word[..end]);
        self.text.push('\0');
        self.count += 1;
    }

    /// Adds all of them.
    pub fn extend(&mut self, words: &Self) {
        self.text.push_str(&words.text);
        self.count += words.count;
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The words in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { left: &self.text, count: self.count }
    }

    /// Gives back the memory that was kept for more words.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
    }
}

/// The words of [`Words`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    left: &'a str,
    count: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        // Words are short: shorter than what a search for bytes is set up for.
        let end = self.left.bytes().position(|byte| byte == 0)?;
        let (word, left) = (&self.left[..end], &self.left[end + 1..]);
        self.left = left;
        self.count -= 1;
        Some(word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> FromIterator<&'a str> for Words {
    fn from_iter<I: IntoIterator<Item = &'a str>>(words: I) -> Self {
        let mut all = Self::default();
        words.into_iter().for_each(|word| all.push(word));
        all
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.count))?;
        for word in self.iter() {
            list.serialize_element(word)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of words")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Words::default();
                while let Some(word) = list.next_element::<String>()? {
                    words.push(&word);
                }
                Ok(words)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        for list in [&[][..], &[""], &["a", "", "b c"], &["", ""], &["-DA=\"x\"", "é"]] {
            let words: Words = list.iter().copied().collect();
            assert_eq!(words.iter().collect::<Vec<_>>(), list);
            assert_eq!((words.len(), words.iter().len()), (list.len(), list.len()));
            let json = serde_json::to_string(&words).unwrap();
            assert_eq!(json, serde_json::to_string(list).unwrap());
            assert_eq!(serde_json::from_str::<Words>(&json).unwrap(), words);
        }
        let one: Words = ["a", "b"].into_iter().collect();
        assert_ne!(one, ["a\0b"].into_iter().collect());
    }
}
