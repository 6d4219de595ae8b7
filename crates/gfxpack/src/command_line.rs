//! The command line without clap, for what clap's own messages depend on.

/// What an option says that is given as `--name=VALUE` or `--name VALUE`, also
/// on a command line that clap refuses.
pub(crate) fn value_of(name: &str) -> Option<String> {
    let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = arguments.collect();
    let inline = words.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let next = words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    inline.chain(next).last().map(str::to_owned)
}
