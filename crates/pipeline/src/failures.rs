//! Failed kernels grouped by reason, since thousands of failures mostly have a
//! handful of reasons; and the excerpt of a compiler's output that is worth
//! showing.

use std::collections::HashMap;

use gfxpack_compile::{Failure, FailureKind};
use gfxpack_model::JobId;

use crate::ledger::Reason;
use crate::text::grouped;

/// Kernels that failed for the same reason.
#[derive(Debug, Clone)]
pub struct FailureGroup {
    /// The first failure, which stands for all.
    pub example: Failure,
    /// Jobs, in the order in which they failed.
    pub jobs: Vec<JobId>,
}

impl FailureGroup {
    /// The reason as one line.
    pub fn title(&self) -> String {
        let kind = || self.example.kind.to_string();
        reason_of(&self.example).map_or_else(kind, str::to_owned)
    }
}

/// All failed kernels by reason, in the order in which the reasons appeared.
#[derive(Debug, Clone, Default)]
pub struct FailureGroups {
    /// The groups.
    pub list: Vec<FailureGroup>,
    by_reason: HashMap<String, usize>,
}

impl FailureGroups {
    /// Adds a failure. Returns the index of its group, and how many were in it
    /// before.
    pub fn add(&mut self, job: JobId, failure: &Failure) -> (usize, usize) {
        let group = *self.by_reason.entry(reason_key(failure)).or_insert_with(|| {
            self.list.push(FailureGroup { example: failure.clone(), jobs: Vec::new() });
            self.list.len() - 1
        });
        let before = self.list[group].jobs.len();
        self.list[group].jobs.push(job);
        (group, before)
    }
}

/// Why a kernel is absent whose job failed.
pub(crate) fn absence(failure: &Failure) -> (Reason, String) {
    let reason = if failure.is_kernels_fault() { Reason::Refused } else { Reason::Failed };
    let line = reason_of(failure).map(|line| format!(": {line}"));
    (reason, format!("{}{}", failure.kind, line.unwrap_or_default()))
}

/// The line of the compiler's output that says why the job failed; `None` if the
/// output has nothing to do with it.
pub fn reason_of(failure: &Failure) -> Option<&str> {
    let is_compilers = matches!(failure.kind, FailureKind::Refused(_) | FailureKind::Crashed(_));
    is_compilers.then(|| first_error_line(&failure.output)).flatten().map(str::trim)
}

/// What is the same for failures with the same reason, and for no others.
fn reason_key(failure: &Failure) -> String {
    let kind = &failure.kind;
    let about = match kind {
        FailureKind::Refused(_) | FailureKind::Crashed(_) => {
            reason_of(failure).map(normalised).unwrap_or_default()
        }
        // The time limit and the targets are not part of the reason.
        FailureKind::TimedOut(_) | FailureKind::WrongTarget { .. } => String::new(),
        // Programs make up a file's name in each run.
        FailureKind::Writes(path) => {
            path.parent().map(|dir| dir.display().to_string()).unwrap_or_default()
        }
        FailureKind::NoCodeObject(_) | FailureKind::ReadsProc(_) => {
            without_numbers(&kind.to_string())
        }
        // Paths are part of the reason.
        _ => kind.to_string(),
    };
    format!("{}\n{about}", kind.name())
}

/// The first line of a compiler's output that looks like a reason.
fn first_error_line(output: &str) -> Option<&str> {
    let signs = ["error:", "Assertion", "UNREACHABLE", "LLVM ERROR"];
    let first = output.lines().find(|line| signs.iter().any(|sign| line.contains(sign)));
    first.or_else(|| output.lines().find(|line| !line.trim().is_empty()))
}

/// A line without what differs from kernel to kernel: locations, directories,
/// numbers.
fn normalised(line: &str) -> String {
    let message = without_location(line.trim());
    let mut normal = String::with_capacity(message.len());
    for word in message.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        // For `'/x/y/z.h'`, keep what precedes the path.
        let path = word.find('/').filter(|_| !word.contains("//"));
        let start = path
            .map_or(0, |at| word[..at].rfind(['\'', '"', '(', '=', '`']).map_or(0, |at| at + 1));
        let end = path.map_or(0, |_| word.rfind('/').map_or(0, |at| at + 1));
        let short = format!("{}{}", &word[..start], &word[end.max(start)..]);
        normal.push_str(&without_numbers(&short));
    }
    normal
}

/// `error: …` out of `dir/k.cl:12:5: error: …`.
fn without_location(line: &str) -> &str {
    let sign = ["fatal error:", "error:"].iter().filter_map(|sign| line.find(sign)).min();
    let Some(at) = sign else { return line };
    let before = line[..at].trim_end();
    // Keep a program's name: `ld.lld: error:` is not a location in a source.
    let place = before.strip_suffix(':').unwrap_or(before);
    let is_place = place
        .rsplit(':')
        .next()
        .is_some_and(|last| !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()));
    if is_place { &line[at..] } else { line }
}

