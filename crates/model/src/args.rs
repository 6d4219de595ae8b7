//! Compact lists of arguments: each list is one string, and arguments that many
//! lists share are stored once. A plan of many jobs holds millions of
//! arguments.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::SplitAsciiWhitespace;
use std::sync::Arc;

use crate::key::KernelKey;

/// Arguments of a command line. They contain no NUL bytes, which no program
/// could receive.
#[derive(Clone)]
pub struct Args {
    /// The shared arguments before and after `own`.
    frame: Option<Arc<SharedArgs>>,
    own: Own,
    count: usize,
}

/// Arguments before and after those of a list's own. Each is followed by a NUL
/// byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SharedArgs {
    before: String,
    after: String,
    count: usize,
}

#[derive(Clone)]
enum Own {
    /// Each argument is followed by a NUL byte.
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
    /// A key's options between shared arguments. `own` is copied only if it
    /// differs from the key's options split at blanks.
    #[must_use]
    pub fn framed(frame: Arc<SharedArgs>, own: &Self, key: &Arc<KernelKey>) -> Self {
        let count = frame.count + own.count;
        let own = if own.iter().eq(key.options().split_ascii_whitespace()) {
            Own::Options(Arc::clone(key))
        } else {
            Own::Text(text(own.iter()))
        };
        Self { frame: Some(frame), own, count }
    }

    /// The shared arguments of a list, if it was made with [`Args::framed`].
    #[must_use]
    pub fn frame(&self) -> Option<&SharedArgs> {
        self.frame.as_deref()
    }

    /// The text of this list; it is first converted to one without shared
    /// arguments.
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

    /// Adds an argument; it is cut at its first NUL byte, as a program would
    /// see it.
    pub fn push(&mut self, arg: &str) {
        let end = arg.bytes().position(|byte| byte == 0).unwrap_or(arg.len());
        let text = self.alone();
        text.push_str(&arg[..end]);
        text.push('\0');
        self.count += 1;
    }

    /// Number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The arguments in order.
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

/// Joins arguments; each is followed by a NUL byte.
fn text<'a>(args: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut text = String::with_capacity(args.clone().map(|arg| arg.len() + 1).sum());
    for arg in args {
        text.push_str(arg);
        text.push('\0');
    }
    text
}

impl SharedArgs {
    /// These arguments before and after others.
    #[must_use]
    pub fn new(before: &Args, after: &Args) -> Self {
        let count = before.len() + after.len();
        Self { before: text(before.iter()), after: text(after.iter()), count }
    }

    /// The arguments before and after others.
    #[must_use]
    pub fn parts(&self) -> [Args; 2] {
        [&self.before, &self.after].map(|text| {
            let own = Own::Text(text.clone());
            Args { frame: None, own, count: text.bytes().filter(|byte| *byte == 0).count() }
        })
    }
}

impl From<SharedArgs> for Args {
    /// With nothing between the two parts.
    fn from(frame: SharedArgs) -> Self {
        Self { count: frame.count, frame: Some(Arc::new(frame)), own: Own::Text(String::new()) }
    }
}

/// Stores equal shared arguments only once.
#[derive(Debug, Default)]
pub struct Frames(HashSet<Arc<SharedArgs>>);

impl Frames {
    /// Makes the list use shared arguments that an equal list already uses.
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
        self.iter().for_each(|arg| arg.hash(state));
    }
}

/// Iterates over the arguments of [`Args`].
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

/// Splits off the first argument, which ends at a NUL byte.
fn first<'a>(left: &mut &'a str) -> Option<&'a str> {
    // Arguments are short, so the set-up of a faster search would not pay off.
    let end = left.bytes().position(|byte| byte == 0)?;
    let arg = &left[..end];
    *left = &left[end + 1..];
    Some(arg)
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let arg = first(&mut self.before)
            .or_else(|| match &mut self.own {
                OwnIter::Text(left) => first(left),
                OwnIter::Options(args) => args.next(),
            })
            .or_else(|| first(&mut self.after))?;
        self.count -= 1;
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> FromIterator<&'a str> for Args {
    fn from_iter<I: IntoIterator<Item = &'a str>>(args: I) -> Self {
        let mut all = Self::default();
        args.into_iter().for_each(|arg| all.push(arg));
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
    fn arguments_are_returned_unchanged() {
        for list in [&[][..], &[""], &["a", "", "b c"], &["", ""], &["-DA=\"x\"", "é"]] {
            let args: Args = list.iter().copied().collect();
            assert_eq!(args.iter().collect::<Vec<_>>(), list);
            assert_eq!((args.len(), args.iter().len()), (list.len(), list.len()));
        }
        let one: Args = ["a", "b"].into_iter().collect();
        assert_ne!(one, ["a\0b"].into_iter().collect());
    }

    #[test]
    fn lists_with_shared_arguments_equal_plain_ones() {
        let list = |args: &[&str]| args.iter().copied().collect::<Args>();
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
            let mut args = Args::framed(Arc::new(frame()), &list(own), &key);
            let own = own.iter().copied();
            let mut plain: Args = before.iter().chain(own).chain(after.iter()).collect();
            assert_eq!(args, plain);
            assert_eq!((args.len(), args.iter().len()), (plain.len(), plain.len()));
            assert_eq!(HashSet::from([args.clone()]), HashSet::from([plain.clone()]));
            [&mut args, &mut plain].into_iter().for_each(|args| args.push("more"));
            assert_eq!(args, plain);
            assert_eq!(args.iter().last(), Some("more"));
        }
    }

    #[test]
    fn equal_shared_arguments_are_stored_once() {
        let args = |main: &str| {
            Args::from(SharedArgs::new(&Args::default(), &[main].into_iter().collect()))
        };
        let mut frames = Frames::default();
        let mut all = ["a", "a", "b"].map(args);
        all.iter_mut().for_each(|args| frames.share(args));
        let same =
            |a: &Args, b: &Args| Arc::ptr_eq(a.frame.as_ref().unwrap(), b.frame.as_ref().unwrap());
        assert!(same(&all[0], &all[1]) && !same(&all[0], &all[2]));
    }
}
