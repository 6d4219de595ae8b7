//! Lists of arguments, each in one piece of memory, what many have in common
//! once: a plan of many jobs holds millions of them.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::SplitAsciiWhitespace;
use std::sync::Arc;

use crate::key::KernelKey;

/// Arguments of a command line. None holds a NUL byte: no program could be given
/// it.
#[derive(Clone)]
pub struct Args {
    /// What stands around `own`.
    frame: Option<Arc<SharedArgs>>,
    own: Own,
    count: usize,
}

/// Arguments before and after those that lists have of their own. Every word has
/// a NUL after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SharedArgs {
    before: String,
    after: String,
    count: usize,
}

#[derive(Clone)]
enum Own {
    /// Every word with a NUL after it.
    Text(String),
    /// The key's options, split at blanks.
    Options(Arc<KernelKey>),
}

impl Default for Args {
    fn default() -> Self {
        Self { frame: None, own: Own::Text(String::new()), count: 0 }
    }
}

impl Args {
    /// The words of a key's options between others. What they are if not the
    /// options split at blanks is copied.
    #[must_use]
    pub fn framed(frame: Arc<SharedArgs>, own: &Self, key: &Arc<KernelKey>) -> Self {
        let count = frame.count + own.count;
        let own = match own.iter().eq(key.options().split_ascii_whitespace()) {
            true => Own::Options(Arc::clone(key)),
            false => Own::Text(text(own.iter())),
        };
        Self { frame: Some(frame), own, count }
    }

    /// What stands around a list's own words, if it was made with that.
    #[must_use]
    pub fn frame(&self) -> Option<&SharedArgs> {
        self.frame.as_deref()
    }

    /// The text of a list that has nothing in common with others.
    fn alone(&mut self) -> &mut String {
        if self.frame.is_some() || matches!(self.own, Own::Options(_)) {
            self.own = Own::Text(text(self.iter()));
            self.frame = None;
        }
        match &mut self.own {
            Own::Text(text) => text,
            Own::Options(_) => unreachable!("it is text by now"),
        }
    }

    /// Adds a word; what follows a NUL byte in it is lost, as it is to a
    /// program.
    pub fn push(&mut self, word: &str) {
        let end = word.bytes().position(|byte| byte == 0).unwrap_or(word.len());
        let text = self.alone();
        text.push_str(&word[..end]);
        text.push('\0');
        self.count += 1;
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
        let frame = self.frame.as_deref();
        let (before, after) = frame.map_or(("", ""), |frame| (&frame.before, &frame.after));
        let own = match &self.own {
            Own::Text(text) => OwnIter::Text(text),
            Own::Options(key) => OwnIter::Options(key.options().split_ascii_whitespace()),
        };
        Iter { before, own, after, count: self.count }
    }
}

/// Every word with a NUL after it.
fn text<'a>(words: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut text = String::with_capacity(words.clone().map(|word| word.len() + 1).sum());
    for word in words {
        text.push_str(word);
        text.push('\0');
    }
    text
}

impl SharedArgs {
    /// These words around others.
    #[must_use]
    pub fn new(before: &Args, after: &Args) -> Self {
        let count = before.len() + after.len();
        Self { before: text(before.iter()), after: text(after.iter()), count }
    }

    /// The words before and after others.
    #[must_use]
    pub fn parts(&self) -> [Args; 2] {
        [&self.before, &self.after].map(|text| {
            let own = Own::Text(text.clone());
            Args { frame: None, own, count: text.bytes().filter(|byte| *byte == 0).count() }
        })
    }
}

impl From<SharedArgs> for Args {
    /// With nothing between them.
    fn from(frame: SharedArgs) -> Self {
        Self { count: frame.count, frame: Some(Arc::new(frame)), own: Own::Text(String::new()) }
    }
}

/// Frames, each kept once.
#[derive(Debug, Default)]
pub struct Frames(HashSet<Arc<SharedArgs>>);

