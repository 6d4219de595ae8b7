//! Reads MessagePack, of which Tensile's lists and kpack's tables are.
//!
//! Source: the MessagePack specification.

use crate::error::{Error, layout};

/// Maps and arrays in one another: kpack has four, a Tensile list one for each predicate.
const DEPTH_MAX: usize = 64;

/// A value, as far as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Map(Vec<(Self, Self)>),
    Array(Vec<Self>),
    Text(String),
    Number(u64),
    /// Anything else.
    Other,
}

impl Value {
    /// The value that the bytes begin with.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Reader { bytes, at: 0 }.value(DEPTH_MAX)
    }

    /// The value of a key, if it is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    pub(crate) fn entries(&self) -> &[(Self, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(crate) fn items(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Shows every text in it, other than keys.
    pub(crate) fn texts(&self, see: &mut dyn FnMut(&str)) {
        match self {
            Self::Map(entries) => entries.iter().for_each(|(_, value)| value.texts(see)),
            Self::Array(items) => items.iter().for_each(|item| item.texts(see)),
            Self::Text(text) => see(text),
            Self::Number(_) | Self::Other => {}
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], Error> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let Some(taken) = taken else { return layout("its MessagePack is cut short") };
        self.at += length;
        Ok(taken)
    }

    /// A number of so many bytes, big-endian.
    fn number(&mut self, length: usize) -> Result<u64, Error> {
        Ok(self.take(length)?.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    fn length(&mut self, bytes: usize) -> Result<usize, Error> {
        Ok(usize::try_from(self.number(bytes)?).unwrap_or(usize::MAX))
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        let mark = self.take(1)?[0];
        Ok(match mark {
            0x00..=0x7f => Value::Number(u64::from(mark)),
            0x80..=0x8f => self.map(usize::from(mark & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(mark & 15), depth)?,
            0xa0..=0xbf => self.text(usize::from(mark & 31))?,
            0xc0..=0xc3 | 0xe0..=0xff => Value::Other,
            // Bytes and extensions, with lengths of 1, 2 and 4 bytes.
            0xc4..=0xc9 => {
                let length = self.length(1 << ((mark - 0xc4) % 3))?;
                self.take(length.saturating_add(usize::from(mark > 0xc6)))?;
                Value::Other
            }
            // Floating-point and signed numbers.
            0xca | 0xcb => self.skip(4 << (mark - 0xca))?,
            0xcc..=0xcf => Value::Number(self.number(1 << (mark - 0xcc))?),
            0xd0..=0xd3 => self.skip(1 << (mark - 0xd0))?,
            0xd4..=0xd8 => self.skip(1 + (1 << (mark - 0xd4)))?,
            0xd9..=0xdb => {
                let length = self.length(1 << (mark - 0xd9))?;
                self.text(length)?
            }
            0xdc | 0xdd => {
                let length = self.length(2 << (mark - 0xdc))?;
                self.array(length, depth)?
            }
            0xde | 0xdf => {
                let length = self.length(2 << (mark - 0xde))?;
                self.map(length, depth)?
            }
        })
    }

    fn skip(&mut self, length: usize) -> Result<Value, Error> {
        self.take(length)?;
        Ok(Value::Other)
    }

    fn text(&mut self, length: usize) -> Result<Value, Error> {
        Ok(Value::Text(String::from_utf8_lossy(self.take(length)?).into_owned()))
    }

    /// How many values there can be: each has at least a byte.
    fn below(&self, length: usize, depth: usize) -> Result<usize, Error> {
        if depth == 0 || length > self.bytes.len() - self.at {
            return layout("its MessagePack is cut short, or too deep");
        }
        Ok(depth - 1)
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, Error> {
        let depth = self.below(length, depth)?;
        Ok(Value::Array((0..length).map(|_| self.value(depth)).collect::<Result<_, _>>()?))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, Error> {
        let depth = self.below(length, depth)?;
        let pair = |_| Ok::<_, Error>((self.value(depth)?, self.value(depth)?));
        Ok(Value::Map((0..length).map(pair).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_cut_ones_refused() {
        let text = |text: &str| Value::Text(text.to_owned());
        let bytes = b"\x83\xa1a\x93\x07\xcd\x01\x00\xc0\xa1b\xd9\x02xy\xa1c\x81\xa1d\xcb12345678";
        let value = Value::parse(bytes).unwrap();
        let array = Value::Array(vec![Value::Number(7), Value::Number(256), Value::Other]);
        assert_eq!(value.get("a"), Some(&array));
        assert_eq!(value.get("b"), Some(&text("xy")));
        assert_eq!(value.get("c").unwrap().get("d"), Some(&Value::Other));
        for length in 0..bytes.len() {
            assert!(Value::parse(&bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(Value::parse(&[0x91; 100]).is_err(), "too deep");
        assert!(Value::parse(b"\xdf\xff\xff\xff\xff").is_err(), "more than there is");
    }
}
