//! Paths and names in URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// What has to be encoded in the path of a URL, and in a package URL.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// With every byte that means something else in a URL as `%2B`.
pub(crate) fn encoded(path: &str) -> PercentEncode<'_> {
    utf8_percent_encode(path, ENCODED)
}
