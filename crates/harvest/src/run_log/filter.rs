//! Removes MIOpen's messages that the user did not request from a program's
//! output. All other text is passed on as it comes, even incomplete lines.

use memchr::{memchr, memmem, memrchr};

use crate::log::{BEGIN, MAX_LINE_BYTES};

#[derive(Debug)]
pub(super) struct Filter {
    /// The most detailed level that is shown.
    shown: u8,
    /// Whether driver commands are shown, which have no level.
    commands: bool,
    /// The beginning of a message, or of [`BEGIN`].
    held: Vec<u8>,
    /// Whether `held` is at the beginning of a line.
    begins_line: bool,
}

impl Filter {
    pub(super) fn new(shown: u8, commands: bool) -> Self {
        Self { shown, commands, held: Vec::new(), begins_line: true }
    }

    pub(super) fn push(&mut self, piece: &[u8], show: &mut impl FnMut(&[u8])) {
        self.held.extend_from_slice(piece);
        let mut from = 0;
        loop {
            let rest = &self.held[from..];
            let Some(begin) = memmem::find(rest, BEGIN) else {
                let end = rest.len() - of_begin(rest);
                pass(&rest[..end], show);
                self.passed(from, from + end);
                from += end;
                break;
            };
            let (before, message) = rest.split_at(begin);
            let end = end_of(message).or((message.len() > MAX_LINE_BYTES).then_some(message.len()));
            let Some(end) = end else {
                pass(without_prefix(before, self.begins_line), show);
                self.passed(from, from + begin);
                from += begin;
                break;
            };
            if self.passes(&message[..end]) {
                pass(&rest[..begin + end], show);
            } else {
                pass(without_prefix(before, self.begins_line), show);
            }
            self.passed(from, from + begin + end);
            from += begin + end;
        }
        self.held.drain(..from);
    }

    /// Records how these bytes end.
    fn passed(&mut self, from: usize, to: usize) {
        if let Some(last) = self.held[from..to].last() {
            self.begins_line = *last == b'\n';
        }
    }

    pub(super) fn finish(self, show: &mut impl FnMut(&[u8])) {
        if self.passes(&self.held) {
            pass(&self.held, show);
        }
    }

    /// Whether the user sees the text. It is a message of MIOpen if it begins
    /// like one.
    fn passes(&self, text: &[u8]) -> bool {
        match level(text) {
            Some(COMMAND) => self.commands,
            level => level.is_none_or(|level| level <= self.shown),
        }
    }
}

/// In place of the level that messages with driver commands lack.
const COMMAND: u8 = 0;

fn pass(text: &[u8], show: &mut impl FnMut(&[u8])) {
    if !text.is_empty() {
        show(text);
    }
}

/// How many bytes at the end may be the beginning of [`BEGIN`].
fn of_begin(text: &[u8]) -> usize {
    (1..BEGIN.len()).rev().find(|len| text.ends_with(&BEGIN[..*len])).unwrap_or(0)
}

/// The end of a message: after its newline, or before the next message.
fn end_of(message: &[u8]) -> Option<usize> {
    let line = memchr(b'\n', message).map(|at| at + 1);
    let next = memmem::find(&message[BEGIN.len()..], BEGIN).map(|at| at + BEGIN.len());
    match (line, next) {
        (Some(line), Some(next)) => Some(line.min(next)),
        (line, next) => line.or(next),
    }
}

/// Removes the numbers of process and thread, or the time, which MIOpen can
/// write before its message on the same line.
fn without_prefix(before: &[u8], begins_line: bool) -> &[u8] {
    let line = memrchr(b'\n', before).map(|at| at + 1);
    let Some(start) = line.or(begins_line.then_some(0)) else { return before };
    let prefix = &before[start..];
    let of_numbers = prefix.iter().all(|b| b.is_ascii_digit() || matches!(b, b' ' | b'.'));
    let is_prefix = of_numbers && prefix.ends_with(b" ") && prefix.iter().any(u8::is_ascii_digit);
    if is_prefix { &before[..start] } else { before }
}

