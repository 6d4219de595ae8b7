//! The messages between gfxpack and this program, as lines of [`gfxpack_model::probe_line`].
//!
//! First, gfxpack sends the settings ([`crate::settings`]) over the socket that is standard input.
//! The answer is one line:
//!
//! | line | meaning |
//! | --- | --- |
//! | `ready VERSION MIOPEN` | this program's version, and the library's |
//! | `missing SYMBOL` | the library does not have this function |
//! | `failed REASON` | anything else |
//!
//! Then gfxpack sends sockets over the first one, and a worker serves each. A request is `ask
//! ANSWERS STEPS PROBLEM`: which kernels the stand-in has that no real database contains (`all`,
//! `none`, or `compilable`: all but those that are withheld), the steps ([`crate::steps`]),
//! separated by commas, and a convolution ([`crate::convolution`]). The answer has any number of
//! notes:
//!
//! | note | meaning |
//! | --- | --- |
//! | `step NAME DIRECTION` | what follows belongs to this step |
//! | `key NUMBER NAME ARGUMENTS` | a key is called by this number until `end` |
//! | `asked NUMBER` | the stand-in answered for this key |
//! | `found NUMBER`, `missed NUMBER` | a real database holds the key, or none does; without real ones, the key is withheld |
//! | `function NUMBER NAME` | a function of the key's object was loaded |
//! | `lacks NUMBER NAME` | the key's object does not have that function |
//! | `compile WHAT` | a compiler was started and refused |
//! | `unanswered WHAT` | a stand-in has no answer |
//! | `refused CALL STATUS` | a call of the library failed |
//! | `unrecorded DIRECTION` | the find database does not have the problem |
//!
//! (`function` and `lacks` have `-` if the key is not known) and ends with one of `end done`, `end
//! exited STATUS`, `end killed SIGNAL`, `end overdue`, `end full` (more notes than there is room
//! for) and `end failed REASON`.

/// The fields of an answer to the settings.
pub(crate) type Answer = Vec<Vec<u8>>;

/// The answer that something failed.
pub(crate) fn failed(reason: impl Into<Vec<u8>>) -> Answer {
    vec![b"failed".to_vec(), reason.into()]
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