impl Frames {
    /// Has a list use the frame that equal ones use already.
    pub fn share(&mut self, args: &mut Args) {
        let Some(frame) = &mut args.frame else { return };
        match self.0.get(&**frame) {
            Some(known) => *frame = Arc::clone(known),
            None => drop(self.0.insert(Arc::clone(frame))),
        }
    }
}

impl PartialEq for Args {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl Eq for Args {}

impl Hash for Args {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.count.hash(state);
        self.iter().for_each(|word| word.hash(state));
    }
}

/// The words of [`Args`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    before: &'a str,
    own: OwnIter<'a>,
    after: &'a str,
    count: usize,
}

#[derive(Debug, Clone)]
enum OwnIter<'a> {
    Text(&'a str),
    Options(SplitAsciiWhitespace<'a>),
}

/// The first of words that each have a NUL after them.
fn first<'a>(left: &mut &'a str) -> Option<&'a str> {
    // Words are short: shorter than what a search for bytes is set up for.
    let end = left.bytes().position(|byte| byte == 0)?;
    let word = &left[..end];
    *left = &left[end + 1..];
    Some(word)
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let word = first(&mut self.before)
            .or_else(|| match &mut self.own {
                OwnIter::Text(left) => first(left),
                OwnIter::Options(words) => words.next(),
            })
            .or_else(|| first(&mut self.after))?;
        self.count -= 1;
        Some(word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> FromIterator<&'a str> for Args {
    fn from_iter<I: IntoIterator<Item = &'a str>>(words: I) -> Self {
        let mut all = Self::default();
        words.into_iter().for_each(|word| all.push(word));
        all
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        for list in [&[][..], &[""], &["a", "", "b c"], &["", ""], &["-DA=\"x\"", "é"]] {
            let words: Args = list.iter().copied().collect();
            assert_eq!(words.iter().collect::<Vec<_>>(), list);
            assert_eq!((words.len(), words.iter().len()), (list.len(), list.len()));
        }
        let one: Args = ["a", "b"].into_iter().collect();
        assert_ne!(one, ["a\0b"].into_iter().collect());
    }

    #[test]
    fn what_lists_have_in_common_does_not_show() {
        let list = |words: &[&str]| words.iter().copied().collect::<Args>();
        let (before, after) = (list(&["-x", ""]), list(&["main"]));
        let frame = || SharedArgs::new(&before, &after);
        assert_eq!(frame().parts(), [before.clone(), after.clone()]);
        assert_eq!(Args::from(frame()), list(&["-x", "", "main"]));
        for (options, own) in [
            ("  -DA=1\t-DB ", &["-DA=1", "-DB"][..]),
            ("", &[]),
            (" -DS=\"x y\"", &["-DS=x y"]),
            (" -mcpu=gfx900 -DA", &["-DA"]),
        ] {
            let kernel_args = format!("{options} -mcpu=gfx906");
            let key = Arc::new(KernelKey { kernel_name: "k.cl.o".to_owned(), kernel_args });
            let mut words = Args::framed(Arc::new(frame()), &list(own), &key);
            let own = own.iter().copied();
            let mut plain: Args = before.iter().chain(own).chain(after.iter()).collect();
            assert_eq!(words, plain);
            assert_eq!((words.len(), words.iter().len()), (plain.len(), plain.len()));
            assert_eq!(HashSet::from([words.clone()]), HashSet::from([plain.clone()]));
            [&mut words, &mut plain].into_iter().for_each(|words| words.push("more"));
            assert_eq!(words, plain);
            assert_eq!(words.iter().last(), Some("more"));
        }
    }

    #[test]
    fn equal_frames_are_kept_once() {
        let words = |main: &str| {
            Args::from(SharedArgs::new(&Args::default(), &[main].into_iter().collect()))
        };
        let mut frames = Frames::default();
        let mut all = ["a", "a", "b"].map(words);
        all.iter_mut().for_each(|args| frames.share(args));
        let same =
            |a: &Args, b: &Args| Arc::ptr_eq(a.frame.as_ref().unwrap(), b.frame.as_ref().unwrap());
        assert!(same(&all[0], &all[1]) && !same(&all[0], &all[2]));
    }
}