/// The level of a message `MIOpen(HIP): Info2 [FUNCTION] …`, with dates allowed
/// in its gaps. `None` for other text.
///
/// Source: ROCm/MIOpen 2d1fd997a, `LoggingLevelToCString` and `LoggingPrefix`
/// in logger.cpp.
fn level(message: &[u8]) -> Option<u8> {
    let head = message.strip_prefix(BEGIN)?;
    let head = &head[..memchr(b'[', head)?];
    if !head.contains(&b')') || !head.contains(&b':') {
        return None;
    }
    let word = head.trim_ascii_end().rsplit(|b| *b == b' ').next()?;
    Some(match word {
        b"Fatal" => 2,
        b"Error" => 3,
        b"Warning" => 4,
        b"Info" => 5,
        b"Info2" => 6,
        b"Trace" => 7,
        b"Command" => COMMAND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown<'a>(level: u8, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut filter = Filter::new(level, true);
        let mut shown = Vec::new();
        let mut show = |text: &[u8]| shown.extend_from_slice(text);
        pieces.into_iter().for_each(|piece| filter.push(piece, &mut show));
        filter.finish(&mut show);
        String::from_utf8(shown).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(shown(4, [text.as_bytes()]), expected);
    }

    #[test]
    fn only_detailed_messages_of_miopen_are_removed() {
        check("a\nMIOpen(HIP): Info2 [F] x\nb\n", "a\nb\n");
        check("MIOpen(HIP): Info [F] x\nMIOpen(HIP): Trace [F] x", "");
        let kept = "MIOpen(HIP): Warning [F] x\nMIOpen(HIP): Error [F] x\n\
                    MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv\n\
                    MIOpen(HIP) is a library\nMIOpen(x)\n";
        check(kept, kept);
        let mut filter = Filter::new(7, false);
        filter
            .push(kept.as_bytes(), &mut |text| assert!(!text.windows(7).any(|w| w == b"Command")));
        let all = "MIOpen(HIP): Info2 [F] x\nMIOpen(HIP): Fatal [F] x\n";
        assert_eq!(shown(7, [all.as_bytes()]), all);
        assert_eq!(shown(1, [all.as_bytes()]), "");
    }

    #[test]
    fn other_text_in_a_line_with_a_message_is_kept() {
        check("\r 10%|MIOpen(HIP): Info2 [F] x\n\r 20%|", "\r 10%|\r 20%|");
        check("MIOpen(HIP): Info2 [F] xMIOpen(HIP): Error [F] y\n", "MIOpen(HIP): Error [F] y\n");
        check("a\n4242 140300175 MIOpen(HIP): Info2 [F] x\nb", "a\nb");
        check("   0.125 MIOpen(HIP)(2024-10-01 12:00:00): Info2 [F] x\n", "");
        check("1 MIOpen(HIP): Error [F] x\n", "1 MIOpen(HIP): Error [F] x\n");
        check("....MIOpen(HIP): Info2 [F] x\n....", "........");
        // A number that ends what came before is the program's.
        let pieces: [&[u8]; 2] = [b"step ", b"5 MIOpen(HIP): Info2 [F] x\n"];
        assert_eq!(shown(4, pieces), "step 5 ");
    }

    #[test]
    fn a_message_without_end_takes_no_more_memory_than_the_limit() {
        let mut filter = Filter::new(4, true);
        filter.push(b"MIOpen(HIP): Info2 [F] ", &mut |_| ());
        for _ in 0..64 {
            filter.push(&[b'x'; 1 << 16], &mut |_| ());
            assert!(filter.held.len() <= MAX_LINE_BYTES + (1 << 16));
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_show_the_same(
            words in proptest::collection::vec(proptest::sample::select(vec![
                "MIOpen(", "HIP): ", "Info2 ", "Warning ", "[F] ", "x", "\n", "\r", "step",
            ]), 0..60),
            size in 1_usize..20,
        ) {
            let text = words.concat();
            prop_assert_eq!(
                shown(4, text.as_bytes().chunks(size)),
                shown(4, [text.as_bytes()])
            );
        }
    }
}
