//! Reads single options without clap, for clap's own messages.

/// The value of an option that is given as `--name=VALUE` or `--name VALUE`, even
/// if clap rejects the command line.
pub(crate) fn value_of(name: &str) -> Option<String> {
    let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    let inline = arguments.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let next = arguments.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    inline.chain(next).last().map(str::to_owned)
}