fn without_numbers(word: &str) -> String {
    let mut normal = String::with_capacity(word.len());
    let mut in_number = false;
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let hexadecimal = letter == '0' && matches!(letters.peek(), Some('x' | 'X'));
        if hexadecimal {
            letters.next();
            while letters.peek().is_some_and(char::is_ascii_hexdigit) {
                letters.next();
            }
        }
        if letter.is_ascii_digit() {
            if !in_number {
                normal.push('#');
            }
            in_number = true;
        } else {
            normal.push(letter);
            in_number = false;
        }
    }
    normal
}

/// How many lines of a compiler's output are shown.
const LINES: usize = 10;
/// How many characters of a line are shown.
const LETTERS: usize = 400;

/// Some lines of an output, and how many others there are.
#[derive(Debug)]
pub struct Excerpt {
    /// The first lines, or, if they do not include the line with the reason,
    /// those from it on.
    pub lines: Vec<String>,
    /// What is left out: `6,923 more lines`.
    pub more: Option<String>,
}

impl Excerpt {
    /// Of a compiler's output.
    pub fn new(output: &str) -> Self {
        let all: Vec<&str> = output.lines().collect();
        let reason = first_error_line(output);
        let reason = reason.and_then(|reason| all.iter().position(|line| *line == reason));
        // Thousands of warnings may precede the reason.
        let start = reason.filter(|reason| *reason >= LINES).unwrap_or(0);
        let shown = &all[start..all.len().min(start + LINES)];
        let lines: Vec<String> = shown.iter().map(|line| shortened(line)).collect();
        let is_cut = lines.iter().zip(shown).any(|(line, whole)| line != whole);
        let more = match all.len() - shown.len() {
            0 if !is_cut => None,
            0 => Some("the whole lines".to_owned()),
            1 => Some("1 more line".to_owned()),
            more => Some(format!("{} more lines", grouped(more))),
        };
        Self { lines, more }
    }

    /// The lines as text; the last one says how many are left out.
    pub fn text(&self) -> String {
        match &self.more {
            Some(more) => format!("{}\n… {more}", self.lines.join("\n")),
            None => self.lines.join("\n"),
        }
    }
}

/// The line, cut so that it does not fill a terminal.
pub fn shortened(line: &str) -> String {
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gfxpack_compile::{Site, Usage};

    use super::*;

    fn failure(kind: FailureKind, output: &str) -> Failure {
        let (duration, usage) = (Duration::ZERO, Usage::default());
        Failure { kind, output: output.to_owned(), duration, usage, site: Site::Here }
    }

    fn refused(output: &str) -> Failure {
        failure(FailureKind::Refused(1), output)
    }

    /// Whether two outputs of a compiler belong to the same group.
    fn alike(a: &str, b: &str) -> bool {
        let mut groups = FailureGroups::default();
        let pair = [a, b].map(|output| groups.add(JobId(0), &refused(output)).0);
        pair[0] == pair[1]
    }

    #[test]
    fn locations_and_numbers_do_not_change_the_reason() {
        for (a, b) in [
            ("a.cl:1:2: error: no member 'x'", "src/b.cl:30:4: error: no member 'x'"),
            (
                "In file included from a.cl:1:\n./x.h:3:1: error: no 'y'\n  3 | y\n    | ^",
                "b.cl:9:1: error: no 'y'\n  9 | y;\n    | ^\n1 error generated.",
            ),
            ("error: register v258 at 0xfe01", "error: register v1024 at 0xA2"),
            (
                "clang: error: no such file or directory: '/tmp/x1/a.h'",
                "clang: error: no such file or directory: '/tmp/y2/b/a.h'",
            ),
            ("<inline asm>:3:5: error: bad operand", "<inline asm>:14:1: error: bad operand"),
            ("", "\n"),
        ] {
            assert!(alike(a, b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn different_messages_are_different_reasons() {
        for (a, b) in [
            ("a.cl:1:2: error: no member 'x'", "a.cl:1:2: error: no member 'y'"),
            ("a.cl:1:2: error: out of range", "ld.lld: error: out of range"),
            (
                "a.cl:1:1: warning: w\na.cl:2:2: error: one",
                "a.cl:1:1: warning: w\na.cl:2:2: error: two",
            ),
            ("error: file 'a.h' not found", "error: file 'b.h' not found"),
            ("", "error: x"),
        ] {
            assert!(!alike(a, b), "{a:?} {b:?}");
        }
        let mut groups = FailureGroups::default();
        let crash = failure(FailureKind::Crashed(11), "error: x");
        assert_ne!(groups.add(JobId(0), &crash).0, groups.add(JobId(1), &refused("error: x")).0);
    }
}
