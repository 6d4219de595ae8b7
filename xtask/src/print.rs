//! Prints xtask's messages on stderr. stdout belongs to the programs that it runs.

#[expect(clippy::print_stderr, reason = "the one place that prints")]
pub(crate) fn print(text: &str) {
    eprintln!("{text}");
}
