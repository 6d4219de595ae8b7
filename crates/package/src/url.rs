//! Encodes paths and names for URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Characters that have to be encoded in the path of a URL, and in a package URL.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path with all special characters encoded, such as `%2B`.
pub(crate) fn encoded(path: &str) -> PercentEncode<'_> {
    utf8_percent_encode(path, ENCODED)
}
