//! Where xtask talks: standard error, which leaves standard output to what it
//! runs.

#[expect(clippy::print_stderr, reason = "the one place that prints")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}
